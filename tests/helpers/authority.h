/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for tests, made by openssl(1) when a test program begins: nothing of them
 * is kept in the repository. Aborts when it is not there. */
#ifndef TEST_AUTHORITY_H
#define TEST_AUTHORITY_H

/* A directory of its own, removed by test_authority_end. In it, once this returns,
 * ca.crt: an authority. */
const char *test_authority_begin(void);
void test_authority_end(void);

/* NAME.crt and NAME.key, from the authority of this name ("ca"); `days` below 0: it has
 * expired. `extensions`: lines of x509v3_config(5): "subjectAltName=DNS:localhost". */
void test_authority_issue(const char *authority, const char *name, int days,
                          const char *extensions);
/* Another authority: NAME.crt and NAME.key. */
void test_authority_make(const char *name);

/* The path of a file in the directory; one of a few buffers that are used in turn. */
const char *test_authority_path(const char *file);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for tests. openssl(1) makes them when a test program begins, so none are
 * in the repository. Aborts if openssl(1) is missing. */
#ifndef TEST_AUTHORITY_H
#define TEST_AUTHORITY_H

/* Makes a directory, which test_authority_end removes, and in it an authority: ca.crt and
 * ca.key. Returns the directory's path. */
const char *test_authority_begin(void);
void test_authority_end(void);

/* Makes NAME.crt and NAME.key, issued by the authority of that name ("ca"), valid for
 * `days`; 0 or below: expired. `extensions`: lines of x509v3_config(5), such as
 * "subjectAltName=DNS:localhost". */
void test_authority_issue(const char *authority, const char *name, int days,
                          const char *extensions);
/* Makes another authority: NAME.crt and NAME.key. */
void test_authority_make(const char *name);

/* Returns the path of a file in the directory, in one of a few buffers used in turn. */
const char *test_authority_path(const char *file);

#endif

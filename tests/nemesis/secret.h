/* SPDX-License-Identifier: Apache-2.0 */
/* Aborts the process when a part of the password in its URL is in a text of the
 * library's. Thread: any. */
#ifndef NEM_SECRET_H
#define NEM_SECRET_H

/* Once, before threads start; NULL: there is no URL. */
void nem_secret_find(const char *url);
/* what: names the text in the message. */
void nem_secret_hear(const char *what, const char *text);

#endif

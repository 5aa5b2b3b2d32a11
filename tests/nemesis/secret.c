/* SPDX-License-Identifier: Apache-2.0 */
/* See secret.h. State: the password, which does not change. */
#include "secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECRET_MIN = 6, SECRET_SIZE = 4096 };

static char secret[SECRET_SIZE]; /* "": there is none */

void nem_secret_find(const char *url)
{
    const char *user = url ? strstr(url, "//") : NULL;
    const char *password = user ? strchr(user, ':') : NULL;
    const char *at = user ? strchr(user, '@') : NULL;
    if (password && at && at - password > SECRET_MIN && at - password < SECRET_SIZE)
        memcpy(secret, password + 1, (size_t)(at - password - 1));
}

void nem_secret_hear(const char *what, const char *text)
{
    char part[SECRET_MIN + 1] = "";
    size_t len = strlen(secret);
    for (size_t i = 0; i + SECRET_MIN <= len; i++) {
        memcpy(part, secret + i, SECRET_MIN);
        if (!strstr(text, part))
            continue;
        fprintf(stderr, "crewman: the password is in %s: %s\n", what, text);
        abort();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The URL and the attributes that a program sets for the default client. client_table.c
 * keeps them, and guards them by its mutex. Thread: any. */
#include "client/client_impl.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rlk_client_default_copy(struct rlk_client_default *copy, const char *url,
                            const rlock_clientattr_t *attr)
{
    *copy = (struct rlk_client_default){ 0 };
    if (url)
        copy->url = strdup(url);
    if (attr)
        copy->attr = malloc(sizeof(*copy->attr));
    if (copy->attr)
        memcpy(copy->attr, attr, sizeof(*copy->attr));
    if (!url == !copy->url && !attr == !copy->attr)
        return 0;
    rlk_client_default_clear(copy);
    return rlk_error_set(ENOMEM, "out of memory");
}

void rlk_client_default_clear(struct rlk_client_default *settings)
{
    if (settings->url)
        explicit_bzero(settings->url, strlen(settings->url));
    free(settings->url);
    if (settings->attr)
        explicit_bzero(settings->attr, sizeof(*settings->attr));
    free(settings->attr);
    *settings = (struct rlk_client_default){ 0 };
}

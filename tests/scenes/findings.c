/* SPDX-License-Identifier: Apache-2.0 */
/* See findings.h. */
#include "findings.h"

#include "wait.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static int keep(const rlock_finding_t *finding, void *arg)
{
    struct findings *f = arg;

    ck_assert_int_lt(f->count, FINDINGS_MAX);
    f->each[f->count].severity = finding->severity;
    snprintf(f->each[f->count].topic, sizeof(f->each[0].topic), "%s", finding->topic);
    snprintf(f->each[f->count].text, sizeof(f->each[0].text), "%s", finding->text);
    f->count++;
    return 0;
}

void findings_of(struct findings *f, rlock_client_t *client)
{
    memset(f, 0, sizeof(*f));
    f->rc = rlock_client_diagnose(client, keep, f);
}

void findings_at(struct findings *f, const char *url, const char *user,
                 const char *password)
{
    rlock_clientattr_t attr;
    rlock_client_t *client = NULL;

    ck_assert_int_eq(rlock_clientattr_init(&attr), 0);
    if (password)
        ck_assert_int_eq(rlock_clientattr_setcredentials(&attr, user, password), 0);
    ck_assert_int_eq(rlock_client_open(&client, url, &attr), 0);
    ck_assert_int_eq(rlock_clientattr_destroy(&attr), 0);
    findings_of(f, client);
    ck_assert_int_eq(rlock_client_close(client), 0);
}

bool findings_have(const struct findings *f, int severity, const char *topic,
                   const char *text)
{
    for (int i = 0; i < f->count; i++)
        if ((severity < 0 || f->each[i].severity == severity) &&
            strcmp(f->each[i].topic, topic) == 0 && strstr(f->each[i].text, text))
            return true;
    return false;
}

int findings_worst(const struct findings *f, const char *topic)
{
    int worst = 99;
    for (int i = 0; i < f->count; i++)
        if ((!topic || strcmp(f->each[i].topic, topic) == 0) &&
            f->each[i].severity < worst)
            worst = f->each[i].severity;
    return worst;
}

const char *findings_text(const struct findings *f)
{
    static char text[FINDINGS_MAX * 200];
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < f->count && at < sizeof(text); i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%d %s: %s\n",
                               f->each[i].severity, f->each[i].topic, f->each[i].text);
    return text;
}

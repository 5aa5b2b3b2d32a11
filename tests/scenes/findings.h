/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the findings of rlock_client_diagnose for a test. Thread: one at a time. */
#ifndef TEST_FINDINGS_H
#define TEST_FINDINGS_H

#include <rlock.h>
#include <stdbool.h>

enum { FINDINGS_MAX = 40, FINDING_TEXT_MAX = 1200 };

struct findings {
    int rc; /* the result of the call */
    int count;
    struct {
        int severity;
        char topic[32], text[FINDING_TEXT_MAX];
    } each[FINDINGS_MAX];
};

/* Runs a diagnosis with this client. */
void findings_of(struct findings *f, rlock_client_t *client);
/* The same with a new client of this URL, as `user` unless that is NULL. */
void findings_at(struct findings *f, const char *url, const char *user,
                 const char *password);

/* Whether there is a finding of this topic and severity (-1: any) whose text contains
 * `text`. */
bool findings_have(const struct findings *f, int severity, const char *topic,
                   const char *text);
/* The gravest severity of the topic (NULL: of all topics); 99: no finding. */
int findings_worst(const struct findings *f, const char *topic);
/* All findings as text, for messages; valid until the next call. */
const char *findings_text(const struct findings *f);

/* Asserts that the diagnosis succeeded and has this finding. */
#define FOUND(f, severity, topic, text)                                                  \
    ck_assert_msg((f)->rc == 0 && findings_have((f), (severity), (topic), (text)),       \
                  "rc %d, not found: %d %s \"%s\", but:\n%s", (f)->rc, (severity),       \
                  (topic), (text), findings_text(f))

#endif

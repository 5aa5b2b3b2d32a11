/* SPDX-License-Identifier: Apache-2.0 */
/* The worker prefixes each answer with "= ", because news can come at any time. */
#include "worker.h"

#include "die.h"
#include "wait.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_TIMEOUT_MS = 20000 };
static const char answer_mark[] = "= ";

static bool begins(const char *line, const char *prefix)
{
    return strncmp(line, prefix, strlen(prefix)) == 0;
}

static void keep_news(struct worker *w, const char *line)
{
    if (w->news_count == WORKER_NEWS_MAX)
        test_die("a worker has more news than anybody reads: %s", line);
    snprintf(w->news[w->news_count++], WORKER_LINE_MAX, "%s", line);
}

/* Reads one line into w->answer. */
static bool next_line(struct worker *w, int64_t end)
{
    int64_t left = end - test_now_ms();
    if (left < 0)
        left = 0;
    /* `end` already includes the scale */
    return test_program_read(&w->program, w->answer, sizeof(w->answer),
                             (long)(left / test_ms(1)));
}

void worker_start(struct worker *w, const char *url)
{
    worker_start_env(w, url, NULL);
}

void worker_start_env(struct worker *w, const char *url, const char *const env[])
{
    char path[PATH_MAX], command[WORKER_LINE_MAX];
    memset(w, 0, sizeof(*w));
    test_build_path(path, sizeof(path), "tests/worker");
    const char *const argv[] = { path, NULL };
    test_program_start(&w->program, argv, env);
    if (!url)
        return;
    snprintf(command, sizeof(command), "open %s", url);
    if (!worker_says(w, command, "ok"))
        test_die("a worker cannot open %s: %s", url, w->answer);
}

void worker_end(struct worker *w)
{
    test_program_end(&w->program);
}

void worker_send(struct worker *w, const char *command)
{
    if (!test_program_write(&w->program, command))
        test_die("a worker does not read: %s", command);
}

const char *worker_ask(struct worker *w, const char *command, long ms)
{
    int64_t end = test_now_ms() + test_ms(ms);
    if (!test_program_write(&w->program, command))
        return NULL;
    while (next_line(w, end)) {
        if (begins(w->answer, answer_mark))
            return w->answer + strlen(answer_mark);
        keep_news(w, w->answer);
    }
    return NULL;
}

bool worker_says(struct worker *w, const char *command, const char *wanted)
{
    const char *answer = worker_ask(w, command, ANSWER_TIMEOUT_MS);
    bool right = answer && begins(answer, wanted);
    if (!answer) /* the line that came last was no answer */
        snprintf(w->answer, sizeof(w->answer), "(nothing)");
    if (!right)
        fprintf(stderr, "worker: \"%s\" was answered \"%s\", not \"%s\"\n", command,
                answer ? answer : w->answer, wanted);
    return right;
}

long long worker_number(struct worker *w, const char *command)
{
    const char *answer = worker_ask(w, command, ANSWER_TIMEOUT_MS);
    char *rest = NULL;
    const char *digits = answer && begins(answer, "ok ") ? answer + strlen("ok ") : "";
    long long n = strtoll(digits, &rest, 10);
    if (rest == digits)
        test_die("worker: \"%s\" was answered \"%s\", no number", command,
                 answer ? answer : "(nothing)");
    return n;
}

static const char *take_news(struct worker *w, const char *prefix)
{
    for (size_t i = 0; i < w->news_count; i++) {
        if (!begins(w->news[i], prefix))
            continue;
        memcpy(w->line, w->news[i], WORKER_LINE_MAX);
        w->news_count--;
        memmove(w->news[i], w->news[i + 1], (w->news_count - i) * WORKER_LINE_MAX);
        return w->line;
    }
    return NULL;
}

const char *worker_news(struct worker *w, const char *prefix, long ms)
{
    int64_t end = test_now_ms() + test_ms(ms);
    for (;;) {
        const char *line = take_news(w, prefix);
        if (line || !next_line(w, end))
            return line;
        if (!begins(w->answer, answer_mark)) /* else: the answer to a worker_send */
            keep_news(w, w->answer);
    }
}

void worker_kill(struct worker *w)
{
    test_program_kill(&w->program);
}

void worker_stop(struct worker *w)
{
    test_program_stop(&w->program);
}

void worker_cont(struct worker *w)
{
    test_program_cont(&w->program);
}

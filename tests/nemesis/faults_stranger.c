/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults by strangers: another process does each (stranger.c), so that the driver does
 * not wait for a server that another step has stopped. It ends when its stdin ends; by
 * then it has undone what it can, and has printed how many times it acted.
 */
#include "faults_impl.h"

#include "die.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void start_stranger(struct nem_faults *f, struct nem_active *a)
{
    char path[PATH_MAX], number[24];
    test_build_path(path, sizeof(path), "tests/nemesis/stranger");
    snprintf(number, sizeof(number), "%u", a->record.index);
    const char *argv[] = { path,           nem_kind_name(a->step->kind),
                           f->server.path, f->dir,
                           number,         NULL };
    test_program_start(&a->stranger, argv, NULL);
}

/* Delays replies, so that a message is read before the reply to which it belongs. */
static void begin_with_late_replies(struct nem_faults *f, struct nem_active *a)
{
    const struct test_rule rule = { .on = TEST_ON_REPLY,
                                    .action = TEST_DELAY,
                                    .delay_ms = (long)a->step->amount };
    for (unsigned i = 0; a->step->amount > 0 && i < f->processes; i++)
        a->rules[i * NEM_RULES_EACH] = test_proxy_add(f->proxies[i], &rule);
    start_stranger(f, a);
}

static bool end_stranger(struct nem_faults *f, struct nem_active *a)
{
    struct test_program *p = &a->stranger;
    char line[64];
    int status;
    if (a->stage++ == 0) {
        nem_lift(f, a);
        close(p->in);
        p->in = -1;
    }
    if (waitpid(p->pid, &status, WNOHANG) != p->pid)
        return false;
    p->pid = 0;
    if (status != 0 || !test_program_read(p, line, sizeof(line), 0))
        test_die("the stranger of %s ended with 0x%x", nem_kind_name(a->step->kind),
                 (unsigned)status);
    a->record.hits = (uint32_t)strtoul(line, NULL, 10);
    return true;
}

const struct nem_action nem_stranger_actions[NEM_KINDS] = {
    [NEM_FORGE] = { .begin = begin_with_late_replies, .end = end_stranger },
    [NEM_LONG_MESSAGES] = { .begin = start_stranger, .end = end_stranger },
    [NEM_HOSTILE] = { .begin = start_stranger, .end = end_stranger },
    [NEM_FORCE] = { .begin = begin_with_late_replies, .end = end_stranger },
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's commands about conditions, as listed at the top of worker.c. Any thread
 * runs them; only one command at a time creates or ends a given condition. */
#include "worker_commands.h"

#include <rlock.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CONDS_MAX = 16, MS_PER_S = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

struct cond {
    char tag[TAG_MAX];
    clockid_t clock;
    rlock_cond_t cond;
};
static struct cond conds[CONDS_MAX];

static struct cond *find(const char *tag)
{
    for (int i = 0; i < CONDS_MAX; i++)
        if (strcmp(conds[i].tag, tag) == 0)
            return &conds[i];
    return NULL;
}

static void do_cond(const struct words *w, char *answer)
{
    struct cond *c = find(word(w, 1)) ? find(word(w, 1)) : find("");
    const char *value;
    rlock_condattr_t attr;

    if (!c || w->count < 3) {
        put(answer, "? cond CONDITION NAME, or too many conditions");
        return;
    }
    rlock_condattr_init(&attr);
    c->clock = CLOCK_REALTIME;
    if ((value = option(w, "clock")) && strcmp(value, "mono") == 0)
        c->clock = CLOCK_MONOTONIC;
    int rc = rlock_condattr_setclock(&attr, c->clock);
    if (rc == 0 && current_client())
        rc = rlock_condattr_setclient(&attr, current_client());
    if (rc == 0 && (value = option(w, "outage")))
        rc = rlock_condattr_setoutage(
            &attr, strcmp(value, "fail") == 0 ? RLOCK_OUTAGE_FAIL : RLOCK_OUTAGE_WAIT);
    if (rc == 0 && (value = option(w, "pshared")))
        rc = rlock_condattr_setpshared(&attr, atoi(value));
    if (rc == 0)
        rc = rlock_cond_init(&c->cond, &attr, word(w, 2));
    if (rc == 0)
        strcpy(c->tag, word(w, 1));
    rlock_condattr_destroy(&attr);
    put_code(answer, rc);
}

static struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    ts.tv_sec += ms / MS_PER_S;
    ts.tv_nsec += ms % MS_PER_S * NS_PER_MS;
    if (ts.tv_nsec >= NS_PER_S) {
        ts.tv_nsec -= NS_PER_S;
        ts.tv_sec++;
    }
    return ts;
}

static int wait_with(struct cond *c, const struct words *w, char how)
{
    rlock_mutex_t *m;
    rlock_fair_t *f;
    clockid_t clock = how == 'c' ? CLOCK_MONOTONIC : c->clock;
    struct timespec at = in_ms(clock, strtol(word(w, 3), NULL, 10));

    find_exclusive(word(w, 2), &m, &f);
    if (!m && !f)
        return EINVAL;
    if (how == 'w')
        return m ? rlock_cond_wait(&c->cond, m) : rlock_cond_fairwait(&c->cond, f);
    if (how == 't')
        return m ? rlock_cond_timedwait(&c->cond, m, &at)
                 : rlock_cond_fairtimedwait(&c->cond, f, &at);
    return m ? rlock_cond_clockwait(&c->cond, m, clock, &at)
             : rlock_cond_fairclockwait(&c->cond, f, clock, &at);
}

static int run(struct cond *c, const struct words *w)
{
    const char *verb = word(w, 0);

    if (strcmp(verb, "signal") == 0)
        return rlock_cond_signal(&c->cond);
    if (strcmp(verb, "broadcast") == 0)
        return rlock_cond_broadcast(&c->cond);
    if (strcmp(verb, "destroycond") == 0) {
        int rc = rlock_cond_destroy(&c->cond);
        if (rc == 0)
            c->tag[0] = '\0';
        return rc;
    }
    return wait_with(c, w, verb[0]);
}

bool run_cond_command(const struct words *w, char *answer)
{
    static const char *const verbs[] = { "signal", "broadcast", "destroycond",
                                         "wait",   "timedwait", "clockwait" };
    bool known = false;

    if (strcmp(word(w, 0), "cond") == 0) {
        do_cond(w, answer);
        return true;
    }
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        known |= strcmp(word(w, 0), verbs[i]) == 0;
    if (!known)
        return false;
    struct cond *c = w->count > 1 ? find(word(w, 1)) : NULL;
    if (c)
        put_code(answer, run(c, w));
    else
        put(answer, "? no such condition");
    return true;
}

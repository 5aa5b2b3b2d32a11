/* SPDX-License-Identifier: Apache-2.0 */
/* The codes of calls, and the times at which they returned. */
#include "judge_impl.h"

const char *nem_call_name(unsigned call)
{
    static const char *const names[] = { "no call",   "lock",      "timedlock",
                                         "trylock",   "rdlock",    "timedrdlock",
                                         "tryrdlock", "unlock",    "downgrade",
                                         "extend",    "consistent" };
    return call < sizeof(names) / sizeof(names[0]) ? names[call] : "?";
}

/* ---- code */

/* Whether a call may return its code whatever else happens. ENOTCONN, EACCES and
 * ECANCELED need a reason. */
static bool may_return(const struct nem_made *made)
{
    const struct nem_op *invoke = made->invoke;
    unsigned call = invoke->call;
    int code = made->ret->code;
    bool robust = nem_robust(invoke->lock);
    bool late = made->ret->at >= invoke->deadline - NEM_ROUNDED;
    if (nem_is_acquire(call))
        return code == 0 || (code == ESTALE && made->hold && !made->first) ||
               (robust && (code == EOWNERDEAD || code == ENOTRECOVERABLE)) ||
               (nem_is_try(call) && code == EBUSY) ||
               (nem_is_timed(call) && code == ETIMEDOUT && late);
    return code == 0 || code == ESTALE;
}

static bool waits_for_ever(unsigned call)
{
    return call == NEM_LOCK || call == NEM_RDLOCK;
}

/* Whether the deadline is so near that a busy machine alone may use up that time: `part`
 * of the slack. */
static bool is_hurried(const struct nem_judge *j, const struct nem_op *invoke, int part)
{
    return nem_is_timed(invoke->call) &&
           invoke->deadline - invoke->at < nem_slack(j) / part;
}

/* A call may fail without asking a server only if a fault kept the server away, or if
 * there was too little time. */
static bool was_unreachable(const struct nem_judge *j, const struct nem_made *call)
{
    enum { OF_SLACK = 5 };
    const struct nem_op *invoke = call->invoke;
    /* no more than a busy machine may take without a recorded stall (pulse.c) */
    return is_hurried(j, invoke, OF_SLACK) ||
           /* another thread may ask for the process: if its poll is refused, this call
            * learns nothing either */
           (nem_is_timed(invoke->call) && nem_refused(j, invoke->at, call->ret->at)) ||
           nem_unreachable_for(j, invoke->process, invoke->lock, invoke->at,
                               call->ret->at);
}

static bool code_has_reason(const struct nem_judge *j, const struct nem_made *call)
{
    unsigned which = call->invoke->call;
    int code = call->ret->code;
    if (may_return(call))
        return true;
    if (code == EACCES)
        return nem_refused(j, call->invoke->at, call->ret->at);
    if (code == ECANCELED) /* a process that ends may interrupt its waits */
        return nem_is_acquire(which) && call->life->dying <= call->ret->at;
    return code == ENOTCONN && !waits_for_ever(which) && which != NEM_UNLOCK &&
           which != NEM_CONSISTENT && was_unreachable(j, call);
}

static void judge_code(struct nem_judge *j, const struct nem_made *call)
{
    nem_judged(j, NEM_RULE_CODE);
    if (!code_has_reason(j, call))
        nem_violation(j, NEM_RULE_CODE, call->invoke->lock,
                      "%s: %s from %.3f to %.3f ms gave %d", nem_who(call->invoke),
                      nem_call_name(call->invoke->call), nem_ms(j, call->invoke->at),
                      nem_ms(j, call->ret->at), call->ret->code);
}

/* ---- bound (L7) */

/* The time by which a call must have returned if its process ran; INT64_MAX: it may
 * wait. */
static int64_t due(const struct nem_judge *j, const struct nem_op *invoke)
{
    enum { CANCEL_MS = 100, OF_SLACK = 40 };
    int64_t timeout = j->round->commandtimeout_ms * NEM_NS_PER_MS;
    int64_t by = invoke->at + timeout;
    if (waits_for_ever(invoke->call))
        return INT64_MAX;
    /* if the deadline passes before the call looks at it, the call is like a try */
    if (nem_is_timed(invoke->call) && !is_hurried(j, invoke, OF_SLACK))
        by = invoke->deadline + CANCEL_MS * NEM_NS_PER_MS;
    return by + nem_slack(j);
}

/* The time until which a call that has not returned was surely waiting. When all
 * processes rest, only those of killed ones are open. */
static int64_t waited_until(const struct nem_judge *j, const struct nem_made *call)
{
    int64_t until = j->round->given_up ? j->round->given_up : j->round->ended;
    if (call->life->dying < until)
        until = call->life->dying;
    return call->life->over < until ? call->life->over : until;
}

static void judge_bound(struct nem_judge *j, const struct nem_made *call)
{
    const struct nem_op *invoke = call->invoke;
    int64_t until = call->ret ? call->ret->at : waited_until(j, call);
    int64_t by = due(j, invoke);
    if (by == INT64_MAX || (!call->ret && until <= by))
        return;
    nem_judged(j, NEM_RULE_BOUND);
    if (until > by && until > by + nem_stopped_ns(j, invoke->process, invoke->at, until))
        nem_violation(j, NEM_RULE_BOUND, invoke->lock,
                      "%s: %s of %.3f ms was to return by %.3f ms, and %s %.3f ms",
                      nem_who(invoke), nem_call_name(invoke->call), nem_ms(j, invoke->at),
                      nem_ms(j, by), call->ret ? "did at" : "had not at",
                      nem_ms(j, until));
}

/* ---- starved (L3); a process that did not run kept all others out, and so does each
 * long section of those who come first: of 128 threads several may have one */

static void judge_starved(struct nem_judge *j, const struct nem_made *call)
{
    const struct nem_op *invoke = call->invoke;
    int64_t until = call->ret ? call->ret->at : waited_until(j, call);
    int64_t from = invoke->at > j->round->calm ? invoke->at : j->round->calm;
    int64_t by = from + j->round->patience_ms * NEM_NS_PER_MS;
    if (!waits_for_ever(invoke->call) || until < from || (!call->ret && until <= by))
        return;
    nem_judged(j, NEM_RULE_STARVED);
    if (until > by && until > by + nem_stalled_ns(j, from, until) +
                                  nem_nobodys_ns(j, invoke->lock, from, until) +
                                  nem_long_sections_ns(j, invoke->lock, from, until))
        nem_violation(j, NEM_RULE_STARVED, invoke->lock,
                      "%s: %s of %.3f ms %s %.3f ms; all was calm at %.3f ms",
                      nem_who(invoke), nem_call_name(invoke->call), nem_ms(j, invoke->at),
                      call->ret ? "returned at" : "had not returned at", nem_ms(j, until),
                      nem_ms(j, j->round->calm));
}

/* ---- hung (L3, L7) */

/* When the driver gave up waiting for the life to rest, and killed it; 0: it did not. */
static int64_t given_up(const struct nem_judge *j, const struct nem_life *life)
{
    if (life->dying == INT64_MAX && life->over == INT64_MAX)
        return j->round->given_up;
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *fault = &j->round->faults[i];
        if (fault->kind == NEM_TERM && fault->amount != 0 &&
            fault->target == life->process && fault->begin == life->dying)
            return fault->end;
    }
    return 0;
}

/* Judges a thread by its last record. True: it had not come to rest when the driver gave
 * up. */
static bool judge_thread(struct nem_judge *j, const struct nem_op *last, int64_t by)
{
    if (last->thread == NEM_EVENTS_THREAD || (last->what != NEM_DONE && by == 0))
        return false;
    nem_judged(j, NEM_RULE_HUNG);
    if (last->what == NEM_DONE)
        return false;
    if (last->what == NEM_INVOKE)
        nem_violation(j, NEM_RULE_HUNG, last->lock,
                      "%s: %s of %.3f ms had not returned at %.3f ms, when its process "
                      "was killed",
                      nem_who(last), nem_call_name(last->call), nem_ms(j, last->at),
                      nem_ms(j, by));
    else
        nem_violation(j, NEM_RULE_HUNG, NEM_ALL,
                      "%s: had written nothing since %.3f ms at %.3f ms, when its "
                      "process was killed",
                      nem_who(last), nem_ms(j, last->at), nem_ms(j, by));
    return true;
}

static bool of_life(const struct nem_op *op, const struct nem_life *life)
{
    return op->process == life->process && op->life == life->life;
}

static void judge_rest(struct nem_judge *j)
{
    bool any = false;
    for (size_t l = 0, i = 0; l < j->life_count; l++) {
        const struct nem_life *life = &j->lives[l];
        int64_t by = given_up(j, life);
        bool hung = false;
        for (; i < j->op_count && of_life(j->ops[i], life); i++) {
            const struct nem_op *next = i + 1 < j->op_count ? j->ops[i + 1] : NULL;
            if (!next || !of_life(next, life) || next->thread != j->ops[i]->thread)
                hung = judge_thread(j, j->ops[i], by) || hung;
        }
        if (!hung && by != 0 && life->dying != INT64_MAX)
            nem_violation(j, NEM_RULE_HUNG, NEM_ALL,
                          "process %u (life %u) was to end at %.3f ms, and had not at "
                          "%.3f ms",
                          life->process, life->life, nem_ms(j, life->dying),
                          nem_ms(j, by));
        any = any || (hung && life->dying == INT64_MAX);
    }
    if (j->round->given_up != 0 && !any)
        nem_violation(j, NEM_RULE_HUNG, NEM_ALL, "a process does not say that it rests");
}

/* ---- cut */

/* A connection that a fault has broken ends with the next request, or when an answer does
 * not come. */
static bool was_cut(const struct nem_judge *j, unsigned process, int64_t at)
{
    int64_t late = (j->round->commandtimeout_ms + j->round->presence_ms) * NEM_NS_PER_MS;
    return nem_unreachable(j, process, at - late, at);
}

/* The end of a round does not count: the server is restarted between two rounds. */
void nem_judge_cuts(struct nem_judge *j)
{
    for (size_t i = 0; i < j->made_count; i++)
        nem_judged(j, NEM_RULE_CUT); /* none had ended by then */
    for (size_t i = 0; i < j->op_count; i++) {
        const struct nem_op *op = j->ops[i];
        if (op->what != NEM_CUT_OFF || op->at >= j->round->ended ||
            was_cut(j, op->process, op->at))
            continue;
        nem_violation(j, NEM_RULE_CUT, NEM_ALL,
                      "process %u (life %u): the connection of the %s ended at %.3f ms, "
                      "and nothing had cut it",
                      op->process, op->life, op->code ? "watchdog" : "subscriber",
                      nem_ms(j, op->at));
    }
}

void nem_judge_calls(struct nem_judge *j)
{
    judge_rest(j);
    for (size_t i = 0; i < j->made_count; i++) {
        if (j->made[i].ret)
            judge_code(j, &j->made[i]);
        judge_bound(j, &j->made[i]);
        judge_starved(j, &j->made[i]);
    }
}

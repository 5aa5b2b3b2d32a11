/* SPDX-License-Identifier: Apache-2.0 */
/* See loop.h. `members` belongs to the thread alone: other threads put new members
 * into `joining` and mark those that leave; the thread handles both between two steps.
 * If its last member leaves from within the thread's own step, the thread cannot be
 * joined there: it runs on without members, and the next join finds it running. */
#include "client/loop.h"

#include "base/alarm.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/fork.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BELL, ALARM, FDS_OWN }; /* the first entries of fds */
enum {
    FDS_FIRST = 8,
    NAP_MS = 10,
    /* The longest sleep. If the program opens a file at a polled number, the poll()
     * under way polls that file at once: if it stays silent, nothing else ends the
     * sleep. */
    SLEEP_MS = 1000,
    SHORTAGE_MS = 100 /* the longest sleep while descriptors are missing */
};

int rlk_loop_init(struct rlk_loop *loop)
{
    rlk_list_init(&loop->joining);
    rlk_list_init(&loop->members);
    loop->bell = RLK_BELL_CLOSED;
    loop->alarm_fd = -1;
    int rc = rlk_sync_mutex_init(&loop->mu);
    if (rc == 0)
        rc = rlk_sync_cond_init(&loop->changed);
    loop->made = true;
    return rc;
}

void rlk_loop_forget(struct rlk_loop *loop)
{
    if (!loop->made)
        return; /* the first user creates it */
    loop->mu = (struct rlk_mutex)RLK_MUTEX_INIT;
    rlk_loop_init(loop); /* with a mutex and a condition variable as before */
    loop->member_count = 0;
    loop->running = loop->stop = false;
    if (loop->fds) {
        memcpy(loop->fds, &loop->inherited, sizeof(loop->inherited));
        loop->inherited = loop->fds;
    }
    loop->fds = NULL;
    loop->fd_max = 0;
}

static struct rlk_loop_member *member_of(struct rlk_list *l)
{
    return RLK_CONTAINER_OF(l, struct rlk_loop_member, link);
}

/* Handles joins and leaves. False: the thread must end. Thread: the loop's. */
static bool take_up(struct rlk_loop *loop)
{
    struct rlk_list *l, gone;
    bool go_on;

    rlk_list_init(&gone);
    rlk_sync_mutex_lock(&loop->mu);
    while ((l = rlk_list_pop(&loop->joining)) != NULL)
        rlk_list_append(&loop->members, l);
    for (l = loop->members.next; l != &loop->members;) {
        struct rlk_list *next = l->next;
        if (member_of(l)->leaving) {
            rlk_list_remove(l);
            rlk_list_append(&gone, l);
        }
        l = next;
    }
    go_on = !loop->stop;
    rlk_sync_mutex_unlock(&loop->mu);

    while ((l = rlk_list_pop(&gone)) != NULL) {
        loop->left(member_of(l));
        rlk_sync_mutex_lock(&loop->mu);
        member_of(l)->attached = false;
        rlk_sync_cond_broadcast(&loop->changed);
        rlk_sync_mutex_unlock(&loop->mu);
    }
    return go_on;
}

/* Steps every member once. Returns when to do so again. A step may remove members. */
static int64_t step_all(struct rlk_loop *loop)
{
    int64_t now = rlk_clock_boot(), next = RLK_NEVER;
    uint64_t removals = loop->removals;
    unsigned generation = rlk_fork_generation();

    for (struct rlk_list *l = loop->members.next; l != &loop->members; l = l->next) {
        int64_t due = loop->step(member_of(l), now);
        if (loop->removals != removals || rlk_fork_since(generation))
            return 0; /* l may be freed: begin again */
        if (due < next)
            next = due;
    }
    return next;
}

/* Adds a descriptor to the n in fds. Returns how many there are. Without memory, the
 * members left out are stepped when others wake the thread. */
static size_t add_fd(struct rlk_loop *loop, size_t n, int fd, short events)
{
    if (fd < 0)
        return n;
    if (n == loop->fd_max) {
        struct pollfd *more = realloc(loop->fds, 2 * loop->fd_max * sizeof(*more));
        if (!more)
            return n;
        loop->fds = more;
        loop->fd_max *= 2;
    }
    loop->fds[n] = (struct pollfd){ fd, events, 0 };
    return n + 1;
}

/* Fills fds; returns how many there are. */
static size_t collect(struct rlk_loop *loop)
{
    size_t n = FDS_OWN;

    loop->fds[BELL] = (struct pollfd){ atomic_load(&loop->bell.fd), POLLIN, 0 };
    loop->fds[ALARM] = (struct pollfd){ loop->alarm_fd, POLLIN, 0 };
    for (struct rlk_list *l = loop->members.next; l != &loop->members; l = l->next) {
        short events = 0;
        int fd = loop->fd(member_of(l), &events);
        n = add_fd(loop, n, fd, events);
        if (loop->other_fd)
            n = add_fd(loop, n, loop->other_fd(member_of(l)), POLLIN);
    }
    return n;
}

/* ---- its own descriptors */

static bool has_bell(const struct rlk_loop *loop)
{
    return !loop->bell_lost && rlk_fd_is_ours(atomic_load(&loop->bell.fd));
}

static bool has_alarm(const struct rlk_loop *loop)
{
    return !loop->alarm_lost && rlk_fd_is_ours(loop->alarm_fd);
}

static void close_alarm(struct rlk_loop *loop)
{
    if (loop->alarm_fd >= 0)
        rlk_fd_close(loop->alarm_fd);
    loop->alarm_fd = -1;
}

static void close_own(struct rlk_loop *loop)
{
    rlk_bell_close(&loop->bell);
    close_alarm(loop);
}

/* Opens the missing descriptors; on failure closes both. */
static int open_own(struct rlk_loop *loop)
{
    int rc = atomic_load(&loop->bell.fd) < 0 ? rlk_bell_open(&loop->bell) : 0;
    if (rc == 0 && loop->alarm_fd < 0) {
        loop->alarm_fd = rlk_alarm_open();
        if (loop->alarm_fd < 0)
            rc = rlk_error_of_step(-loop->alarm_fd,
                                   "cannot create a timer (timerfd_create)");
    }
    if (rc != 0)
        close_own(loop);
    return rc;
}

/* Whether both descriptors are the loop's. Checked before each sleep: the program may
 * have closed one since the last sleep, and then nothing would wake the thread. */
static bool has_own(const struct rlk_loop *loop)
{
    return has_bell(loop) && has_alarm(loop);
}

/* Replaces lost descriptors; another thread may be about to ring a bell that is still
 * there. False: none can be opened. */
static bool renew_own(struct rlk_loop *loop)
{
    bool again = loop->alarm_fd < 0; /* and was logged already */

    if (!has_bell(loop))
        rlk_bell_close(&loop->bell);
    if (!has_alarm(loop))
        close_alarm(loop);
    loop->bell_lost = loop->alarm_lost = false;
    bool done = open_own(loop) == 0;
    if (!again)
        rlk_log(RLK_LOG_WARNING,
                "rlock: the program closed descriptors of the library's thread %s; the "
                "thread opens new ones",
                loop->thread_name);
    return done;
}

/* Sleeps until a descriptor has events, or until `due` (0: only looks), or SLEEP_MS. */
static void sleep_until(struct rlk_loop *loop, size_t count, int64_t due, bool has_all)
{
    int64_t most_ms = has_all ? SLEEP_MS : SHORTAGE_MS, ms = 0;

    if (due != 0) /* the alarm comes first, if there is one */
        ms = rlk_clock_add(due, -rlk_clock_boot()) / RLK_NS_PER_MS + 1;
    if (ms > most_ms)
        ms = most_ms;
    if (ms < 0)
        ms = 0;
    if (poll(loop->fds, (nfds_t)count, (int)ms) < 0 && errno == EINVAL)
        poll(NULL, 0, NAP_MS); /* RLIMIT_NOFILE is below their number */
}

static void *run(void *arg)
{
    struct rlk_loop *loop = arg;
    int64_t alarm = RLK_NEVER;
    unsigned generation = rlk_fork_generation();

    while (take_up(loop)) {
        int64_t due = step_all(loop);
        if (rlk_fork_since(generation))
            return NULL; /* a callback forked and returned in the child */
        bool has_all = has_own(loop);
        if (!has_all) {
            has_all = renew_own(loop);
            alarm = RLK_NEVER;
            if (rlk_fork_since(generation))
                return NULL;
            if (has_all) /* a ring of the old bell must not get lost */
                continue;
        }
        if (due <= rlk_clock_boot())
            due = 0;
        size_t n = collect(loop);
        /* An alarm that is early costs one round; setting it later costs a system call
         * each time. */
        if (due != 0 && due < alarm && has_all) {
            rlk_alarm_set(loop->alarm_fd, due);
            alarm = due;
        }
        sleep_until(loop, n, due, has_all);
        if (!has_all)
            continue;
        if (loop->fds[BELL].revents)
            loop->bell_lost = !rlk_fd_hush(loop->fds[BELL].fd);
        if (loop->fds[ALARM].revents) {
            loop->alarm_lost = !rlk_fd_hush(loop->alarm_fd);
            alarm = RLK_NEVER;
        }
    }
    return NULL;
}

/* Locks: holds loop->mu. */
static int start_locked(struct rlk_loop *loop)
{
    int rc;

    loop->stop = false;
    if (!loop->fds) {
        loop->fds = malloc(FDS_FIRST * sizeof(*loop->fds));
        if (!loop->fds)
            return ENOMEM;
        loop->fd_max = FDS_FIRST;
    }
    loop->bell_lost = loop->alarm_lost = false;
    rc = open_own(loop);
    if (rc == 0)
        rc = rlk_sync_thread_start(&loop->thread, loop->thread_name, run, loop);
    if (rc == 0) {
        loop->running = true;
        return 0;
    }
    close_own(loop);
    free(loop->fds);
    loop->fds = NULL;
    return rc;
}

int rlk_loop_join(struct rlk_loop *loop, struct rlk_loop_member *member)
{
    int rc = 0;

    rlk_sync_mutex_lock(&loop->mu);
    while (loop->running && loop->stop)
        rlk_sync_cond_wait(&loop->changed, &loop->mu, RLK_NEVER);
    if (!loop->running)
        rc = start_locked(loop);
    if (rc == 0) {
        member->leaving = false;
        member->attached = true;
        rlk_list_append(&loop->joining, &member->link);
        loop->member_count++;
        rlk_bell_ring(&loop->bell);
    }
    rlk_sync_mutex_unlock(&loop->mu);
    return rc;
}

bool rlk_loop_is_self(struct rlk_loop *loop)
{
    rlk_sync_mutex_lock(&loop->mu);
    bool self = loop->running && rlk_sync_thread_is_self(loop->thread);
    rlk_sync_mutex_unlock(&loop->mu);
    return self;
}

/* Locks: holds loop->mu, and drops it to join the thread. */
static void stop_locked(struct rlk_loop *loop)
{
    loop->stop = true;
    rlk_bell_ring(&loop->bell);
    rlk_sync_mutex_unlock(&loop->mu);
    rlk_sync_thread_join(loop->thread);
    rlk_sync_mutex_lock(&loop->mu);
    close_own(loop);
    free(loop->fds);
    loop->fds = NULL;
    loop->running = loop->stop = false;
    rlk_sync_cond_broadcast(&loop->changed);
}

void rlk_loop_leave(struct rlk_loop *loop, struct rlk_loop_member *member)
{
    rlk_sync_mutex_lock(&loop->mu);
    if (rlk_sync_thread_is_self(loop->thread)) {
        bool attached = member->attached; /* else it was sent off */
        rlk_list_remove(&member->link);
        member->attached = false;
        loop->member_count--;
        loop->removals++;
        rlk_sync_mutex_unlock(&loop->mu);
        if (attached)
            loop->left(member);
        return;
    }
    member->leaving = true;
    rlk_bell_ring(&loop->bell);
    while (member->attached)
        rlk_sync_cond_wait(&loop->changed, &loop->mu, RLK_NEVER);
    if (--loop->member_count == 0)
        stop_locked(loop);
    rlk_sync_mutex_unlock(&loop->mu);
}

void rlk_loop_send_off(struct rlk_loop *loop, struct rlk_loop_member *member)
{
    rlk_sync_mutex_lock(&loop->mu);
    member->leaving = true;
    rlk_bell_ring(&loop->bell);
    rlk_sync_mutex_unlock(&loop->mu);
}

bool rlk_loop_has_left(struct rlk_loop *loop, struct rlk_loop_member *member)
{
    rlk_sync_mutex_lock(&loop->mu);
    bool has_left = !member->attached;
    if (has_left)
        loop->member_count--; /* the client's own member stays */
    rlk_sync_mutex_unlock(&loop->mu);
    return has_left;
}

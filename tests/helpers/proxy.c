/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy's thread waits in poll for its two listeners, the sockets of all links, and
 * the eventfd that other threads write after a change. Then it reads, then writes what is
 * due, then drops the links that have ended. It holds `mu` all the time except in poll.
 * So `mu` guards everything in struct test_proxy except what never changes after the
 * start. The thread signals `changed` after each round.
 */
#include "proxy.h"

#include "die.h"
#include "link.h"
#include "port.h"
#include "wait.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 128, FIXED_FDS = 3, FDS_PER_LINK = 2 };
enum { FD_WAKE, FD_UNIX, FD_TCP };

struct test_proxy {
    /* immutable after start */
    char server_path[TEST_PATH_MAX], path[TEST_PATH_MAX];
    char url[TEST_URL_MAX], tcp_url[TEST_URL_MAX];
    char address[INET_ADDRSTRLEN];
    uint16_t port;
    int (*dial)(void *arg); /* NULL: connects to server_path, and reads messages */
    void *dial_arg;
    int reserved; /* keeps the port reserved */
    int wake;
    pthread_t thread;
    /* guarded by mu */
    pthread_mutex_t mu;
    pthread_cond_t changed;
    bool stop, frozen;
    enum test_proxy_mode mode;
    int listen_unix, listen_tcp; /* -1: not listening */
    struct test_link *links;
    struct test_rules rules;
    struct test_proxy_counts counts;
    uint64_t asked, done; /* counts of changes by other threads: made, and seen by a
                             round */
};

static void lock(struct test_proxy *p)
{
    if (pthread_mutex_lock(&p->mu) != 0)
        test_die("the proxy's mutex is broken");
}

static void unlock(struct test_proxy *p)
{
    if (pthread_mutex_unlock(&p->mu) != 0)
        test_die("the proxy's mutex is broken");
}

/* ---- listening and connecting */

static int listen_unix(const char *path)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&un, sizeof(un)) != 0 ||
        listen(fd, BACKLOG) != 0)
        test_die("cannot listen on %s: %s", path, strerror(errno));
    return fd;
}

static void listen_on(struct test_proxy *p)
{
    if (p->listen_unix >= 0)
        return;
    p->listen_unix = listen_unix(p->path);
    p->listen_tcp = test_port_listen(p->address, p->port);
}

static void listen_off(struct test_proxy *p)
{
    if (p->listen_unix < 0)
        return;
    /* A child between its fork and its exec has these, too, and would still listen. */
    shutdown(p->listen_unix, SHUT_RDWR);
    shutdown(p->listen_tcp, SHUT_RDWR);
    close(p->listen_unix);
    close(p->listen_tcp);
    unlink(p->path);
    p->listen_unix = p->listen_tcp = -1;
}

static int connect_server(const struct test_proxy *p)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    if (p->dial)
        return p->dial(p->dial_arg);
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", p->server_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void accept_one(struct test_proxy *p, int listener)
{
    int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0)
        return;
    p->counts.accepted++;
    int server = p->mode == TEST_PROXY_OPEN ? connect_server(p) : -1;
    if (server < 0) {
        close(client);
        return;
    }
    struct test_link *link = test_link_new(p->counts.accepted, client, server, &p->rules,
                                           &p->counts.to_server, &p->counts.to_client);
    link->raw = p->dial != NULL;
    link->next = p->links;
    p->links = link;
    p->counts.open++;
}

/* ---- the thread */

struct poll_set {
    struct pollfd *fds;
    size_t size;
    nfds_t used;
    int timeout_ms;
};

static void prepare(struct test_proxy *p, struct poll_set *set)
{
    size_t need = FIXED_FDS + FDS_PER_LINK * (size_t)p->counts.open;
    if (set->size < need) {
        set->size = 2 * need;
        set->fds = realloc(set->fds, set->size * sizeof(*set->fds));
        if (!set->fds)
            test_die("out of memory");
    }
    memset(set->fds, 0, need * sizeof(*set->fds));
    bool accepting = p->mode == TEST_PROXY_OPEN || p->mode == TEST_PROXY_CLOSES;
    set->fds[FD_WAKE] = (struct pollfd){ .fd = p->wake, .events = POLLIN };
    set->fds[FD_UNIX] =
        (struct pollfd){ .fd = accepting ? p->listen_unix : -1, .events = POLLIN };
    set->fds[FD_TCP] =
        (struct pollfd){ .fd = accepting ? p->listen_tcp : -1, .events = POLLIN };
    int64_t due = INT64_MAX;
    set->used = FIXED_FDS;
    for (struct test_link *link = p->links; link; link = link->next) {
        struct pollfd *pair = set->fds + set->used;
        pair[0].fd = pair[1].fd = -1;
        set->used += FDS_PER_LINK;
        if (p->frozen)
            continue;
        test_link_poll(link, &pair[0], &pair[1]);
        int64_t at = test_link_due(link);
        due = at < due ? at : due;
    }
    int64_t left = due == INT64_MAX ? -1 : due - test_now_ms();
    set->timeout_ms = due != INT64_MAX && left < 0 ? 0 : (int)left;
}

static void read_links(struct test_proxy *p, const struct poll_set *set)
{
    const struct pollfd *pair = set->fds + FIXED_FDS;
    for (struct test_link *link = p->links; link; link = link->next) {
        test_link_read(link, pair[0].revents, pair[1].revents);
        pair += FDS_PER_LINK;
    }
}

static void write_links(struct test_proxy *p)
{
    for (struct test_link **at = &p->links; *at;) {
        struct test_link *link = *at;
        bool kept = p->frozen ? link->server >= 0 : test_link_write(link);
        if (kept) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        test_link_free(link);
        p->counts.open--;
    }
}

static void apply_mode(struct test_proxy *p)
{
    if (p->mode == TEST_PROXY_DOWN)
        listen_off(p);
    else
        listen_on(p);
}

static void one_round(struct test_proxy *p, struct poll_set *set)
{
    prepare(p, set);
    uint64_t ticks;
    unlock(p);
    int ready = poll(set->fds, set->used, set->timeout_ms);
    lock(p);
    if (ready > 0 && set->fds[FD_WAKE].revents)
        (void)!read(p->wake, &ticks, sizeof(ticks));
    uint64_t asked = p->asked;
    apply_mode(p);
    /* the set still fits the links: only this thread adds or drops links */
    if (ready > 0 && !p->frozen)
        read_links(p, set);
    if (ready > 0 && set->fds[FD_UNIX].revents && p->listen_unix >= 0)
        accept_one(p, p->listen_unix);
    if (ready > 0 && set->fds[FD_TCP].revents && p->listen_tcp >= 0)
        accept_one(p, p->listen_tcp);
    write_links(p);
    p->done = asked;
    pthread_cond_broadcast(&p->changed);
}

static void *run(void *arg)
{
    struct test_proxy *p = arg;
    struct poll_set set = { NULL, 0, 0, 0 };
    lock(p);
    while (!p->stop)
        one_round(p, &set);
    unlock(p);
    free(set.fds);
    return NULL;
}

/* Wakes the proxy's thread. Called by other threads after a change. Locks: holds mu. */
static void wake(struct test_proxy *p)
{
    const uint64_t one = 1;
    p->asked++;
    (void)!write(p->wake, &one, sizeof(one));
}

/* Wakes the thread and waits until it has acted on the change. Locks: holds mu. */
static void wake_and_wait(struct test_proxy *p)
{
    wake(p);
    uint64_t mine = p->asked;
    while (p->done < mine)
        pthread_cond_wait(&p->changed, &p->mu);
}

/* ---- start and stop */

static void start_thread(struct test_proxy *p)
{
    sigset_t all, old;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->mu, NULL);
    pthread_cond_init(&p->changed, &attr);
    pthread_condattr_destroy(&attr);
    sigfillset(&all); /* a test's signal storm is meant for the threads under test */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&p->thread, NULL, run, p);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0)
        test_die("cannot start the proxy's thread: %s", strerror(rc));
}

struct test_proxy *test_proxy_start(const struct test_server *server)
{
    return test_proxy_start_at(server, "127.0.0.1");
}

struct test_proxy *test_proxy_start_at(const struct test_server *server,
                                       const char *address)
{
    return test_proxy_start_raw(server, address, NULL, NULL);
}

struct test_proxy *test_proxy_start_raw(const struct test_server *server,
                                        const char *address, int (*dial)(void *arg),
                                        void *arg)
{
    static unsigned number; /* tells apart several proxies in front of one server */
    struct test_proxy *p = calloc(1, sizeof(*p));
    if (!p)
        test_die("out of memory");
    snprintf(p->server_path, sizeof(p->server_path), "%s", server->path);
    p->dial = dial;
    p->dial_arg = arg;
    unsigned n = __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED);
    int len =
        snprintf(p->path, sizeof(p->path), "%s/p%d.%u", server->dir, (int)getpid(), n);
    if (len < 0 || (size_t)len >= sizeof(p->path))
        test_die("path too long");
    p->reserved = test_port_reserve(address, &p->port);
    snprintf(p->address, sizeof(p->address), "%s", address);
    snprintf(p->url, sizeof(p->url), "unix://%s", p->path);
    snprintf(p->tcp_url, sizeof(p->tcp_url), "redis://%s:%u", address, (unsigned)p->port);
    p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->wake < 0)
        test_die("eventfd: %s", strerror(errno));
    p->listen_unix = p->listen_tcp = -1;
    listen_on(p);
    start_thread(p);
    return p;
}

void test_proxy_stop(struct test_proxy *p)
{
    if (!p)
        return;
    lock(p);
    p->stop = true;
    wake(p);
    unlock(p);
    pthread_join(p->thread, NULL);
    listen_off(p);
    while (p->links) {
        struct test_link *link = p->links;
        p->links = link->next;
        test_link_free(link);
    }
    for (int i = 0; i < TEST_RULES_MAX; i++) {
        if (p->rules.slot[i].used)
            test_rules_remove(&p->rules, i + 1);
    }
    close(p->wake);
    close(p->reserved);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mu);
    free(p);
}

const char *test_proxy_path(const struct test_proxy *p)
{
    return p->path;
}

uint16_t test_proxy_port(const struct test_proxy *p)
{
    return p->port;
}

const char *test_proxy_url(const struct test_proxy *p)
{
    return p->url;
}

const char *test_proxy_tcp_url(const struct test_proxy *p)
{
    return p->tcp_url;
}

/* ---- rules */

int test_proxy_add(struct test_proxy *p, const struct test_rule *rule)
{
    lock(p);
    int id = test_rules_add(&p->rules, rule);
    unlock(p);
    return id;
}

static void remove_locked(struct test_proxy *p, int id)
{
    test_rules_remove(&p->rules, id);
    for (struct test_link *link = p->links; link; link = link->next)
        test_link_forget_rule(link, id);
}

void test_proxy_remove(struct test_proxy *p, int id)
{
    lock(p);
    remove_locked(p, id);
    wake(p);
    unlock(p);
}

void test_proxy_remove_all(struct test_proxy *p)
{
    lock(p);
    for (int i = 0; i < TEST_RULES_MAX; i++) {
        if (p->rules.slot[i].used)
            remove_locked(p, i + 1);
    }
    wake(p);
    unlock(p);
}

void test_proxy_release(struct test_proxy *p, int id)
{
    lock(p);
    test_rules_get(&p->rules, id);
    for (struct test_link *link = p->links; link; link = link->next)
        test_link_release(link, id);
    wake(p);
    unlock(p);
}

/* ---- modes and cuts */

void test_proxy_set_mode(struct test_proxy *p, enum test_proxy_mode mode)
{
    lock(p);
    p->mode = mode;
    wake_and_wait(p);
    unlock(p);
}

void test_proxy_freeze(struct test_proxy *p, bool frozen)
{
    lock(p);
    p->frozen = frozen;
    wake_and_wait(p);
    unlock(p);
}

void test_proxy_cut(struct test_proxy *p, unsigned connection, bool reset)
{
    lock(p);
    for (struct test_link *link = p->links; link; link = link->next) {
        if (connection == 0 || link->number == connection)
            test_link_cut(link, reset);
    }
    wake_and_wait(p);
    unlock(p);
}

/* ---- looking and waiting */

static unsigned accepted(struct test_proxy *p, int id)
{
    (void)id;
    return p->counts.accepted;
}

static unsigned hits(struct test_proxy *p, int id)
{
    return test_rules_get(&p->rules, id)->hits;
}

static unsigned answered(struct test_proxy *p, int id)
{
    return test_rules_get(&p->rules, id)->answered;
}

typedef unsigned (*counter)(struct test_proxy *p, int id);

static unsigned get(struct test_proxy *p, counter value, int id)
{
    lock(p);
    unsigned n = value(p, id);
    unlock(p);
    return n;
}

static bool wait_for(struct test_proxy *p, counter value, int id, unsigned n, long ms)
{
    struct timespec end = test_in_ms(CLOCK_MONOTONIC, test_ms(ms));
    int rc = 0;
    lock(p);
    while (value(p, id) < n && rc == 0)
        rc = pthread_cond_timedwait(&p->changed, &p->mu, &end);
    bool reached = value(p, id) >= n;
    unlock(p);
    return reached;
}

unsigned test_proxy_hits(struct test_proxy *p, int id)
{
    return get(p, hits, id);
}

unsigned test_proxy_answered(struct test_proxy *p, int id)
{
    return get(p, answered, id);
}

bool test_proxy_wait_hits(struct test_proxy *p, int id, unsigned n, long ms)
{
    return wait_for(p, hits, id, n, ms);
}

bool test_proxy_wait_answered(struct test_proxy *p, int id, unsigned n, long ms)
{
    return wait_for(p, answered, id, n, ms);
}

bool test_proxy_wait_accepted(struct test_proxy *p, unsigned n, long ms)
{
    return wait_for(p, accepted, 0, n, ms);
}

bool test_proxy_wait_open(struct test_proxy *p, unsigned n, long ms)
{
    struct timespec end = test_in_ms(CLOCK_MONOTONIC, test_ms(ms));
    int rc = 0;
    lock(p);
    while (p->counts.open != n && rc == 0)
        rc = pthread_cond_timedwait(&p->changed, &p->mu, &end);
    bool reached = p->counts.open == n;
    unlock(p);
    return reached;
}

struct test_proxy_counts test_proxy_counts(struct test_proxy *p)
{
    lock(p);
    struct test_proxy_counts counts = p->counts;
    unlock(p);
    return counts;
}

size_t test_proxy_connections(struct test_proxy *p, unsigned *ret_numbers, size_t most)
{
    size_t count = 0;
    lock(p);
    for (const struct test_link *link = p->links; link; link = link->next) {
        if (link->client < 0 || link->up.ended)
            continue; /* its client has gone */
        if (count < most)
            ret_numbers[count] = link->number;
        count++;
    }
    unlock(p);
    return count;
}

bool test_proxy_is_late(struct test_proxy *p)
{
    bool late = false;
    lock(p);
    for (const struct test_link *link = p->links; link && !late; link = link->next)
        late = test_link_is_late(link);
    unlock(p);
    return late;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See fakesentinel.h. The thread owns the connections; what the test changes is guarded
 * by `mu`. */
#include "fakesentinel.h"

#include "die.h"
#include "port.h"
#include "resp.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CROWD = 32, WORDS = 4, WORD_MAX = 256, HEARD_MAX = 1 << 16, LOOK_MS = 5 };
enum { OTHERS_MAX = 40, REPLY_MAX = 1 << 15 };

struct peer {
    int fd; /* -1: none */
    bool admitted, subscribed;
    size_t len;
    unsigned char data[4096];
};

struct fake_sentinel {
    uint16_t port;
    int listener, holder;
    pthread_t thread;

    pthread_mutex_t mu;
    bool ends, sleeps, cuts;
    uint16_t master_port, promoted_port; /* promoted_port 0: as master_port */
    int epoch;
    char host[64], refusal[128]; /* refusal: to SENTINEL MASTER; "": none */
    bool closes_subscribers;
    char flags[64], user[64], password[64]; /* password "": none is required */
    uint16_t others[OTHERS_MAX];
    int other_count;
    char message[256]; /* to publish; "": none */
    unsigned asked, subscribers;
    char heard[HEARD_MAX];
    size_t heard_len;

    struct peer peers[CROWD];
};

/* ---- replies */

struct reply {
    char text[REPLY_MAX];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct reply *r, const char *format,
                                                      ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(r->text + r->len, sizeof(r->text) - r->len, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(r->text) - r->len)
        test_die("a reply is too long");
    r->len += (size_t)n;
}

static void add_word(struct reply *r, const char *word)
{
    add(r, "$%zu\r\n%s\r\n", strlen(word), word);
}

static void add_number(struct reply *r, const char *name, int number)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", number);
    add_word(r, name);
    add_word(r, text);
}

static void add_pair(struct reply *r, const char *name, const char *value)
{
    add_word(r, name);
    add_word(r, value);
}

static void say_master(const struct fake_sentinel *s, struct reply *r)
{
    add(r, "*16\r\n");
    add_pair(r, "name", "mymaster");
    add_pair(r, "ip", s->host);
    add_number(r, "port", s->master_port);
    add_pair(r, "flags", s->flags);
    add_number(r, "config-epoch", s->epoch);
    add_number(r, "num-slaves", 1);
    add_number(r, "num-other-sentinels", s->other_count);
    add_number(r, "quorum", 2);
}

static void say_address(const struct fake_sentinel *s, struct reply *r)
{
    char port[16];

    snprintf(port, sizeof(port), "%u",
             (unsigned)(s->promoted_port ? s->promoted_port : s->master_port));
    add(r, "*2\r\n");
    add_word(r, s->host);
    add_word(r, port);
}

static void say_others(const struct fake_sentinel *s, struct reply *r)
{
    add(r, "*%d\r\n", s->other_count);
    for (int i = 0; i < s->other_count; i++) {
        add(r, "*6\r\n");
        add_pair(r, "ip", "127.0.0.1");
        add_number(r, "port", s->others[i]);
        add_pair(r, "flags", "sentinel");
    }
}

static bool is(const char *word, const char *text)
{
    return strcasecmp(word, text) == 0;
}

static void admit(const struct fake_sentinel *s, struct peer *p, int count,
                  char words[][WORD_MAX], struct reply *r)
{
    bool good = count == 3
                    ? strcmp(words[1], s->user) == 0 && strcmp(words[2], s->password) == 0
                    : !s->user[0] && strcmp(words[1], s->password) == 0;

    p->admitted = s->password[0] && good;
    add(r, p->admitted ? "+OK\r\n" : "-WRONGPASS invalid username-password pair\r\n");
}

static void respond(struct fake_sentinel *s, struct peer *p, int count,
                    char words[][WORD_MAX], struct reply *r)
{
    if (is(words[0], "AUTH")) {
        admit(s, p, count, words, r);
    } else if (s->password[0] && !p->admitted) {
        add(r, "-NOAUTH Authentication required.\r\n");
    } else if (is(words[0], "PING")) {
        add(r, p->subscribed ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : "+PONG\r\n");
    } else if (is(words[0], "SUBSCRIBE")) {
        p->subscribed = true;
        s->subscribers++;
        add(r, "*3\r\n$9\r\nsubscribe\r\n");
        add_word(r, words[1]);
        add(r, ":1\r\n");
    } else if (is(words[0], "ROLE")) {
        add(r, "*2\r\n$8\r\nsentinel\r\n*1\r\n$8\r\nmymaster\r\n");
    } else if (!is(words[0], "SENTINEL")) {
        add(r, "-ERR unknown command '%s'\r\n", words[0]);
    } else if (strcmp(words[2], "mymaster") != 0) {
        add(r, "-ERR No such master with that name\r\n");
    } else if (is(words[1], "MASTER") && s->refusal[0]) {
        add(r, "-%s\r\n", s->refusal);
    } else if (is(words[1], "MASTER")) {
        s->asked++;
        say_master(s, r);
    } else if (is(words[1], "GET-MASTER-ADDR-BY-NAME")) {
        say_address(s, r);
    } else {
        say_others(s, r);
    }
}

/* ---- requests */

/* The words of a request of bulk strings. Returns how many there are. */
static int split(const char *data, char words[WORDS][WORD_MAX])
{
    int count = atoi(data + 1), at = 0;

    memset(words, 0, WORDS * WORD_MAX);
    data = strchr(data, '\n') + 1;
    for (; at < count && at < WORDS; at++) {
        size_t len = (size_t)atoi(data + 1);
        const char *text = strchr(data, '\n') + 1;
        memcpy(words[at], text, len < WORD_MAX ? len : WORD_MAX - 1);
        data = text + len + 2;
    }
    return at;
}

static void close_peer(struct peer *p)
{
    close(p->fd);
    p->fd = -1;
}

static void hear(struct fake_sentinel *s, const char *data, size_t len)
{
    if (s->heard_len + len >= sizeof(s->heard))
        s->heard_len = 0;
    memcpy(s->heard + s->heard_len, data, len);
    s->heard_len += len;
}

static void take_requests(struct fake_sentinel *s, struct peer *p)
{
    static _Thread_local struct reply r;
    char words[WORDS][WORD_MAX];
    long len;

    r.len = 0;
    while (p->len > 0 && (len = test_resp_length(p->data, p->len, true)) > 0) {
        char request[sizeof(p->data) + 1];
        memcpy(request, p->data, (size_t)len);
        request[len] = '\0';
        int count = split(request, words);
        respond(s, p, count, words, &r);
        p->len -= (size_t)len;
        memmove(p->data, p->data + len, p->len);
    }
    if ((r.len > 0 && send(p->fd, r.text, r.len, MSG_NOSIGNAL) != (ssize_t)r.len) ||
        (p->subscribed && s->closes_subscribers))
        close_peer(p);
}

static void serve_peer(struct fake_sentinel *s, struct peer *p)
{
    ssize_t n = recv(p->fd, p->data + p->len, sizeof(p->data) - p->len, MSG_DONTWAIT);

    if (n == 0 || p->len == sizeof(p->data)) {
        close_peer(p);
        return;
    }
    if (n > 0) {
        hear(s, (const char *)p->data + p->len, (size_t)n);
        p->len += (size_t)n;
    }
    if (!s->sleeps)
        take_requests(s, p);
}

static void publish(struct fake_sentinel *s)
{
    struct reply r = { .len = 0 };

    if (!s->message[0])
        return;
    add(&r, "*3\r\n$7\r\nmessage\r\n");
    add_word(&r, "+switch-master");
    add_word(&r, s->message);
    for (struct peer *p = s->peers; p < s->peers + CROWD; p++)
        if (p->fd >= 0 && p->subscribed)
            (void)!send(p->fd, r.text, r.len, MSG_NOSIGNAL);
    s->message[0] = '\0';
}

/* ---- the thread */

static void take_in(struct fake_sentinel *s)
{
    int fd = accept(s->listener, NULL, NULL);

    for (struct peer *p = s->peers; fd >= 0 && p < s->peers + CROWD; p++) {
        if (p->fd >= 0)
            continue;
        *p = (struct peer){ .fd = fd };
        return;
    }
    if (fd >= 0)
        close(fd);
}

/* False: the end. */
static bool serve(struct fake_sentinel *s)
{
    struct pollfd fds[CROWD + 1] = { { .fd = s->listener, .events = POLLIN } };

    for (int i = 0; i < CROWD; i++)
        fds[i + 1] = (struct pollfd){ s->peers[i].fd, POLLIN, 0 };
    poll(fds, CROWD + 1, LOOK_MS);
    pthread_mutex_lock(&s->mu);
    for (int i = 0; i < CROWD; i++)
        if (s->peers[i].fd >= 0 && (fds[i + 1].revents || s->peers[i].len > 0))
            serve_peer(s, &s->peers[i]);
    for (int i = 0; s->cuts && i < CROWD; i++)
        if (s->peers[i].fd >= 0)
            close_peer(&s->peers[i]);
    s->cuts = false;
    if (fds[0].revents)
        take_in(s);
    publish(s);
    bool goes_on = !s->ends;
    pthread_mutex_unlock(&s->mu);
    return goes_on;
}

static void *run(void *arg)
{
    struct fake_sentinel *s = arg;

    while (serve(s))
        continue;
    for (int i = 0; i < CROWD; i++)
        if (s->peers[i].fd >= 0)
            close_peer(&s->peers[i]);
    return NULL;
}

/* ---- the test's calls */

struct fake_sentinel *fake_sentinel_start(void)
{
    struct fake_sentinel *s = calloc(1, sizeof(*s));

    if (!s)
        test_die("out of memory");
    for (int i = 0; i < CROWD; i++)
        s->peers[i].fd = -1;
    snprintf(s->host, sizeof(s->host), "127.0.0.1");
    s->holder = test_port_reserve("127.0.0.1", &s->port);
    s->listener = test_port_listen("127.0.0.1", s->port);
    pthread_mutex_init(&s->mu, NULL);
    if (pthread_create(&s->thread, NULL, run, s) != 0)
        test_die("cannot start a thread");
    return s;
}

void fake_sentinel_stop(struct fake_sentinel *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mu);
    s->ends = true;
    pthread_mutex_unlock(&s->mu);
    pthread_join(s->thread, NULL);
    pthread_mutex_destroy(&s->mu);
    close(s->listener);
    close(s->holder);
    free(s);
}

uint16_t fake_sentinel_port(const struct fake_sentinel *s)
{
    return s->port;
}

void fake_sentinel_says(struct fake_sentinel *s, uint16_t port, int epoch,
                        const char *flags)
{
    pthread_mutex_lock(&s->mu);
    s->master_port = port;
    s->promoted_port = 0;
    s->epoch = epoch;
    snprintf(s->flags, sizeof(s->flags), "%s", flags);
    pthread_mutex_unlock(&s->mu);
}

void fake_sentinel_promotes(struct fake_sentinel *s, uint16_t port)
{
    pthread_mutex_lock(&s->mu);
    s->promoted_port = port;
    pthread_mutex_unlock(&s->mu);
}

void fake_sentinel_spells(struct fake_sentinel *s, const char *host)
{
    pthread_mutex_lock(&s->mu);
    snprintf(s->host, sizeof(s->host), "%s", host);
    pthread_mutex_unlock(&s->mu);
}

void fake_sentinel_refuses(struct fake_sentinel *s, const char *error)
{
    pthread_mutex_lock(&s->mu);
    snprintf(s->refusal, sizeof(s->refusal), "%s", error);
    pthread_mutex_unlock(&s->mu);
}

void fake_sentinel_closes_subscribers(struct fake_sentinel *s)
{
    pthread_mutex_lock(&s->mu);
    s->closes_subscribers = true;
    pthread_mutex_unlock(&s->mu);
}

void fake_sentinel_lists(struct fake_sentinel *s, struct fake_sentinel *const others[],
                         int count)
{
    pthread_mutex_lock(&s->mu);
    s->other_count = 0;
    for (int i = 0; i < count && i < OTHERS_MAX; i++)
        if (others[i] != s)
            s->others[s->other_count++] = others[i]->port;
    pthread_mutex_unlock(&s->mu);
}

void fake_sentinel_sleeps(struct fake_sentinel *s, bool sleeps)
{
    pthread_mutex_lock(&s->mu);
    s->sleeps = sleeps;
    pthread_mutex_unlock(&s->mu);
}

void fake_sentinel_wants(struct fake_sentinel *s, const char *user, const char *password)
{
    pthread_mutex_lock(&s->mu);
    snprintf(s->user, sizeof(s->user), "%s", user);
    snprintf(s->password, sizeof(s->password), "%s", password);
    pthread_mutex_unlock(&s->mu);
}

void fake_sentinel_cut(struct fake_sentinel *s)
{
    pthread_mutex_lock(&s->mu);
    s->cuts = true;
    pthread_mutex_unlock(&s->mu);
}

void fake_sentinel_publish(struct fake_sentinel *s, const char *text)
{
    pthread_mutex_lock(&s->mu);
    snprintf(s->message, sizeof(s->message), "%s", text);
    pthread_mutex_unlock(&s->mu);
}

unsigned fake_sentinel_asked(struct fake_sentinel *s)
{
    pthread_mutex_lock(&s->mu);
    unsigned asked = s->asked;
    pthread_mutex_unlock(&s->mu);
    return asked;
}

unsigned fake_sentinel_subscribers(struct fake_sentinel *s)
{
    pthread_mutex_lock(&s->mu);
    unsigned subscribers = s->subscribers;
    pthread_mutex_unlock(&s->mu);
    return subscribers;
}

bool fake_sentinel_heard(struct fake_sentinel *s, const char *word)
{
    pthread_mutex_lock(&s->mu);
    bool heard = memmem(s->heard, s->heard_len, word, strlen(word)) != NULL;
    pthread_mutex_unlock(&s->mu);
    return heard;
}

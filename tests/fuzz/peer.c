/* SPDX-License-Identifier: Apache-2.0 */
/* See peer.h. All state is under `mu`; the thread holds it while it serves. */
#include "peer.h"

#include "fuzz.h"
#include "net/script.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CONNS_MAX = 32,
    IN_SIZE = 1 << 17,
    OUT_SIZE = 1 << 16,
    ARGS_MAX = 64,
    LATE_MAX_MS = 20,
    NAME_SIZE = 256
};

struct request {
    int argc;
    const char *argv[ARGS_MAX];
    size_t len[ARGS_MAX];
};

struct conn {
    int fd;
    bool subscribed;
    size_t in_len;
    char in[IN_SIZE];
};

struct out {
    size_t len;
    char text[OUT_SIZE];
};

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool started, ending;
static int listeners[2], wake[2];
static char urls[2][128];
static struct conn *conns[CONNS_MAX];
static const uint8_t *play;
static size_t play_len, next_line[256];
static bool gave, queued_raw;
static int64_t ticket = 1000;
static char last_id[NAME_SIZE], last_name[NAME_SIZE], mailbox[NAME_SIZE];

/* ---- the input */

/* Takes the next line of a class, without its letter. */
static bool take_line(uint8_t class, struct fuzz_input *ret_line)
{
    size_t at = next_line[class];
    while (at < play_len) {
        struct fuzz_input in = { play + at, play_len - at };
        size_t len;
        const uint8_t *line = fuzz_line(&in, &len);
        at = play_len - in.left;
        if (len > 1 && line[0] == class) {
            next_line[class] = at;
            *ret_line = (struct fuzz_input){ line + 1, len - 1 };
            return true;
        }
    }
    next_line[class] = at;
    return false;
}

/* Takes a word of a line as text; "" at its end. */
static void take_word(struct fuzz_input *line, char word[32])
{
    size_t len = 0;
    while (line->left > 0 && *line->at != ' ') {
        char c = (char)fuzz_byte(line);
        if (len + 1 < 32)
            word[len++] = c;
    }
    fuzz_byte(line);
    word[len] = '\0';
}

/* ---- output */

static void add(struct out *out, const void *bytes, size_t len)
{
    if (len > sizeof(out->text) - out->len)
        len = sizeof(out->text) - out->len;
    memcpy(out->text + out->len, bytes, len);
    out->len += len;
}

static void add_text(struct out *out, const char *text)
{
    add(out, text, strlen(text));
}

static void add_bulk(struct out *out, const char *text)
{
    char head[32];
    snprintf(head, sizeof(head), "$%zu\r\n", strlen(text));
    add_text(out, head);
    add_text(out, text);
    add_text(out, "\r\n");
}

static void add_number(struct out *out, char type, const char *digits)
{
    add(out, &type, 1);
    add_text(out, digits);
    add_text(out, "\r\n");
}

static bool says(const struct out *out, const char *word)
{
    return memmem(out->text, out->len, word, strlen(word)) != NULL;
}

static void say(struct conn *c, const struct out *out)
{
    size_t at = 0;
    while (at < out->len) {
        ssize_t n =
            send(c->fd, out->text + at, out->len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
}

static int hex(uint8_t c)
{
    return c >= '0' && c <= '9' ? c - '0'
           : (c | 0x20) >= 'a'  ? ((c | 0x20) - 'a' + 10)
                                : 0;
}

static void add_raw(struct out *out, struct fuzz_input *line)
{
    while (line->left > 0) {
        uint8_t c = fuzz_byte(line);
        if (c == '\\' && line->left > 0) {
            c = fuzz_byte(line);
            if (c == 'x') {
                int high = hex(fuzz_byte(line));
                c = (uint8_t)(high * 16 + hex(fuzz_byte(line)));
            } else if (c == 'r' || c == 'n') {
                c = c == 'r' ? '\r' : '\n';
            }
        }
        add(out, &c, 1);
    }
}

/* ---- scripts */

static bool is(const struct request *req, int i, const char *word)
{
    return i < req->argc && req->len[i] == strlen(word) &&
           strncasecmp(req->argv[i], word, req->len[i]) == 0;
}

static bool contains(const char *text, const char *word)
{
    return strstr(text, word) != NULL;
}

static const struct rlk_script *find_script(const struct request *req)
{
    bool by_text = is(req, 0, "EVAL");
    if ((!by_text && !is(req, 0, "EVALSHA")) || req->argc < 3)
        return NULL;
    for (int i = 0; i < RLK_SCRIPT_COUNT; i++) {
        const char *wanted = by_text ? rlk_scripts[i].text : rlk_scripts[i].sha;
        if (req->len[1] == strlen(wanted) &&
            memcmp(req->argv[1], wanted, req->len[1]) == 0)
            return &rlk_scripts[i];
    }
    fuzz_fail(__FILE__, __LINE__, "the client sends a script that it does not have");
}

static uint8_t classify(const struct request *req, const struct rlk_script *script)
{
    if (script)
        return contains(script->name, "acquire") || contains(script->name, "_read") ||
                       contains(script->name, "_write")
                   ? 'a'
               : contains(script->name, "release") ? 'r'
               : contains(script->name, "cancel")  ? 'c'
               : contains(script->name, "refresh") ? 'f'
               : contains(script->name, "lock_")   ? 'i'
                                                   : 'n';
    if (is(req, 0, "AUTH") || is(req, 0, "SELECT") || is(req, 0, "TIME") ||
        (is(req, 0, "CLIENT") && is(req, 1, "SETNAME")))
        return 'h';
    return is(req, 0, "SUBSCRIBE") || is(req, 0, "UNSUBSCRIBE") || is(req, 0, "PING")
               ? 's'
               : 'o';
}

/* The number of ids that the client expects in the answer. */
static size_t count_ids(const struct request *req, const struct rlk_script *script)
{
    bool refresh = contains(script->name, "refresh");
    if (!refresh && strcmp(script->name, "rwlock_renew") != 0)
        return 1;
    size_t words = 0;
    for (size_t i = 0; i < req->len[req->argc - 1]; i++)
        words += req->argv[req->argc - 1][i] == ' ';
    return refresh ? words : words / 2;
}

static void copy_argument(char to[NAME_SIZE], const struct request *req, int i)
{
    size_t len = i < req->argc && req->len[i] < NAME_SIZE ? req->len[i] : 0;
    memcpy(to, i < req->argc ? req->argv[i] : "", len);
    to[len] = '\0';
}

static void default_word(char word[32], const char *text)
{
    if (word[0] != '\0' && strcmp(word, ".") != 0)
        return;
    size_t len = strnlen(text, 31);
    memcpy(word, text, len);
    word[len] = '\0';
}

static void add_answer(struct out *out, const struct request *req,
                       const struct rlk_script *script, uint8_t class,
                       struct fuzz_input *line)
{
    char what[32], left[32], place[32], token[32], flags[32], more[32], text[64];
    size_t ids = count_ids(req, script);
    bool queued;

    take_word(line, what);
    take_word(line, left);
    take_word(line, place);
    take_word(line, token);
    take_word(line, flags);
    take_word(line, more);
    default_word(what, class == 'r'   ? "released"
                       : class == 'c' ? "removed"
                       : class == 'f' ? "queued"
                       : class == 'i' ? "released"
                                      : "held");
    queued = strcmp(what, "queued") == 0;
    snprintf(text, sizeof(text), "%" PRId64, ticket);
    default_word(place, queued ? text : "0");
    default_word(left, queued ? "-1" : "60");
    default_word(flags, "0");
    default_word(more, "0");
    if (class == 'a')
        copy_argument(last_id, req, 4 + script->key_count);
    copy_argument(last_name, req, 3);
    if (queued)
        ticket = strtoll(place, NULL, 10);
    snprintf(text, sizeof(text), "*%zu\r\n:1700000000000000\r\n", 4 + 4 * ids);
    add_text(out, text);
    add_number(out, ':', left);
    add_number(out, ':', flags);
    add_number(out, ':', more);
    for (size_t i = 0; i < ids; i++) {
        add_bulk(out, what);
        add_number(out, ':', left);
        add_number(out, ':', place);
        add_bulk(out, strcmp(token, ".") == 0 ? "" : token);
    }
    if (strtoll(left, NULL, 10) > 0 &&
        (contains(what, "held") || contains(what, "shared") || contains(what, "yours")))
        gave = true;
}

/* ---- other commands */

static void add_friendly(struct out *out, const struct conn *c, const struct request *req)
{
    char word[NAME_SIZE];
    if (is(req, 0, "TIME")) {
        add_text(out, "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n");
    } else if (is(req, 0, "SUBSCRIBE") || is(req, 0, "UNSUBSCRIBE")) {
        copy_argument(word, req, 1);
        add_text(out, "*3\r\n");
        add_bulk(out, is(req, 0, "SUBSCRIBE") ? "subscribe" : "unsubscribe");
        add_bulk(out, word);
        add_text(out, ":1\r\n");
    } else if (is(req, 0, "PING")) {
        add_text(out, c->subscribed ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : "+PONG\r\n");
    } else if (is(req, 0, "SCAN")) {
        add_text(out, "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nm\r\n");
    } else {
        add_text(out, "+OK\r\n");
    }
}

/* Sends a message to all subscribers. */
static void publish(struct fuzz_input *line)
{
    static struct out out;
    char text[1024], known[32], head[64];
    size_t len = 0;

    snprintf(known, sizeof(known), "%" PRId64, ticket);
    while (line->left > 0 && len + NAME_SIZE < sizeof(text)) {
        uint8_t c = fuzz_byte(line), next = c == '%' && line->left > 0 ? *line->at : 0;
        const char *with = next == 'i'   ? last_id
                           : next == 't' ? known
                           : next == 'n' ? last_name
                                         : NULL;
        if (with) {
            fuzz_byte(line);
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", with);
        } else {
            text[len++] = (char)c;
        }
    }
    out.len = 0;
    add_text(&out, "*3\r\n$7\r\nmessage\r\n");
    add_bulk(&out, mailbox);
    snprintf(head, sizeof(head), "$%zu\r\n", len);
    add_text(&out, head);
    add(&out, text, len);
    add_text(&out, "\r\n");
    if (says(&out, "grant") && (queued_raw || says(&out, known)))
        gave = true;
    for (int i = 0; i < CONNS_MAX; i++)
        if (conns[i] && conns[i]->subscribed)
            say(conns[i], &out);
}

static void nap(long ms)
{
    if (ms > 0 && ms <= LATE_MAX_MS)
        poll(NULL, 0, (int)ms);
}

/* False: the connection must be closed. */
static bool act(struct conn *c, const struct request *req, bool *ret_reset)
{
    static struct out out;
    const struct rlk_script *script = find_script(req);
    uint8_t class = classify(req, script), action;
    struct fuzz_input line = { NULL, 0 }, none = { NULL, 0 };
    struct fuzz_input queued = { (const uint8_t *)"queued", 6 };

    out.len = 0;
    if (is(req, 0, "SUBSCRIBE") && !c->subscribed) {
        c->subscribed = true;
        copy_argument(mailbox, req, 1);
    }
    action = take_line(class, &line) ? fuzz_byte(&line) : '=';
    if (action == '?')
        return true;
    if (action == '#' || action == '%') {
        *ret_reset = action == '%';
        return false;
    }
    if (action == '<' || action == '!') {
        if (action == '!')
            add_text(&out, "-");
        add_raw(&out, &line);
        if (action == '!')
            add_text(&out, "\r\n");
        gave = gave || says(&out, "held") || says(&out, "shared") || says(&out, "yours");
        queued_raw = queued_raw || says(&out, "queued");
    } else if (script && !contains(script->name, "inspect")) {
        add_answer(&out, req, script, class,
                   action == '='   ? &line
                   : action == '@' ? &queued
                                   : &none);
    } else if (script) {
        add_text(&out, "*7\r\n:1700000000000000\r\n:60\r\n*4\r\n$3\r\na:1\r\n$1\r\n1\r\n"
                       "$4\r\nmode\r\n$11\r\nrlock:mutex\r\n*0\r\n*0\r\n*0\r\n*0\r\n");
    } else {
        add_friendly(&out, c, req);
    }
    if (action == '~' || action == '/') {
        char word[32];
        take_word(&line, word);
        long n = strtol(word, NULL, 10);
        if (action == '~')
            nap(n);
        else if (n >= 0 && (size_t)n < out.len)
            out.len = (size_t)n;
    }
    say(c, &out);
    if (action == '2')
        say(c, &out);
    if (action == '@')
        publish(&line);
    return true;
}

/* ---- connections */

static void drop(int i, bool reset)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };
    if (reset)
        setsockopt(conns[i]->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(conns[i]->fd);
    free(conns[i]);
    conns[i] = NULL;
}

/* Takes a number behind its sign, with "\r\n". False: it is not complete yet. */
static bool take_number(const char **p, const char *end, char sign, size_t *ret_number)
{
    const char *cr = memchr(*p, '\n', (size_t)(end - *p));
    if (!cr)
        return false;
    fuzz_must(**p == sign && cr[-1] == '\r');
    *ret_number = strtoul(*p + 1, NULL, 10);
    *p = cr + 1;
    return true;
}

/* Parses the request at the front. Returns its length; 0: it is not complete yet. */
static size_t parse(const struct conn *c, struct request *ret_req)
{
    const char *p = c->in, *end = c->in + c->in_len;
    size_t count;
    if (!take_number(&p, end, '*', &count))
        return 0;
    fuzz_must(count > 0 && count <= ARGS_MAX);
    ret_req->argc = (int)count;
    for (size_t i = 0; i < count; i++) {
        if (!take_number(&p, end, '$', &ret_req->len[i]) ||
            (size_t)(end - p) < ret_req->len[i] + 2)
            return 0;
        ret_req->argv[i] = p;
        p += ret_req->len[i];
        fuzz_must(p[0] == '\r' && p[1] == '\n');
        p += 2;
    }
    return (size_t)(p - c->in);
}

static void serve(int i)
{
    struct conn *c = conns[i];
    struct request req;
    size_t len;
    ssize_t n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);
    bool reset = false;

    if (n <= 0) {
        drop(i, false);
        return;
    }
    c->in_len += (size_t)n;
    while ((len = parse(c, &req)) > 0) {
        if (!act(c, &req, &reset)) {
            drop(i, reset);
            return;
        }
        c->in_len -= len;
        memmove(c->in, c->in + len, c->in_len);
    }
    fuzz_must(c->in_len < sizeof(c->in));
}

static void take_in(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    for (int i = 0; fd >= 0 && i < CONNS_MAX; i++) {
        if (conns[i])
            continue;
        conns[i] = calloc(1, sizeof(*conns[i]));
        if (!conns[i])
            abort();
        conns[i]->fd = fd;
        return;
    }
    if (fd >= 0)
        close(fd);
}

static void end_all(void)
{
    char c;
    while (read(wake[0], &c, 1) > 0)
        continue;
    if (!ending)
        return;
    for (int i = 0; i < 2; i++) { /* connections that were not accepted yet */
        struct pollfd p = { listeners[i], POLLIN, 0 };
        while (poll(&p, 1, 0) > 0)
            take_in(listeners[i]);
    }
    for (int i = 0; i < CONNS_MAX; i++)
        if (conns[i])
            drop(i, false);
    ending = false;
    pthread_cond_signal(&changed);
}

static void *run(void *arg)
{
    struct pollfd fds[3 + CONNS_MAX];
    for (;;) {
        fds[0] = (struct pollfd){ listeners[0], POLLIN, 0 };
        fds[1] = (struct pollfd){ listeners[1], POLLIN, 0 };
        fds[2] = (struct pollfd){ wake[0], POLLIN, 0 };
        for (int i = 0; i < CONNS_MAX; i++)
            fds[3 + i] = (struct pollfd){ conns[i] ? conns[i]->fd : -1, POLLIN, 0 };
        poll(fds, 3 + CONNS_MAX, -1);
        pthread_mutex_lock(&mu);
        for (int i = 0; i < CONNS_MAX; i++)
            if (fds[3 + i].revents && conns[i])
                serve(i);
        for (int i = 0; i < 2; i++)
            if (fds[i].revents)
                take_in(listeners[i]);
        if (fds[2].revents)
            end_all();
        pthread_mutex_unlock(&mu);
    }
    return arg;
}

/* ---- for other threads */

static char directory[64];

static void remove_directory(void)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/s", directory);
    unlink(path);
    rmdir(directory);
}

static void listen_on(int i, struct sockaddr *address, socklen_t len)
{
    listeners[i] = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listeners[i] < 0 || bind(listeners[i], address, len) != 0 ||
        listen(listeners[i], CONNS_MAX) != 0 ||
        getsockname(listeners[i], address, &len) != 0) {
        perror("listen");
        abort();
    }
}

void fuzz_peer_start(void)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    struct sockaddr_in in = { .sin_family = AF_INET };
    pthread_t thread;

    if (started)
        return;
    started = true;
    snprintf(directory, sizeof(directory), "/tmp/rlock-fuzz.XXXXXX");
    if (!mkdtemp(directory) || pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0)
        abort();
    atexit(remove_directory);
    snprintf(un.sun_path, sizeof(un.sun_path), "%s/s", directory);
    snprintf(urls[0], sizeof(urls[0]), "unix://%s/s", directory);
    listen_on(0, (struct sockaddr *)&un, sizeof(un));
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listen_on(1, (struct sockaddr *)&in, sizeof(in));
    snprintf(urls[1], sizeof(urls[1]), "redis://127.0.0.1:%d", ntohs(in.sin_port));
    if (pthread_create(&thread, NULL, run, NULL) != 0)
        abort();
    pthread_detach(thread);
}

const char *fuzz_peer_url(bool tcp)
{
    return urls[tcp];
}

void fuzz_peer_play(const uint8_t *text, size_t len)
{
    pthread_mutex_lock(&mu);
    play = text;
    play_len = len;
    memset(next_line, 0, sizeof(next_line));
    gave = queued_raw = false;
    ticket = 1000;
    last_id[0] = last_name[0] = mailbox[0] = '\0';
    pthread_mutex_unlock(&mu);
}

void fuzz_peer_end(void)
{
    pthread_mutex_lock(&mu);
    ending = true;
    if (write(wake[1], "", 1) != 1)
        abort();
    while (ending)
        pthread_cond_wait(&changed, &mu);
    play = NULL;
    play_len = 0;
    pthread_mutex_unlock(&mu);
}

bool fuzz_peer_gave(void)
{
    pthread_mutex_lock(&mu);
    bool it = gave;
    pthread_mutex_unlock(&mu);
    return it;
}

void fuzz_peer_forget(void)
{
    pthread_mutex_lock(&mu);
    gave = false;
    pthread_mutex_unlock(&mu);
}

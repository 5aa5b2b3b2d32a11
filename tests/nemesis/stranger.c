/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strangers who use the same server as the nemesis's workers:
 *
 *   stranger KIND SOCKET DIR SEED
 *
 * KIND is a fault's name (schedule.c). The program acts until the end of its stdin,
 * undoes what it can, and prints in one line how many times it acted. If the server is
 * away, it tries again. State: one for the process, of one thread.
 */
#include "faults.h"
#include "oplog.h"

#include <rlock.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#pragma GCC diagnostic push /* its inline functions convert without a cast */
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <hiredis.h>
#pragma GCC diagnostic pop

enum { ARGUMENTS = 5, NS_PER_S = 1000000000, ARGS_MAX = 8 };

static const char *socket_path, *dir;
static uint64_t state; /* of random() */
static unsigned long done;

static uint64_t draw(uint64_t below)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

static int64_t now_boot(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* False: the program must end. */
static bool go_on_after(int ms)
{
    struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
    return poll(&in, 1, ms) == 0 || errno == EINTR;
}

/* ---- the server, as one of its users sees it */

struct login {
    const char *user; /* NULL: the default one */
    redisContext *context;
};

static void hang_up(struct login *login)
{
    if (login->context)
        redisFree(login->context);
    login->context = NULL;
}

static bool dial(struct login *login)
{
    const struct timeval patience = { 1, 0 };
    if (login->context)
        return true;
    login->context = redisConnectUnixWithTimeout(socket_path, patience);
    if (!login->context)
        return false;
    redisReply *reply = NULL;
    if (!login->context->err && redisSetTimeout(login->context, patience) == REDIS_OK &&
        login->user)
        reply = redisCommand(login->context, "AUTH %s x", login->user);
    bool is_in = !login->context->err &&
                 (!login->user || (reply && reply->type == REDIS_REPLY_STATUS));
    freeReplyObject(reply);
    if (!is_in)
        hang_up(login);
    return is_in;
}

/* NULL: no answer; an error counts as an answer. */
static redisReply *ask(struct login *login, int argc, const char *const argv[],
                       const size_t len[])
{
    if (!dial(login))
        return NULL;
    redisReply *reply =
        redisCommandArgv(login->context, argc, (const char **)(uintptr_t)argv, len);
    if (!reply)
        hang_up(login);
    return reply;
}

static redisReply *ask_words(struct login *login, const char *first, ...)
{
    const char *argv[ARGS_MAX];
    int argc = 0;
    va_list args;
    va_start(args, first);
    for (const char *word = first; word && argc < ARGS_MAX; word = va_arg(args, char *))
        argv[argc++] = word;
    va_end(args);
    return ask(login, argc, argv, NULL);
}

/* ---- forge: a user that may read finds ids, one that may only publish makes them up */

/* Sends a message about each id that it finds, never with its real ticket: a user that
 * can read both is believed (doc/ACL.md). Returns the mailboxes, and the ids. */
static const char tell_ids[] =
    "local which, flags, ids = ARGV[1], ARGV[2], {}\n"
    "local function tell(id, ticket, name)\n"
    "  local uuid = string.match(id, '^([^:]+):%d+:%d+:')\n"
    "  if not uuid then return end\n"
    "  ids[#ids + 1] = id\n"
    "  local text = '1 ' .. which .. ' ' .. id .. ' ' .. name\n"
    "  if which == 'grant' then\n"
    "    text = '1 grant ' .. flags .. ' 0 0 1 ' .. id .. ' ' .. ticket .. ' ' .. name\n"
    "  end\n"
    "  redis.call('PUBLISH', 'rlock:client:' .. uuid, text)\n"
    "end\n"
    "for _, key in ipairs(redis.call('KEYS', '*nemesis*')) do\n"
    "  if string.match(key, '^nemesis%d+$') then\n"
    "    for _, id in ipairs(redis.call('HKEYS', key)) do tell(id, '7', key) end\n"
    "  end\n"
    "  local name, part = string.match(key, '^rlock:{(nemesis%d+)}:(%l+)$')\n"
    "  if part == 'queue' or part == 'rqueue' or part == 'readers' then\n"
    "    local found = redis.call('ZRANGE', key, '0', '-1', 'WITHSCORES')\n"
    "    for i = 1, #found, 2 do\n"
    "      tell(found[i], string.format('%.0f', found[i + 1] + 1), name)\n"
    "    end\n"
    "  end\n"
    "end\n"
    "return { redis.call('PUBSUB', 'CHANNELS', 'rlock:client:*'), ids }\n";

static const char *const kinds_of_message[] = { "grant", "lost", "wanted" };
enum { KINDS_OF_MESSAGE = 3, FLAGS = 128, NEAR = 3, TEXT = 512 };

static void publish(struct login *login, const char *channel, const char *text,
                    size_t len)
{
    const char *argv[] = { "PUBLISH", channel, text };
    const size_t lens[] = { strlen("PUBLISH"), strlen(channel), len };
    redisReply *reply = ask(login, 3, argv, lens);
    done += reply && reply->type == REDIS_REPLY_INTEGER && reply->integer > 0;
    freeReplyObject(reply);
}

static void publish_about(struct login *login, const char *channel, const char *id,
                          const char *name)
{
    char text[TEXT];
    unsigned which = (unsigned)draw(KINDS_OF_MESSAGE);
    if (which == 0)
        snprintf(text, sizeof(text), "1 grant %u %u %u 1 %s %llu %s",
                 (unsigned)draw(FLAGS), (unsigned)draw(2), (unsigned)draw(2), id,
                 (unsigned long long)draw(UINT64_MAX / 4) + 1, name);
    else
        snprintf(text, sizeof(text), "1 %s %s %s", kinds_of_message[which], id, name);
    publish(login, channel, text, strlen(text));
}

/* About an acquisition of the client that never existed. */
static void publish_made_up(struct login *login, const char *channel)
{
    static const char letters[] = "mMfFrRwW";
    char id[TEXT / 2], name[64];
    const char *uuid = strrchr(channel, ':') + 1;
    snprintf(id, sizeof(id), "%s:" NEM_FORGED_THREAD ":%llu:%c1000", uuid,
             (unsigned long long)draw(UINT64_C(8000000000000000)) + 1000000000000000,
             letters[draw(sizeof(letters) - 1)]);
    snprintf(name, sizeof(name), draw(2) ? "nemesis%u" : NEM_FORGED_NAME "%u",
             (unsigned)draw(9));
    publish_about(login, channel, id, name);
}

/* About an id with numbers near to those of an existing one. */
static void publish_near(struct login *login, const char *id)
{
    char near[TEXT / 2], channel[TEXT / 2], name[32];
    unsigned long long thread, number;
    int uuid_len = 0, rest = 0;
    if (sscanf(id, "%*[^:]%n:%llu:%llu%n", &uuid_len, &thread, &number, &rest) != 2)
        return;
    bool of_thread = draw(2) == 0;
    snprintf(near, sizeof(near), "%.*s:%llu:%llu%s", uuid_len, id,
             thread + (of_thread ? draw(NEAR) + 1 : 0),
             number + (of_thread ? 0 : draw(NEAR) + 1), id + rest);
    snprintf(channel, sizeof(channel), "rlock:client:%.*s", uuid_len, id);
    snprintf(name, sizeof(name), "nemesis%u", (unsigned)draw(9));
    publish_about(login, channel, near, name);
}

/* Malformed messages. */
static void publish_malformed(struct login *login, const char *channel)
{
    static const struct {
        const char *text;
        size_t len; /* 0: the whole text */
    } texts[] = { { "", 0 },
                  { "1", 0 },
                  { "1 ", 0 },
                  { "1 grant", 0 },
                  { "1 grant 0 0 0 1 x", 0 },
                  { "1 grant 0 0 0 257 x 1 nemesis0", 0 },
                  { "1 grant 0 0 0 99999999999999999999 x 1 nemesis0", 0 },
                  { "1 grant -1 0 0 1 x 1 nemesis0", 0 },
                  { "1 grant 0 0 0 0 nemesis0", 0 },
                  { "1 grant 0 0 0 1 :::: 1 nemesis0", 0 },
                  { "1 lost  nemesis0", 0 },
                  { "1 lost x ", 0 },
                  { "1 wanted %s%n%d nemesis0", 0 },
                  { "2 grant 0 0 0 1 x 1 nemesis0", 0 },
                  { "1 cancelled x nemesis0", 0 },
                  { "1 lost x nem\0esis0", 17 },
                  { "\0\xff\xfe\r\n$-1\r\n", 9 } };
    size_t i = draw(sizeof(texts) / sizeof(texts[0]));
    publish(login, channel, texts[i].text,
            texts[i].len ? texts[i].len : strlen(texts[i].text));
}

static const char *one_of(const redisReply *list)
{
    return list->elements > 0 ? list->element[draw(list->elements)]->str : NULL;
}

static void forge(void)
{
    enum { PACE_MS = 6 };
    struct login reads = { .user = NEM_READING_USER },
                 forges = { .user = NEM_FORGING_USER };
    do {
        char flags[16];
        snprintf(flags, sizeof(flags), "%u", (unsigned)draw(FLAGS));
        redisReply *known =
            ask_words(&reads, "EVAL", tell_ids, "0",
                      kinds_of_message[draw(KINDS_OF_MESSAGE)], flags, NULL);
        if (known && known->type == REDIS_REPLY_ERROR) {
            /* for instance while a script runs for ever */
            freeReplyObject(known);
            continue;
        }
        if (known && known->elements == 2) {
            const char *channel = one_of(known->element[0]),
                       *id = one_of(known->element[1]);
            done += known->element[1]->elements;
            if (channel) {
                publish_made_up(&forges, channel);
                publish_malformed(&forges, channel);
            }
            if (id)
                publish_near(&forges, id);
        }
        freeReplyObject(known);
    } while (go_on_after(PACE_MS));
    hang_up(&reads);
    hang_up(&forges);
}

/* ---- long messages */

static void publish_long(void)
{
    enum { PACE_MS = 150, LEN = 1200 * 1000 };
    struct login reads = { .user = NEM_READING_USER },
                 forges = { .user = NEM_FORGING_USER };
    static char text[LEN] = "1 lost ";
    memset(text + strlen(text), 'x', sizeof(text) - strlen(text));
    do {
        redisReply *channels =
            ask_words(&reads, "PUBSUB", "CHANNELS", "rlock:client:*", NULL);
        for (size_t i = 0; channels && i < channels->elements; i++)
            publish(&forges, channels->element[i]->str, text, sizeof(text));
        freeReplyObject(channels);
    } while (go_on_after(PACE_MS));
    hang_up(&reads);
    hang_up(&forges);
}

/* ---- hostile */

static const char *const parts[] = { "queue",     "rqueue", "present", "readers",
                                     "cancelled", "dirty",  "keepers" };
enum { PARTS = sizeof(parts) / sizeof(parts[0]), KEYS = PARTS + 2, LONG = 65536 };

static void key_of(char key[TEXT], unsigned lock, uint64_t which)
{
    if (which < PARTS)
        snprintf(key, TEXT, "rlock:{" NEM_SACRIFICE "%u}:%s", lock, parts[which]);
    else
        snprintf(key, TEXT,
                 which == PARTS ? NEM_SACRIFICE "%u"
                                : "redisson_lock_token:{" NEM_SACRIFICE "%u}",
                 lock);
}

/* A value that is no number, no id, no mode, or is too large. */
static const char *a_value(void)
{
    static char long_one[LONG];
    static const char *const values[] = { "no number",
                                          "",
                                          "-1",
                                          "9223372036854775807",
                                          "18446744073709551616",
                                          "1e300",
                                          "0x10",
                                          "rlock:read",
                                          "not recoverable",
                                          "a:1:1:m1000",
                                          "a:1:1:R99999999999999",
                                          long_one };
    memset(long_one, '7', sizeof(long_one) - 1);
    return values[draw(sizeof(values) / sizeof(values[0]))];
}

static const char *a_score(void)
{
    static const char *const scores[] = { "-inf", "+inf", "1e300", "9007199254740993",
                                          "-5",   "0.5",  "0",     "1e15" };
    return scores[draw(sizeof(scores) / sizeof(scores[0]))];
}

/* An existing id, or a text that is none. */
static void a_member(struct login *login, const char *key, bool hash, char member[TEXT])
{
    redisReply *found = hash ? ask_words(login, "HKEYS", key, NULL)
                             : ask_words(login, "ZRANGE", key, "0", "-1", NULL);
    const char *text =
        found && found->type == REDIS_REPLY_ARRAY && draw(4) ? one_of(found) : NULL;
    snprintf(member, TEXT, "%s", text ? text : a_value());
    freeReplyObject(found);
}

/* Changes the data of a holder or a waiter: scripts return them. */
static redisReply *write_into(struct login *login, unsigned lock)
{
    static const char *const fields[] = { "token", "token", "since", "died" };
    char name[TEXT], set[TEXT], member[TEXT];
    key_of(name, lock, PARTS);
    key_of(set, lock, draw(4)); /* queues, presence, readers */
    switch (draw(4)) {
    case 0:
        a_member(login, set, false, member);
        return ask_words(login, "ZADD", set, a_score(), member, NULL);
    case 1:
        a_member(login, name, true, member);
        return ask_words(login, "HSET", name, member, a_value(), NULL);
    default:
        return ask_words(login, "HSET", name, fields[draw(4)], a_value(), NULL);
    }
}

/* Replaces any key by any other kind of value. */
static redisReply *write_over(struct login *login, unsigned lock)
{
    char any[TEXT];
    key_of(any, lock, draw(KEYS));
    switch (draw(4)) {
    case 0:
        return ask_words(login, "SET", any, a_value(), NULL);
    case 1:
        key_of(any, lock, PARTS);
        return ask_words(login, "HSET", any, "mode", a_value(), NULL);
    case 2:
        return ask_words(login, "PERSIST", any, NULL);
    default:
        return ask_words(login, "PEXPIRE", any, draw(2) ? "1" : "999999999999", NULL);
    }
}

/* Deletes all keys of a lock. False: no answer. */
static bool sweep(struct login *login, unsigned lock)
{
    bool all = true;
    for (unsigned i = 0; all && i < KEYS; i++) {
        char key[TEXT];
        key_of(key, lock, i);
        redisReply *reply = ask_words(login, "DEL", key, NULL);
        all = reply && reply->type == REDIS_REPLY_INTEGER;
        freeReplyObject(reply);
    }
    return all;
}

/* An attack on one of the locks: it waits until the lock is held, then writes into its
 * holder's data, then over all keys. */
struct attack {
    enum { WAITING, WRITING_INTO, WRITING_OVER } phase;
    int64_t until;
};

/* NULL: no answer. */
static redisReply *attack_once(struct login *login, struct attack *attack, unsigned lock)
{
    enum { INTO_MS = 500, OVER_MS = 100, NS_PER_MS = 1000000 };
    char name[TEXT];
    redisReply *reply = NULL;
    switch (attack->phase) {
    case WAITING:
        key_of(name, lock, PARTS);
        reply = ask_words(login, "EXISTS", name, NULL);
        if (reply && reply->type == REDIS_REPLY_INTEGER && reply->integer == 1)
            *attack = (struct attack){ WRITING_INTO,
                                       now_boot() + INTO_MS * (int64_t)NS_PER_MS };
        return reply;
    case WRITING_INTO:
        if (now_boot() > attack->until)
            *attack = (struct attack){ WRITING_OVER,
                                       now_boot() + OVER_MS * (int64_t)NS_PER_MS };
        return write_into(login, lock);
    default:
        reply = write_over(login, lock);
        if (now_boot() > attack->until && sweep(login, lock))
            attack->phase = WAITING;
        return reply;
    }
}

static void be_hostile(void)
{
    enum { PACE_MS = 2, AGAIN_MS = 20 };
    struct login login = { .user = NEM_HOSTILE_USER };
    struct attack attacks[NEM_SACRIFICES] = { 0 };
    do {
        unsigned lock = (unsigned)draw(NEM_SACRIFICES);
        redisReply *reply = attack_once(&login, &attacks[lock], lock);
        done += reply && reply->type != REDIS_REPLY_ERROR;
        freeReplyObject(reply);
    } while (go_on_after(PACE_MS));
    for (unsigned lock = 0; lock < NEM_SACRIFICES;)
        if (sweep(&login, lock))
            lock++;
        else
            poll(NULL, 0, AGAIN_MS);
    hang_up(&login);
}

/* ---- force */

static void write_down(unsigned lock, int64_t begin)
{
    char path[PATH_MAX];
    struct nem_fault fault = { .begin = begin,
                               .end = now_boot(),
                               .kind = NEM_FORCE,
                               .target = NEM_ALL,
                               .lock = (uint16_t)lock };
    snprintf(path, sizeof(path), "%s/faults", dir);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0 || write(fd, &fault, sizeof(fault)) != (ssize_t)sizeof(fault)) {
        fprintf(stderr, "stranger: %s: %s\n", path, strerror(errno));
        exit(EXIT_FAILURE);
    }
    close(fd);
    done++;
}

/* The lock was not held, or the library did not get as far as to send a request. */
static bool changed_nothing(int code)
{
    return code == ENOENT || code == EINVAL || code == ENOMEM || code == EAGAIN;
}

/* A request that is answered late is waited for, so that it is not executed after the end
 * of its record. */
#define PATIENT "?commandtimeout=30000"

static void force_locks(void)
{
    enum { PACE_MS = 5 };
    char url[PATH_MAX];
    rlock_client_t *client = NULL;
    struct login looks = { .user = NULL };
    rlock_clientattr_t attr;
    snprintf(url, sizeof(url), "unix://%s" PATIENT, socket_path);
    if (rlock_clientattr_init(&attr) != 0)
        exit(EXIT_FAILURE);
    while (rlock_client_open(&client, url, &attr) != 0)
        if (!go_on_after(PACE_MS))
            return;
    do {
        redisReply *held = ask_words(&looks, "KEYS", "nemesis[0-9]*", NULL);
        const char *name = held && held->type == REDIS_REPLY_ARRAY && held->elements > 0
                               ? one_of(held)
                               : NULL;
        int64_t begin = now_boot();
        if (name && !changed_nothing(rlock_force_unlock(client, name)))
            write_down((unsigned)strtoul(name + strlen("nemesis"), NULL, 10), begin);
        freeReplyObject(held);
    } while (go_on_after(PACE_MS));
    hang_up(&looks);
    if (rlock_client_close(client) != 0)
        exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*act)(void);
    } kinds[] = { { "forge", forge },
                  { "long-messages", publish_long },
                  { "hostile", be_hostile },
                  { "force", force_locks } };
    if (argc != ARGUMENTS)
        return EXIT_FAILURE;
    signal(SIGPIPE, SIG_IGN); /* hiredis writes to connections that the server has
                                 closed */
    socket_path = argv[2];
    dir = argv[3];
    state = strtoull(argv[4], NULL, 10);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(argv[1], kinds[i].name) != 0)
            continue;
        kinds[i].act();
        printf("%lu\n", done);
        return EXIT_SUCCESS;
    }
    fprintf(stderr, "stranger: what is \"%s\"?\n", argv[1]);
    return EXIT_FAILURE;
}

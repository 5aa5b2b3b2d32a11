/* SPDX-License-Identifier: Apache-2.0 */
/* See userscene.h. */
#include "userscene.h"

#include "acl_line.h"

#include <stdio.h>
#include <string.h>

#define SECURITY_DOC TEST_SRCDIR "/SECURITY.md"

enum { PRESENCE_MS = 30000, LEASE_MS = 300000, TEXT_SIZE = 1024 };

const char *const user_all[USERS] = { "nobody",   "guest",  "publisher", "waker",
                                      "listener", "lister", "reader",    "spy",
                                      "writer",   "locker", "admin" };
const char *const user_reaches[] = { "no", "own", "yes" };
const char *const user_names[USER_NAMES] = { "jobs:1", "pay:1" };
struct worker user_h, user_w;
char user_url[TEST_URL_MAX];
struct test_redis *user_he;
struct user_row user_row;
struct user_ids user_truth[USER_NAMES], user_learnt[USER_NAMES];

static struct test_redis *ears; /* NULL: the user may not subscribe */

/* ---- the table */

static enum user_reach read_reach(const char *cell)
{
    for (int i = USER_NO; i <= USER_YES; i++) {
        size_t len = strlen(user_reaches[i]);
        if (strncmp(cell, user_reaches[i], len) == 0 && strchr(" |", cell[len]))
            return (enum user_reach)i;
    }
    ck_abort_msg("no cell of the table: %s", cell);
}

/* The row "| `user` | rights | cell | ... |". */
static void read_row(struct user_row *ret_row, const char *user)
{
    char text[TEXT_SIZE], begin[64];
    bool found = false;
    FILE *file = fopen(SECURITY_DOC, "r");
    ck_assert_ptr_nonnull(file);
    snprintf(begin, sizeof(begin), "| `%s` | ", user);
    while (!found && fgets(text, sizeof(text), file))
        found = strncmp(text, begin, strlen(begin)) == 0;
    fclose(file);
    ck_assert_msg(found, "%s has no row in SECURITY.md", user);
    const char *at = text + strlen(begin), *end = strstr(at, " |");
    snprintf(ret_row->rights, sizeof(ret_row->rights), "%.*s", (int)(end - at), at);
    for (int i = 0; i < USER_DEEDS; i++) {
        ret_row->reach[i] = read_reach(end + 3);
        end = strstr(end + 3, " |");
        ck_assert_ptr_nonnull(end);
    }
}

int user_row_count(void)
{
    char text[TEXT_SIZE];
    int rows = 0;
    FILE *file = fopen(SECURITY_DOC, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(text, sizeof(text), file))
        rows += strncmp(text, "| `", 3) == 0;
    fclose(file);
    return rows;
}

/* ---- users */

static void set_user(const char *user, const char *rights)
{
    static struct acl_line line;
    const char *argv[ACL_WORDS_MAX + 8] = { "ACL", "SETUSER", user,           "reset",
                                            "on",  "nopass",  "resetchannels" };
    char text[TEXT_SIZE];
    int n = 7;
    line.count = 0;
    if (strstr(rights, "doc/ACL.md")) {
        acl_read_line(&line, ACL_DOC, 0);
        for (int i = 0; i < line.count; i++) {
            char *at = strstr(line.words[i], "jobs:"), rest[ACL_WORD_SIZE];
            if (!at)
                continue;
            snprintf(rest, sizeof(rest), "%s", at + strlen("jobs:"));
            snprintf(at, (size_t)(line.words[i] + ACL_WORD_SIZE - at), "pay:%s", rest);
        }
        for (int i = 0; i < line.count; i++)
            if (acl_is_permission(line.words[i]))
                argv[n++] = line.words[i];
    }
    snprintf(text, sizeof(text), "%s", rights);
    char *save = NULL;
    for (char *s = strtok_r(text, " `", &save); s; s = strtok_r(NULL, " `", &save))
        if (line.count == 0 && strchr("~&+-", s[0]) && s[1])
            argv[n++] = s;
    argv[n] = NULL;
    test_redis_do_argv(scene_redis, argv);
}

void user_make(const char *user)
{
    read_row(&user_row, user);
    if (strcmp(user, "nobody") != 0)
        set_user(user, user_row.rights);
}

struct test_redis *user_log_in(const char *user)
{
    struct test_redis *r = test_redis_connect(scene_server.path);
    if (strcmp(user, "nobody") != 0)
        test_redis_do(r, "AUTH", user, "any");
    return r;
}

bool user_is_done(const redisReply *reply)
{
    return reply && reply->type != REDIS_REPLY_ERROR;
}

void user_mailbox(char channel[64], const char *id)
{
    char uuid[RLK_UUID_LEN + 1];
    snprintf(channel, 64, RLK_MAILBOX_PREFIX "%s", scene_uuid(uuid, id));
}

/* Subscribes if the user may. */
static void start_listening(const char *user)
{
    char channel[64];
    ears = user_log_in(user);
    user_mailbox(channel, user_truth[0].holder);
    if (user_is_done(test_redis_try(ears, "SUBSCRIBE", channel)))
        return;
    test_redis_close(ears);
    ears = NULL;
}

void user_open(void)
{
    scene_open();
    memset(&user_h, 0, sizeof(user_h));
    memset(&user_w, 0, sizeof(user_w));
    memset(user_truth, 0, sizeof(user_truth));
    memset(user_learnt, 0, sizeof(user_learnt));
    user_he = ears = NULL;
    test_redis_do(scene_redis, "ACL", "SETUSER", "client", "reset", "on", "nopass", "~*",
                  "&*", "+@all");
    snprintf(user_url, sizeof(user_url), "redis://client:any@127.0.0.1:%u",
             (unsigned)scene_server.port);
}

/* Holds the locks by hand while h waits. */
static void begin_to_wait(void)
{
    for (int i = 0; i < USER_NAMES; i++)
        scene_hold_by_hand(user_names[i], LEASE_MS);
    const struct scene_times *times =
        SCENE_TIMES(.presence = PRESENCE_MS, .lease = LEASE_MS);
    scene_worker(&user_h, user_url, times, user_names[0], "");
    scene_worker(&user_w, user_url, times, user_names[0], "");
    scene_says(&user_h, "ok", "init p %s", user_names[1]);
    scene_says(&user_w, "ok", "init p %s", user_names[1]);
    scene_says(&user_h, "ok", "async t lock m");
    scene_says(&user_h, "ok", "async u lock p");
    for (int i = 0; i < USER_NAMES; i++) {
        ck_assert(scene_wait_queued(user_names[i], 1, SCENE_SOON_MS));
        ck_assert(
            scene_waiter(user_names[i], 0, user_truth[i].holder, user_truth[i].ticket));
    }
}

/* ---- requests to the server */

static long long calls_before;

void user_count_requests(void)
{
    calls_before = test_redis_calls(scene_redis, "evalsha");
}

bool user_requests(void *arg)
{
    (void)arg;
    return test_redis_calls(scene_redis, "evalsha") > calls_before;
}

bool user_no_requests(void *arg)
{
    return !user_requests(arg);
}

/* Whether all clients have sent the requests that they send by themselves. A thread that
 * a busy machine keeps waiting may send one late: longer than what a test takes for
 * silence. */
static bool are_quiet(void *arg)
{
    (void)arg;
    user_count_requests();
    return test_stays(user_no_requests, NULL, 2 * USER_STAYS_MS);
}

static bool are_listened_to(void *arg)
{
    (void)arg;
    for (int i = 0; i < USER_NAMES; i++) {
        char channel[64];
        snprintf(channel, sizeof(channel), "redisson_lock__channel:{%s}", user_names[i]);
        const redisReply *r = test_redis_do(scene_redis, "PUBSUB", "NUMSUB", channel);
        if (r->element[1]->integer == 0)
            return false;
    }
    return true;
}

/* w also waits until the locks are free (waitfree), so that its client listens to
 * Redisson's channel. */
void user_enter(const char *user)
{
    begin_to_wait();
    user_make(user);
    if (strcmp(user, "nobody") != 0)
        start_listening(user);
    for (int i = 0; i < USER_NAMES; i++)
        scene_release_by_hand(user_names[i]);
    scene_worker_ends(&user_h, "t", "ok");
    scene_worker_ends(&user_h, "u", "ok");
    scene_says(&user_w, "ok", "async t lock m");
    scene_says(&user_w, "ok", "async u lock p");
    scene_says(&user_w, "ok", "async v waitfree %s %d", user_names[0], LEASE_MS);
    scene_says(&user_w, "ok", "async x waitfree %s %d", user_names[1], LEASE_MS);
    for (int i = 0; i < USER_NAMES; i++) {
        ck_assert(scene_wait_queued(user_names[i], 1, SCENE_SOON_MS));
        ck_assert(
            scene_waiter(user_names[i], 0, user_truth[i].waiter, user_truth[i].ticket));
    }
    ck_assert(test_wait_until(are_listened_to, NULL, SCENE_SOON_MS));
    ck_assert(test_wait_until(are_quiet, NULL, SCENE_SOON_MS));
    if (strcmp(user, "nobody") == 0)
        test_redis_do(scene_redis, "ACL", "SETUSER", "default", "off");
    user_he = user_log_in(user);
}

void user_close(void)
{
    worker_end(&user_h);
    worker_end(&user_w);
    test_redis_close(user_he);
    test_redis_close(ears);
    test_redis_try(scene_redis, "ACL", "SETUSER", "default", "on");
    for (int i = 0; i < USERS; i++)
        test_redis_try(scene_redis, "ACL", "DELUSER", user_all[i]);
    test_redis_try(scene_redis, "ACL", "DELUSER", "client");
    scene_close();
}

/* ---- what the user learns and sends */

/* The id in a grant of the lock, "1 grant 3 0 0 1 ID TICKET NAME". */
void user_hear(void)
{
    const redisReply *r;
    while (ears && (r = test_redis_recv(ears, USER_STAYS_MS)) != NULL) {
        char id[SCENE_ID_MAX], name[32];
        if (r->elements != 3 || !r->element[2]->str ||
            sscanf(r->element[2]->str, "1 grant %*s %*s %*s 1 %127s %*s %31s", id,
                   name) != 2)
            continue;
        for (int i = 0; i < USER_NAMES; i++)
            if (strcmp(name, user_names[i]) == 0)
                snprintf(user_learnt[i].holder, SCENE_ID_MAX, "%s", id);
    }
}

void user_look(int i)
{
    char key[SCENE_KEY_MAX];
    const redisReply *r = test_redis_try(user_he, "HGETALL", user_names[i]);
    for (size_t k = 0; user_is_done(r) && k < r->elements; k += 2)
        if (strchr(r->element[k]->str, ':'))
            snprintf(user_learnt[i].holder, SCENE_ID_MAX, "%s", r->element[k]->str);
    r = test_redis_try(user_he, "ZRANGE", scene_key(key, user_names[i], "queue"), "0",
                       "-1", "WITHSCORES");
    if (!user_is_done(r) || r->elements < 2)
        return;
    snprintf(user_learnt[i].waiter, SCENE_ID_MAX, "%s", r->element[0]->str);
    snprintf(user_learnt[i].ticket, 32, "%s", r->element[1]->str);
}

void user_guess(char id[SCENE_ID_MAX], int i, bool waiter, int n)
{
    char uuid[RLK_UUID_LEN + 1], rest[32];
    unsigned long long thread, number, others;
    const struct user_ids *own = &user_truth[i], *other = &user_truth[1 - i];
    ck_assert_int_eq(sscanf(waiter ? own->waiter : own->holder, "%36[^:]:%llu:%llu:%31s",
                            uuid, &thread, &number, rest),
                     4);
    ck_assert_int_eq(
        sscanf(waiter ? other->waiter : other->holder, "%*36[^:]:%*u:%llu", &others), 1);
    number = others + (unsigned long long)(n / 2 + 1) * (n % 2 ? 1 : -1ULL);
    snprintf(id, SCENE_ID_MAX, "%s:%llu:%llu:%s", uuid, thread, number, rest);
}

static long long ignored_before;

static bool has_ignored_more(void *arg)
{
    return scene_stat(arg, "messages_ignored") > ignored_before;
}

/* Sends another message behind that one, and waits until it is read. */
void user_is_read_by(struct worker *worker, const char *id)
{
    char channel[64];
    user_mailbox(channel, id);
    ignored_before = scene_stat(worker, "messages_ignored");
    test_redis_do(scene_redis, "PUBLISH", channel, "0 nothing");
    ck_assert(test_wait_until(has_ignored_more, worker, SCENE_SOON_MS));
}

void user_says(const char *id, const char *what, const char *ticket, const char *name)
{
    char text[2 * SCENE_ID_MAX + 64], channel[64];
    user_mailbox(channel, id);
    if (ticket)
        snprintf(text, sizeof(text), "1 grant 0 0 1 1 %s %s %s", id, ticket, name);
    else
        snprintf(text, sizeof(text), "1 %s %s %s", what, id, name);
    test_redis_try(user_he, "PUBLISH", channel, text);
}

bool user_is_held(int i)
{
    return test_redis_int(scene_redis, "HEXISTS", user_names[i], user_truth[i].holder) ==
           1;
}

bool user_believes(int i)
{
    return worker_says(&user_h, i == 0 ? "on t state m" : "on u state p", "ok SAFE");
}

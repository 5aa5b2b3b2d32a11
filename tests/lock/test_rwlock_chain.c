/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=W13 */
/*
 * The scripts of the read-write lock, sent by hand: hand-overs that one script cannot
 * end, because it looks at 64 writers and 256 readers at most, and what the answers say
 * then. Rule W13 (no waiter that listens waits for a free lock) is asserted after the
 * last script by byhand.c.
 */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UUID_D "dddddddd-0000-4000-8000-00000000000d"
#define UUID_E "eeeeeeee-0000-4000-8000-00000000000e"
#define READ_D UUID_D ":1:1:r3000"
#define READ_E UUID_E ":1:1:r3000"
#define GONE UUID_A ":9:9:r3000" /* an id that does not wait */

enum { LOOKS = 64, BATCH = 256, ROUNDS_MAX = 20 };

static const char *const kinds[] = { "0", "1", "2", "16" };
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
#define READERS_FIRST(kind) (kind[0] == '0')
#define WRITERS_FIRST(kind) (kind[0] != '0' && strlen(kind) == 1)

/* Sends the refreshes that an answer asks for, until the hand-over ends. */
static struct answer go_on(const char *id, struct answer a)
{
    for (int i = 0; a.more || a.rmore; i++) {
        ck_assert_msg(i < ROUNDS_MAX, "the hand-over does not end");
        a = refresh_on(id, a.more, a.rmore);
    }
    return a;
}

enum { DEAF = 600 };

/* A reading (_i & 1) or a writing ends, by expiry (_i & 2) or by release. Deaf writers
 * (_i & 4) and deaf readers (_i & 8) stand before the live waiter, which wants to read
 * (_i & 16) or to write. */
/* rule: T11 */
START_TEST(live_waiter_behind_unheard_ones_is_found)
{
    bool read_ends = _i & 1, expires = _i & 2, live_reads = _i & 16;
    const char *first = read_ends ? READ_A : WRITE_A;
    struct test_redis *c = listener(UUID_C);
    SAYS(acquire(first), "held");
    if (_i & 4)
        put_waiters(QUEUE, UUID_B, 'w', 1, DEAF);
    if (_i & 8)
        put_waiters(RQUEUE, UUID_D, 'r', 1, DEAF);
    put_present(UUID_C);
    put_waiter(live_reads ? RQUEUE : QUEUE, live_reads ? READ_C : WRITE_C, DEAF + 1);
    if (expires)
        expire();
    struct answer a = expires ? refresh(GONE) : release(first);
    go_on(GONE, a);
    if (live_reads)
        ck_assert(reads_now(READ_C));
    else
        ck_assert(is_held_by(WRITE_C));
    ck_assert_ptr_nonnull(message(c));
    ck_assert_int_eq(count_waiting(QUEUE), _i & 4 ? DEAF : 0);
    ck_assert_int_eq(count_waiting(RQUEUE), _i & 8 ? DEAF : 0);
    assert_ttls();
    test_redis_close(c);
}
END_TEST

/* The live reader joins a reading that goes on, behind deaf writers (_i & 1) and deaf
 * readers (_i & 2). */
/* rule: T11 */
START_TEST(live_reader_behind_unheard_ones_joins_a_reading)
{
    struct test_redis *c = listener(UUID_C);
    SAYS(acquire(READ_A), "held");
    if (_i & 1)
        put_waiters(QUEUE, UUID_B, 'w', 1, DEAF);
    if (_i & 2)
        put_waiters(RQUEUE, UUID_D, 'r', 1, DEAF);
    put_present(UUID_C);
    put_waiter(RQUEUE, READ_C, DEAF + 1);
    go_on(GONE, refresh(GONE));
    ck_assert(reads_now(READ_C));
    ck_assert_ptr_nonnull(message(c));
    /* a newcomer joins, too, after its own continuation */
    struct answer a = acquire(READ_E);
    if (_i & 3)
        ck_assert_str_eq(WHAT(go_on(READ_E, a)), "held");
    ck_assert(reads_now(READ_E));
    test_redis_close(c);
}
END_TEST

/* A try continues, too. _i: by a writer. */
/* rule: T11 */
START_TEST(try_behind_unheard_waiters_does_not_end_in_EBUSY)
{
    char after[32], rafter[32];
    struct answer a = { .more = 0 };
    put_waiters(QUEUE, UUID_B, 'w', 1, DEAF);
    put_waiters(RQUEUE, UUID_D, 'r', 1, DEAF);
    for (int i = 0; i < ROUNDS_MAX; i++) {
        snprintf(after, sizeof(after), "%lld", a.more);
        snprintf(rafter, sizeof(rafter), "%lld", a.rmore);
        a = _i ? RUN(RLK_RWLOCK_WRITE, WRITE_C, UUID_C, "30000", "3000", NEVER, "1", "0",
                     prefer, after, rafter)
               : RUN(RLK_RWLOCK_READ, READ_C, UUID_C, "30000", "3000", NEVER, "1", "0",
                     prefer, after, rafter, "");
        if (strcmp(WHAT(a), "busy") != 0)
            break;
        ck_assert(a.more || a.rmore);
    }
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq(count_waiting(QUEUE), DEAF);
    ck_assert_int_eq(count_waiting(RQUEUE), DEAF);
}
END_TEST

/* Readers below the bar come in while it is not known whether a live writer waits. Hence
 * it is not known either whether readers above the bar may come in. */
/* rule: W13 */
START_TEST(reader_above_the_bar_is_not_forgotten_behind_unheard_writers)
{
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_C), "queued"); /* deaf */
    SAYS(acquire(READ_A), "queued");
    struct test_redis *a = listener(UUID_A);
    SAYS(release(WRITE_A), "released");
    ck_assert(reads_now(READ_A));
    put_waiters(QUEUE, UUID_B, 'w', 1, LOOKS + 1);
    struct test_redis *c = listener(UUID_C), *d = listener(UUID_D);
    put_present(UUID_D);
    put_waiter(RQUEUE, READ_D, 9000000000000000); /* above the bar */
    go_on(GONE, release(READ_A));
    ck_assert(reads_now(READ_C) && reads_now(READ_D));
    test_redis_close(a);
    test_redis_close(c);
    test_redis_close(d);
}
END_TEST

/* The first of 300 readers asks again: by refresh, by acquire, by an acquire that prefers
 * readers. */
/* rule: W13 */
START_TEST(held_reply_continues_for_the_others)
{
    struct test_redis *b = listener(UUID_B);
    put_waiters(RQUEUE, UUID_B, 'r', 1, 300);
    const char *first = waiter_id(UUID_B, 1, 'r');
    struct answer a;
    if (_i == 0) {
        a = refresh(first);
    } else {
        if (_i == 2)
            prefer = "0";
        a = acquire(first);
    }
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq(a.rmore, BATCH);
    go_on(first, a);
    ck_assert_int_eq(count_reading(), 300);
    test_redis_close(b);
}
END_TEST

/* A newcomer that passes the others opens the way for them, too. */
/* rule: W13 */
START_TEST(reader_that_overtakes_continues_for_the_others)
{
    struct test_redis *b = listener(UUID_B);
    prefer = "0";
    put_waiters(RQUEUE, UUID_B, 'r', 1, 300);
    struct answer a = acquire(READ_C);
    ck_assert_str_eq(WHAT(a), "held");
    go_on(READ_C, a);
    ck_assert_int_eq(count_reading(), 301);
    test_redis_close(b);
}
END_TEST

/* ---- any sequence of requests */

enum { CLIENTS = 5, STEPS = 150, WALKS = 12, WALKS_MORE = 100, ID = 64 };

static struct client {
    char uuid[40], reader[ID], writer[ID]; /* ids of the newest requests */
    struct test_redis *ear;                /* NULL: deaf */
    long long ticket;                      /* of the reader */
    int writers;                           /* writers granted while it waited */
} clients[CLIENTS];

/* The state after the previous step. */
static struct {
    char holder[ID]; /* the writer */
    char first[ID];  /* the first live waiting writer */
    long long limit; /* the last ticket of a reader that may come before it; 0: any */
} before;

static unsigned walk_state;

static unsigned any(unsigned count)
{
    walk_state = walk_state * 1103515245U + 12345U;
    return (walk_state >> 16) % count;
}

static bool holds(const char *id)
{
    return is_held_by(id) || reads_now(id);
}

static bool queued(const char *queue, const char *id)
{
    return test_redis_str(redis, "ZSCORE", queue, id) != NULL;
}

static bool is_live(const struct client *c)
{
    const char *till = test_redis_str(redis, "ZSCORE", PRESENT, c->uuid);
    return c->ear && till && atoll(till) >= server_ms();
}

static const char *first_writer(void)
{
    const char *first = "";
    long long lowest = 0;
    for (int i = 0; i < CLIENTS; i++) {
        const char *text = test_redis_str(redis, "ZSCORE", QUEUE, clients[i].writer);
        long long ticket = text ? atoll(text) : 0;
        if (!ticket || (lowest && lowest < ticket) || !is_live(&clients[i]))
            continue;
        lowest = ticket;
        first = clients[i].writer;
    }
    return first;
}

/* W14: a waiting reader sees at most one writer granted. */
static void look_at_writers(void)
{
    const char *holder = "";
    for (int i = 0; i < CLIENTS; i++)
        if (is_held_by(clients[i].writer))
            holder = clients[i].writer;
    bool another = holder[0] && strcmp(holder, before.holder) != 0;
    strcpy(before.holder, holder);
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &clients[i];
        if (!queued(RQUEUE, c->reader) || !is_live(c))
            c->writers = 0;
        else if (another)
            c->writers++;
        ck_assert_msg(c->writers <= 1 || WRITERS_FIRST(prefer),
                      "walk %s: %s waits for a second writer", prefer, c->reader);
    }
}

/* W14: only readers that waited when the reading began come before the first writer. */
static void look_at_readers(void)
{
    const char *first = first_writer();
    bool is_read = strcmp(field("mode"), "rlock:read") == 0;
    if (strcmp(first, before.first) != 0 || before.holder[0])
        before.limit = is_read ? server_ms() * 1000 + 999 : 0;
    else if (!before.limit && is_read)
        before.limit = atoll(field("since"));
    strcpy(before.first, first);
    for (int i = 0; i < CLIENTS; i++) {
        const struct client *c = &clients[i];
        if (first[0] && before.limit && c->ticket > before.limit &&
            !READERS_FIRST(prefer))
            ck_assert_msg(!reads_now(c->reader), "%s came in before %s", c->reader,
                          first);
    }
}

static void ask_anew(struct client *c, bool reads)
{
    static int count;
    char *id = reads ? c->reader : c->writer;
    if (holds(id) || queued(reads ? RQUEUE : QUEUE, id))
        return;
    snprintf(id, ID, "%s:%d:1:%c3000", c->uuid, ++count, reads ? 'r' : 'w');
    struct answer a = acquire(id);
    if (reads)
        c->ticket = a.fate[0].ticket ? a.fate[0].ticket : a.now;
    go_on(id, a);
}

static bool is_deaf(void *client)
{
    char mailbox[64];
    snprintf(mailbox, sizeof(mailbox), "rlock:client:%s",
             ((struct client *)client)->uuid);
    const redisReply *r = test_redis_do(redis, "PUBSUB", "NUMSUB", mailbox);
    return r->element[1]->integer == 0;
}

static void hear(struct client *c, bool heard)
{
    if (heard && !c->ear)
        c->ear = listener(c->uuid);
    if (heard || !c->ear)
        return;
    test_redis_close(c->ear);
    c->ear = NULL;
    ck_assert(test_wait_until(is_deaf, c, 5000));
}

static void step(struct client *c)
{
    bool reads = any(2) != 0;
    const char *id = reads ? c->reader : c->writer;
    switch (any(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
        ask_anew(c, reads);
        break;
    case 4:
    case 5:
    case 6:
        if (holds(id))
            go_on(GONE, release(id));
        break;
    case 7:
        if (queued(QUEUE, id) || queued(RQUEUE, id))
            go_on(GONE, cancel(id));
        break;
    case 8:
        if (is_held_by(c->writer))
            go_on(GONE, downgrade(c->writer));
        break;
    case 9:
        hear(c, any(2) != 0);
        break;
    case 10:
        if (any(3) == 0)
            test_redis_do(redis, "ZADD", PRESENT, "XX", "1000", c->uuid);
        if (any(3) == 0)
            test_redis_do(redis, "ZADD", READERS, "XX", "1000", c->reader);
        break;
    default:
        if (any(3) == 0)
            expire();
    }
    if (id[1])
        go_on(id, refresh(id));
}

/* rule: W14, W13 */
START_TEST(bounds_hold_in_any_sequence)
{
    walk_state = (unsigned)_i;
    prefer = kinds[_i % KINDS];
    memset(clients, 0, sizeof(clients));
    memset(&before, 0, sizeof(before));
    for (int i = 0; i < CLIENTS; i++) {
        snprintf(clients[i].uuid, sizeof(clients[i].uuid),
                 "0000000%c-0000-4000-8000-000000000000", '0' + i);
        strcpy(clients[i].reader, ":");
        strcpy(clients[i].writer, ":");
        hear(&clients[i], true);
    }
    for (int i = 0; i < STEPS; i++) {
        step(&clients[any(CLIENTS)]);
        look_at_writers();
        look_at_readers();
        assert_ttls();
    }
    for (int i = 0; i < CLIENTS; i++)
        test_redis_close(clients[i].ear);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, byhand_start, byhand_stop);
    tcase_add_checked_fixture(tc, byhand_open, byhand_close);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("read-write chains");
    TCase *tc = add_case(suite, "going on");
    tcase_add_loop_test(tc, live_waiter_behind_unheard_ones_is_found, 0, 32);
    tcase_add_loop_test(tc, live_reader_behind_unheard_ones_joins_a_reading, 0, 4);
    tcase_add_loop_test(tc, try_behind_unheard_waiters_does_not_end_in_EBUSY, 0, 2);
    tcase_add_loop_test(tc, held_reply_continues_for_the_others, 0, 3);
    tcase_add_test(tc, reader_that_overtakes_continues_for_the_others);
    tcase_add_test(tc, reader_above_the_bar_is_not_forgotten_behind_unheard_writers);

    tc = add_case(suite, "walks");
    tcase_add_loop_test(tc, bounds_hold_in_any_sequence, 0,
                        (int)test_count(WALKS_MORE, WALKS));
    return test_run_suite(suite);
}

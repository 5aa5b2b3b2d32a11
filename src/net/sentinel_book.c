/* SPDX-License-Identifier: Apache-2.0 */
/* What all connections of a client know about its sentinels and their master. */
#include "net/sentinel.h"

#include "base/clock.h"
#include "base/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* News of a failover reaches all sentinels within 2 s, the time between two of their
 * hellos. */
enum { DOUBT_MS = 5000 };

struct rlk_sentinel_book {
    /* Protects what follows. Nests in nothing. */
    struct rlk_mutex mu;
    struct rlk_sentinel_address learned[RLK_SENTINEL_LEARNED_MAX];
    size_t learned_count;
    bool proven;
    struct rlk_sentinel_master master; /* if proven */
    unsigned moves;                    /* the count of moves when it was proven first */
    /* since when the newest answers are wrong, and others contradict them; 0: they do not
     */
    int64_t wrong_since;
    bool turn; /* of the newest answer, while that is in doubt */
};

bool rlk_sentinel_same(const struct rlk_sentinel_address *a,
                       const struct rlk_sentinel_address *b)
{
    return a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

struct rlk_sentinel_book *rlk_sentinel_book_create(void)
{
    struct rlk_sentinel_book *book = calloc(1, sizeof(*book));

    if (book && rlk_sync_mutex_init(&book->mu) != 0) {
        free(book);
        book = NULL;
    }
    return book;
}

void rlk_sentinel_book_free(struct rlk_sentinel_book *book)
{
    if (book)
        rlk_sync_mutex_destroy(&book->mu);
    free(book);
}

void rlk_sentinel_book_forget(struct rlk_sentinel_book *book)
{
    if (!book)
        return;
    memset(book, 0, sizeof(*book));
    book->mu = (struct rlk_mutex)RLK_MUTEX_INIT;
}

/* ---- sentinels */

size_t rlk_sentinel_book_list(const struct rlk_target *target,
                              struct rlk_sentinel_address list[RLK_SENTINEL_ASKED_MAX])
{
    const struct rlk_url_sentinels *s = &target->sentinels;
    struct rlk_sentinel_book *book = target->book;
    size_t count = 0;

    for (size_t i = 0; i < s->count; i++) {
        snprintf(list[count].host, sizeof(list[count].host), "%s", s->hosts[i].host);
        list[count++].port = s->hosts[i].port;
    }
    if (!book)
        return count;
    rlk_sync_mutex_lock(&book->mu);
    for (size_t i = 0; i < book->learned_count; i++) {
        size_t j = 0;
        while (j < count && !rlk_sentinel_same(&list[j], &book->learned[i]))
            j++;
        if (j == count)
            list[count++] = book->learned[i];
    }
    rlk_sync_mutex_unlock(&book->mu);
    return count;
}

void rlk_sentinel_book_learn(struct rlk_sentinel_book *book,
                             const struct rlk_sentinel_address *learned, size_t count)
{
    if (count > RLK_SENTINEL_LEARNED_MAX)
        count = RLK_SENTINEL_LEARNED_MAX;
    rlk_sync_mutex_lock(&book->mu);
    memcpy(book->learned, learned, count * sizeof(*learned));
    book->learned_count = count;
    rlk_sync_mutex_unlock(&book->mu);
}

/* ---- the master */

bool rlk_sentinel_book_present(struct rlk_sentinel_book *book,
                               struct rlk_sentinel_master *ret_master)
{
    if (!book)
        return false;
    rlk_sync_mutex_lock(&book->mu);
    bool proven = book->proven;
    if (proven)
        *ret_master = book->master;
    rlk_sync_mutex_unlock(&book->mu);
    return proven;
}

/* rule: P9 */
unsigned rlk_sentinel_book_proved(struct rlk_sentinel_book *book,
                                  const struct rlk_sentinel_chosen *chosen,
                                  struct rlk_moves *moves, unsigned seen)
{
    rlk_sync_mutex_lock(&book->mu);
    bool same =
        book->proven && rlk_sentinel_same(&book->master.address, &chosen->master.address);
    /* The other connections are at the old master. */
    if (book->proven && !same && moves) {
        atomic_store(&moves->counted_at, rlk_clock_boot());
        seen = atomic_fetch_add(&moves->count, 1) + 1;
    }
    if (!same)
        book->moves = seen;
    else if (moves && book->moves == atomic_load(&moves->count))
        seen = book->moves; /* it was opened while another one found the new master */
    if (chosen->newest)
        book->wrong_since = 0;
    book->proven = true;
    book->master = chosen->master;
    rlk_sync_mutex_unlock(&book->mu);
    return seen;
}

void rlk_sentinel_book_wrong(struct rlk_sentinel_book *book,
                             const struct rlk_sentinel_chosen *chosen, int64_t now)
{
    if (!book)
        return;
    rlk_sync_mutex_lock(&book->mu);
    if (chosen->agreed) { /* a failover is under way, and brings news */
        book->wrong_since = 0;
    } else if (book->wrong_since == 0) {
        book->wrong_since = now;
        book->turn = false;
    } else if (now - book->wrong_since >= DOUBT_MS * RLK_NS_PER_MS) {
        book->turn = !book->turn;
    }
    rlk_sync_mutex_unlock(&book->mu);
}

bool rlk_sentinel_book_doubts(struct rlk_sentinel_book *book, int64_t now)
{
    if (!book)
        return false;
    rlk_sync_mutex_lock(&book->mu);
    bool doubts = book->wrong_since != 0 && !book->turn &&
                  now - book->wrong_since >= DOUBT_MS * RLK_NS_PER_MS;
    rlk_sync_mutex_unlock(&book->mu);
    return doubts;
}

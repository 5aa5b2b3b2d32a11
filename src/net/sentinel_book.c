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
enum {
    DOUBT_MS = 5000,
    VETO_MS = 2000,
    TURN_AGAIN_MS = 100, /* at least between two masters */
    ALIAS_COUNT = 4,
    FAILURES_MAX = 3 /* then a sentinel that was learned is forgotten */
};

struct learned {
    struct rlk_sentinel_address address;
    unsigned failures; /* since the last answer */
    bool useful;       /* it has answered */
};

struct rlk_sentinel_book {
    /* Protects what follows. Nests in nothing. */
    struct rlk_mutex mu;
    struct learned learned[RLK_SENTINEL_LEARNED_MAX];
    size_t learned_count;
    struct rlk_sentinel_socket sockets[RLK_URL_SENTINELS_MAX]; /* of those of the URL */
    bool proven;
    struct rlk_sentinel_master master; /* if proven */
    unsigned edition;                  /* how many times it has changed */
    unsigned moves;                    /* the count of moves when it was proven first */
    int64_t alive_until;               /* it: the mailbox connection is at it */
    struct rlk_sentinel_chosen proof;  /* of the master: the socket's address */
    /* other addresses that led to the same socket: other spellings of its name */
    struct rlk_sentinel_address aliases[ALIAS_COUNT];
    size_t alias_count;
    int64_t turned_at;  /* when the last one took the place of another */
    bool told;          /* a switch was announced since */
    int64_t veto_since; /* 0: no newer master is said to be down */
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

size_t rlk_sentinel_book_list(const struct rlk_endpoint *endpoint,
                              struct rlk_sentinel_address list[RLK_SENTINEL_ASKED_MAX])
{
    const struct rlk_url_sentinels *s = &endpoint->sentinels;
    struct rlk_sentinel_book *book = endpoint->book;
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
        while (j < count && !rlk_sentinel_same(&list[j], &book->learned[i].address))
            j++;
        if (j == count)
            list[count++] = book->learned[i].address;
    }
    rlk_sync_mutex_unlock(&book->mu);
    return count;
}

struct rlk_sentinel_socket rlk_sentinel_book_socket(struct rlk_sentinel_book *book,
                                                    size_t i)
{
    struct rlk_sentinel_socket socket = { .len = 0 };

    if (!book)
        return socket;
    rlk_sync_mutex_lock(&book->mu);
    socket = book->sockets[i];
    rlk_sync_mutex_unlock(&book->mu);
    return socket;
}

void rlk_sentinel_book_connected(struct rlk_sentinel_book *book, size_t i,
                                 const struct rlk_sentinel_socket *socket)
{
    if (!book)
        return;
    rlk_sync_mutex_lock(&book->mu);
    book->sockets[i] = *socket;
    rlk_sync_mutex_unlock(&book->mu);
}

/* NULL: it was not learned. Locks: holds mu. */
static struct learned *find_learned_locked(struct rlk_sentinel_book *book,
                                           const struct rlk_sentinel_address *address)
{
    for (size_t i = 0; i < book->learned_count; i++)
        if (rlk_sentinel_same(&book->learned[i].address, address))
            return &book->learned[i];
    return NULL;
}

void rlk_sentinel_book_learn(struct rlk_sentinel_book *book,
                             const struct rlk_sentinel_address *learned, size_t count)
{
    struct learned list[RLK_SENTINEL_LEARNED_MAX];

    if (count > RLK_SENTINEL_LEARNED_MAX)
        count = RLK_SENTINEL_LEARNED_MAX;
    rlk_sync_mutex_lock(&book->mu);
    for (size_t i = 0; i < count; i++) {
        const struct learned *known = find_learned_locked(book, &learned[i]);
        list[i] = known ? *known : (struct learned){ .address = learned[i] };
    }
    memcpy(book->learned, list, count * sizeof(*list));
    book->learned_count = count;
    rlk_sync_mutex_unlock(&book->mu);
}

bool rlk_sentinel_book_is_useful(struct rlk_sentinel_book *book,
                                 const struct rlk_sentinel_address *learned)
{
    if (!book)
        return true;
    rlk_sync_mutex_lock(&book->mu);
    const struct learned *known = find_learned_locked(book, learned);
    bool useful = known && known->useful;
    rlk_sync_mutex_unlock(&book->mu);
    return useful;
}

void rlk_sentinel_book_asked(struct rlk_sentinel_book *book,
                             const struct rlk_sentinel_address *learned, bool answered)
{
    rlk_sync_mutex_lock(&book->mu);
    struct learned *known = find_learned_locked(book, learned);
    if (known && answered) {
        known->useful = true;
        known->failures = 0;
    } else if (known && ++known->failures >= FAILURES_MAX) {
        *known = book->learned[--book->learned_count];
    }
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

void rlk_sentinel_book_heard(struct rlk_sentinel_book *book, int64_t until)
{
    rlk_sync_mutex_lock(&book->mu);
    book->alive_until = until;
    rlk_sync_mutex_unlock(&book->mu);
}

bool rlk_sentinel_book_alive(struct rlk_sentinel_book *book, int64_t now,
                             struct rlk_sentinel_master *ret_master)
{
    if (!book)
        return false;
    rlk_sync_mutex_lock(&book->mu);
    bool alive = book->proven && now < book->alive_until;
    if (alive)
        *ret_master = book->master;
    rlk_sync_mutex_unlock(&book->mu);
    return alive;
}

unsigned rlk_sentinel_book_edition(struct rlk_sentinel_book *book)
{
    if (!book)
        return 0;
    rlk_sync_mutex_lock(&book->mu);
    unsigned edition = book->edition;
    rlk_sync_mutex_unlock(&book->mu);
    return edition;
}

/* Whether the address is that of the master, or an alias. Locks: holds mu. */
static bool is_present_locked(const struct rlk_sentinel_book *book,
                              const struct rlk_sentinel_address *address)
{
    if (!book->proven)
        return false;
    if (rlk_sentinel_same(&book->master.address, address))
        return true;
    for (size_t i = 0; i < book->alias_count; i++)
        if (rlk_sentinel_same(&book->aliases[i], address))
            return true;
    return false;
}

bool rlk_sentinel_book_is(struct rlk_sentinel_book *book,
                          const struct rlk_sentinel_address *address)
{
    rlk_sync_mutex_lock(&book->mu);
    bool is = is_present_locked(book, address);
    rlk_sync_mutex_unlock(&book->mu);
    return is;
}

void rlk_sentinel_book_told(struct rlk_sentinel_book *book)
{
    rlk_sync_mutex_lock(&book->mu);
    book->told = true;
    rlk_sync_mutex_unlock(&book->mu);
}

bool rlk_sentinel_book_expects(struct rlk_sentinel_book *book)
{
    if (!book)
        return false;
    rlk_sync_mutex_lock(&book->mu);
    bool expects = !book->proven || book->told;
    rlk_sync_mutex_unlock(&book->mu);
    return expects;
}

bool rlk_sentinel_book_veto(struct rlk_sentinel_book *book, bool vetoed, int64_t now)
{
    if (!book)
        return false;
    rlk_sync_mutex_lock(&book->mu);
    if (!vetoed)
        book->veto_since = 0;
    else if (book->veto_since == 0)
        book->veto_since = now;
    bool holds = vetoed && now - book->veto_since < VETO_MS * RLK_NS_PER_MS;
    rlk_sync_mutex_unlock(&book->mu);
    return holds;
}

/* Whether the choice led to the socket of the present master. Locks: holds mu. */
static bool is_same_peer_locked(const struct rlk_sentinel_book *book,
                                const struct rlk_sentinel_chosen *chosen)
{
    return book->proven && chosen->peer.len > 0 &&
           chosen->peer.len == book->proof.peer.len &&
           memcmp(&chosen->peer.storage, &book->proof.peer.storage, chosen->peer.len) ==
               0;
}

/* Locks: holds mu. */
static void add_alias_locked(struct rlk_sentinel_book *book,
                             const struct rlk_sentinel_address *address)
{
    if (is_present_locked(book, address))
        return;
    if (book->alias_count == ALIAS_COUNT)
        book->alias_count = 0;
    book->aliases[book->alias_count++] = *address;
}

/* Another master than before. Returns the count of moves. Locks: holds mu. */
static unsigned turn_to_locked(struct rlk_sentinel_book *book,
                               const struct rlk_sentinel_chosen *chosen,
                               struct rlk_moves *moves, unsigned seen)
{
    /* The other connections are at the old master. */
    if (book->proven && moves) {
        book->turned_at = rlk_clock_boot();
        atomic_store(&moves->counted_at, book->turned_at);
        seen = atomic_fetch_add(&moves->count, 1) + 1;
    }
    book->proven = true;
    book->master = chosen->master;
    book->proof = *chosen;
    book->edition++;
    book->alias_count = 0;
    book->moves = seen;
    book->alive_until = 0;
    return seen;
}

/* rule: P9 */
bool rlk_sentinel_book_proved(struct rlk_sentinel_book *book,
                              const struct rlk_sentinel_chosen *chosen,
                              struct rlk_moves *moves, unsigned *seen)
{
    int64_t now = rlk_clock_boot();

    rlk_sync_mutex_lock(&book->mu);
    bool same = is_present_locked(book, &chosen->master.address) ||
                is_same_peer_locked(book, chosen);
    bool newer = book->edition != chosen->edition; /* than the choice */
    /* Where two masters are named by turns, connections are not closed all the time. */
    bool soon =
        book->turned_at != 0 && now < book->turned_at + TURN_AGAIN_MS * RLK_NS_PER_MS;
    bool good = same || (!newer && !soon);
    bool turned = good && !same && book->proven;
    if (good && !same) {
        *seen = turn_to_locked(book, chosen, moves, *seen);
    } else if (same) {
        add_alias_locked(book, &chosen->master.address);
        if (moves && book->moves == atomic_load(&moves->count))
            *seen = book->moves; /* it was opened while another one found the master */
        if (!newer && book->master.epoch != chosen->master.epoch) {
            book->master.epoch = chosen->master.epoch;
            book->edition++;
        }
    }
    if (good && chosen->newest)
        book->wrong_since = 0;
    if (good && !newer)
        book->told = false;
    rlk_sync_mutex_unlock(&book->mu);
    if (turned && moves && moves->tell)
        moves->tell(moves);
    return good;
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

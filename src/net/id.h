/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of acquisitions, as in Redis and in messages: <client
 * uuid>:<thread>:<acquisition>:<letter><A><flags>. No state. */
#ifndef RLK_ID_H
#define RLK_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RLK_UUID_LEN = 36, RLK_ID_SIZE = 128 };

/* The acquisition's number is random, so that nobody can name an id who cannot read the
 * lock's keys or the traffic. It is not looked at by anybody else: other versions take
 * any digits. It has 16 of them:
 *   - no more, because Redis keeps a hash or sorted set with members of up to 64 bytes in
 *     its small form: a lock with a longer id takes 200 bytes more there. With a TTL of 4
 *     digits and without flags it is so up to thread 9999;
 *   - below 2^53, so that a reader who takes it for a floating-point number has it exact.
 * These are 52.8 bits. A number that comes twice could harm only while the first one is
 * held or marked as cancelled under the same name and thread: with 1,000 of such, once in
 * 8 * 10^12 acquisitions, where all but a hold or two are marks, which only have the
 * request refused and another number drawn. */
#define RLK_ID_NUMBER_FIRST UINT64_C(1000000000000000)
#define RLK_ID_NUMBER_COUNT UINT64_C(8000000000000000)
_Static_assert(RLK_ID_NUMBER_FIRST + RLK_ID_NUMBER_COUNT <= UINT64_C(1) << 53, "exact");

static inline uint64_t rlk_id_number(uint64_t random)
{
    return RLK_ID_NUMBER_FIRST + random % RLK_ID_NUMBER_COUNT;
}

struct rlk_id {
    uint64_t thread, acquisition; /* acquisition: rlk_id_number */
    uint32_t grant_ms;            /* A: the TTL of a grant to this id */
    char letter;                  /* m f r w; upper case with fencing */
    char flags[8]; /* lower-case letters, NUL-terminated; may include those of later
                      versions */
    uint16_t slot; /* index of the acquisition in the intent table (intent.h), from 1; 0:
                      none */
};

/* Identifies an acquisition within this process. */
struct rlk_id_key {
    uint64_t thread, acquisition;
};

/* Writes the id with a NUL; returns its length. */
size_t rlk_id_write(char buf[RLK_ID_SIZE], const char *uuid, const struct rlk_id *id);
/* As rlk_id_write, without uuid and colon. */
size_t rlk_id_write_local(char *buf, const struct rlk_id *id);
/* Whether `text` is an id of client `uuid`. Accepts flags of later versions. */
bool rlk_id_parse(struct rlk_id *ret_id, const char *uuid, const char *text, size_t len);
bool rlk_id_equal(const struct rlk_id *a, const struct rlk_id *b);

static inline struct rlk_id_key rlk_id_key(const struct rlk_id *id)
{
    return (struct rlk_id_key){ id->thread, id->acquisition };
}

static inline bool rlk_id_is(const struct rlk_id *id, struct rlk_id_key key)
{
    return id->acquisition == key.acquisition && id->thread == key.thread;
}
/* Flags, in this order: the lock is robust, so the server marks it when the holder
 * dies; the holder wants a message when another process wants the lock. */
enum { RLK_ID_ROBUST = 'b', RLK_ID_TELL = 'k' };
bool rlk_id_robust(const struct rlk_id *id);
bool rlk_id_tells(const struct rlk_id *id);

/* Writes decimal digits without a NUL; returns how many. */
size_t rlk_id_write_number(char *buf, uint64_t value);
/* Reads digits at *p. False: none or too many. */
bool rlk_id_read_number(const char **p, const char *end, uint64_t *ret_value);

#endif

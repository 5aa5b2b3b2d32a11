/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the commands that show locks: stored locks, forms for people, forms for
 * programs. No state. Thread: any, except functions that print or end the program:
 * main only. */
#ifndef CLI_LOOK_H
#define CLI_LOOK_H

#include "cli.h"
#include "json.h"

#include <stdint.h>

/* ---- locks */

enum { LOOK_REASON_MAX = 256 };

/* The result of one walk over the server's locks; begin with { 0 }. */
struct look_list {
    rlock_info_t **locks; /* sorted by name, without duplicates */
    size_t count, size;
    int code;                     /* of the walk; not 0: the list may be incomplete */
    char reason[LOOK_REASON_MAX]; /* the walk's rlock_errmsg(), printable */
};

/* Fills an empty list; returns its code. Blocks: as rlock_list. */
int look_gather(rlock_client_t *client, const char *pattern, struct look_list *list);
void look_free(struct look_list *list);

/* The holder of `lock` that has the same hold as `party`, which was seen earlier: each
 * acquisition of the library has a new id. NULL: none. */
const rlock_party_t *look_find(const rlock_info_t *lock, const rlock_party_t *party);

/* ---- for people */

enum { LOOK_TIME_SIZE = 32 };

const char *look_type(rlock_type_t type);
const char *look_mode(rlock_mode_t mode);
/* "29.4 s", "3 min 20 s", "5 h 2 min", "3 d 4 h"; "-" when negative. Returns buffer. */
const char *look_time(long ms, char buffer[LOOK_TIME_SIZE]);
/* As look_time, for a lease: "never" (it ends) when negative. */
const char *look_lease(long ms, char buffer[LOOK_TIME_SIZE]);
/* The client, or the owner if the client is unknown; printable, allocated. */
char *look_who(const rlock_party_t *party);
/* The columns of the terminal on stdout; 0: stdout is not a terminal. */
size_t look_columns(void);

/* ---- for programs */

void look_json(struct json *json, const rlock_info_t *lock);

/* ---- arguments and ends */

/* CLOCK_MONOTONIC. */
int64_t look_now_ms(void);

/* The one word after the options; NULL: no word, and `what` is NULL. If the word is
 * missing otherwise, or not the only one, it is bad usage. */
const char *look_word(const struct cli_command *command, int argc, char **argv,
                      const char *what);
/* Zeroed memory; ends the program if there is none. */
void *look_alloc(size_t size);
#endif

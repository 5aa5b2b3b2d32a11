/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that look at locks share: locks to keep, words for people, forms for
 * programs. No state. Thread: any, but what prints or ends the program: main only. */
#ifndef CLI_LOOK_H
#define CLI_LOOK_H

#include "cli.h"
#include "json.h"

#include <stdint.h>

/* ---- locks */

enum { LOOK_REASON_MAX = 256 };

/* What one walk over the server's locks found; begin with { 0 }. */
struct look_list {
    rlock_info_t **locks; /* sorted by name, each once */
    size_t count, size;
    int code;                     /* of the walk; not 0: what was found may be a part */
    char reason[LOOK_REASON_MAX]; /* rlock_errmsg() of it, printable */
};

/* Fills an empty list; returns its code. Blocks: as rlock_list. */
int look_gather(rlock_client_t *client, const char *pattern, struct look_list *list);
void look_free(struct look_list *list);

/* The holder of `lock` that is one hold with `party`, which was seen earlier: our ids are
 * anew with each acquisition. NULL: there is none. */
const rlock_party_t *look_find(const rlock_info_t *lock, const rlock_party_t *party);

/* ---- for people */

enum { LOOK_TIME_SIZE = 32 };

const char *look_type(rlock_type_t type);
const char *look_mode(rlock_mode_t mode);
/* "29.4 s", "3 min 20 s", "5 h 2 min", "3 d 4 h"; "-" when negative. Returns buffer. */
const char *look_time(long ms, char buffer[LOOK_TIME_SIZE]);
/* The same of a lease: "never" (it ends) when negative. */
const char *look_lease(long ms, char buffer[LOOK_TIME_SIZE]);
/* The client, or the owner where the client is not known; printable, allocated. */
char *look_who(const rlock_party_t *party);
/* The columns of the terminal that stdout is; 0: it is none. */
size_t look_columns(void);

/* ---- for programs */

void look_json(struct json *json, const rlock_info_t *lock);

/* ---- arguments and ends */

/* CLOCK_MONOTONIC. */
int64_t look_now_ms(void);

/* The one word after the options; NULL: there is none, and `what` is NULL or missing it
 * is bad usage. */
const char *look_word(const struct cli_command *command, int argc, char **argv,
                      const char *what);
/* Zeroed memory; ends the program when there is none. */
void *look_alloc(size_t size);
#endif

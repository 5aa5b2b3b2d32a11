/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users of Redis with the rights that the table of SECURITY.md says, and locks that they
 * do their worst to. `user_h` is a worker that holds "jobs:1" and "pay:1", which others
 * handed to it; `user_w` waits for both. Their times are so long that they send nothing
 * by themselves. The user is told the uuids of all clients, but no number of an
 * acquisition: these he has to learn. Thread: a test's main thread.
 */
#ifndef TEST_USERSCENE_H
#define TEST_USERSCENE_H

#include "scene.h"

enum { USER_STAYS_MS = 150, USER_NAMES = 2, USERS = 11 };

/* What he does. */
enum user_deed {
    USER_HOLDER,
    USER_LISTS,
    USER_READS,
    USER_ASKS,
    USER_SECOND,
    USER_ENDS,
    USER_MEMORY,
    USER_BUSY,
    USER_DEEDS
};

/* To no lock, to those of his prefix alone, to all. */
enum user_reach { USER_NO, USER_OWN, USER_YES };

struct user_row {
    char rights[512];
    enum user_reach reach[USER_DEEDS];
};

struct user_ids {
    char holder[SCENE_ID_MAX], waiter[SCENE_ID_MAX], ticket[32];
};

extern const char *const user_all[USERS];        /* each has a row; the first: nobody */
extern const char *const user_reaches[];         /* as the table says it */
extern const char *const user_names[USER_NAMES]; /* of locks: the second is his own */
extern struct worker user_h, user_w;
extern char user_url[TEST_URL_MAX]; /* of all clients: with a user of their own */
extern struct test_redis *user_he;  /* his connection */
extern struct user_row user_row;    /* his */
extern struct user_ids user_truth[USER_NAMES], user_learnt[USER_NAMES];

/* Checked fixtures. */
void user_open(void);
void user_close(void);

/* How many rows the table has. Aborts the test when it is none. */
int user_row_count(void);
/* Reads his row, and makes him. */
void user_make(const char *user);
/* A connection of his. */
struct test_redis *user_log_in(const char *user);
/* He is there, h holds, w waits, and all is quiet. He listens meanwhile if he may. */
void user_enter(const char *user);

#define USER_HE(...) user_is_done(test_redis_try(user_he, __VA_ARGS__))
bool user_is_done(const redisReply *reply);

void user_mailbox(char channel[64], const char *id);
/* The n-th guess of an id that he did not learn, of the holder or the waiter: all is
 * right but its number. That of what the same client acquired before or after is known to
 * him.
 */
void user_guess(char id[SCENE_ID_MAX], int i, bool waiter, int n);
/* What he may read, of the i-th lock, or has heard, into user_learnt. */
void user_look(int i);
void user_hear(void);
/* He sends a message about an id: "lost", "wanted", or "grant" with a ticket. */
void user_says(const char *id, const char *what, const char *ticket, const char *name);
/* What he has sent to the client of this id was read. */
void user_is_read_by(struct worker *worker, const char *id);

/* Requests for locks, by anybody: from here on; whether there were any. */
void user_count_requests(void);
bool user_requests(void *arg);
bool user_no_requests(void *arg);

bool user_is_held(int i);  /* at the server, by h */
bool user_believes(int i); /* h does */

#endif

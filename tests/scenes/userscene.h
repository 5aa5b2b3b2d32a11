/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users of Redis with the rights in the table of SECURITY.md, and locks that they attack.
 * The tests call the attacking user "he". The worker `user_h` holds "jobs:1" and "pay:1",
 * which were handed to it; the worker `user_w` waits for both. Their times are so long
 * that they send nothing by themselves. The user knows the uuids of all clients, but no
 * number of an acquisition: these numbers he must learn. Thread: a test's main thread.
 */
#ifndef TEST_USERSCENE_H
#define TEST_USERSCENE_H

#include "scene.h"

enum { USER_STAYS_MS = 150, USER_NAMES = 2, USERS = 11 };

/* What the user does: the columns of the table. */
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

/* To no lock; only to locks with his prefix; to all locks. */
enum user_reach { USER_NO, USER_OWN, USER_YES };

struct user_row {
    char rights[512];
    enum user_reach reach[USER_DEEDS];
};

struct user_ids {
    char holder[SCENE_ID_MAX], waiter[SCENE_ID_MAX], ticket[32];
};

extern const char *const user_all[USERS];        /* each has a row; the first is
                                                    "nobody" */
extern const char *const user_reaches[];         /* as the table writes them */
extern const char *const user_names[USER_NAMES]; /* of locks: the second has his prefix */
extern struct worker user_h, user_w;
extern char user_url[TEST_URL_MAX]; /* of all clients, which log in as another user */
extern struct test_redis *user_he;  /* the user's connection */
extern struct user_row user_row;    /* his row */
extern struct user_ids user_truth[USER_NAMES], user_learnt[USER_NAMES];

/* Checked fixtures. */
void user_open(void);
void user_close(void);

/* The number of rows of the table. Aborts the test when there is none. */
int user_row_count(void);
/* Reads the user's row, and creates him at the server. */
void user_make(const char *user);
/* Logs in as the user. */
struct test_redis *user_log_in(const char *user);
/* Logs in as the user, lets h hold and w wait, and waits until all is quiet. The user
 * listens to the channels if he may. */
void user_enter(const char *user);

#define USER_HE(...) user_is_done(test_redis_try(user_he, __VA_ARGS__))
bool user_is_done(const redisReply *reply);

void user_mailbox(char channel[64], const char *id);
/* The n-th guess of an id that the user did not learn, of the holder or the waiter: all
 * is right except its number. He knows the numbers of the acquisitions of the same client
 * before and after it. */
void user_guess(char id[SCENE_ID_MAX], int i, bool waiter, int n);
/* Fills user_learnt with what the user may read of the i-th lock, or has heard. */
void user_look(int i);
void user_hear(void);
/* The user sends a message about an id: "lost", "wanted", or "grant" with a ticket. */
void user_says(const char *id, const char *what, const char *ticket, const char *name);
/* Waits until the client of this id has read what the user sent. */
void user_is_read_by(struct worker *worker, const char *id);

/* Requests for locks by any client: start counting; whether there were any since; whether
 * there were none. */
void user_count_requests(void);
bool user_requests(void *arg);
bool user_no_requests(void *arg);

bool user_is_held(int i);  /* held by h, as the server's data say */
bool user_believes(int i); /* held by h, as h believes */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection through the proxy: two sockets, and a queue of messages each way. It is
 * driven by the proxy's thread under the proxy's mutex, and never blocks.
 */
#ifndef TEST_LINK_H
#define TEST_LINK_H

#include "rules.h"

#include <poll.h>

struct test_message;
struct test_pending;

/* One direction. */
struct test_stream {
    unsigned char *in; /* read, and not yet a whole message */
    size_t in_len, in_size;
    struct test_message *head, **tail; /* to be forwarded, in order */
    bool ended;                        /* its source sends no more */
    bool passed_end;                   /* and its receiver knows */
    unsigned *forwarded;               /* counter */
};

struct test_link {
    struct test_link *next;
    unsigned number;
    int client, server; /* -1: closed */
    struct test_stream up, down;
    struct test_pending *pending, **pending_tail; /* requests without their reply */
    struct test_rules *rules;
};

/* Takes over both sockets, which are non-blocking. */
struct test_link *test_link_new(unsigned number, int client, int server,
                                struct test_rules *rules, unsigned *to_server,
                                unsigned *to_client);
void test_link_free(struct test_link *link);

/* What to poll for; fd -1 where nothing. */
void test_link_poll(const struct test_link *link, struct pollfd *client,
                    struct pollfd *server);
/* When the link wants to run without an event, of test_now_ms; INT64_MAX: never. */
int64_t test_link_due(const struct test_link *link);

/* Reads what is there. */
void test_link_read(struct test_link *link, short client_events, short server_events);
/* Forwards what is due. False: the link is over. */
bool test_link_write(struct test_link *link);

/* Whether a message is held, not yet due, or dripping. */
bool test_link_is_late(const struct test_link *link);

/* Lets go what rule `id` holds. */
void test_link_release(struct test_link *link, int id);
/* Rule `id` does not exist any more. */
void test_link_forget_rule(struct test_link *link, int id);
/* Closes both sides. */
void test_link_cut(struct test_link *link, bool reset);

#endif

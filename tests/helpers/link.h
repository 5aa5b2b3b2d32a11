/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection through the proxy: two sockets, and a queue of messages in each
 * direction. The proxy's thread drives it under the proxy's mutex. It never blocks.
 */
#ifndef TEST_LINK_H
#define TEST_LINK_H

#include "rules.h"

#include <poll.h>

struct test_message;
struct test_pending;

/* One direction. */
struct test_stream {
    unsigned char *in; /* read, but not yet a whole message */
    size_t in_len, in_size;
    struct test_message *head, **tail; /* to be forwarded, in order */
    bool ended;                        /* its source sends no more */
    bool passed_end;                   /* and its receiver has seen the end */
    unsigned *forwarded;               /* counts messages; belongs to the proxy */
};

struct test_link {
    struct test_link *next;
    unsigned number;
    int client, server; /* -1: closed */
    struct test_stream up, down;
    struct test_pending *pending, **pending_tail; /* requests without their reply */
    struct test_rules *rules;
    bool raw; /* the bytes are not read: what arrives at a time is a message */
};

/* Takes over both sockets, which must be non-blocking. */
struct test_link *test_link_new(unsigned number, int client, int server,
                                struct test_rules *rules, unsigned *to_server,
                                unsigned *to_client);
void test_link_free(struct test_link *link);

/* What to poll for; fd -1: nothing. */
void test_link_poll(const struct test_link *link, struct pollfd *client,
                    struct pollfd *server);
/* When the link needs to run without an event, as a time of test_now_ms; INT64_MAX:
 * never. */
int64_t test_link_due(const struct test_link *link);

/* Reads the bytes that have arrived. */
void test_link_read(struct test_link *link, short client_events, short server_events);
/* Forwards the messages that are due. False: the link has ended. */
bool test_link_write(struct test_link *link);

/* Whether a message is held, not yet due, or dripping. */
bool test_link_is_late(const struct test_link *link);

/* Forwards the messages that rule `id` holds. */
void test_link_release(struct test_link *link, int id);
/* Rule `id` was removed: no message refers to it any more. */
void test_link_forget_rule(struct test_link *link, int id);
/* Closes both sides. */
void test_link_cut(struct test_link *link, bool reset);

#endif

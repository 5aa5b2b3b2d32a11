/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy's rules and their counters. Guarded by the proxy's mutex. */
#ifndef TEST_RULES_H
#define TEST_RULES_H

#include "proxy.h"

struct test_rule_slot {
    struct test_rule rule; /* owns `contains` and `text` */
    bool used;
    unsigned seen, hits, answered;
};

struct test_rules {
    struct test_rule_slot slot[TEST_RULES_MAX];
};

/* One message, as the rules see it. */
struct test_view {
    unsigned connection;
    bool to_server;
    const unsigned char *data;
    size_t len;
    const unsigned char *request; /* the request that this reply answers; NULL: none */
    size_t request_len;
};

struct test_verdict {
    const struct test_rule *rule; /* the rule to apply; NULL: none */
    int id;
    uint64_t counted; /* bit i: the rule of id i + 1 has counted the message */
};

int test_rules_add(struct test_rules *rules, const struct test_rule *rule);
void test_rules_remove(struct test_rules *rules, int id);
struct test_rule_slot *test_rules_get(struct test_rules *rules, int id);

/* Decides what happens to a message and counts the hits. */
struct test_verdict test_rules_judge(struct test_rules *rules,
                                     const struct test_view *view);

/* The server has answered a request that these rules have counted. */
void test_rules_answered(struct test_rules *rules, uint64_t counted);

#endif

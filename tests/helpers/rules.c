/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include "die.h"

#include <stdlib.h>
#include <string.h>

static char *copy(const char *text, size_t len)
{
    char *c = malloc(len + 1);
    if (!c)
        test_die("out of memory");
    memcpy(c, text, len);
    c[len] = '\0';
    return c;
}

int test_rules_add(struct test_rules *rules, const struct test_rule *rule)
{
    int i = 0;
    while (i < TEST_RULES_MAX && rules->slot[i].used)
        i++;
    if (i == TEST_RULES_MAX)
        test_die("the proxy has too many rules");
    struct test_rule_slot *slot = &rules->slot[i];
    memset(slot, 0, sizeof(*slot));
    slot->used = true;
    slot->rule = *rule;
    if (rule->contains) {
        if (rule->contains_len == 0)
            slot->rule.contains_len = strlen(rule->contains);
        slot->rule.contains = copy(rule->contains, slot->rule.contains_len);
    }
    if (rule->text)
        slot->rule.text = copy(rule->text, strlen(rule->text));
    return i + 1;
}

struct test_rule_slot *test_rules_get(struct test_rules *rules, int id)
{
    if (id < 1 || id > TEST_RULES_MAX || !rules->slot[id - 1].used)
        test_die("the proxy has no rule %d", id);
    return &rules->slot[id - 1];
}

void test_rules_remove(struct test_rules *rules, int id)
{
    struct test_rule_slot *slot = test_rules_get(rules, id);
    free((char *)(uintptr_t)slot->rule.contains); /* its own copies */
    free((char *)(uintptr_t)slot->rule.text);
    memset(slot, 0, sizeof(*slot));
}

static bool has(const unsigned char *data, size_t len, const struct test_rule *rule)
{
    if (!data)
        return false;
    return !rule->contains || memmem(data, len, rule->contains, rule->contains_len);
}

static bool matches(const struct test_rule *rule, const struct test_view *view)
{
    if (rule->connection != 0 && rule->connection != view->connection)
        return false;
    if ((rule->on == TEST_ON_REQUEST) != view->to_server)
        return false;
    if (rule->on == TEST_ON_REPLY)
        return has(view->request, view->request_len, rule);
    return has(view->data, view->len, rule);
}

static bool applies(struct test_rule_slot *slot, const struct test_view *view)
{
    if (!slot->used || !matches(&slot->rule, view))
        return false;
    slot->seen++;
    return slot->seen > slot->rule.skip &&
           (slot->rule.count == 0 || slot->hits < slot->rule.count);
}

struct test_verdict test_rules_judge(struct test_rules *rules,
                                     const struct test_view *view)
{
    struct test_verdict verdict = { NULL, 0, 0 };
    for (int i = 0; i < TEST_RULES_MAX && !verdict.rule; i++) {
        struct test_rule_slot *slot = &rules->slot[i];
        if (!applies(slot, view))
            continue;
        slot->hits++;
        verdict.counted |= UINT64_C(1) << i;
        if (slot->rule.action != TEST_WATCH) {
            verdict.rule = &slot->rule;
            verdict.id = i + 1;
        }
    }
    return verdict;
}

void test_rules_answered(struct test_rules *rules, uint64_t counted)
{
    for (int i = 0; i < TEST_RULES_MAX; i++) {
        if (counted & (UINT64_C(1) << i))
            rules->slot[i].answered++;
    }
}

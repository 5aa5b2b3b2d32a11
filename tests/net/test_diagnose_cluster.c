/* SPDX-License-Identifier: Apache-2.0 */
/* rlock_client_diagnose at a cluster: at all masters, and what only some of them say. */
#include "clusterscene.h"

#include "acl_line.h"
#include "findings.h"

#include <stdio.h>
#include <string.h>
#include <syslog.h>

enum { SHARDED_SINCE = 70000 };

static struct findings f;

static void diagnose(void)
{
    findings_of(&f, client);
    ck_assert_msg(f.rc == 0, "%s: %s", rlock_strerror(f.rc), rlock_errmsg());
}

static void open_and_diagnose(const char *parameters)
{
    client = cluster_client(parameters);
    diagnose();
}

/* "127.0.0.1:PORT: " */
static const char *at(int node)
{
    static char text[32];

    snprintf(text, sizeof(text), "127.0.0.1:%u: ", (unsigned)nodes[node].port);
    return text;
}

/* Whether a finding with this text is said of one node alone. */
static bool is_said_of(int node, const char *topic, const char *text)
{
    for (int i = 0; i < f.count; i++)
        if (strcmp(f.each[i].topic, topic) == 0 && strstr(f.each[i].text, text) &&
            strncmp(f.each[i].text, at(node), strlen(at(node))) == 0)
            return true;
    return false;
}

static int count_of_topic(const char *topic)
{
    int count = 0;

    for (int i = 0; i < f.count; i++)
        count += strcmp(f.each[i].topic, topic) == 0;
    return count;
}

/* rule: P25 */
START_TEST(masters_that_are_alike_are_told_once)
{
    open_and_diagnose("");
    FOUND(&f, LOG_INFO, "cluster", "All hash slots are served, by 3 masters.");
    FOUND(&f, LOG_INFO, "cluster", "cluster_state ok");
    FOUND(&f, LOG_NOTICE, "cluster", "cluster-require-full-coverage yes");
    FOUND(&f, LOG_INFO, "leases", "Leases end by themselves");
    FOUND(&f, LOG_INFO, "messages", "Messages reach");
    ck_assert_int_eq(count_of_topic("version"), 1);
    ck_assert_int_eq(count_of_topic("eviction"), 1);
    ck_assert_int_eq(count_of_topic("memory"), 1);
    ck_assert_int_eq(count_of_topic("clock"), 1);
    ck_assert_int_eq(count_of_topic("acl"), 1);
    for (int i = 0; i < CLUSTER_NODES; i++)
        for (int k = 0; k < f.count; k++)
            ck_assert(f.each[k].severity == LOG_INFO ||
                      strncmp(f.each[k].text, at(i), strlen(at(i))) != 0);
    ck_assert_str_eq(rlock_errmsg(), "");
}
END_TEST

/* rule: P25 */
START_TEST(what_one_master_says_is_told_with_its_address)
{
    test_redis_config(at_node[1], "maxmemory-policy", "allkeys-lru");
    test_redis_config(at_node[1], "maxmemory", "100mb");
    test_redis_do(at_node[2], "ACL", "SETUSER", "worker", "on", ">pw", "~*", "&*",
                  "+@all", "-zrem");
    for (int i = 0; i < 2; i++)
        test_redis_do(at_node[i], "ACL", "SETUSER", "worker", "on", ">pw", "~*", "&*",
                      "+@all");
    char url[128];
    snprintf(url, sizeof(url), "redis-cluster://worker:pw@127.0.0.1:%u",
             (unsigned)nodes[0].port);
    client = cluster_open_at(url);
    diagnose();
    FOUND(&f, LOG_ERR, "eviction", "allkeys-lru");
    ck_assert(is_said_of(1, "eviction", "allkeys-lru"));
    FOUND(&f, LOG_INFO, "eviction", "noeviction");
    FOUND(&f, LOG_ERR, "acl", "+zrem");
    ck_assert(is_said_of(2, "acl", "+zrem"));
    test_redis_config(at_node[1], "maxmemory-policy", "noeviction");
    test_redis_config(at_node[1], "maxmemory", "0");
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        test_redis_do(at_node[i], "ACL", "DELUSER", "worker");
}
END_TEST

enum { FIRST_LINE = 0, LINE_OF_CLUSTERS = 3 };

/* Gives the user the words of a line of the document. */
static void set_user(struct test_redis *r, int line)
{
    const char *argv[ACL_WORDS_MAX + 4] = { "ACL", "SETUSER", "worker" };
    struct acl_line acl;
    int argc = 3;

    acl_read_line(&acl, ACL_DOC, line);
    for (int i = 0; i < acl.count; i++)
        argv[argc++] = strcmp(acl.words[i], ">PASSWORD") == 0 ? ">pw" : acl.words[i];
    test_redis_do_argv(r, argv);
}

static const struct {
    const char *word;
    int severity;
} words[] = {
    { "+cluster|slots", LOG_ERR },         { "+asking", LOG_WARNING },
    { "+pubsub|shardnumsub", LOG_NOTICE }, { "+ssubscribe", LOG_NOTICE },
    { "+sunsubscribe", LOG_NOTICE },       { "+spublish", LOG_NOTICE },
};

START_TEST(rights_that_only_a_cluster_needs_are_checked)
{
    char url[128], without[32];

    if (test_server_version() < SHARDED_SINCE) {
        puts(
            "skipped: rights_that_only_a_cluster_needs_are_checked: this server does not "
            "know all words");
        return;
    }
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        set_user(at_node[i], FIRST_LINE);
        set_user(at_node[i], LINE_OF_CLUSTERS);
    }
    snprintf(url, sizeof(url), "redis-cluster://worker:pw@127.0.0.1:%u",
             (unsigned)nodes[0].port);
    client = cluster_open_at(url);
    diagnose();
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        ck_assert_msg(!findings_have(&f, -1, "acl", words[i].word), "%s",
                      findings_text(&f));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        snprintf(without, sizeof(without), "-%s", words[i].word + 1);
        test_redis_do(at_node[1], "ACL", "SETUSER", "worker", without);
        diagnose();
        FOUND(&f, words[i].severity, "acl", words[i].word);
        ck_assert(is_said_of(1, "acl", words[i].word));
        test_redis_do(at_node[1], "ACL", "SETUSER", "worker", words[i].word);
    }
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        test_redis_do(at_node[i], "ACL", "DELUSER", "worker");
}
END_TEST

/* rule: P17 */
START_TEST(clocks_of_masters_and_replicas_are_compared)
{
    char wanted[64];

    open_and_diagnose("");
    snprintf(wanted, sizeof(wanted), "The clocks of %d nodes are up to ", CLUSTER_NODES);
    FOUND(&f, -1, "skew", wanted);
}
END_TEST

START_TEST(failover_that_takes_longer_than_a_lease_is_a_warning)
{
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        test_redis_config(at_node[i], "cluster-node-timeout", "15000");
    open_and_diagnose("");
    FOUND(&f, LOG_INFO, "cluster", "A lease (30000 ms) outlasts a failover");
    close_client(client);
    open_and_diagnose("?lease=20000");
    FOUND(&f, LOG_WARNING, "cluster", "holders lose their locks in a failover");
    close_client(client);
    test_redis_config(at_node[2], "cluster-node-timeout", "60000");
    open_and_diagnose("");
    ck_assert(is_said_of(2, "cluster", "holders lose their locks in a failover"));
}
END_TEST

static bool has_replica(void *arg)
{
    return strstr(test_redis_str(arg, "INFO", "replication"), "connected_slaves:0") ==
           NULL;
}

static bool has_none(void *arg)
{
    return !has_replica(arg);
}

START_TEST(master_without_a_replica_is_a_warning)
{
    open_and_diagnose("");
    ck_assert(!findings_have(&f, LOG_WARNING, "replicas", "has no replica"));
    test_server_kill(&nodes[1 + CLUSTER_MASTERS].server);
    ck_assert(test_wait_until(has_none, at_node[1], CLUSTER_SOON_MS));
    diagnose();
    FOUND(&f, LOG_WARNING, "replicas", "has no replica");
    ck_assert(is_said_of(1, "replicas", "has no replica"));
}
END_TEST

static bool is_down(void *arg)
{
    return strstr(test_redis_str(arg, "CLUSTER", "INFO"), "cluster_state:fail") != NULL;
}

START_TEST(hash_slots_without_a_node_are_an_error)
{
    char text[16];

    client = cluster_client("");
    snprintf(text, sizeof(text), "%u", cluster_hash_slot(cluster_name(1, 4)));
    for (int i = 0; i < CLUSTER_NODES; i++)
        test_redis_do(at_node[i], "CLUSTER", "DELSLOTS", text);
    ck_assert(test_wait_until(is_down, at_node[0], CLUSTER_SOON_MS));
    diagnose();
    FOUND(&f, LOG_ERR, "cluster", "Hash slots that no node serves: 1.");
    FOUND(&f, LOG_ERR, "cluster", "cluster_state fail");
    test_redis_do(at_node[1], "CLUSTER", "ADDSLOTS", text);
    cluster_await_ok();
}
END_TEST

START_TEST(master_that_does_not_answer_is_an_error_beside_the_findings_of_the_others)
{
    client = cluster_client("?commandtimeout=1000&connecttimeout=1000");
    rlock_mutex_t m = mutex_of(client, cluster_name(0, 0));
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    test_server_kill(&nodes[2].server);
    diagnose();
    FOUND(&f, LOG_ERR, "cluster", "This master does not answer");
    ck_assert(is_said_of(2, "cluster", "This master does not answer"));
    ck_assert_int_eq(count_of_topic("version"), 1);
    FOUND(&f, LOG_INFO, "leases", "Leases end by themselves");
}
END_TEST

START_TEST(servers_without_sharded_channels_are_told)
{
    open_and_diagnose("");
    if (test_server_version() < SHARDED_SINCE)
        FOUND(&f, LOG_NOTICE, "messages", "goes to all nodes");
    else
        FOUND(&f, LOG_INFO, "messages", "stays at the node of its lock");
}
END_TEST

START_TEST(each_text_is_one_printable_line)
{
    open_and_diagnose("");
    for (int i = 0; i < f.count; i++) {
        const char *text = f.each[i].text;
        ck_assert_int_eq(text[strlen(text) - 1], '.');
        for (const char *c = text; *c; c++)
            ck_assert_msg(*c >= ' ' && *c <= '~', "%s", text);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("diagnose cluster");
    TCase *tc = cluster_tcase(s, "diagnose");
    tcase_add_test(tc, masters_that_are_alike_are_told_once);
    tcase_add_test(tc, what_one_master_says_is_told_with_its_address);
    tcase_add_test(tc, rights_that_only_a_cluster_needs_are_checked);
    tcase_add_test(tc, clocks_of_masters_and_replicas_are_compared);
    tcase_add_test(tc, failover_that_takes_longer_than_a_lease_is_a_warning);
    tcase_add_test(tc, hash_slots_without_a_node_are_an_error);
    tcase_add_test(tc, servers_without_sharded_channels_are_told);
    tcase_add_test(tc, each_text_is_one_printable_line);
    tcase_add_test(tc, master_without_a_replica_is_a_warning);
    tcase_add_test(
        tc, master_that_does_not_answer_is_an_error_beside_the_findings_of_the_others);
    return test_run_suite(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* URLs: their meaning, which are refused, and that no message shows a secret. */
#include "base/error.h"
#include "net/url.h"
#include "suite.h"

#include <rlock.h>

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANARY "canary"

static struct rlk_config config;

static void set_up(void)
{
    config = (struct rlk_config){ .lease_ms = 30000,
                                  .presence_ms = 3000,
                                  .command_timeout_ms = 3000,
                                  .connect_timeout_ms = 3000,
                                  .max_connections = 16,
                                  .mutex_type = RLOCK_MUTEX_RECURSIVE };
    rlk_error_clear();
}

static void tear_down(void)
{
    rlk_url_config_clear(&config);
}

static const struct good {
    const char *url, *host, *path;
    int port, db;
    const char *user, *password, *label;
} goods[] = {
    { "redis://h", "h", NULL, 6379, 0, NULL, NULL, "h:6379" },
    { "redis://h/", "h", NULL, 6379, 0, NULL, NULL, "h:6379" },
    { "redis://h?", "h", NULL, 6379, 0, NULL, NULL, "h:6379" },
    { "REDIS://h:1/3", "h", NULL, 1, 3, NULL, NULL, "h:1" },
    { "redis://h:65535/?db=2147483647", "h", NULL, 65535, 2147483647, NULL, NULL,
      "h:65535" },
    { "redis://h/7?db=7", "h", NULL, 6379, 7, NULL, NULL, "h:6379" },
    { "redis://h/%31", "h", NULL, 6379, 1, NULL, NULL, "h:6379" },
    { "redis://[::1]", "::1", NULL, 6379, 0, NULL, NULL, "[::1]:6379" },
    { "redis://[fe80::1%25eth0]:99/1", "fe80::1%eth0", NULL, 99, 1, NULL, NULL,
      "[fe80::1%eth0]:99" },
    { "redis://:p@h", "h", NULL, 6379, 0, NULL, "p", "h:6379" },
    { "redis://u:p@h:2", "h", NULL, 2, 0, "u", "p", "h:2" },
    { "redis://u:@h", "h", NULL, 6379, 0, "u", "", "h:6379" },
    { "redis://u%3a:p%40%2F%3f%25@h", "h", NULL, 6379, 0, "u:", "p@/?%", "h:6379" },
    { "redis://u:a:b@c@h", "h", NULL, 6379, 0, "u", "a:b@c", "h:6379" },
    { "redis://%68%6F", "ho", NULL, 6379, 0, NULL, NULL, "ho:6379" },
    { "unix:///run/redis.sock", NULL, "/run/redis.sock", 0, 0, NULL, NULL,
      "/run/redis.sock" },
    { "unix:///run/a%20b%3F?db=4", NULL, "/run/a b?", 0, 4, NULL, NULL, "/run/a b?" },
};

START_TEST(good_url_gives_its_parts)
{
    const struct good *g = &goods[_i];
    ck_assert_msg(rlk_url_parse(&config, g->url) == 0, "%s: %s", g->url,
                  rlk_error_message());
    ck_assert_pstr_eq(config.endpoint.host, g->host);
    ck_assert_pstr_eq(config.endpoint.path, g->path);
    ck_assert_int_eq(config.endpoint.port, g->port);
    ck_assert_int_eq(config.endpoint.db, g->db);
    ck_assert_pstr_eq(config.endpoint.user, g->user);
    ck_assert_pstr_eq(config.endpoint.password, g->password);
    ck_assert_str_eq(config.endpoint.label, g->label);
}
END_TEST

static const char *const bads[] = {
    "",
    "h",
    "http://h",
    "redis:/h",
    "redis:",
    "redis://",
    "redis:///0",
    "redis://:6379",
    "redis://@h",
    "redis://:@h",
    "redis://canary@h",
    "redis://:canary@",
    "redis://h:",
    "redis://h:0",
    "redis://h:65536",
    "redis://h:99999999999999999999",
    "redis://h:6379x",
    "redis://h:-1",
    "redis://h:+1",
    "redis://::1",
    "redis://[::1",
    "redis://[::1]x",
    "redis://[]:1",
    "redis://h h",
    "redis://h%0a",
    "redis://h%00",
    "redis://h%",
    "redis://h%4",
    "redis://h%zz",
    "redis://:canary%00@h",
    "redis://:canary%@h",
    "redis://:canary%4g@h",
    "redis://h/x",
    "redis://h/-1",
    "redis://h/2147483648",
    "redis://h/1/2",
    "redis://h/1/",
    "redis://h/1?db=2",
    "redis://h?db=1&db=1",
    "redis://h?db=",
    "redis://h?db",
    "redis://h?db=%",
    "redis://h?color=canary",
    "redis://h?color",
    "redis://h?=1",
    "redis://h?DB=1",
    "redis://h?&db=1",
    "redis://h?lease=49",
    "redis://h?lease=86400001",
    "redis://h?lease=0",
    "redis://h?lease=1e3",
    "redis://h?lease=100&lease=100",
    "redis://h?presence=99",
    "redis://h?presence=30001",
    "redis://h?commandtimeout=9",
    "redis://h?commandtimeout=3600001",
    "redis://h?connecttimeout=9",
    "redis://h?connecttimeout=3600001",
    "redis://h?mutextype=",
    "redis://h?mutextype=Recursive",
    "redis://h?mutextype=1",
    "redis://h?handoffms=-1",
    "redis://h?handoffms=86400001",
    "redis://h?handoffcount=",
    "redis://h?handoffcount=1000000001",
    "redis://h?retain=86400001",
    "redis://h?guard=2",
    "redis://h?guard=on",
    "redis://h?guard=",
    "redis://h?replicas=",
    "redis://h?replicas=-1",
    "redis://h?replicas=1001",
    "redis://h?replicas=all",
    "redis://h?waitaof=2",
    "redis://h?maxskew=10001",
    /* passwords that are not percent-encoded, and so are parsed as another part */
    "redis://:p/canary@h",
    "redis://:p?canary@h",
    "redis://u:1/canary@h",
    "redis://u:1?canary@h",
    "redis://u:1?canary=1@h",
    "redis://u:1?db=canary@h",
    "redis://u:1?mutextype=canary@h",
    "redis://u:canary:@h:canary",
    "redis://u:[canary@[canary",
    "redis://u:p@h@canary h",
    "unix://",
    "unix:///",
    "unix://run/x",
    "unix://:canary@/run/x",
    "unix:///%",
    "unix:///%00",
    "unix:///run/x?port=1",
    "unix:///"
    "12345678901234567890123456789012345678901234567890123456789012345678901234567"
    "8901234567890123456789012345678",
};

START_TEST(bad_url_is_EINVAL_with_a_reason_without_secrets)
{
    ck_assert_msg(rlk_url_parse(&config, bads[_i]) == EINVAL, "%s", bads[_i]);
    ck_assert_msg(strncmp(rlk_error_message(), "URL: ", 5) == 0, "%s: %s", bads[_i],
                  rlk_error_message());
    ck_assert_msg(!strstr(rlk_error_message(), CANARY), "%s: %s", bads[_i],
                  rlk_error_message());
}
END_TEST

START_TEST(unix_path_of_107_bytes_is_accepted)
{
    char url[7 + 107 + 1] = "unix:///";
    memset(url + 8, 'x', 106);
    ck_assert_int_eq(rlk_url_parse(&config, url), 0);
    ck_assert_uint_eq(strlen(config.endpoint.path), 107);
}
END_TEST

START_TEST(parameters_are_set)
{
    ck_assert_int_eq(rlk_url_parse(&config,
                                   "redis://h?lease=50&presence=30000&commandtimeout=10"
                                   "&connecttimeout=3600000&mutextype=errorcheck"
                                   "&handoffms=0&handoffcount=1000000000&retain=5"
                                   "&replicas=2&waitaof=1&maxskew=10"),
                     0);
    ck_assert_int_eq(config.lease_ms, 50);
    ck_assert_int_eq(config.presence_ms, 30000);
    ck_assert_int_eq(config.command_timeout_ms, 10);
    ck_assert_int_eq(config.connect_timeout_ms, 3600000);
    ck_assert_int_eq(config.mutex_type, RLOCK_MUTEX_ERRORCHECK);
    ck_assert_int_eq(config.handoff_ms, 0);
    ck_assert_int_eq(config.handoff_count, 1000000000);
    ck_assert_int_eq(config.retain_ms, 5);
    ck_assert_int_eq(config.wait.replicas, 2);
    ck_assert_int_eq(config.wait.aof, 1);
    ck_assert_int_eq(config.max_skew_ms, 10);
    ck_assert_int_eq(rlk_url_parse(&config, "redis://h?guard=1"), 0);
    ck_assert_int_eq(config.guard, RLOCK_GUARD_ON);
    ck_assert_int_eq(rlk_url_parse(&config, "redis://h?guard=00"), 0);
    ck_assert_int_eq(config.guard, RLOCK_GUARD_OFF);
    config.guard = RLOCK_GUARD_ALWAYS; /* that includes "on" */
    ck_assert_int_eq(rlk_url_parse(&config, "redis://h?guard=1"), 0);
    ck_assert_int_eq(config.guard, RLOCK_GUARD_ALWAYS);
    ck_assert_int_eq(rlk_url_parse(&config, "redis://h?mutextype=normal"), 0);
    ck_assert_int_eq(config.mutex_type, RLOCK_MUTEX_NORMAL);
    ck_assert_int_eq(rlk_url_parse(&config, "redis://h?mutextype=recursive"), 0);
    ck_assert_int_eq(config.mutex_type, RLOCK_MUTEX_RECURSIVE);
}
END_TEST

START_TEST(what_the_url_does_not_say_stays)
{
    config.endpoint.password = strdup("old");
    config.endpoint.db = 3;
    config.lease_ms = 77;
    ck_assert_int_eq(rlk_url_parse(&config, "redis://h"), 0);
    ck_assert_str_eq(config.endpoint.password, "old");
    ck_assert_int_eq(config.endpoint.db, 3);
    ck_assert_int_eq(config.lease_ms, 77);
}
END_TEST

START_TEST(credentials_in_the_url_replace_both)
{
    config.endpoint.user = strdup("olduser");
    config.endpoint.password = strdup("old");
    ck_assert_int_eq(rlk_url_parse(&config, "redis://:new@h"), 0);
    ck_assert_ptr_null(config.endpoint.user);
    ck_assert_str_eq(config.endpoint.password, "new");
}
END_TEST

START_TEST(unknown_parameter_is_named)
{
    ck_assert_int_eq(rlk_url_parse(&config, "redis://h?color=red"), EINVAL);
    ck_assert_str_eq(rlk_error_message(), "URL: unknown parameter \"color\"");
}
END_TEST

/* rule: P1 */
START_TEST(rediss_is_TLS_or_ENOTSUP)
{
    int code = rlk_tls_is_built() ? 0 : ENOTSUP;
    ck_assert_int_eq(rlk_url_parse(&config, "rediss://u:" CANARY "@h"), code);
    ck_assert_ptr_null(strstr(rlk_error_message(), CANARY));
    ck_assert(config.endpoint.tls.on == rlk_tls_is_built());
    ck_assert_int_eq(rlk_url_parse(&config, "VALKEYS://h"), code);
    if (code == ENOTSUP)
        ck_assert_str_eq(rlk_error_message(),
                         "URL: valkeys://: this library was built without TLS");
    ck_assert_int_eq(rlk_url_parse(&config, "valkey://h"), 0);
    ck_assert(!config.endpoint.tls.on);
}
END_TEST

/* rule: P2 */
START_TEST(parameters_of_TLS_are_set)
{
    if (!rlk_tls_is_built())
        return;
    ck_assert_int_eq(rlk_url_parse(&config, "rediss://h?cafile=%2fca&cadir=/d&certfile=c"
                                            "&keyfile=k&tlsname=n.example&verify=ca"),
                     0);
    const struct rlk_tls_settings *tls = &config.endpoint.tls;
    ck_assert_str_eq(tls->cafile, "/ca");
    ck_assert_str_eq(tls->cadir, "/d");
    ck_assert_str_eq(tls->certfile, "c");
    ck_assert_str_eq(tls->keyfile, "k");
    ck_assert_str_eq(tls->name, "n.example");
    ck_assert(tls->any_name);
}
END_TEST

static const char *const bad_tls[][2] = {
    { "redis://h?cafile=c", "URL: parameter cafile requires rediss://" },
    { "unix:///s?verify=ca", "URL: parameter verify requires rediss://" },
    { "rediss://h?verify=none", "URL: verify is not full or ca" },
    { "rediss://h?verify=", "URL: verify is not full or ca" },
    { "rediss://h?cafile=", "URL: cafile is empty" },
    { "rediss://h?tlsname=a/b", "URL: tlsname is not a host name" },
    { "rediss://h?keyfile=k", "TLS: keyfile without certfile" },
    { "rediss://h?cafile=a&cafile=b", "URL: parameter cafile is given twice" },
};

/* rule: P2 */
START_TEST(wrong_parameter_of_TLS_is_EINVAL)
{
    if (!rlk_tls_is_built() && strncmp(bad_tls[_i][0], "rediss", 6) == 0)
        return;
    ck_assert_int_eq(rlk_url_parse(&config, bad_tls[_i][0]), EINVAL);
    ck_assert_str_eq(rlk_error_message(), bad_tls[_i][1]);
}
END_TEST

/* ---- Sentinel */

static const struct good_sentinel {
    const char *url, *master;
    int count;
    struct {
        const char *host;
        int port;
    } hosts[3];
    int db;
    const char *user, *password, *kept;
} good_sentinels[] = {
    { .url = "redis-sentinel://h/m",
      .master = "m",
      .count = 1,
      .hosts = { { "h", 26379 } } },
    { .url = "redis-sentinel://u:p@h:1,[::1]:2,k/m/3",
      .master = "m",
      .count = 3,
      .hosts = { { "h", 1 }, { "::1", 2 }, { "k", 26379 } },
      .db = 3,
      .user = "u",
      .password = "p",
      .kept = "redis-sentinel://h:1,[::1]:2,k/m/3" },
    { .url = "Redis+Sentinel://h/m%41/?db=2",
      .master = "mA",
      .count = 1,
      .hosts = { { "h", 26379 } },
      .db = 2 },
    { .url = "valkey-sentinel://h/2?sentinelMasterId=m",
      .master = "m",
      .count = 1,
      .hosts = { { "h", 26379 } },
      .db = 2 },
    { .url = "valkey+sentinel://h?master_name=m",
      .master = "m",
      .count = 1,
      .hosts = { { "h", 26379 } } },
    { .url = "redis-sentinel://h,h:2?master=m&db=1",
      .master = "m",
      .count = 2,
      .hosts = { { "h", 26379 }, { "h", 2 } },
      .db = 1 },
    { .url = "redis-sentinel://:a#b@h:1/4#m",
      .master = "m",
      .count = 1,
      .hosts = { { "h", 1 } },
      .db = 4,
      .password = "a#b",
      .kept = "redis-sentinel://h:1/4#m" },
    { .url = "redis-sentinel://h#m",
      .master = "m",
      .count = 1,
      .hosts = { { "h", 26379 } } },
    { .url = "redis-sentinel://h/m?master=m#m",
      .master = "m",
      .count = 1,
      .hosts = { { "h", 26379 } } },
    { .url = "redis-sentinel://h/7/0", /* a master may be named by a number */
      .master = "7",
      .count = 1,
      .hosts = { { "h", 26379 } } },
};

/* rule: P7 */
START_TEST(good_url_of_sentinels_gives_its_parts)
{
    const struct good_sentinel *g = &good_sentinels[_i];
    const struct rlk_url_sentinels *s = &config.endpoint.sentinels;

    ck_assert_msg(rlk_url_parse(&config, g->url) == 0, "%s: %s", g->url,
                  rlk_error_message());
    ck_assert_str_eq(s->master, g->master);
    ck_assert_int_eq((int)s->count, g->count);
    for (int i = 0; i < g->count; i++) {
        ck_assert_str_eq(s->hosts[i].host, g->hosts[i].host);
        ck_assert_int_eq(s->hosts[i].port, g->hosts[i].port);
    }
    ck_assert_ptr_null(config.endpoint.host);
    ck_assert_ptr_null(config.endpoint.path);
    ck_assert_int_eq(config.endpoint.db, g->db);
    ck_assert_pstr_eq(config.endpoint.user, g->user);
    ck_assert_pstr_eq(config.endpoint.password, g->password);
    ck_assert_str_eq(config.url, g->kept ? g->kept : g->url);
}
END_TEST

static const char *const bad_sentinels[] = {
    "redis-sentinel://",
    "redis-sentinel://h",
    "redis-sentinel://h/",
    "redis-sentinel://h/3",
    "redis-sentinel://h//3",
    "redis-sentinel:///m",
    "redis-sentinel://h,/m",
    "redis-sentinel://,h/m",
    "redis-sentinel://h:x/m",
    "redis-sentinel://h/m/x",
    "redis-sentinel://h/m/0/1",
    "redis-sentinel://h/m%20n",
    "redis-sentinel://h/m&sentinelpassword=canary",
    "redis-sentinel://h/m%3fsentinelpassword=canary",
    "redis-sentinel://h/m:n",
    "redis-sentinel://h/m%2fn",
    "redis-sentinel://h/m?master=n",
    "redis-sentinel://h/m#n",
    "redis-sentinel://h?master=",
    "redis-sentinel://h/m?master",
    "redis-sentinel://h/m?sentineluser=canary",
    "redis-sentinel://h/m?sentinelpassword=",
    "redis-sentinel://h/m?sentinelpassword=canary&sentinelpassword=canary",
    "redis-sentinel://canary@h/m",
    "redis-sentinel://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a/m",
    "redis-sentinel-x://h/m",
    "redis://h?master=m",
    "redis://h?sentinelpassword=canary",
    "unix:///s?sentineluser=canary",
};

/* rule: P10 */
START_TEST(bad_url_of_sentinels_is_EINVAL_without_secrets)
{
    const char *url = bad_sentinels[_i];

    ck_assert_msg(rlk_url_parse(&config, url) == EINVAL, "%s", url);
    ck_assert_msg(strncmp(rlk_error_message(), "URL: ", 5) == 0, "%s: %s", url,
                  rlk_error_message());
    ck_assert_msg(!strstr(rlk_error_message(), CANARY), "%s: %s", url,
                  rlk_error_message());
}
END_TEST

/* rule: P10 */
START_TEST(credentials_of_sentinels_are_set_and_not_kept_in_the_url)
{
    static const char *const urls[][2] = {
        { "?sentineluser=u&sentinelpassword=%63anary", "" },
        { "?sentinelpassword=canary&db=1&sentineluser=u", "?db=1" },
        { "?db=1&sentineluser=u&sentinelpassword=canary#m", "?db=1#m" },
        { "?lease=100&sentinelpassword=canary&sentineluser=u&db=1", "?lease=100&db=1" },
    };
    char url[200], kept[200];

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        snprintf(url, sizeof(url), "redis-sentinel://d:data@h/m%s", urls[i][0]);
        snprintf(kept, sizeof(kept), "redis-sentinel://h/m%s", urls[i][1]);
        tear_down();
        set_up();
        config.endpoint.sentinels.user = strdup("old");
        ck_assert_int_eq(rlk_url_parse(&config, url), 0);
        ck_assert_str_eq(config.endpoint.sentinels.user, "u");
        ck_assert_str_eq(config.endpoint.sentinels.password, CANARY);
        ck_assert_str_eq(config.endpoint.password, "data");
        ck_assert_str_eq(config.url, kept);
    }
    ck_assert_int_eq(rlk_url_parse(&config, "redis-sentinel://h/m?sentinelpassword=p"),
                     0);
    ck_assert_ptr_null(config.endpoint.sentinels.user);
}
END_TEST

/* rule: P10 */
START_TEST(rediss_sentinel_is_TLS_or_ENOTSUP)
{
    static const char *const urls[] = { "rediss-sentinel://h/m", "rediss+sentinel://h/m",
                                        "valkeys-sentinel://h/m",
                                        "valkeys+sentinel://h/m" };

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        ck_assert_int_eq(rlk_url_parse(&config, urls[i]),
                         rlk_tls_is_built() ? 0 : ENOTSUP);
        ck_assert(config.endpoint.tls.on == rlk_tls_is_built());
    }
}
END_TEST

START_TEST(clear_of_a_zeroed_config_is_harmless)
{
    struct rlk_config zero = { .lease_ms = 0 };
    rlk_url_config_clear(&zero);
    ck_assert_ptr_null(zero.endpoint.host);
}
END_TEST

/* ---- clusters */

/* rule: P18 */
START_TEST(url_of_a_cluster_gives_its_nodes)
{
    const struct rlk_url_cluster *cluster = &config.endpoint.cluster;

    ck_assert_int_eq(rlk_url_parse(&config, "redis-cluster://u:p@h:1,[::1],k/0?lease=99"),
                     0);
    ck_assert_uint_eq(cluster->count, 3);
    ck_assert_str_eq(cluster->seeds[0].host, "h");
    ck_assert_uint_eq(cluster->seeds[0].port, 1);
    ck_assert_str_eq(cluster->seeds[1].host, "::1");
    ck_assert_uint_eq(cluster->seeds[2].port, 6379);
    ck_assert_str_eq(config.endpoint.host, "h");
    ck_assert_str_eq(config.endpoint.password, "p");
    ck_assert_str_eq(config.endpoint.label, "the cluster at h:1");
    ck_assert_str_eq(config.url, "redis-cluster://h:1,[::1],k/0?lease=99");
    ck_assert_int_eq(rlk_url_parse(&config, "redis://other"), 0);
    ck_assert_uint_eq(cluster->count, 0);
    ck_assert_str_eq(config.endpoint.host, "other");
}
END_TEST

/* rule: P18 */
START_TEST(address_map_says_where_a_node_is)
{
    const struct rlk_url_cluster *cluster = &config.endpoint.cluster;
    static const struct {
        const char *host;
        uint16_t port;
        const char *real;
        uint16_t real_port;
    } nodes[] = {
        { "10.0.0.1", 7000, "nat", 17000 }, { "10.0.0.1", 7001, "10.0.0.1", 7001 },
        { "N.example", 7002, "::1", 7002 }, { "n.example", 6379, "::1", 6379 },
        { "other", 1, "other", 1 },
    };

    ck_assert_int_eq(rlk_url_parse(&config, "valkey+cluster://h?addressmap="
                                            "10.0.0.1:7000>nat:17000,n.example%3E[::1]"),
                     0);
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        const char *host = nodes[i].host;
        uint16_t port = nodes[i].port;
        rlk_url_cluster_real(cluster, &host, &port);
        ck_assert_str_eq(host, nodes[i].real);
        ck_assert_uint_eq(port, nodes[i].real_port);
    }
}
END_TEST

static const char *const bad_clusters[] = {
    "redis-cluster://",
    "redis-cluster://,h",
    "redis-cluster://h,",
    "redis-cluster://h:0",
    "redis-cluster://h/x",
    "redis-cluster://canary@h",
    "redis-cluster://h?addressmap=",
    "redis-cluster://h?addressmap=a",
    "redis-cluster://h?addressmap=a>",
    "redis-cluster://h?addressmap=>b",
    "redis-cluster://h?addressmap=a>b,",
    "redis-cluster://h?addressmap=a>b:1",
    "redis-cluster://h?addressmap=a:x>b",
    "redis-cluster://h?addressmap=a>b&addressmap=a>b",
    "redis-cluster://h?sentinelpassword=canary",
    "redis://h?addressmap=a>b",
    "redis-clusters://h",
};

START_TEST(bad_url_of_a_cluster_is_EINVAL_without_secrets)
{
    const char *url = bad_clusters[_i];

    ck_assert_msg(rlk_url_parse(&config, url) == EINVAL, "%s", url);
    ck_assert_msg(!strstr(rlk_error_message(), CANARY), "%s: %s", url,
                  rlk_error_message());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("url");
    TCase *tc = tcase_create("url");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, good_url_gives_its_parts, 0,
                        sizeof(goods) / sizeof(goods[0]));
    tcase_add_loop_test(tc, bad_url_is_EINVAL_with_a_reason_without_secrets, 0,
                        sizeof(bads) / sizeof(bads[0]));
    tcase_add_test(tc, unix_path_of_107_bytes_is_accepted);
    tcase_add_test(tc, parameters_are_set);
    tcase_add_test(tc, what_the_url_does_not_say_stays);
    tcase_add_test(tc, credentials_in_the_url_replace_both);
    tcase_add_test(tc, unknown_parameter_is_named);
    tcase_add_test(tc, rediss_is_TLS_or_ENOTSUP);
    tcase_add_test(tc, parameters_of_TLS_are_set);
    tcase_add_loop_test(tc, wrong_parameter_of_TLS_is_EINVAL, 0,
                        sizeof(bad_tls) / sizeof(bad_tls[0]));
    tcase_add_test(tc, url_of_a_cluster_gives_its_nodes);
    tcase_add_test(tc, address_map_says_where_a_node_is);
    tcase_add_loop_test(tc, bad_url_of_a_cluster_is_EINVAL_without_secrets, 0,
                        sizeof(bad_clusters) / sizeof(bad_clusters[0]));
    tcase_add_loop_test(tc, good_url_of_sentinels_gives_its_parts, 0,
                        sizeof(good_sentinels) / sizeof(good_sentinels[0]));
    tcase_add_loop_test(tc, bad_url_of_sentinels_is_EINVAL_without_secrets, 0,
                        sizeof(bad_sentinels) / sizeof(bad_sentinels[0]));
    tcase_add_test(tc, credentials_of_sentinels_are_set_and_not_kept_in_the_url);
    tcase_add_test(tc, rediss_sentinel_is_TLS_or_ENOTSUP);
    tcase_add_test(tc, clear_of_a_zeroed_config_is_harmless);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

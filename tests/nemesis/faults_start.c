/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the servers of each kind, and the links of the workers to them. State: the
 * caller's. */
#include "faults_impl.h"

#include "authority.h"
#include "die.h"
#include "port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ARGS_MAX = 96 };

/* Without letters of hexadecimal numbers: so a part of it cannot be found by chance. */
static void draw_password(struct nem_faults *f)
{
    static const char letters[] = "ghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ";
    unsigned char bytes[NEM_PASSWORD_LEN];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        test_die("getrandom: %s", strerror(errno));
    for (int i = 0; i < NEM_PASSWORD_LEN; i++)
        f->password[i] = letters[bytes[i] % (sizeof(letters) - 1)];
}

/* Rules that a server before 6.2 does not know; there all users may use all channels. */
static bool is_of_channels(const char *word)
{
    return word[0] == '&' || strcmp(word, "resetchannels") == 0;
}

static void add_args(const char *args[ARGS_MAX], size_t *count, const char *const more[])
{
    for (size_t i = 0; more && more[i]; i++) {
        if (test_server_version() < 60200 && is_of_channels(more[i]))
            continue;
        if (*count + 1 == ARGS_MAX)
            test_die("too many arguments for the server");
        args[(*count)++] = more[i];
    }
    args[*count] = NULL;
}

/* The port is beside the socket, which the driver uses. */
static void add_tls(struct nem_faults *f, const char *args[ARGS_MAX], size_t *count,
                    char port[16])
{
    if (f->servers != NEM_TLS)
        return;
    test_authority_begin();
    test_authority_issue("ca", "server", 30, "subjectAltName=IP:" NEM_NO_HOST);
    f->tls_holder = test_port_reserve("127.0.0.1", &f->tls_port);
    snprintf(port, 16, "%u", (unsigned)f->tls_port);
    add_args(args, count,
             TEST_ARGV("--tls-port", port, "--tls-cert-file",
                       test_authority_path("server.crt"), "--tls-key-file",
                       test_authority_path("server.key"), "--tls-ca-cert-file",
                       test_authority_path("ca.crt"), "--tls-auth-clients", "no"));
}

/* Thread: a proxy's. Its socket belongs to the namespace of the server, in which it is
 * made: so a link that is down ends at the proxy. */
static int dial_tls(void *arg)
{
    const int one = 1;
    struct nem_faults *f = arg;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(f->tls_port) };
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    nem_net_enter(&f->net, f->net.near);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    nem_net_enter(&f->net, f->net.far);
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 || errno == EINPROGRESS)
        return fd;
    close(fd);
    return -1;
}

/* To each node of a cluster, from each process. */
static void start_links(struct nem_faults *f)
{
    for (unsigned i = 0; i < f->processes * f->links; i++)
        f->proxies[i] =
            test_proxy_start_at(&f->nodes.node[i % f->links].server, "127.0.0.1");
}

/* The proxies' threads stay in the namespace in which they are started. */
static void start_proxies(struct nem_faults *f)
{
    nem_net_enter(&f->net, f->net.far);
    for (unsigned i = 0; i < f->processes; i++) {
        char address[32] = "127.0.0.1";
        if (f->net.on)
            nem_net_address(address, sizeof(address), i);
        f->proxies[i] = f->servers == NEM_TLS
                            ? test_proxy_start_raw(&f->server, address, dial_tls, f)
                            : test_proxy_start_at(&f->server, address);
    }
    nem_net_enter(&f->net, f->net.near);
}

void nem_server_start(struct nem_faults *f, const char *const more[])
{
    char password[NEM_PASSWORD_LEN + 2];
#define MAILBOXES "resetchannels", "&rlock:client:*"
    const char *const fixed[] = {
        /* clang-format off */
        "--user", NEM_USER, "on", password, "~*", "&*", "+@all",
        "--user", NEM_FORGING_USER, "on", "nopass", MAILBOXES, "+publish",
        "--user", NEM_READING_USER, "on", "nopass", MAILBOXES, "~nemesis*",
        "~rlock:{nemesis*", "+eval", "+keys", "+hkeys", "+zrange", "+pubsub", "+publish",
        "--user", NEM_HOSTILE_USER, "on", "nopass", "~" NEM_SACRIFICE "*",
        "~rlock:{" NEM_SACRIFICE "*", "~redisson_lock_token:{" NEM_SACRIFICE "*",
        "+@read", "+@write", "+ping",
        "--appendonly", "yes", "--appendfsync", "no",
        "--auto-aof-rewrite-percentage", "0", "--aof-use-rdb-preamble", "no", NULL,
        /* clang-format on */
    };
    const char *args[ARGS_MAX];
    char port[16];
    draw_password(f);
    snprintf(password, sizeof(password), ">%s", f->password);
    size_t count = 0;
    add_args(args, &count, fixed);
    add_tls(f, args, &count, port);
    add_args(args, &count, more);
    test_clock_open(&f->clock);
    test_server_start_env(&f->server, args, f->clock.env);
    start_proxies(f);
}

/* Servers without the users of strangers, which need a server that stays the same. */
void nem_servers_start(struct nem_faults *f, const char *const more[])
{
    char password[NEM_PASSWORD_LEN + 2];
    const char *args[ARGS_MAX];
    size_t count = 0;
    draw_password(f);
    snprintf(password, sizeof(password), ">%s", f->password);
    add_args(args, &count,
             TEST_ARGV("--user", NEM_USER, "on", password, "~*", "&*", "+@all"));
    if (f->servers == NEM_REPLICAS)
        add_args(args, &count, TEST_ARGV("--min-replicas-to-write", NEM_REPLICAS_TEXT));
    if (f->servers == NEM_CLUSTER_REPLICAS)
        add_args(args, &count, TEST_ARGV("--min-replicas-to-write", "1"));
    add_args(args, &count, more);
    if (!nem_is_cluster(f->servers)) {
        nem_topology_start(&f->topology, args);
        return;
    }
    nem_nodes_start(&f->nodes, args);
    start_links(f);
}

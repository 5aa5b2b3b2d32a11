/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of TLS: tls ROUNDS PAIRS HOST PORT CAFILE, with the same server's
 * plain port in $RLOCK_URL (bench/tls_run starts a server). First, many processes that
 * contend, over TLS, by the library and by only hiredis's codec and OpenSSL. Then pairs:
 * by the library over TLS, raw over TLS, and by the library over plain TCP. They take
 * turns after a few pairs each, on connections that stay open, so that all three meet the
 * machine in the same state. Then the server's CPU time for a connection with a full
 * handshake, with a resumed one, and without TLS. Prints medians and ratios.
 */
#include "bench.h"
#include "sample.h"
#include "scripts.h"
#include "tls_many.h"
#include "tls_raw.h"

#include <rlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 99, HANDSHAKES = 400, CHUNK = 16384, WAYS = 3, TURN = 25 };
enum { CONTENDING = 64, PHASES = 10 };

/* ---- pairs */

/* One of the three: who takes the lock. */
struct way {
    rlock_client_t *client; /* NULL: raw */
    rlock_mutex_t mutex;
    struct tls_raw_mutex raw;
};

static void open_library(struct way *way, const char *url, const char *name)
{
    rlock_mutexattr_t attr;

    if (rlock_client_open(&way->client, url, NULL) != 0 ||
        rlock_client_ping(way->client) != 0)
        die("%s", rlock_errmsg());
    rlock_mutexattr_init(&attr);
    rlock_mutexattr_setclient(&attr, way->client);
    rlock_mutex_init(&way->mutex, &attr, name);
}

static void pair(struct way *way)
{
    if (!way->client)
        tls_raw_mutex_pair(&way->raw);
    else if (rlock_mutex_lock(&way->mutex) != 0 || rlock_mutex_unlock(&way->mutex) != 0)
        die("%s", rlock_errmsg());
}

/* us for each pair of a round, by way. */
static void run_round(struct way ways[WAYS], long pairs, double us[WAYS])
{
    int64_t spent[WAYS] = { 0 };
    long turns = pairs / TURN > 0 ? pairs / TURN : 1;

    for (long i = 0; i < turns; i++)
        for (int j = 0; j < WAYS; j++) {
            int way = (int)((i + j) % WAYS);
            int64_t begin;
            pair(&ways[way]);
            begin = now_ns();
            for (int k = 0; k < TURN; k++)
                pair(&ways[way]);
            spent[way] += now_ns() - begin;
        }
    for (int way = 0; way < WAYS; way++)
        us[way] = (double)spent[way] / 1000 / (double)(turns * TURN);
}

static void measure_pairs(const char *url, int rounds, long pairs)
{
    static struct way ways[WAYS];
    double us[WAYS], by_raw[ROUNDS_MAX], by_plain[ROUNDS_MAX], tls[ROUNDS_MAX];

    open_library(&ways[0], url, "bench-tls");
    tls_raw_mutex_open(&ways[1].raw, "bench-tls-raw", false);
    open_library(&ways[2], NULL, "bench-tls-plain");
    for (int i = 0; i < rounds; i++) {
        run_round(ways, pairs, us);
        tls[i] = us[0];
        by_raw[i] = us[0] / us[1];
        by_plain[i] = us[0] / us[2];
        printf("round %d: TLS %.1f, raw TLS %.1f, plain TCP %.1f us/pair\n", i + 1, us[0],
               us[1], us[2]);
    }
    printf("TLS %.1f us/pair; %.3f of raw hiredis and OpenSSL (<= 1.10), %.3f of plain "
           "TCP (<= 1.35)\n",
           sample_median(tls, (size_t)rounds), sample_median(by_raw, (size_t)rounds),
           sample_median(by_plain, (size_t)rounds));
    tls_raw_mutex_close(&ways[1].raw);
    (void)rlock_client_close(ways[0].client);
    (void)rlock_client_close(ways[2].client);
}

/* ---- connections */

static double server_cpu_s(redisContext *plain)
{
    char user[32], system[32];
    redis_info(plain, "cpu", "used_cpu_user", user, sizeof(user));
    redis_info(plain, "cpu", "used_cpu_sys", system, sizeof(system));
    return strtod(user, NULL) + strtod(system, NULL);
}

/* The server's CPU time in us for each connection with one PING. */
static double handshakes(redisContext *plain, bool resumed)
{
    static const char ping[] = "PING\r\n";
    char answer[CHUNK];
    int reused = 0;
    double before = server_cpu_s(plain);

    for (int i = 0; i < HANDSHAKES; i++) {
        SSL *ssl = tls_raw_connect(resumed ? tls_raw_session() : NULL);
        if (SSL_write(ssl, ping, sizeof(ping) - 1) <= 0 ||
            SSL_read(ssl, answer, sizeof(answer)) <= 0)
            die("no PONG");
        reused += SSL_session_reused(ssl);
        tls_raw_close(ssl);
    }
    if (reused != (resumed ? HANDSHAKES : 0))
        die("%d of %d connections were resumed", reused, HANDSHAKES);
    return (server_cpu_s(plain) - before) * 1e6 / HANDSHAKES;
}

/* The same without TLS. */
static double connections(redisContext *plain)
{
    double before = server_cpu_s(plain);

    for (int i = 0; i < HANDSHAKES; i++) {
        redisContext *conn = redis_open();
        freeReplyObject(redis_words(conn, (const char *const[]){ "PING", NULL }));
        redisFree(conn);
    }
    return (server_cpu_s(plain) - before) * 1e6 / HANDSHAKES;
}

static void measure_connections(void)
{
    redisContext *conn = redis_open();
    double full = handshakes(conn, false), again = handshakes(conn, true);
    double none = connections(conn);

    printf("server's CPU for a connection: full %.0f us, resumed %.0f us: %.2f "
           "(<= 0.50); without TLS %.0f us, so that the handshakes alone are %.2f\n",
           full, again, again / full, none, (again - none) / (full - none));
    redisFree(conn);
}

int main(int argc, char **argv)
{
    char url[512];

    if (argc != 6)
        die("usage: tls ROUNDS PAIRS HOST PORT CAFILE, with $RLOCK_URL");
    int rounds = atoi(argv[1]), port = atoi(argv[4]);
    long pairs = atol(argv[2]);
    if (rounds < 1 || rounds > ROUNDS_MAX)
        die("1 to %d rounds", ROUNDS_MAX);
    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(url, sizeof(url), "rediss://%s:%d?cafile=%s", argv[3], port, argv[5]);
    tls_raw_begin(argv[3], port, argv[5]);
    tls_many(url, CONTENDING, PHASES);
    measure_pairs(url, rounds, pairs);
    measure_connections();
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See peer.h. A peer reads lines from its input and writes lines to its output. It writes
 * "ready" when its clients have connected and are warm. For "run <settle> <time>", in us,
 * its clients begin after <settle>, and take no new lock after <time>. Then it writes
 * "did" and how many pairs each client did in that time. It ends with its input. */
#include "peer.h"

#include "bench.h"
#include "process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SETTLE_US = 20000 };

struct member {
    pid_t pid;
    clockid_t clock; /* its CPU time */
    FILE *in, *out;  /* of the member */
    char *line;      /* the last one that it wrote */
    size_t line_size;
};

struct crew {
    size_t size, clients; /* processes; clients of each */
    struct member *members;
    uint64_t *pairs; /* of each client of all, in this round */
};

bool peer_is_there(const struct peer *peer)
{
    const char *all = getenv("RLOCK_BENCH_PEERS");
    size_t len = strlen(peer->dir);

    for (const char *at = all; at && (at = strstr(at, peer->dir)) != NULL; at += len)
        if ((at == all || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

/* ---- one process */

static void become(const struct peer *peer, size_t clients, const char *name,
                   const int in[2], const int out[2])
{
    char path[512], count[24];
    const char *dir = getenv("RLOCK_BENCH_PEERS_DIR");

    snprintf(path, sizeof(path), "%s/%s/run", dir ? dir : ".", peer->dir);
    snprintf(count, sizeof(count), "%zu", clients);
    if (dup2(in[0], STDIN_FILENO) < 0 || dup2(out[1], STDOUT_FILENO) < 0)
        die("dup2 failed");
    execl(path, path, peer->kind, name, count, (char *)NULL);
    die("cannot run %s", path);
}

static void start(struct member *m, const struct peer *peer, size_t clients,
                  const char *name)
{
    int in[2], out[2];

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        die("no pipe");
    m->pid = process_fork();
    if (m->pid == 0)
        become(peer, clients, name, in, out);
    close(in[0]);
    close(out[1]);
    m->in = fdopen(in[1], "we");
    m->out = fdopen(out[0], "re");
    if (!m->in || !m->out || clock_getcpuclockid(m->pid, &m->clock) != 0)
        die("cannot talk to a peer");
}

static const char *read_line(struct member *m)
{
    if (getline(&m->line, &m->line_size, m->out) <= 0)
        die("a peer has ended");
    return m->line;
}

/* Reads what the member's clients did, and adds it to their counts. */
static void read_pairs(struct member *m, uint64_t *pairs, size_t clients)
{
    const char *line = read_line(m), *at = line;
    char *end;

    if (strncmp(line, "did ", strlen("did ")) != 0)
        die("a peer says: %s", line);
    at += strlen("did ");
    for (size_t i = 0; i < clients; i++, at = end) {
        pairs[i] += strtoull(at, &end, 10);
        if (end == at)
            die("a peer says: %s", line);
    }
}

static double cpu_ns(const struct member *m)
{
    struct timespec ts = { 0 };
    clock_gettime(m->clock, &ts);
    return (double)ts.tv_sec * (double)NS_PER_S + (double)ts.tv_nsec;
}

/* ---- all of them */

struct crew *crew_start(const struct peer *peer, size_t clients, const char *name)
{
    struct crew *crew = calloc(1, sizeof(*crew));

    if (!crew)
        die("out of memory");
    crew->size = peer->alone ? 1 : clients;
    crew->clients = clients / crew->size;
    crew->members = calloc(crew->size, sizeof(*crew->members));
    crew->pairs = calloc(clients, sizeof(*crew->pairs));
    if (!crew->members || !crew->pairs)
        die("out of memory");
    for (size_t i = 0; i < crew->size; i++)
        start(&crew->members[i], peer, crew->clients, name);
    for (size_t i = 0; i < crew->size; i++) {
        const char *line = read_line(&crew->members[i]);
        if (strcmp(line, "ready\n") != 0)
            die("%s is not ready: %s", peer->dir, line);
    }
    return crew;
}

void crew_run(struct crew *crew, double seconds, double *cpu)
{
    for (size_t i = 0; i < crew->size; i++) {
        *cpu -= cpu_ns(&crew->members[i]);
        fprintf(crew->members[i].in, "run %d %ld\n", SETTLE_US, (long)(seconds * 1e6));
        fflush(crew->members[i].in);
    }
    for (size_t i = 0; i < crew->size; i++) {
        read_pairs(&crew->members[i], &crew->pairs[i * crew->clients], crew->clients);
        *cpu += cpu_ns(&crew->members[i]);
    }
}

void crew_take(struct crew *crew, struct result *result)
{
    for (size_t i = 0; i < crew->size * crew->clients; i++) {
        result_count(result, crew->pairs[i]);
        crew->pairs[i] = 0;
    }
}

void crew_stop(struct crew *crew)
{
    for (size_t i = 0; i < crew->size; i++)
        fclose(crew->members[i].in);
    for (size_t i = 0; i < crew->size; i++) {
        fclose(crew->members[i].out);
        free(crew->members[i].line);
        process_reap(crew->members[i].pid);
    }
    free(crew->pairs);
    free(crew->members);
    free(crew);
}

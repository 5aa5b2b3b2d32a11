/* SPDX-License-Identifier: Apache-2.0 */
/* See livefile.h. */
#include "crash/livefile.h"

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "client/client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TEXT_SIZE = 2048,          /* a head is shorter */
    INTENTS_OLD_KERNEL = 1024, /* where memory cannot be added later */
    LIFE_MAX_MS = 86400000
};

#define FORMAT "rlock-guard 1 "
#define NODES "nodes "
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* ---- the server's name for other processes of this host */

static bool is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0;
}

/* The inode of the network namespace, if the address is a loopback address. */
static uintmax_t namespace_of(const char *host)
{
    struct stat st;

    return is_loopback(host) && stat("/proc/self/ns/net", &st) == 0 ? st.st_ino : 0;
}

static void make_lower(char *text)
{
    for (char *c = text; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
}

/* Processes may list the same sentinels or seeds in another order: the first by name
 * counts. */
static const struct rlk_url_host *first_of(const struct rlk_url_host *hosts, size_t count)
{
    const struct rlk_url_host *first = &hosts[0];

    for (size_t i = 1; i < count; i++) {
        int order = strcasecmp(hosts[i].host, first->host);
        if (order < 0 || (order == 0 && hosts[i].port < first->port))
            first = &hosts[i];
    }
    return first;
}

/* Case matters in names of masters, not in those of hosts. */
static int name_sentinels(struct rlk_livefile *livefile,
                          const struct rlk_endpoint *endpoint)
{
    const struct rlk_url_sentinels *s = &endpoint->sentinels;
    const struct rlk_url_host *first = first_of(s->hosts, s->count);
    size_t size = sizeof(livefile->server);
    int len = snprintf(livefile->server, size, "sentinel %s:%u %d %ju ", first->host,
                       (unsigned)first->port, endpoint->db, namespace_of(first->host));
    make_lower(livefile->server);
    if (len >= (int)size)
        return len;
    return len + snprintf(livefile->server + len, size - (size_t)len, "%s", s->master);
}

/* The configured address without the password. The name differs where containers mean
 * different servers by one address: a loopback address gets its network namespace, a
 * path gets its directory's inode. */
static bool name_server(struct rlk_livefile *livefile,
                        const struct rlk_endpoint *endpoint)
{
    const struct rlk_url_cluster *cluster = &endpoint->cluster;
    const struct rlk_url_host own = { endpoint->host, endpoint->port };
    struct stat st;
    int len;

    if (endpoint->path) {
        const char *base = strrchr(endpoint->path, '/') + 1;
        char dir[sizeof(((struct rlk_livefile *)0)->server)];
        snprintf(dir, sizeof(dir), "%.*s/.", (int)(base - endpoint->path - 1),
                 endpoint->path);
        if (stat(dir, &st) != 0)
            memset(&st, 0, sizeof(st));
        len = snprintf(livefile->server, sizeof(livefile->server), "unix %ju:%ju/%s %d",
                       (uintmax_t)st.st_dev, (uintmax_t)st.st_ino, base, endpoint->db);
    } else if (endpoint->sentinels.count > 0) {
        len = name_sentinels(livefile, endpoint);
    } else {
        bool of_cluster = cluster->count > 0;
        const struct rlk_url_host *host =
            of_cluster ? first_of(cluster->seeds, cluster->count) : &own;
        len = snprintf(livefile->server, sizeof(livefile->server), "%s %s:%u %d %ju",
                       of_cluster ? "cluster" : "tcp", host->host, (unsigned)host->port,
                       endpoint->db, namespace_of(host->host));
        make_lower(livefile->server);
    }
    return len < (int)sizeof(livefile->server) && !strchr(livefile->server, '\n');
}

/* ---- creation */

static const struct flock whole_file = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

bool rlk_livefile_take(int fd)
{
    /* rule: G3 */
    struct flock lock = whole_file;
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool rlk_livefile_is_free(int fd)
{
    /* rule: G3, G14 */
    struct flock lock = whole_file;
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

/* How many intents fit the limit of file sizes; a file beyond it would raise a signal. */
static unsigned intents_allowed(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return RLK_SLOTS_MAX;
    if (limit.rlim_cur < RLK_LIVEFILE_HEADER)
        return 0;
    rlim_t count = (limit.rlim_cur - RLK_LIVEFILE_HEADER) / sizeof(struct rlk_intent);
    return count < RLK_SLOTS_MAX ? (unsigned)count : RLK_SLOTS_MAX;
}

static size_t len_of(unsigned intents)
{
    return RLK_LIVEFILE_HEADER + intents * sizeof(struct rlk_intent);
}

static bool can_grow(void *map)
{
    return madvise(map, RLK_LIVEFILE_HEADER, MADV_POPULATE_WRITE) == 0;
}

static void write_head(struct rlock_client *client, char *at)
{
    /* rule: G12 */
    char program[64];
    snprintf(program, sizeof(program), "%s", program_invocation_short_name);
    for (char *c = program; *c; c++)
        if (*c <= ' ' || *c > '~')
            *c = '_';
    int len = snprintf(at, RLK_LIVEFILE_HEADER,
                       FORMAT "%s\npid %ld\nprogram %s\nserver %s\nlife %" PRId64 "\n",
                       client->uuid, (long)getpid(), program, client->livefile.server,
                       rlk_client_marker_ms(client));
    client->livefile.text_len = (size_t)len;
}

/* rule: P25 */
/* If the process is killed meanwhile, ids are new up to some place, and old behind it:
 * either are ids of its cluster. */
bool rlk_livefile_know_nodes(struct rlock_client *client,
                             const struct rlk_cluster_ids *nodes)
{
    struct rlk_livefile *livefile = &client->livefile;
    char line[sizeof(NODES) + RLK_CLUSTER_IDS_TEXT] = NODES;
    char *end = line + sizeof(NODES) - 1;

    if (nodes->count == 0 || rlk_cluster_ids_equal(nodes, &livefile->nodes))
        return false;
    livefile->nodes = *nodes;
    rlk_cluster_ids_write(nodes, end);
    strcat(end, "\n");
    if (livefile->map)
        memcpy((char *)livefile->map + livefile->text_len, line, sizeof(line));
    return true;
}

/* rule: G1, G6 */
/* Gives a new file its memory, lock and mapping; then its descriptor is not needed any
 * more. Returns an errno value. */
static int set_up(struct rlock_client *client, int fd, const struct rlk_rundir *dir)
{
    struct rlk_livefile *livefile = &client->livefile;
    struct rlk_intent_table *intents = &client->registry.slots;
    unsigned max = intents_allowed();
    unsigned count = max < RLK_SLOTS_FIRST ? max : RLK_SLOTS_FIRST;

    if (max == 0)
        return EFBIG;
    if (dir->of_group &&
        (fchown(fd, (uid_t)-1, dir->group) != 0 || fchmod(fd, 0660) != 0))
        return errno;
    if (fallocate(fd, 0, 0, (off_t)len_of(count)) != 0 ||
        ftruncate(fd, (off_t)len_of(max)) != 0)
        return errno;
    if (!rlk_livefile_take(fd))
        return errno;
    const size_t map_len = len_of(max); /* all of it, used or not */
    void *map = mmap(NULL, map_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return errno;
    int rc = madvise(map, map_len, MADV_DONTFORK) == 0 ? 0 : errno;
    if (rc == 0 && !can_grow(map)) {
        max = max < INTENTS_OLD_KERNEL ? max : INTENTS_OLD_KERNEL;
        rc = fallocate(fd, 0, 0, (off_t)len_of(max)) == 0 ? 0 : errno;
        count = max;
    }
    if (rc != 0) {
        munmap(map, map_len);
        return rc;
    }
    livefile->map = map;
    livefile->map_len = map_len;
    write_head(client, map);
    intents->table = (struct rlk_intent *)((char *)map + RLK_LIVEFILE_HEADER);
    intents->full = (_Atomic uint32_t *)((char *)map + RLK_LIVEFILE_FULL_AT);
    intents->count = count;
    intents->max = max;
    return 0;
}

/* rule: G1 */
/* Checks that the mapping alone keeps the lock (G1). On a kernel where it does not,
 * other processes would take this process for dead. Returns 0 or an errno value. */
static int check_lock(const struct rlk_rundir *dir, const char *name)
{
    int fd = rlk_fd_raise(openat(dir->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (fd < 0)
        return errno;
    int rc = rlk_livefile_is_free(fd) ? ENOLCK : 0;
    close(fd);
    return rc;
}

/* rule: G1, G2 */
/* Locks the file before it gets its name (G2): no process looks for the name until
 * then. */
static int make(struct rlock_client *client, const struct rlk_rundir *dir)
{
    char before[RLK_UUID_LEN + 2];

    snprintf(before, sizeof(before), ".%s", client->uuid);
    int fd = rlk_fd_raise(openat(
        dir->fd, before, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    int rc = fd < 0 ? errno : set_up(client, fd, dir);
    if (fd >= 0)
        close(fd);
    if (rc == 0)
        rc = check_lock(dir, before);
    if (rc == 0 && renameat(dir->fd, before, dir->fd, client->uuid) != 0)
        rc = errno;
    if (rc != 0)
        unlinkat(dir->fd, before, 0);
    return rc;
}

static void give_up(struct rlock_client *client)
{
    rlk_livefile_free(client);
    client->livefile.dir[0] = '\0';
}

static void make_file(struct rlock_client *client)
{
    struct rlk_livefile *livefile = &client->livefile;
    struct rlk_rundir dir;
    sigset_t signals;

    if (rlk_rundir_find(livefile->dir, &livefile->off) != 0 ||
        rlk_rundir_open(&dir, livefile->dir) != 0) {
        snprintf(livefile->why, sizeof(livefile->why), "%s", rlk_error_message());
        livefile->dir[0] = '\0';
    } else {
        /* A child forked now would keep the lock, so neither another thread nor a
         * signal handler may fork here. */
        rlk_sync_signals_block(&signals);
        rlk_fd_hold();
        int rc = make(client, &dir);
        rlk_fd_unhold();
        rlk_sync_signals_restore(&signals);
        rlk_fd_close(dir.fd);
        if (rc != 0) {
            snprintf(livefile->why, sizeof(livefile->why),
                     "cannot create a file in %s: %s", livefile->dir, strerror(rc));
            give_up(client);
        }
    }
    rlk_error_clear();
}

void rlk_livefile_start(struct rlock_client *client)
{
    struct rlk_livefile *livefile = &client->livefile;

    memset(livefile, 0, sizeof(*livefile));
    memset(&client->registry.slots, 0, sizeof(client->registry.slots));
    livefile->off = client->config.guard == RLOCK_GUARD_OFF;
    if (livefile->off)
        snprintf(livefile->why, sizeof(livefile->why),
                 "the client's attributes or URL say so");
    else if (!name_server(livefile, &client->config.endpoint))
        snprintf(livefile->why, sizeof(livefile->why),
                 "the server's address is too long");
    else
        make_file(client);
    if (livefile->why[0] && !livefile->off)
        rlk_log(RLK_LOG_INFO, "rlock: no crash guard: %s", livefile->why);
}

/* ---- the end */

void rlk_livefile_leave(struct rlock_client *client, bool settled)
{
    struct rlk_livefile *livefile = &client->livefile;
    struct rlk_rundir dir;

    if (!livefile->map || !settled || rlk_rundir_open(&dir, livefile->dir) != 0)
        return;
    /* rule: G15 */
    unlinkat(dir.fd, client->uuid, 0);
    rlk_fd_close(dir.fd);
}

void rlk_livefile_end(struct rlock_client *client)
{
    struct rlk_livefile *livefile = &client->livefile;

    if (!livefile->map)
        return;
    /* rule: G15 */
    /* Private memory is moved over the mapping in one step, so that the address is
     * never unmapped. If that fails, the mapping stays, and the lock ends with the
     * process's memory. */
    void *spare = mmap(NULL, livefile->map_len, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (spare == MAP_FAILED)
        return;
    if (mremap(spare, livefile->map_len, livefile->map_len, MREMAP_MAYMOVE | MREMAP_FIXED,
               livefile->map) == MAP_FAILED)
        munmap(spare, livefile->map_len);
    else
        madvise(livefile->map, livefile->map_len, MADV_DONTFORK);
}

void rlk_livefile_free(struct rlock_client *client)
{
    if (client->livefile.map)
        munmap(client->livefile.map, client->livefile.map_len);
    client->livefile.map = NULL;
    client->registry.slots.table = NULL;
}

void rlk_livefile_forget(struct rlock_client *client)
{
    /* rule: G6 */
    memset(&client->livefile, 0, sizeof(client->livefile));
}

/* ---- files of other processes */

bool rlk_livefile_is_name(const char *name)
{
    size_t i;
    for (i = 0; i < RLK_UUID_LEN; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? name[i] != '-'
                 : !((name[i] >= '0' && name[i] <= '9') ||
                     (name[i] >= 'a' && name[i] <= 'f')))
            return false;
    }
    return name[i] == '\0';
}

/* Copies the rest of the line that begins with `key`. False: no such line, or it is
 * too long. */
static bool find_line(const char *text, const char *key, char *buf, size_t size)
{
    char begin[32];
    snprintf(begin, sizeof(begin), "\n%s ", key);
    const char *at = strstr(text, begin);
    if (!at)
        return false;
    at += strlen(begin);
    size_t len = strcspn(at, "\n");
    if (at[len] != '\n' || len >= size)
        return false;
    memcpy(buf, at, len);
    buf[len] = '\0';
    return true;
}

bool rlk_livefile_read(int fd, const char *uuid, struct rlk_livefile_head *ret_head)
{
    /* rule: G3 */
    char text[TEXT_SIZE], nodes[RLK_CLUSTER_IDS_TEXT] = "", number[24];
    const size_t first = sizeof(FORMAT) - 1;
    uint32_t full;
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

    if (n <= 0)
        return false;
    text[n] = '\0';
    if (strncmp(text, FORMAT, first) != 0 ||
        strncmp(text + first, uuid, RLK_UUID_LEN) != 0 ||
        text[first + RLK_UUID_LEN] != '\n' ||
        !find_line(text, "program", ret_head->program, sizeof(ret_head->program)) ||
        !find_line(text, "server", ret_head->server, sizeof(ret_head->server)) ||
        !find_line(text, "pid", number, sizeof(number)))
        return false;
    ret_head->pid = strtol(number, NULL, 10);
    if (!find_line(text, "life", number, sizeof(number)))
        return false;
    ret_head->life_ms = strtoll(number, NULL, 10);
    if (!find_line(text, "nodes", nodes, sizeof(nodes)))
        nodes[0] = '\0';
    rlk_cluster_ids_read(&ret_head->nodes, nodes);
    ret_head->full =
        pread(fd, &full, sizeof(full), RLK_LIVEFILE_FULL_AT) == sizeof(full) && full != 0;
    for (char *c = ret_head->program; *c; c++) /* it appears in log lines */
        if (*c <= ' ' || *c > '~')
            *c = '_';
    if (ret_head->life_ms > LIFE_MAX_MS)
        ret_head->life_ms = LIFE_MAX_MS;
    return ret_head->life_ms > 0;
}

/* rule: P25 */
/* What the URLs say counts only where a process has not reached its cluster yet. */
bool rlk_livefile_is_same(const struct rlock_client *client,
                          const struct rlk_livefile_head *head)
{
    const struct rlk_livefile *own = &client->livefile;

    if (own->nodes.count > 0 && head->nodes.count > 0)
        return rlk_cluster_ids_meet(&own->nodes, &head->nodes);
    return strcmp(head->server, own->server) == 0;
}

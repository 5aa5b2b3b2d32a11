/* SPDX-License-Identifier: Apache-2.0 */
/* See peer_watch.h. */
#include "crash/peer_watch.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "client/client.h"
#include "crash/livefile_gc.h"
#include "crash/recovery.h"
#include "state/awaited.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CHECK_MS = 1000,       /* between two looks whether anybody waits still, */
    CHECK_ALWAYS_S = 3600, /* and where that does not matter */
    POLL_MS = 100,   /* between two looks at all files, where the kernel tells of none, */
    POLL_SHARE = 20, /* and all who look so take this part of a processor together */
    KEEP_NS = 200000,  /* by the square of the files: who lists all keeps what the kernel
                          tells for so long, or all together would take more than that
                          part, at some 10 us for a file */
    LEFT_MS = 3000,    /* until one that could not be buried is tried again */
    LOOKS_MAX = 64,    /* in one step */
    READS_MAX = 16,    /* of the kernel's notices, likewise */
    CORPSES_MAX = 16,  /* at a time: each has a descriptor */
    SHORTAGE_MS = 100, /* until it is tried again to have a descriptor or memory */
};

/* After these, ms, a file that the kernel named is looked at again: its lock goes a
 * moment after its last reference. */
static const int again_ms[] = { 0, 1, 10, 100 };
enum {
    AGAIN = sizeof(again_ms) / sizeof(again_ms[0]),
    LISTED = AGAIN - 2 /* twice: its last reference may have gone just before the kernel
                          was to tell of that, and its lock goes just now */
};

struct suspect {
    struct rlk_list link;
    char name[RLK_UUID_LEN + 2];
    unsigned looks; /* so many were there */
    int64_t at;     /* of the next */
};

static void add_suspect(struct rlk_peer_watch *deaths, const char *name, unsigned looks,
                        int64_t at)
{
    struct suspect *suspect = calloc(1, sizeof(*suspect));
    if (!suspect)
        return; /* it costs the lease */
    snprintf(suspect->name, sizeof(suspect->name), "%s", name);
    suspect->looks = looks;
    suspect->at = at;
    rlk_list_append(looks == AGAIN ? &deaths->left : &deaths->suspects, &suspect->link);
}

static void free_suspect(struct suspect *suspect)
{
    rlk_list_remove(&suspect->link);
    free(suspect);
}

/* Until its time has come it is not looked at: who leaves a file closes it, which is what
 * the kernel tells of. */
static bool is_left(const struct rlk_peer_watch *deaths, const char *name)
{
    for (const struct rlk_list *l = deaths->left.next; l != &deaths->left; l = l->next)
        if (strcmp(RLK_CONTAINER_OF(l, struct suspect, link)->name, name) == 0)
            return true;
    return false;
}

void rlk_peer_watch_left(struct rlock_client *client, const char *uuid, int64_t now)
{
    struct rlk_list *suspects = &client->deaths.suspects;

    for (struct rlk_list *l = suspects->next, *next; l != suspects; l = next) {
        struct suspect *suspect = RLK_CONTAINER_OF(l, struct suspect, link);
        next = l->next;
        if (strcmp(suspect->name, uuid) == 0)
            free_suspect(suspect);
    }
    add_suspect(&client->deaths, uuid, AGAIN, now + LEFT_MS * RLK_NS_PER_MS);
}

/* ---- the directory */

/* It is looked at each time whether it is to be trusted still. */
static int open_dir(struct rlock_client *client, struct rlk_rundir *ret_dir)
{
    int rc = rlk_rundir_open(ret_dir, client->guard.dir);
    if (rc != 0)
        ret_dir->fd = -1;
    return rc;
}

static bool is_shortage(int code)
{
    return code == EMFILE || code == ENFILE || code == ENOMEM;
}

/* At each check it is said here how it went. Why deaths are seen no more is told once,
 * and not before the second check: while the directory is made anew there is none. */
static void note_dir(struct rlock_client *client, int code)
{
    struct rlk_peer_watch *deaths = &client->deaths;

    if (is_shortage(code))
        return;
    if (code != 0 && code == deaths->refused && code != deaths->told)
        rlk_log(RLK_LOG_WARNING, "rlock: no crash guard any more: %s",
                rlk_error_message());
    if (code == 0 || code == deaths->refused)
        deaths->told = code;
    deaths->refused = code;
}

static void close_inotify(struct rlk_peer_watch *deaths)
{
    if (deaths->inotify_fd >= 0)
        rlk_fd_close_aside(deaths->inotify_fd);
    deaths->inotify_fd = -1;
}

/* The directory is another one, perhaps, or not to be trusted: it is seen to at once what
 * can be done. */
static void lose_inotify(struct rlk_peer_watch *deaths, int64_t now)
{
    close_inotify(deaths);
    deaths->check_at = now;
}

/* ---- looking at one */

enum verdict { DONE, LOOK_AGAIN, LATER /* for want of a descriptor */, LEAVE };

/* Nobody else has it: what becomes of the file of a dead one. */
static enum verdict bury(struct rlock_client *client, const struct rlk_rundir *dir,
                         const char *name, const struct rlk_livefile_head *head, int fd,
                         int64_t now)
{
    if (rlk_livefile_gc_are_old(fd)) {
        bool gone = rlk_livefile_gc_remove(dir, name, fd);
        rlk_fd_close(fd);
        return gone ? DONE : LEAVE;
    }
    return rlk_recovery_begin(client, fd, name, head, now) ? DONE : LEAVE;
}

/* rule: G3 */
/* What is to be done about it, if it was named by the kernel. */
static enum verdict look(struct rlock_client *client, const struct rlk_rundir *dir,
                         const char *name, int64_t now)
{
    struct rlk_livefile_head head;
    struct stat st;

    if (name[0] == '.') {
        rlk_livefile_gc_of_making(dir, name);
        return DONE;
    }
    /* not to write: to close that is what the kernel tells the others of */
    int fd = rlk_fd_openat(dir->fd, name, O_RDONLY | O_NOFOLLOW, 0);
    if (fd < 0 && is_shortage(errno))
        return LATER;
    if (fd < 0)
        return errno != ENOENT && errno != EACCES ? LOOK_AGAIN : DONE;
    bool ours =
        fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && rlk_livefile_read(fd, name, &head);
    bool dead = ours && rlk_livefile_is_free(fd);
    bool same = ours && strcmp(head.server, client->guard.server) == 0;
    bool left = dead && !same && !rlk_livefile_gc_keep(dir, name, fd, &st);
    rlk_fd_close(fd);
    if (left)
        return LEAVE;
    if (!dead || !same)
        return ours && !dead ? LOOK_AGAIN : DONE;
    int own = rlk_livefile_gc_take(dir, name, &st);
    if (own < 0)
        return is_shortage(errno) ? LATER : LOOK_AGAIN;
    return bury(client, dir, name, &head, own, now);
}

/* Those that were left are looked at once more when their time has come, if somebody here
 * needs it. Returns when the next one is due. */
static int64_t try_again(struct rlock_client *client, int64_t now)
{
    struct rlk_peer_watch *deaths = &client->deaths;
    struct rlk_list *l;

    while ((l = rlk_list_first(&deaths->left)) != NULL) {
        struct suspect *suspect = RLK_CONTAINER_OF(l, struct suspect, link);
        if (suspect->at > now)
            return suspect->at;
        rlk_list_remove(l);
        suspect->looks = AGAIN - 1;
        if (client->registry.looks)
            rlk_list_append(&deaths->suspects, l);
        else
            free(suspect);
    }
    return RLK_NEVER;
}

/* Looks at those that are due. Returns when the next one is. */
static int64_t look_at_suspects(struct rlock_client *client, int64_t now)
{
    struct rlk_peer_watch *deaths = &client->deaths;
    struct rlk_rundir dir = { .fd = -1 };
    int64_t due = RLK_NEVER;
    int count = 0, rc = 0;

    for (struct rlk_list *l = deaths->suspects.next, *next; l != &deaths->suspects;
         l = next) {
        struct suspect *suspect = RLK_CONTAINER_OF(l, struct suspect, link);
        next = l->next;
        if (suspect->at <= now && rlk_recovery_count(client) >= CORPSES_MAX) {
            deaths->no_room = true; /* until one of them is done with */
            continue;
        }
        if (suspect->at <= now && rc == 0 && dir.fd < 0)
            rc = open_dir(client, &dir);
        if (suspect->at <= now && is_shortage(rc))
            suspect->at = now + SHORTAGE_MS * RLK_NS_PER_MS;
        if (suspect->at <= now && count < LOOKS_MAX) {
            count++;
            enum verdict verdict =
                dir.fd < 0 ? DONE : look(client, &dir, suspect->name, now);
            if (verdict == LEAVE)
                add_suspect(deaths, suspect->name, AGAIN, now + LEFT_MS * RLK_NS_PER_MS);
            if (verdict == DONE || verdict == LEAVE ||
                (verdict == LOOK_AGAIN && ++suspect->looks >= AGAIN)) {
                free_suspect(suspect);
                continue;
            }
            suspect->at =
                now + (verdict == LATER ? SHORTAGE_MS : again_ms[suspect->looks]) *
                          RLK_NS_PER_MS;
        }
        if (suspect->at < due)
            due = suspect->at;
    }
    if (dir.fd >= 0)
        rlk_fd_close(dir.fd);
    if (rc != 0 && !is_shortage(rc) && deaths->inotify_fd >= 0) {
        lose_inotify(deaths, now); /* what it tells of may not be looked at */
        due = now;
    }
    return due;
}

/* ---- all of them */

/* As the kernel writes it: struct linux_dirent64. */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t size;
    uint8_t type;
    char name[];
};

static bool is_suspect(const struct rlock_client *client, const char *name)
{
    if (name[0] == '.')
        return rlk_livefile_is_name(name + 1);
    return rlk_livefile_is_name(name) && strcmp(name, client->uuid) != 0;
}

/* Every file becomes a suspect, to be looked at twice. How many there are; 0, or why the
 * directory could not be opened. By the system call: readdir's descriptor would be
 * inherited by a child. */
static int list_all(struct rlock_client *client, int64_t now, int64_t *ret_count)
{
    char buf[4096] __attribute__((aligned(__alignof__(struct entry))));
    struct rlk_rundir dir;
    long n;

    *ret_count = 0;
    int rc = open_dir(client, &dir);
    if (rc != 0)
        return rc;
    while ((n = syscall(SYS_getdents64, dir.fd, buf, sizeof(buf))) > 0) {
        for (char *at = buf; at < buf + n;) {
            const struct entry *entry = (const struct entry *)at;
            at += entry->size;
            if (!is_suspect(client, entry->name) || is_left(&client->deaths, entry->name))
                continue;
            add_suspect(&client->deaths, entry->name, LISTED, now);
            ++*ret_count;
        }
    }
    rlk_fd_close(dir.fd);
    return 0;
}

static void look_at_all(struct rlock_client *client, int64_t now)
{
    struct rlk_peer_watch *deaths = &client->deaths;
    int64_t begun = rlk_clock_boot();
    int64_t count;

    /* rule: G9 */
    int rc = list_all(client, now, &count);
    deaths->keep_until = deaths->inotify_fd >= 0 ? now + count * count * KEEP_NS : now;
    deaths->look_at = RLK_NEVER;
    if (deaths->check_at == RLK_NEVER)
        return;
    if (is_shortage(rc))
        deaths->look_at = now + SHORTAGE_MS * RLK_NS_PER_MS;
    else if (rc != 0 && deaths->inotify_fd >= 0)
        lose_inotify(deaths, now);
    if (deaths->inotify_fd >= 0)
        return;
    /* a look costs about as much as the list of them took, and as many look as are there
     */
    int64_t cost = rlk_clock_boot() - begun;
    int64_t pause = cost * count * POLL_SHARE;
    if (pause < POLL_MS * RLK_NS_PER_MS)
        pause = POLL_MS * RLK_NS_PER_MS;
    deaths->look_at = now + pause;
}

/* ---- what the kernel tells */

static int make_inotify(void)
{
    return inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
}

/* By the descriptor of the directory, not by its path, which may be another one by now.
 * And the own file: a directory that is removed says nothing of it while files that were
 * in it are in use, but the own one is removed first. */
static void open_inotify(struct rlock_client *client)
{
    struct rlk_peer_watch *deaths = &client->deaths;
    struct rlk_rundir dir;
    struct stat st;
    char path[32 + RLK_UUID_LEN];

    if (deaths->inotify_fd >= 0)
        return;
    int rc = open_dir(client, &dir);
    note_dir(client, rc);
    if (rc != 0)
        return;
    deaths->inotify_fd = rlk_fd_made_by(make_inotify);
    int len = snprintf(path, sizeof(path), "/proc/self/fd/%d", dir.fd);
    if (deaths->inotify_fd >= 0 &&
        (fstat(dir.fd, &st) != 0 || inotify_add_watch(deaths->inotify_fd, path,
                                                      IN_CLOSE_WRITE | IN_DELETE_SELF |
                                                          IN_MOVE_SELF | IN_ONLYDIR) < 0))
        close_inotify(deaths);
    if (deaths->inotify_fd >= 0) {
        deaths->dev = st.st_dev;
        deaths->ino = st.st_ino;
        snprintf(path + len, sizeof(path) - (size_t)len, "/%s", client->uuid);
        inotify_add_watch(deaths->inotify_fd, path, IN_ATTRIB);
    }
    rlk_fd_close(dir.fd);
}

/* Whether the own file is where it was made, and so is the directory. */
static bool has_own_file(const struct rlock_client *client)
{
    char path[RLK_RUNDIR_SIZE + RLK_UUID_LEN + 1];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", client->guard.dir, client->uuid);
    return lstat(path, &st) == 0;
}

/* Whether the directory is the one that is watched. */
static bool is_watched(const struct rlock_client *client)
{
    struct stat st;
    return lstat(client->guard.dir, &st) == 0 && st.st_dev == client->deaths.dev &&
           st.st_ino == client->deaths.ino;
}

/* The kernel has named it. */
static void name_suspect(struct rlk_peer_watch *deaths, const char *name, int64_t now)
{
    struct rlk_list *suspects = &deaths->suspects;

    for (struct rlk_list *l = suspects->next; l != suspects; l = l->next) {
        struct suspect *suspect = RLK_CONTAINER_OF(l, struct suspect, link);
        if (strcmp(suspect->name, name) != 0)
            continue;
        suspect->looks = 0;
        suspect->at = now;
        return;
    }
    add_suspect(deaths, name, 0, now);
}

/* rule: G9 */
/* Reads what there is, or a good part of it: the rest wakes the thread again. The
 * directory may be gone, and another one there. */
static void read_inotify(struct rlock_client *client, int64_t now)
{
    struct rlk_peer_watch *deaths = &client->deaths;
    char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n;

    for (int i = 0; i < READS_MAX && deaths->inotify_fd >= 0 &&
                    (n = read(deaths->inotify_fd, buf, sizeof(buf))) != 0;
         i++) {
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            lose_inotify(deaths, now);
        if (n < 0)
            return;
        for (char *at = buf; at < buf + n;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            at += sizeof(*event) + event->len;
            if (event->mask & IN_Q_OVERFLOW)
                deaths->look_at = now;
            else if (event->mask & IN_ATTRIB)
                deaths->check_at = now; /* the own file, which may be gone */
            else if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED))
                lose_inotify(deaths, now);
            else if (event->len > 0 && event->name[0] != '.' &&
                     is_suspect(client, event->name) && !is_left(deaths, event->name))
                name_suspect(deaths, event->name, now);
        }
    }
}

/* ---- when */

/* rule: G9 */
/* Looking begins: somebody waits, or it is done all the time. First the kernel is to tell
 * of deaths, then those that were before are looked for. */
static void begin(struct rlock_client *client, int64_t now)
{
    struct rlk_peer_watch *deaths = &client->deaths;

    deaths->begin = false;
    if (client->registry.looks) {
        open_inotify(client);
        deaths->check_at = now + CHECK_MS * RLK_NS_PER_MS;
        deaths->quiet = false;
    }
    look_at_all(client, now);
}

/* Nobody has waited for a while: nothing wakes this process any more. */
static void end(struct rlk_peer_watch *deaths)
{
    close_inotify(deaths);
    deaths->check_at = deaths->look_at = RLK_NEVER;
}

static void check(struct rlock_client *client, int64_t now)
{
    struct rlk_peer_watch *deaths = &client->deaths;
    struct rlk_registry *reg = &client->registry;
    bool always = client->config.guard == RLOCK_GUARD_ALWAYS;

    rlk_registry_lock(reg);
    bool quiet = !always && reg->waits_begun == deaths->waits_seen &&
                 !rlk_awaited_awaits_locked(reg);
    deaths->waits_seen = reg->waits_begun;
    bool over = quiet && deaths->quiet && now >= deaths->keep_until;
    if (over)
        reg->looks = false;
    rlk_registry_unlock(reg);
    deaths->quiet = quiet;
    if (over) {
        end(deaths);
        return;
    }
    /* rule: G9 */
    bool own = has_own_file(client);
    if (deaths->inotify_fd >= 0 && !own && !is_watched(client))
        close_inotify(deaths);
    deaths->check_at = now + CHECK_MS * RLK_NS_PER_MS;
    if (deaths->inotify_fd < 0) {
        open_inotify(client);
        if (deaths->inotify_fd >= 0 || deaths->look_at == RLK_NEVER)
            look_at_all(client, now);
    } else if (always && own) { /* it is looked at again when the kernel tells no more */
        deaths->check_at = now + CHECK_ALWAYS_S * RLK_NS_PER_S;
    }
}

void rlk_peer_watch_start(struct rlock_client *client,
                          const struct rlk_recovery_link *link)
{
    struct rlk_peer_watch *deaths = &client->deaths;

    memset(deaths, 0, sizeof(*deaths));
    deaths->link = link;
    rlk_list_init(&deaths->suspects);
    rlk_list_init(&deaths->left);
    rlk_list_init(&deaths->corpses);
    deaths->inotify_fd = -1;
    deaths->look_at = deaths->check_at = RLK_NEVER;
    deaths->on = deaths->begin = client->guard.dir[0] != '\0';
    client->registry.recovers = deaths->on;
    client->registry.looks = deaths->on && client->config.guard == RLOCK_GUARD_ALWAYS;
}

int rlk_peer_watch_fd(const struct rlock_client *client)
{
    return client->deaths.on ? client->deaths.inotify_fd : -1;
}

int64_t rlk_peer_watch_step(struct rlock_client *client, int64_t now, bool *ret_wanted)
{
    struct rlk_peer_watch *deaths = &client->deaths;

    if (!deaths->on)
        return RLK_NEVER;
    deaths->answered = false;
    if (deaths->begin)
        begin(client, now);
    if (deaths->inotify_fd >= 0 && !rlk_fd_is_ours(deaths->inotify_fd))
        lose_inotify(deaths, now); /* the program has closed it */
    if (deaths->inotify_fd >= 0)
        read_inotify(client, now);
    if (now >= deaths->check_at)
        check(client, now);
    if (now >= deaths->look_at && deaths->no_room) /* the list is long enough */
        deaths->look_at = now + POLL_MS * RLK_NS_PER_MS;
    if (now >= deaths->look_at)
        look_at_all(client, now);
    deaths->no_room = false;
    int64_t left = try_again(client, now);
    int64_t due = look_at_suspects(client, now);
    int64_t burial = rlk_recovery_step(client, now, ret_wanted);
    if (deaths->no_room && rlk_recovery_count(client) < CORPSES_MAX)
        due = now;
    int64_t times[] = { left, burial, deaths->check_at, deaths->look_at };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (times[i] < due)
            due = times[i];
    return due;
}

void rlk_peer_watch_answered(struct rlock_client *client, struct rlk_op *op,
                             const struct rlk_reply *reply)
{
    client->deaths.answered = true;
    rlk_recovery_answered(client, op, reply);
}

void rlk_peer_watch_stop(struct rlock_client *client)
{
    struct rlk_peer_watch *deaths = &client->deaths;
    struct rlk_list *l;

    if (!deaths->on)
        return;
    rlk_recovery_stop(client);
    while ((l = rlk_list_first(&deaths->suspects)) != NULL ||
           (l = rlk_list_first(&deaths->left)) != NULL)
        free_suspect(RLK_CONTAINER_OF(l, struct suspect, link));
    deaths->on = false;
}

void rlk_peer_watch_end(struct rlock_client *client)
{
    struct rlk_peer_watch *deaths = &client->deaths;

    if (deaths->inotify_fd >= 0)
        rlk_fd_close_slow(deaths->inotify_fd);
    deaths->inotify_fd = -1;
}

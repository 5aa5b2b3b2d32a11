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
    CHECK_MS = 1000,       /* between two checks whether a thread still waits, */
    CHECK_ALWAYS_S = 3600, /* and where the guard looks permanently */
    POLL_MS = 100, /* between two looks at all files where the kernel reports nothing; */
    POLL_SHARE = 20,     /* all processes together take this part of a processor */
    WATCH_NS = 200000,   /* by the square of the number of files: listing all files keeps
                            the inotify watch for this time, or all processes together would
                            take more than their share, at about 10 us for a file */
    LEFT_MS = 3000,      /* between two tries to recover a process */
    LOOKS_MAX = 64,      /* in one step */
    READS_MAX = 16,      /* of inotify events, in one step */
    RECOVERIES_MAX = 16, /* at a time: each has a descriptor */
    SHORTAGE_MS = 100,   /* between two tries to get a descriptor or memory */
    LOCATE_S = 60        /* at least between two requests for the nodes of the cluster */
};

/* After these delays, in ms, a file that the kernel reported is looked at again: its
 * lock is dropped a moment after its last reference. */
static const int again_ms[] = { 0, 1, 10, 100 };
enum {
    AGAIN = sizeof(again_ms) / sizeof(again_ms[0]),
    LISTED = AGAIN - 2 /* two looks: the last reference may have gone just before the
                          inotify watch began, and the lock goes just after */
};

struct suspect {
    struct rlk_list link;
    char name[RLK_UUID_LEN + 2];
    unsigned looks; /* the number of looks so far */
    int64_t at;     /* when to look next */
};

static void add_suspect(struct rlk_peer_watch *watch, const char *name, unsigned looks,
                        int64_t at)
{
    struct suspect *suspect = calloc(1, sizeof(*suspect));
    if (!suspect)
        return; /* its lock then lasts as long as its lease */
    snprintf(suspect->name, sizeof(suspect->name), "%s", name);
    suspect->looks = looks;
    suspect->at = at;
    rlk_list_append(looks == AGAIN ? &watch->left : &watch->suspects, &suspect->link);
}

static void free_suspect(struct suspect *suspect)
{
    rlk_list_remove(&suspect->link);
    free(suspect);
}

/* A file that was left is not looked at before its time: the process that leaves it
 * closes it, and the kernel reports that. */
static bool is_left(const struct rlk_peer_watch *watch, const char *name)
{
    for (const struct rlk_list *l = watch->left.next; l != &watch->left; l = l->next)
        if (strcmp(RLK_CONTAINER_OF(l, struct suspect, link)->name, name) == 0)
            return true;
    return false;
}

void rlk_peer_watch_left(struct rlock_client *client, const char *uuid, int64_t now)
{
    struct rlk_list *suspects = &client->peer_watch.suspects;

    for (struct rlk_list *l = suspects->next, *next; l != suspects; l = next) {
        struct suspect *suspect = RLK_CONTAINER_OF(l, struct suspect, link);
        next = l->next;
        if (strcmp(suspect->name, uuid) == 0)
            free_suspect(suspect);
    }
    add_suspect(&client->peer_watch, uuid, AGAIN, now + LEFT_MS * RLK_NS_PER_MS);
}

/* ---- the directory */

/* Opens the directory and checks again that it can be trusted. */
static int open_dir(struct rlock_client *client, struct rlk_rundir *ret_dir)
{
    int rc = rlk_rundir_open(ret_dir, client->livefile.dir);
    if (rc != 0)
        ret_dir->fd = -1;
    return rc;
}

static bool is_shortage(int code)
{
    return code == EMFILE || code == ENFILE || code == ENOMEM;
}

/* Notes the result of a check of the directory. A failure is logged once, and not
 * before the second check: while the directory is replaced there is none for a moment. */
static void note_dir(struct rlock_client *client, int code)
{
    struct rlk_peer_watch *watch = &client->peer_watch;

    if (is_shortage(code))
        return;
    if (code != 0 && code == watch->refused && code != watch->told)
        rlk_log(RLK_LOG_WARNING, "rlock: crash guard stopped: %s", rlk_error_message());
    if (code == 0 || code == watch->refused)
        watch->told = code;
    watch->refused = code;
}

static void close_inotify(struct rlk_peer_watch *watch)
{
    if (watch->inotify_fd >= 0)
        rlk_fd_close_aside(watch->inotify_fd);
    watch->inotify_fd = -1;
}

/* The directory may have been replaced or is not to be trusted any more: check it at
 * once. */
static void lose_inotify(struct rlk_peer_watch *watch, int64_t now)
{
    close_inotify(watch);
    watch->check_at = now;
}

/* ---- one file */

enum verdict { DONE, LOOK_AGAIN, LATER /* no descriptor was left */, LEAVE };

/* Recovers a dead process, or removes its file if the mark is old. */
static enum verdict recover(struct rlock_client *client, const struct rlk_rundir *dir,
                            const char *name, const struct rlk_livefile_head *head,
                            int fd, int64_t now)
{
    if (rlk_livefile_gc_is_old(fd)) {
        bool gone = rlk_livefile_gc_remove(dir, name, fd);
        rlk_fd_close(fd);
        return gone ? DONE : LEAVE;
    }
    return rlk_recovery_begin(client, fd, name, head, now) ? DONE : LEAVE;
}

/* rule: P25 */
/* A dead process had locks in a cluster, and no node of it is known to be of this
 * client's cluster. The client may not know its cluster yet, or not as it is now: when it
 * does, all files are looked at again. */
static void wonder(struct rlock_client *client, const struct rlk_livefile_head *head,
                   int64_t now)
{
    struct rlk_peer_watch *watch = &client->peer_watch;
    bool is_known = client->livefile.nodes.count > 0;

    if (head->nodes.count == 0 || client->config.endpoint.cluster.count == 0)
        return;
    watch->stranger = true;
    if (is_known && watch->located_at != 0 &&
        now - watch->located_at < LOCATE_S * RLK_NS_PER_S)
        return;
    watch->located_at = now;
    watch->link->locate(client);
}

void rlk_peer_watch_located(struct rlock_client *client)
{
    client->peer_watch.begin |= client->peer_watch.stranger;
    client->peer_watch.stranger = false;
}

/* rule: G3 */
/* Looks at one file, and says what to do about it. */
static enum verdict look(struct rlock_client *client, const struct rlk_rundir *dir,
                         const char *name, int64_t now)
{
    struct rlk_livefile_head head;
    struct stat st;

    if (name[0] == '.') {
        rlk_livefile_gc_of_making(dir, name);
        return DONE;
    }
    /* Not open for writing: the kernel reports the close of a file open for writing to
     * the other processes. */
    int fd = rlk_fd_openat(dir->fd, name, O_RDONLY | O_NOFOLLOW, 0);
    if (fd < 0 && is_shortage(errno))
        return LATER;
    if (fd < 0)
        return errno != ENOENT && errno != EACCES ? LOOK_AGAIN : DONE;
    bool ours =
        fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && rlk_livefile_read(fd, name, &head);
    /* Read again: until its death the process may have changed the head. */
    bool dead = ours && rlk_livefile_is_free(fd) && rlk_livefile_read(fd, name, &head);
    bool same = dead && rlk_livefile_is_same(client, &head);
    if (dead && !same)
        wonder(client, &head, now);
    bool left = dead && !same && !rlk_livefile_gc_mark_or_remove(dir, name, fd, &st);
    rlk_fd_close(fd);
    if (left)
        return LEAVE;
    if (!dead || !same)
        return ours && !dead ? LOOK_AGAIN : DONE;
    int own = rlk_livefile_gc_take(dir, name, &st);
    if (own < 0)
        return is_shortage(errno) ? LATER : LOOK_AGAIN;
    return recover(client, dir, name, &head, own, now);
}

/* Moves files that were left back to the suspects when their time has come and a
 * thread of this client waits. Returns when the next one is due. */
static int64_t try_again(struct rlock_client *client, int64_t now)
{
    struct rlk_peer_watch *watch = &client->peer_watch;
    struct rlk_list *l;

    while ((l = rlk_list_first(&watch->left)) != NULL) {
        struct suspect *suspect = RLK_CONTAINER_OF(l, struct suspect, link);
        if (suspect->at > now)
            return suspect->at;
        rlk_list_remove(l);
        suspect->looks = AGAIN - 1;
        if (client->registry.looks)
            rlk_list_append(&watch->suspects, l);
        else
            free(suspect);
    }
    return RLK_NEVER;
}

/* Looks at the suspects that are due. Returns when the next one is due. */
static int64_t look_at_suspects(struct rlock_client *client, int64_t now)
{
    struct rlk_peer_watch *watch = &client->peer_watch;
    struct rlk_rundir dir = { .fd = -1 };
    int64_t due = RLK_NEVER;
    int count = 0, rc = 0;

    for (struct rlk_list *l = watch->suspects.next, *next; l != &watch->suspects;
         l = next) {
        struct suspect *suspect = RLK_CONTAINER_OF(l, struct suspect, link);
        next = l->next;
        if (suspect->at <= now && rlk_recovery_count(client) >= RECOVERIES_MAX) {
            watch->no_room = true; /* until a recovery ends */
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
                add_suspect(watch, suspect->name, AGAIN, now + LEFT_MS * RLK_NS_PER_MS);
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
    if (rc != 0 && !is_shortage(rc) && watch->inotify_fd >= 0) {
        lose_inotify(watch, now); /* its files cannot be looked at */
        due = now;
    }
    return due;
}

/* ---- all files */

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

/* Makes every file a suspect with two looks. Returns 0, or why the directory could not
 * be opened. It uses the system call, because a child would inherit the descriptor of
 * readdir. */
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
            if (!is_suspect(client, entry->name) ||
                is_left(&client->peer_watch, entry->name))
                continue;
            add_suspect(&client->peer_watch, entry->name, LISTED, now);
            ++*ret_count;
        }
    }
    rlk_fd_close(dir.fd);
    return 0;
}

static void look_at_all(struct rlock_client *client, int64_t now)
{
    struct rlk_peer_watch *watch = &client->peer_watch;
    int64_t begun = rlk_clock_boot();
    int64_t count;

    /* rule: G9 */
    int rc = list_all(client, now, &count);
    watch->watch_until = watch->inotify_fd >= 0 ? now + count * count * WATCH_NS : now;
    watch->look_at = RLK_NEVER;
    if (watch->check_at == RLK_NEVER)
        return;
    if (is_shortage(rc))
        watch->look_at = now + SHORTAGE_MS * RLK_NS_PER_MS;
    else if (rc != 0 && watch->inotify_fd >= 0)
        lose_inotify(watch, now);
    if (watch->inotify_fd >= 0)
        return;
    /* A look at all files costs about as much as listing them, and about as many
     * processes look as there are files. */
    int64_t cost = rlk_clock_boot() - begun;
    int64_t pause = cost * count * POLL_SHARE;
    if (pause < POLL_MS * RLK_NS_PER_MS)
        pause = POLL_MS * RLK_NS_PER_MS;
    watch->look_at = now + pause;
}

/* ---- the kernel's events */

static int make_inotify(void)
{
    return inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
}

/* Watches the directory by its descriptor, because the path may name another directory
 * by now. Watches the own live file, too: a removed directory reports nothing while
 * its files are in use, but the own file is removed first. */
static void open_inotify(struct rlock_client *client)
{
    struct rlk_peer_watch *watch = &client->peer_watch;
    struct rlk_rundir dir;
    struct stat st;
    char path[32 + RLK_UUID_LEN];

    if (watch->inotify_fd >= 0)
        return;
    int rc = open_dir(client, &dir);
    note_dir(client, rc);
    if (rc != 0)
        return;
    watch->inotify_fd = rlk_fd_made_by(make_inotify);
    int len = snprintf(path, sizeof(path), "/proc/self/fd/%d", dir.fd);
    if (watch->inotify_fd >= 0 &&
        (fstat(dir.fd, &st) != 0 || inotify_add_watch(watch->inotify_fd, path,
                                                      IN_CLOSE_WRITE | IN_DELETE_SELF |
                                                          IN_MOVE_SELF | IN_ONLYDIR) < 0))
        close_inotify(watch);
    if (watch->inotify_fd >= 0) {
        watch->dev = st.st_dev;
        watch->ino = st.st_ino;
        snprintf(path + len, sizeof(path) - (size_t)len, "/%s", client->uuid);
        inotify_add_watch(watch->inotify_fd, path, IN_ATTRIB);
    }
    rlk_fd_close(dir.fd);
}

/* Whether the own live file is still in place, and so the directory is. */
static bool has_own_file(const struct rlock_client *client)
{
    char path[RLK_RUNDIR_SIZE + RLK_UUID_LEN + 1];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", client->livefile.dir, client->uuid);
    return lstat(path, &st) == 0;
}

/* Whether the directory at the path is the watched one. */
static bool is_watched(const struct rlock_client *client)
{
    struct stat st;
    return lstat(client->livefile.dir, &st) == 0 && st.st_dev == client->peer_watch.dev &&
           st.st_ino == client->peer_watch.ino;
}

/* The kernel reported the last close of this file. */
static void name_suspect(struct rlk_peer_watch *watch, const char *name, int64_t now)
{
    struct rlk_list *suspects = &watch->suspects;

    for (struct rlk_list *l = suspects->next; l != suspects; l = l->next) {
        struct suspect *suspect = RLK_CONTAINER_OF(l, struct suspect, link);
        if (strcmp(suspect->name, name) != 0)
            continue;
        suspect->looks = 0;
        suspect->at = now;
        return;
    }
    add_suspect(watch, name, 0, now);
}

/* rule: G9 */
/* Reads the pending events, or a good part of them: the rest wakes the thread again.
 * The directory may have been replaced. */
static void read_inotify(struct rlock_client *client, int64_t now)
{
    struct rlk_peer_watch *watch = &client->peer_watch;
    char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n;

    for (int i = 0; i < READS_MAX && watch->inotify_fd >= 0 &&
                    (n = read(watch->inotify_fd, buf, sizeof(buf))) != 0;
         i++) {
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            lose_inotify(watch, now);
        if (n < 0)
            return;
        for (char *at = buf; at < buf + n;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            at += sizeof(*event) + event->len;
            if (event->mask & IN_Q_OVERFLOW)
                watch->look_at = now;
            else if (event->mask & IN_ATTRIB)
                watch->check_at = now; /* the own file may be gone */
            else if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED))
                lose_inotify(watch, now);
            else if (event->len > 0 && event->name[0] != '.' &&
                     is_suspect(client, event->name) && !is_left(watch, event->name))
                name_suspect(watch, event->name, now);
        }
    }
}

/* ---- when to look */

/* rule: G9 */
/* Looking begins, because a thread waits or the guard looks permanently. The inotify
 * watch comes first, then the list of the files that exist already. */
static void begin(struct rlock_client *client, int64_t now)
{
    struct rlk_peer_watch *watch = &client->peer_watch;

    watch->begin = false;
    if (client->registry.looks) {
        open_inotify(client);
        watch->check_at = now + CHECK_MS * RLK_NS_PER_MS;
        watch->quiet = false;
    }
    look_at_all(client, now);
}

/* No thread has waited for a while: from now on nothing wakes this process. */
static void end(struct rlk_peer_watch *watch)
{
    close_inotify(watch);
    watch->check_at = watch->look_at = RLK_NEVER;
}

static void check(struct rlock_client *client, int64_t now)
{
    struct rlk_peer_watch *watch = &client->peer_watch;
    struct rlk_registry *reg = &client->registry;
    bool always = client->config.guard == RLOCK_GUARD_ALWAYS;

    rlk_registry_lock(reg);
    bool quiet = !always && reg->waits_begun == watch->waits_seen &&
                 !rlk_awaited_awaits_locked(reg);
    watch->waits_seen = reg->waits_begun;
    bool over = quiet && watch->quiet && now >= watch->watch_until;
    if (over)
        reg->looks = false;
    rlk_registry_unlock(reg);
    watch->quiet = quiet;
    if (over) {
        end(watch);
        return;
    }
    /* rule: G9 */
    bool own = has_own_file(client);
    if (watch->inotify_fd >= 0 && !own && !is_watched(client))
        close_inotify(watch);
    watch->check_at = now + CHECK_MS * RLK_NS_PER_MS;
    if (watch->inotify_fd < 0) {
        open_inotify(client);
        if (watch->inotify_fd >= 0 || watch->look_at == RLK_NEVER)
            look_at_all(client, now);
    } else if (always && own) { /* see read_inotify */
        watch->check_at = now + CHECK_ALWAYS_S * RLK_NS_PER_S;
    }
}

void rlk_peer_watch_start(struct rlock_client *client,
                          const struct rlk_recovery_link *link)
{
    struct rlk_peer_watch *watch = &client->peer_watch;

    memset(watch, 0, sizeof(*watch));
    watch->link = link;
    rlk_list_init(&watch->suspects);
    rlk_list_init(&watch->left);
    rlk_list_init(&watch->dead_processes);
    watch->inotify_fd = -1;
    watch->look_at = watch->check_at = RLK_NEVER;
    watch->on = watch->begin = client->livefile.dir[0] != '\0';
    client->registry.recovers = watch->on;
    client->registry.looks = watch->on && client->config.guard == RLOCK_GUARD_ALWAYS;
}

int rlk_peer_watch_fd(const struct rlock_client *client)
{
    return client->peer_watch.on ? client->peer_watch.inotify_fd : -1;
}

int64_t rlk_peer_watch_step(struct rlock_client *client, int64_t now, bool *ret_need_conn)
{
    struct rlk_peer_watch *watch = &client->peer_watch;

    if (!watch->on)
        return RLK_NEVER;
    watch->answered = false;
    if (watch->begin)
        begin(client, now);
    if (watch->inotify_fd >= 0 && !rlk_fd_is_ours(watch->inotify_fd))
        lose_inotify(watch, now); /* the program closed it */
    if (watch->inotify_fd >= 0)
        read_inotify(client, now);
    if (now >= watch->check_at)
        check(client, now);
    if (now >= watch->look_at && watch->no_room) /* the list is long enough */
        watch->look_at = now + POLL_MS * RLK_NS_PER_MS;
    if (now >= watch->look_at)
        look_at_all(client, now);
    watch->no_room = false;
    int64_t left = try_again(client, now);
    int64_t due = look_at_suspects(client, now);
    int64_t burial = rlk_recovery_step(client, now, ret_need_conn);
    if (watch->no_room && rlk_recovery_count(client) < RECOVERIES_MAX)
        due = now;
    int64_t times[] = { left, burial, watch->check_at, watch->look_at };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (times[i] < due)
            due = times[i];
    return due;
}

bool rlk_peer_watch_answered(struct rlock_client *client, struct rlk_op *op,
                             struct rlk_conn *conn, const struct rlk_reply *reply)
{
    client->peer_watch.answered = true;
    return rlk_recovery_answered(client, op, conn, reply);
}

void rlk_peer_watch_stop(struct rlock_client *client)
{
    struct rlk_peer_watch *watch = &client->peer_watch;
    struct rlk_list *l;

    if (!watch->on)
        return;
    rlk_recovery_stop(client);
    while ((l = rlk_list_first(&watch->suspects)) != NULL ||
           (l = rlk_list_first(&watch->left)) != NULL)
        free_suspect(RLK_CONTAINER_OF(l, struct suspect, link));
    watch->on = false;
}

void rlk_peer_watch_end(struct rlock_client *client)
{
    struct rlk_peer_watch *watch = &client->peer_watch;

    if (watch->inotify_fd >= 0)
        rlk_fd_close_slow(watch->inotify_fd);
    watch->inotify_fd = -1;
}

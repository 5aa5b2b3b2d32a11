/* SPDX-License-Identifier: Apache-2.0 */
/* See livefile_view.h. */
#include "livefile_view.h"

#include "wait.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SOON_MS = 10000 };

static const char *path_of(char path[PATH_MAX], const char *dir, const char *name)
{
    snprintf(path, PATH_MAX, "%s/%s", dir, name);
    return path;
}

static void find_only(char uuid[GUARD_UUID_LEN + 1], const char *dir)
{
    DIR *list = opendir(dir);
    const struct dirent *entry;
    int count = 0;

    ck_assert_msg(list != NULL, "%s: %s", dir, strerror(errno));
    while ((entry = readdir(list)) != NULL)
        if (strlen(entry->d_name) == GUARD_UUID_LEN) {
            memcpy(uuid, entry->d_name, GUARD_UUID_LEN + 1);
            count++;
        }
    closedir(list);
    ck_assert_int_eq(count, 1);
}

void livefile_view_open(struct livefile_view *file, const char *dir, const char *uuid)
{
    char path[PATH_MAX];

    memset(file, 0, sizeof(*file));
    if (uuid)
        snprintf(file->uuid, sizeof(file->uuid), "%s", uuid);
    else
        find_only(file->uuid, dir);
    file->fd = open(path_of(path, dir, file->uuid), O_RDONLY | O_CLOEXEC);
    ck_assert_msg(file->fd >= 0, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(pread(file->fd, file->head, RLK_LIVEFILE_HEADER, 0),
                     RLK_LIVEFILE_HEADER);
}

void livefile_view_close(struct livefile_view *file)
{
    close(file->fd);
    file->fd = -1;
}

bool livefile_view_is_locked(const struct livefile_view *file)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    ck_assert_int_eq(fcntl(file->fd, F_OFD_GETLK, &lock), 0);
    return lock.l_type != F_UNLCK;
}

const char *livefile_view_line(const struct livefile_view *file, const char *key)
{
    static char line[512];
    char begin[32];
    snprintf(begin, sizeof(begin), "\n%s ", key);
    const char *at = strstr(file->head, begin);
    ck_assert_msg(at != NULL, "no line \"%s\":\n%s", key, file->head);
    at += strlen(begin);
    snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

struct rlk_intent livefile_view_intent(const struct livefile_view *file, unsigned i)
{
    struct rlk_intent slot;
    off_t at = RLK_LIVEFILE_HEADER + (off_t)(i * sizeof(slot));
    if (pread(file->fd, &slot, sizeof(slot), at) != (ssize_t)sizeof(slot))
        memset(&slot, 0, sizeof(slot));
    return slot;
}

unsigned livefile_view_used(const struct livefile_view *file)
{
    unsigned used = 0;
    for (unsigned i = 0; i < RLK_SLOTS_MAX; i++) {
        struct rlk_intent slot = livefile_view_intent(file, i);
        used += slot.state == RLK_SLOT_VALID;
    }
    return used;
}

struct rlk_intent livefile_view_intent_of(const struct livefile_view *file,
                                          const char *name)
{
    struct rlk_intent found, slot;
    unsigned count = 0;

    memset(&found, 0, sizeof(found));
    for (unsigned i = 0; i < RLK_SLOTS_FIRST; i++) {
        slot = livefile_view_intent(file, i);
        if (slot.state != RLK_SLOT_VALID || strcmp(slot.name, name) != 0)
            continue;
        found = slot;
        count++;
    }
    ck_assert_uint_le(count, 1);
    return found;
}

int livefile_view_inside(const struct livefile_view *file, const char *name)
{
    struct rlk_intent slot = livefile_view_intent_of(file, name);
    return slot.state == RLK_SLOT_VALID ? (int)slot.inside : -1;
}

struct wish {
    const struct livefile_view *file;
    const char *name;
    int inside;
};

static bool is_so(void *arg)
{
    const struct wish *wish = arg;
    return livefile_view_inside(wish->file, wish->name) == wish->inside;
}

bool livefile_view_wait(const struct livefile_view *file, const char *name, int inside)
{
    struct wish wish = { file, name, inside };
    return test_wait_until(is_so, &wish, SOON_MS);
}

/* ---- the live file of a dead client */

void livefile_view_make(const char *dir, const char *uuid, const char *server)
{
    char before[PATH_MAX], path[PATH_MAX], text[RLK_LIVEFILE_HEADER] = "";

    snprintf(text, sizeof(text),
             "rlock-guard 1 %s\npid 1\nprogram decoy\nserver %s\nlife 1000\n", uuid,
             server);
    snprintf(before, sizeof(before), "%s/.%s", dir, uuid);
    int fd = open(before, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_msg(fd >= 0, "%s: %s", before, strerror(errno));
    ck_assert_int_eq(write(fd, text, sizeof(text)), sizeof(text));
    ck_assert_int_eq(rename(before, path_of(path, dir, uuid)), 0);
    close(fd); /* readers get this event from the kernel */
}

bool livefile_view_exists(const char *dir, const char *uuid)
{
    char path[PATH_MAX];
    return access(path_of(path, dir, uuid), F_OK) == 0;
}

struct name {
    const char *dir, *uuid;
};

static bool is_gone(void *arg)
{
    const struct name *name = arg;
    return !livefile_view_exists(name->dir, name->uuid);
}

bool livefile_view_wait_gone(const char *dir, const char *uuid)
{
    struct name name = { dir, uuid };
    return test_wait_until(is_gone, &name, SOON_MS);
}

struct burials {
    rlock_client_t *client;
    unsigned long count;
};

static bool has_buried(void *arg)
{
    const struct burials *wish = arg;
    rlock_stats_t stats;
    ck_assert_int_eq(rlock_client_getstats(wish->client, &stats), 0);
    return stats.burials == wish->count;
}

bool livefile_view_wait_recoveries(rlock_client_t *client, unsigned long count)
{
    struct burials wish = { client, count };
    return test_wait_until(has_buried, &wish, SOON_MS);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See recoveryscene.h. */
#include "recoveryscene.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

struct worker v, w, x;
const char *recovery_dir;
char recovery_uuid[RLK_UUID_LEN + 1];

void recovery_open(void)
{
    scene_open();
    recovery_dir = test_rundir_own();
    memset(&v, 0, sizeof(v));
    memset(&w, 0, sizeof(w));
    memset(&x, 0, sizeof(x));
}

void recovery_close(void)
{
    test_proxy_remove_all(scene_proxy);
    worker_end(&v);
    worker_end(&w);
    worker_end(&x);
    scene_close();
}

enum { NAMES_SIZE = 4096 };

/* The files' names, one after the other. uuid: gets that of a file that is not among
 * `known`; may be NULL. */
static void list_files(char names[NAMES_SIZE], const char *known, char *uuid)
{
    const struct dirent *entry;
    DIR *list = opendir(recovery_dir);
    size_t len = 0;

    ck_assert_ptr_nonnull(list);
    while ((entry = readdir(list)) != NULL) {
        if (strlen(entry->d_name) != RLK_UUID_LEN || len + RLK_UUID_LEN >= NAMES_SIZE)
            continue;
        memcpy(names + len, entry->d_name, RLK_UUID_LEN + 1);
        len += RLK_UUID_LEN;
        if (uuid && !strstr(known, entry->d_name))
            memcpy(uuid, entry->d_name, RLK_UUID_LEN + 1);
    }
    closedir(list);
}

void recovery_start_at(struct worker *who, const char *url, const char *name,
                       const char *options)
{
    char before[NAMES_SIZE] = "", after[NAMES_SIZE] = "";
    const struct scene_times times = { .lease = test_ms(RECOVERY_LEASE_MS),
                                       .presence = RECOVERY_PRESENCE_MS,
                                       .command = test_ms(RECOVERY_LEASE_MS) };

    list_files(before, "", NULL);
    scene_worker(who, url, &times, name, options);
    if (who == &v)
        list_files(after, before, recovery_uuid);
}

void recovery_start(struct worker *who, const char *name, const char *options)
{
    recovery_start_at(who, test_proxy_url(scene_proxy), name, options);
}

void recovery_kill_v(void)
{
    worker_kill(&v);
}

void recovery_wait_files(int count)
{
    ck_assert(test_rundir_wait(recovery_dir, count, SCENE_SOON_MS));
}

void recovery_has_it(struct worker *who)
{
    scene_worker_ends(who, "t", "ok");
}

void recovery_still_waits(struct worker *who)
{
    ck_assert(!worker_news(who, "done t", 0));
}

void recovery_is_safe(struct worker *who)
{
    scene_says(who, "ok SAFE", "on t state m");
}

void recovery_look(int files)
{
    struct worker passer_by;

    recovery_start(&passer_by, "nothing", "");
    recovery_wait_files(files + 1);
    scene_says(&passer_by, "ok", "destroy m");
    scene_says(&passer_by, "ok", "close");
    recovery_wait_files(files);
    worker_end(&passer_by);
}

const char *recovery_event(struct worker *who)
{
    return worker_news(who, "event OWNER_DIED", 0);
}

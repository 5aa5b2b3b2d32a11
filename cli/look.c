/* SPDX-License-Identifier: Apache-2.0 */
/* See look.h. */
#include "look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    MS_PER_S = 1000,
    NS_PER_MS = 1000000,
    S_PER_MIN = 60,
    MIN_PER_H = 60,
    H_PER_D = 24,
    DAYS_FROM_H = 48, /* up to this many hours are shown as hours */
    COLUMNS_UNTOLD = 80
};

void *look_alloc(size_t size)
{
    void *memory = calloc(1, size > 0 ? size : 1);
    if (!memory) {
        cli_complain("out of memory");
        exit(CLI_INTERNAL);
    }
    return memory;
}

int64_t look_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS;
}

/* ---- locks */

static size_t room_of(const rlock_party_t *parties, size_t count)
{
    size_t room = count * sizeof(*parties);
    for (size_t i = 0; i < count; i++)
        room += strlen(parties[i].owner) + strlen(parties[i].client) + 2;
    return room;
}

static const char *copy_text(char **at, const char *text)
{
    char *copy = strcpy(*at, text);
    *at += strlen(text) + 1;
    return copy;
}

static void copy_parties(rlock_party_t *copy, const rlock_party_t *parties, size_t count,
                         char **at)
{
    for (size_t i = 0; i < count; i++) {
        copy[i] = parties[i];
        copy[i].owner = copy_text(at, parties[i].owner);
        copy[i].client = copy_text(at, parties[i].client);
    }
}

/* One block, freed with free(). The texts follow all aligned data. */
static rlock_info_t *copy_lock(const rlock_info_t *lock)
{
    size_t parties = lock->holder_count + lock->waiter_count;
    rlock_info_t *copy =
        malloc(sizeof(*copy) + room_of(lock->holders, lock->holder_count) +
               room_of(lock->waiters, lock->waiter_count) + strlen(lock->name) + 1);
    if (!copy)
        return NULL;
    rlock_party_t *party = (rlock_party_t *)(copy + 1);
    char *at = (char *)(party + parties);
    *copy = *lock;
    copy->holders = party;
    copy->waiters = party + lock->holder_count;
    copy_parties(party, lock->holders, lock->holder_count, &at);
    copy_parties(party + lock->holder_count, lock->waiters, lock->waiter_count, &at);
    copy->name = copy_text(&at, lock->name);
    return copy;
}

static int keep(const rlock_info_t *lock, void *arg)
{
    const size_t size_min = 16;
    struct look_list *list = arg;

    if (list->count == list->size) {
        size_t size = list->size ? 2 * list->size : size_min;
        rlock_info_t **bigger = realloc(list->locks, size * sizeof(rlock_info_t *));
        if (!bigger)
            return ENOMEM;
        list->locks = bigger;
        list->size = size;
    }
    rlock_info_t *copy = copy_lock(lock);
    if (!copy)
        return ENOMEM;
    list->locks[list->count++] = copy;
    return 0;
}

/* strcmp orders by bytes, in every locale. */
static int by_name(const void *a, const void *b)
{
    const rlock_info_t *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* A walk by SCAN may report a lock more than once. */
static void keep_each_once(struct look_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (kept > 0 && strcmp(list->locks[kept - 1]->name, list->locks[i]->name) == 0)
            free(list->locks[i]);
        else
            list->locks[kept++] = list->locks[i];
    }
    list->count = kept;
}

int look_gather(rlock_client_t *client, const char *pattern, struct look_list *list)
{
    list->code = rlock_list(client, pattern, keep, list);
    if (list->code != 0) {
        const char *detail = rlock_errmsg();
        char *shown = cli_printable(detail[0] ? detail : rlock_strerror(list->code));
        snprintf(list->reason, sizeof(list->reason), "%s", shown);
        free(shown);
    }
    if (list->count > 0) {
        qsort(list->locks, list->count, sizeof(rlock_info_t *), by_name);
        keep_each_once(list);
    }
    return list->code;
}

void look_free(struct look_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->locks[i]);
    free(list->locks);
    *list = (struct look_list){ 0 };
}

const rlock_party_t *look_find(const rlock_info_t *lock, const rlock_party_t *party)
{
    for (size_t i = 0; i < lock->holder_count; i++)
        if (lock->holders[i].mode == party->mode &&
            strcmp(lock->holders[i].owner, party->owner) == 0)
            return &lock->holders[i];
    return NULL;
}

/* ---- for people */

const char *look_type(rlock_type_t type)
{
    switch (type) {
    case RLOCK_TYPE_MUTEX:
        return "mutex";
    case RLOCK_TYPE_FAIR:
        return "fair";
    case RLOCK_TYPE_RWLOCK:
        return "rwlock";
    case RLOCK_TYPE_REDISSON:
        return "redisson";
    case RLOCK_TYPE_UNKNOWN:
        break;
    }
    return "unknown";
}

const char *look_mode(rlock_mode_t mode)
{
    return mode == RLOCK_MODE_READ ? "read" : "exclusive";
}

const char *look_time(long ms, char buffer[LOOK_TIME_SIZE])
{
    const long tenth_ms = 100;
    long s = ms / MS_PER_S, min = s / S_PER_MIN, h = min / MIN_PER_H;

    if (ms < 0)
        snprintf(buffer, LOOK_TIME_SIZE, "-");
    else if (min == 0)
        snprintf(buffer, LOOK_TIME_SIZE, "%ld.%ld s", s, ms % MS_PER_S / tenth_ms);
    else if (h == 0)
        snprintf(buffer, LOOK_TIME_SIZE, "%ld min %ld s", min, s % S_PER_MIN);
    else if (h < DAYS_FROM_H)
        snprintf(buffer, LOOK_TIME_SIZE, "%ld h %ld min", h, min % MIN_PER_H);
    else
        snprintf(buffer, LOOK_TIME_SIZE, "%ld d %ld h", h / H_PER_D, h % H_PER_D);
    return buffer;
}

const char *look_lease(long ms, char buffer[LOOK_TIME_SIZE])
{
    return ms < 0 ? "never" : look_time(ms, buffer);
}

char *look_who(const rlock_party_t *party)
{
    if (party->client[0] != '\0')
        return cli_printable(party->client);
    return cli_printable(party->owner[0] != '\0' ? party->owner : "?");
}

size_t look_columns(void)
{
    struct winsize size;

    if (!isatty(STDOUT_FILENO))
        return 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return COLUMNS_UNTOLD;
    return size.ws_col;
}

/* ---- for programs */

static void json_ms(struct json *json, const char *key, long ms)
{
    if (ms < 0)
        json_null(json, key);
    else
        json_number(json, key, ms);
}

static void json_parties(struct json *json, const char *key, const rlock_party_t *parties,
                         size_t count)
{
    json_begin_array(json, key);
    for (size_t i = 0; i < count; i++) {
        const rlock_party_t *party = &parties[i];
        json_begin_object(json, NULL);
        json_bytes(json, "owner", party->owner[0] ? party->owner : NULL);
        json_bytes(json, "client", party->client[0] ? party->client : NULL);
        json_string(json, "mode", look_mode(party->mode));
        json_ms(json, "age_ms", party->since_ms);
        json_ms(json, "lease_left_ms", party->lease_left_ms);
        json_end_object(json);
    }
    json_end_array(json);
}

void look_json(struct json *json, const rlock_info_t *lock)
{
    char token[LOOK_TIME_SIZE]; /* a string: many readers of JSON round numbers beyond
                                   2^53 */

    snprintf(token, sizeof(token), "%llu", (unsigned long long)lock->token);
    json_begin_object(json, NULL);
    json_bytes(json, "name", lock->name);
    json_string(json, "type", look_type(lock->type));
    json_string(json, "token", lock->token != 0 ? token : NULL);
    json_parties(json, "holders", lock->holders, lock->holder_count);
    json_parties(json, "waiters", lock->waiters, lock->waiter_count);
    json_end_object(json);
}

/* ---- arguments and ends */

const char *look_word(const struct cli_command *command, int argc, char **argv,
                      const char *what)
{
    if (argc - optind > 1)
        cli_bad_usage(command, "more than one argument");
    if (optind < argc)
        return argv[optind];
    if (what)
        cli_bad_usage(command, "%s is missing", what);
    return NULL;
}

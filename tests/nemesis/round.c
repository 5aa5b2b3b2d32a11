/* SPDX-License-Identifier: Apache-2.0 */
/* See round.h. State: none. */
#include "round.h"

#include "die.h"
#include "redis.h"
#include "wait.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000, KEY_LINE = 512 };

static FILE *open_in(const char *dir, const char *name, const char *mode)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return fopen(path, mode);
}

static void write_or_die(FILE *f, const void *data, size_t size)
{
    if (!f || (size > 0 && fwrite(data, 1, size, f) != size))
        test_die("cannot write: %s", strerror(errno));
}

/* ---- the end of a round */

/* Connections to all servers that have locks. */
struct looker {
    struct test_redis *at[NEM_MASTERS_MAX];
    unsigned count;
};

static void open_all(struct looker *l, struct nem_faults *faults)
{
    struct test_server *masters[NEM_MASTERS_MAX];
    l->count = nem_faults_masters(faults, masters);
    for (unsigned i = 0; i < l->count; i++)
        l->at[i] = test_redis_connect(masters[i]->path);
}

static void close_all(struct looker *l)
{
    for (unsigned i = 0; i < l->count; i++)
        test_redis_close(l->at[i]);
}

static bool no_lock_held(void *arg)
{
    const struct looker *l = arg;
    for (unsigned i = 0; i < l->count; i++) {
        const redisReply *keys = test_redis_do(l->at[i], "KEYS", "nemesis[0-9]*");
        if (keys->elements > 0)
            return false;
    }
    return true;
}

static long long length_of(struct test_redis *r, const char *key)
{
    char type[16];
    snprintf(type, sizeof(type), "%s", test_redis_str(r, "TYPE", key));
    const char *command = strcmp(type, "zset") == 0   ? "ZCARD"
                          : strcmp(type, "hash") == 0 ? "HLEN"
                                                      : "STRLEN";
    return test_redis_int(r, command, key);
}

static void write_left(struct test_redis *r, FILE *f)
{
    const redisReply *reply = test_redis_do(r, "KEYS", "*");
    size_t count = reply->elements;
    char **keys = calloc(count + 1, sizeof(*keys));

    if (!f || !keys)
        test_die("cannot write what is left");
    for (size_t i = 0; i < count; i++)
        keys[i] = strdup(reply->element[i]->str);
    for (size_t i = 0; i < count; i++) {
        long long ttl = test_redis_int(r, "PTTL", keys[i]);
        if (ttl != -2 && strcmp(keys[i], NEM_MARK_KEY) != 0)
            fprintf(f, "%s %lld %lld\n", keys[i], ttl, length_of(r, keys[i]));
        free(keys[i]);
    }
    free(keys);
}

static bool is_first(const struct nem_looks *looks, const struct nem_end *end)
{
    for (size_t i = 0; i < looks->count; i++)
        if (looks->firsts[i].process == end->process &&
            looks->firsts[i].life == end->life)
            return false;
    return true;
}

static void keep_first(struct nem_looks *looks, const struct nem_end *end)
{
    if (!is_first(looks, end))
        return;
    looks->firsts = realloc(looks->firsts, (looks->count + 1) * sizeof(*end));
    if (!looks->firsts)
        test_die("out of memory");
    looks->firsts[looks->count++] = *end;
}

/* The servers count as one. */
static struct nem_end end_of_servers(const struct looker *l)
{
    struct nem_end end = { .process = NEM_ALL };
    for (unsigned i = 0; i < l->count; i++) {
        end.threads += (uint32_t)test_redis_int(l->at[i], "DBSIZE");
        end.memory += test_redis_info(l->at[i], "used_memory");
    }
    return end;
}

static void write_ends(const struct looker *l, struct nem_crew *crew, unsigned processes,
                       struct nem_looks *looks, const char *dir)
{
    struct nem_end *ends = calloc(processes + 1, sizeof(*ends));
    FILE *f = open_in(dir, "end", "we");

    if (!ends || !f)
        test_die("cannot write what is used");
    nem_crew_look(crew, ends);
    ends[processes] = end_of_servers(l);
    ends[processes].at = ends[0].at;
    write_or_die(f, looks->firsts, looks->count * sizeof(*ends));
    write_or_die(f, ends, (processes + 1) * sizeof(*ends));
    for (unsigned i = 0; i <= processes; i++)
        keep_first(looks, &ends[i]);
    fclose(f);
    free(ends);
}

void nem_round_look(struct nem_faults *faults, struct nem_crew *crew,
                    const struct nem_round *round, struct nem_looks *looks,
                    const char *dir)
{
    struct looker l;
    FILE *f = open_in(dir, "left", "we");
    open_all(&l, faults);
    /* a killed holder's lease, a grant that came too late */
    test_wait_until(no_lock_held, &l, 2 * round->lease_ms + round->presence_ms + 1000);
    for (unsigned i = 0; i < l.count; i++)
        write_left(l.at[i], f);
    fclose(f);
    write_ends(&l, crew, round->processes, looks, dir);
    close_all(&l);
}

/* ---- files */

void nem_round_save(const struct nem_round *round, const char *dir)
{
    FILE *f = open_in(dir, "round", "we");
    write_or_die(f, round, sizeof(*round));
    fclose(f);
}

bool nem_round_load(struct nem_round *ret_round, const char *dir)
{
    FILE *f = open_in(dir, "round", "re");
    if (!f)
        return false;
    size_t n = fread(ret_round, 1, sizeof(*ret_round), f);
    fclose(f);
    return n == sizeof(*ret_round);
}

/* Reads a whole file, and puts a NUL behind it. NULL: not readable. */
static char *slurp(const char *dir, const char *name, size_t *ret_size)
{
    FILE *f = open_in(dir, name, "re");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        if (f)
            fclose(f);
        return NULL;
    }
    size_t size = (size_t)ftell(f);
    char *data = malloc(size + 1);
    rewind(f);
    if (data && fread(data, 1, size, f) != size) {
        free(data);
        data = NULL;
    }
    fclose(f);
    if (data) {
        data[size] = '\0';
        *ret_size = size;
    }
    return data;
}

static bool split_left(struct nem_files *files, struct nem_round *round)
{
    size_t lines = 0, n = 0;
    for (const char *p = files->left_text; *p; p++)
        lines += *p == '\n';
    files->left = calloc(lines + 1, sizeof(*files->left));
    if (!files->left)
        return false;
    char *rest = NULL;
    for (char *line = strtok_r(files->left_text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest))
        files->left[n++] = line;
    round->left = files->left;
    round->left_count = n;
    return true;
}

bool nem_files_read(struct nem_files *files, const char *dir, struct nem_round *round)
{
    size_t size = 0;

    memset(files, 0, sizeof(*files));
    if (!nem_read_ops(dir, &files->ops, &round->op_count) ||
        !nem_read_faults(dir, &files->faults, &round->fault_count) ||
        (!round->no_ledger && !nem_ledger_read(&files->ledger, dir)))
        return false;
    files->ends = (struct nem_end *)(void *)slurp(dir, "end", &size);
    if (!files->ends)
        return false;
    round->end_count = size / sizeof(struct nem_end);
    files->left_text = slurp(dir, "left", &size);
    if (!files->left_text || !split_left(files, round))
        return false;
    round->ops = files->ops;
    round->faults = files->faults;
    round->ledger = &files->ledger;
    round->ends = files->ends;
    return true;
}

void nem_files_free(struct nem_files *files)
{
    free(files->ops);
    free(files->faults);
    nem_ledger_free(&files->ledger);
    free(files->ends);
    free(files->left_text);
    free(files->left);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void nem_remove_tree(const char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

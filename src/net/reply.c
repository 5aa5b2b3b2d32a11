/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parsed reply: hiredis's object, hidden from other modules. hiredis allocates each
 * element with two or three calls, a third of a round trip's cost at the client. Here the
 * whole reply comes from one block, or from a few if it is large. Thread: that of the
 * connection; a taken reply: any.
 */
#include "net/conn_impl.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_SIZE = 256,     /* of a block, for a reply that is not an array */
    FIRST_SIZE_MAX = 960, /* for an array; malloc has such blocks at hand */
    LATER_SIZE_MAX = 16 << 10,
    ELEMENT_TEXT = 8, /* bytes reserved for the text of each element */
    PLACES_MAX = 16,  /* elements of an array that have their places in advance */
    DEPTH_MAX = 8     /* arrays in each other */
};

/* A block of a reply. The first one begins with the reply itself. */
struct rlk_reply_block {
    struct rlk_reply_block *next;
    size_t used, size;
    alignas(max_align_t) char bytes[];
};

static struct rlk_reply_block *new_block(size_t size)
{
    struct rlk_reply_block *block = malloc(sizeof(*block) + size);
    if (!block)
        return NULL;
    block->next = NULL;
    block->used = 0;
    block->size = size;
    return block;
}

static size_t aligned(size_t size)
{
    size_t unit = alignof(max_align_t);
    return (size + unit - 1) / unit * unit;
}

/* Room in a new block of the reply. NULL: out of memory. */
static void *more_room(struct rlk_conn *conn, size_t size)
{
    struct rlk_reply_block *block = conn->block;
    size_t next_size =
        2 * block->size < LATER_SIZE_MAX ? 2 * block->size : LATER_SIZE_MAX;

    block->next = new_block(size > next_size ? size : next_size);
    if (!block->next)
        return NULL;
    conn->block = block->next;
    conn->block->used = size;
    return conn->block->bytes;
}

/* Room in the newest block of the reply that is being read. NULL: out of memory. */
static void *room(struct rlk_conn *conn, size_t size)
{
    struct rlk_reply_block *block = conn->block;

    if (size > SIZE_MAX / 4)
        return NULL;
    size = aligned(size);
    if (block->size - block->used < size)
        return more_room(conn, size);
    block->used += size;
    return block->bytes + block->used - size;
}

/* The block that a reply begins in. False: out of memory. */
static bool begin_reply(struct rlk_conn *conn, size_t expected)
{
    struct rlk_reply_block *block = conn->spare;
    size_t size = aligned(sizeof(redisReply)) + expected;

    if (block && block->size >= size)
        conn->spare = NULL;
    else
        block = new_block(size);
    if (!block)
        return false;
    conn->block = block;
    return true;
}

/* Elements of a small array have their places behind its pointers to them. */
static bool has_places(size_t count)
{
    return count <= PLACES_MAX;
}

/* Makes the object of a task; `expected`: bytes that will be wanted beside it. */
static redisReply *new_object(const redisReadTask *task, size_t expected)
{
    struct rlk_conn *conn = task->privdata;
    const redisReply *array = task->parent ? task->parent->obj : NULL;
    redisReply *object;

    if (!array && !begin_reply(conn, expected))
        return NULL;
    if (array && has_places(array->elements))
        object = (redisReply *)(void *)(array->element + array->elements) + task->idx;
    else
        object = room(conn, sizeof(*object));
    if (!object)
        return NULL;
    memset(object, 0, sizeof(*object));
    object->type = task->type;
    return object;
}

/* The object is complete: put it into its array. */
static void *placed(const redisReadTask *task, redisReply *object)
{
    if (task->parent) {
        redisReply *array = task->parent->obj;
        array->element[task->idx] = object;
    }
    return object;
}

/* Leaves nothing behind: the reader frees the root, unless the task is the root. */
static void *failed(const redisReadTask *task)
{
    struct rlk_conn *conn = task->privdata;

    if (!task->parent) {
        free(conn->block);
        conn->block = NULL;
    }
    return NULL;
}

static void *create_string(const redisReadTask *task, char *text, size_t len)
{
    redisReply *object = new_object(task, len < FIRST_SIZE ? FIRST_SIZE : len + 64);
    if (!object)
        return NULL;
    object->str = len < SIZE_MAX ? room(task->privdata, len + 1) : NULL;
    if (!object->str)
        return failed(task);
    memcpy(object->str, text, len);
    object->str[len] = '\0';
    object->len = len;
    return placed(task, object);
}

/* hiredis limits this itself before 1.0 only. */
static bool is_too_deep(const redisReadTask *task)
{
    int depth = 0;

    while (depth < DEPTH_MAX && (task = task->parent))
        depth++;
    return depth == DEPTH_MAX;
}

/* Refuses arrays that announce more elements than the bytes of a reply could hold,
 * because memory for all of them is allocated before the first one arrives. Counted
 * over the whole reply, because arrays nest. Refuses deeper ones than any reply has. */
static void *create_array(const redisReadTask *task, rlk_element_count_t announced)
{
    struct rlk_conn *conn = task->privdata;
    size_t count = (size_t)announced;

    if (count > conn->reply_limit - conn->element_count || is_too_deep(task)) {
        conn->too_big = true;
        return NULL;
    }
    conn->element_count += count;
    size_t expected = FIRST_SIZE_MAX;
    if (count < FIRST_SIZE_MAX / sizeof(redisReply)) /* the whole array */
        expected =
            count * (sizeof(redisReply) + sizeof(redisReply *) + ELEMENT_TEXT) + 64;
    redisReply *object = new_object(task, expected);
    if (!object)
        return NULL;
    if (count > 0) {
        size_t places = has_places(count) ? count * sizeof(redisReply) : 0;
        object->element = room(conn, count * sizeof(redisReply *) + places);
        if (!object->element)
            return failed(task);
        memset(object->element, 0, count * sizeof(redisReply *));
    }
    object->elements = count;
    return placed(task, object);
}

static void *create_integer(const redisReadTask *task, long long value)
{
    redisReply *object = new_object(task, 0);
    if (!object)
        return NULL;
    object->integer = value;
    return placed(task, object);
}

static void *create_nil(const redisReadTask *task)
{
    redisReply *object = new_object(task, 0);
    if (!object)
        return NULL;
    object->type = REDIS_REPLY_NIL; /* the task says what was announced */
    return placed(task, object);
}

#if HIREDIS_MAJOR >= 1
/* Types of RESP3, which is never requested. */
static void *create_double(const redisReadTask *task, double value, char *text,
                           size_t len)
{
    (void)value;
    return create_string(task, text, len);
}

static void *create_bool(const redisReadTask *task, int value)
{
    return create_integer(task, value != 0);
}
#endif

static struct rlk_reply_block *first_block(void *reply)
{
    return (void *)((char *)reply - offsetof(struct rlk_reply_block, bytes));
}

static void free_blocks(void *reply)
{
    struct rlk_reply_block *block = reply ? first_block(reply) : NULL;
    while (block) {
        struct rlk_reply_block *next = block->next;
        free(block);
        block = next;
    }
}

static redisReplyObjectFunctions functions = {
    .createString = create_string,
    .createArray = create_array,
    .createInteger = create_integer,
#if HIREDIS_MAJOR >= 1
    .createDouble = create_double,
    .createBool = create_bool,
#endif
    .createNil = create_nil,
    .freeObject = free_blocks,
};

redisReplyObjectFunctions *rlk_reply_functions(void)
{
    return &functions;
}

static const redisReply *as_hiredis(const struct rlk_reply *reply)
{
    return (const redisReply *)(const void *)reply;
}

enum rlk_reply_type rlk_reply_type(const struct rlk_reply *reply)
{
    switch (as_hiredis(reply)->type) {
    case REDIS_REPLY_STRING:
        return RLK_REPLY_STRING;
    case REDIS_REPLY_ARRAY:
        return RLK_REPLY_ARRAY;
    case REDIS_REPLY_INTEGER:
        return RLK_REPLY_INTEGER;
    case REDIS_REPLY_NIL:
        return RLK_REPLY_NIL;
    case REDIS_REPLY_STATUS:
        return RLK_REPLY_STATUS;
    case REDIS_REPLY_ERROR:
        return RLK_REPLY_ERROR;
    default:
        return RLK_REPLY_OTHER;
    }
}

int64_t rlk_reply_integer(const struct rlk_reply *reply)
{
    return rlk_reply_type(reply) == RLK_REPLY_INTEGER ? as_hiredis(reply)->integer : 0;
}

const char *rlk_reply_string(const struct rlk_reply *reply, size_t *ret_len)
{
    const char *text = as_hiredis(reply)->str;
    *ret_len = text ? (size_t)as_hiredis(reply)->len : 0;
    return text ? text : "";
}

size_t rlk_reply_count(const struct rlk_reply *reply)
{
    return rlk_reply_type(reply) == RLK_REPLY_ARRAY ? (size_t)as_hiredis(reply)->elements
                                                    : 0;
}

const struct rlk_reply *rlk_reply_at(const struct rlk_reply *reply, size_t i)
{
    if (i >= rlk_reply_count(reply))
        return NULL;
    return (const struct rlk_reply *)(const void *)as_hiredis(reply)->element[i];
}

bool rlk_reply_integer_at(const struct rlk_reply *array, size_t i, int64_t *ret_value)
{
    const redisReply *all = as_hiredis(array);

    if (all->type != REDIS_REPLY_ARRAY || i >= (size_t)all->elements ||
        all->element[i]->type != REDIS_REPLY_INTEGER)
        return false;
    *ret_value = all->element[i]->integer;
    return true;
}

const char *rlk_reply_text_at(const struct rlk_reply *array, size_t i, size_t *ret_len)
{
    const redisReply *all = as_hiredis(array);

    if (all->type != REDIS_REPLY_ARRAY || i >= (size_t)all->elements ||
        all->element[i]->type != REDIS_REPLY_STRING)
        return NULL;
    *ret_len = (size_t)all->element[i]->len;
    return all->element[i]->str;
}

void rlk_reply_free(struct rlk_reply *reply)
{
    free_blocks(reply);
}

void rlk_reply_give_back(struct rlk_conn *conn, struct rlk_reply *reply)
{
    struct rlk_reply_block *block = reply ? first_block(reply) : NULL;

    if (!block || block->next || block->size > FIRST_SIZE_MAX ||
        (conn->spare && conn->spare->size >= block->size)) {
        free_blocks(reply);
        return;
    }
    free(conn->spare);
    block->used = 0;
    conn->spare = block;
}

void rlk_reply_forget_spare(struct rlk_conn *conn)
{
    free(conn->spare);
    conn->spare = NULL;
}

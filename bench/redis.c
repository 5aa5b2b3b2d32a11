/* SPDX-License-Identifier: Apache-2.0 */
/* See redis.h. No state. */
#include "redis.h"

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 8 };

redisContext *redis_open(void)
{
    static const char scheme[] = "unix://";
    const char *url = getenv("RLOCK_URL");
    char host[64];
    int port = 6379;
    redisContext *conn;

    if (url && strncmp(url, scheme, sizeof(scheme) - 1) == 0) {
        conn = redisConnectUnix(url + sizeof(scheme) - 1);
    } else {
        if (!url || sscanf(url, "redis://%63[0-9.]:%d", host, &port) < 1)
            die("RLOCK_URL is neither unix:///path nor redis://a.b.c.d:port");
        conn = redisConnect(host, port);
    }
    if (!conn || conn->err)
        die("cannot connect: %s", conn ? conn->errstr : "out of memory");
    return conn;
}

redisReply *redis_call(redisContext *conn, int argc, const char *const *argv,
                       const size_t *len)
{
    redisReply *reply = redisCommandArgv(conn, argc, (const char **)(uintptr_t)argv, len);
    if (!reply)
        die("%s: %s", argv[0], conn->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        die("%s: %s", argv[0], reply->str);
    return reply;
}

redisReply *redis_words(redisContext *conn, const char *const *words)
{
    size_t len[WORDS_MAX];
    int count = 0;
    for (; words[count] && count < WORDS_MAX; count++)
        len[count] = strlen(words[count]);
    return redis_call(conn, count, words, len);
}

void redis_info(redisContext *conn, const char *section, const char *field, char *buf,
                size_t size)
{
    redisReply *reply = redis_words(conn, (const char *const[]){ "INFO", section, NULL });
    size_t len = strlen(field);
    const char *at = reply->str;
    while (at && (at = strstr(at, field)) != NULL && at[len] != ':')
        at += len;
    buf[0] = '\0';
    if (at && (at = strchr(at, ':')) != NULL)
        snprintf(buf, size, "%.*s", (int)strcspn(at + 1, "\r\n"), at + 1);
    freeReplyObject(reply);
}

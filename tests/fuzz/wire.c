/* SPDX-License-Identifier: Apache-2.0 */
/* See wire.h. */
#include "wire.h"

#include <stdlib.h>

struct rlk_conn *fuzz_conn_open(size_t reply_limit)
{
    struct rlk_conn *conn = calloc(1, sizeof(*conn));
    if (!conn)
        abort();
    conn->label = "fuzz";
    conn->reply_limit = reply_limit;
    conn->fd = -1;
    conn->state = RLK_CONN_READY;
    if (rlk_conn_reset_reader(conn) != 0)
        abort();
    return conn;
}

void fuzz_conn_close(struct rlk_conn *conn)
{
    rlk_conn_free(conn);
}

void fuzz_conn_feed(struct rlk_conn *conn, const uint8_t *bytes, size_t len)
{
    if (!conn->reader || len == 0)
        return;
    redisReaderFeed(conn->reader, (const char *)bytes, len);
    conn->partial_len += len;
}

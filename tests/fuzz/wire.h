/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a server, read as a connection of the library reads them. */
#ifndef FUZZ_WIRE_H
#define FUZZ_WIRE_H

#include "net/conn_impl.h"

#include <stdint.h>

/* A ready connection without a socket, for one input. */
struct rlk_conn *fuzz_conn_open(size_t reply_limit);
void fuzz_conn_close(struct rlk_conn *conn);

/* Feeds it as recv would. */
void fuzz_conn_feed(struct rlk_conn *conn, const uint8_t *bytes, size_t len);

#endif

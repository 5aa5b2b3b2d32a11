/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds the library's connection with bytes of a server. */
#ifndef FUZZ_WIRE_H
#define FUZZ_WIRE_H

#include "net/conn_impl.h"

#include <stdint.h>

/* Makes a ready connection without a socket, for one input. */
struct rlk_conn *fuzz_conn_open(size_t reply_limit);
void fuzz_conn_close(struct rlk_conn *conn);

/* Feeds the connection with bytes, as recv does. */
void fuzz_conn_feed(struct rlk_conn *conn, const uint8_t *bytes, size_t len);

#endif

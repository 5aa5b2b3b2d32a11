/* SPDX-License-Identifier: Apache-2.0 */
/* The part of Redis's protocol (RESP2, and the types of RESP3) that the proxy needs to
 * find the end of a message and its kind. No state. Thread: any. */
#ifndef TEST_RESP_H
#define TEST_RESP_H

#include <stdbool.h>
#include <stddef.h>

enum { TEST_RESP_PARTIAL = 0, TEST_RESP_INVALID = -1 };

/* The length of the first message of `data`, a request (inline requests too) or a reply.
 * TEST_RESP_PARTIAL: its end is missing; TEST_RESP_INVALID: it is no message. */
long test_resp_length(const unsigned char *data, size_t len, bool is_request);

/* How many replies a request gets: one for each channel of (P)(UN)SUBSCRIBE, else 1. */
unsigned test_resp_replies(const unsigned char *request, size_t len);

/* Whether it is a message of a subscribed channel, which answers no request. */
bool test_resp_is_push(const unsigned char *reply, size_t len);

#endif

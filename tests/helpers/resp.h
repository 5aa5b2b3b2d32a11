/* SPDX-License-Identifier: Apache-2.0 */
/* As much of Redis's protocol (RESP2, and the types of RESP3) as the proxy needs to tell
 * where a message ends and what it is. No state. Thread: any. */
#ifndef TEST_RESP_H
#define TEST_RESP_H

#include <stdbool.h>
#include <stddef.h>

enum { TEST_RESP_PARTIAL = 0, TEST_RESP_INVALID = -1 };

/* The length of the first message of `data`, a request (inline ones too) or a reply;
 * TEST_RESP_PARTIAL when its end is not there, TEST_RESP_INVALID when it is none. */
long test_resp_length(const unsigned char *data, size_t len, bool is_request);

/* How many replies a request gets: one for each channel of (P)(UN)SUBSCRIBE, else 1. */
unsigned test_resp_replies(const unsigned char *request, size_t len);

/* A message of a subscribed channel, which answers no request. */
bool test_resp_is_push(const unsigned char *reply, size_t len);

#endif

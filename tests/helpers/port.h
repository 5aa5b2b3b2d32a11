/* SPDX-License-Identifier: Apache-2.0 */
/* TCP ports that no two test runs share. */
#ifndef TEST_PORT_H
#define TEST_PORT_H

#include <stdint.h>

/* Picks a free port of an IPv4 address and reserves it while the returned descriptor is
 * open, whether or not a socket listens on it (until then connections are refused). A
 * socket that sets SO_REUSEADDR and names the port can listen on it. */
int test_port_reserve(const char *address, uint16_t *ret_port);

/* A listening, non-blocking socket on a reserved port. */
int test_port_listen(const char *address, uint16_t port);

#endif

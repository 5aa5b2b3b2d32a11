/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sentinel that says what a test wants: a thread with a port of 127.0.0.1, which knows
 * one master, "mymaster". It replies to AUTH, PING, ROLE, SENTINEL MASTER, SENTINEL
 * GET-MASTER-ADDR-BY-NAME, SENTINEL SENTINELS and SUBSCRIBE as a sentinel does. Thread: a
 * test's main thread.
 */
#ifndef TEST_FAKESENTINEL_H
#define TEST_FAKESENTINEL_H

#include <stdbool.h>
#include <stdint.h>

struct fake_sentinel;

struct fake_sentinel *fake_sentinel_start(void);
/* NULL: does nothing. */
void fake_sentinel_stop(struct fake_sentinel *s);
uint16_t fake_sentinel_port(const struct fake_sentinel *s);

/* What it says of the master: a port of 127.0.0.1; flags such as "master,s_down". */
void fake_sentinel_says(struct fake_sentinel *s, uint16_t port, int epoch,
                        const char *flags);
/* As the leader of a failover: the other address is that of a replica that it promotes.
 * Until the next call of fake_sentinel_says. */
void fake_sentinel_promotes(struct fake_sentinel *s, uint16_t port);
/* The master's host, in place of 127.0.0.1. */
void fake_sentinel_spells(struct fake_sentinel *s, const char *host);
/* It replies this error to SENTINEL MASTER; "": none. */
void fake_sentinel_refuses(struct fake_sentinel *s, const char *error);
/* It closes connections that have subscribed, after its confirmation. */
void fake_sentinel_closes_subscribers(struct fake_sentinel *s);
/* The other sentinels that it knows. */
void fake_sentinel_lists(struct fake_sentinel *s, struct fake_sentinel *const others[],
                         int count);
/* Whether it leaves requests without a reply. */
void fake_sentinel_sleeps(struct fake_sentinel *s, bool sleeps);
/* From now on it requires these credentials. */
void fake_sentinel_wants(struct fake_sentinel *s, const char *user, const char *password);
/* Closes all its connections, and accepts new ones. */
void fake_sentinel_cut(struct fake_sentinel *s);
/* Sends a message to the subscribers of +switch-master. */
void fake_sentinel_publish(struct fake_sentinel *s, const char *text);

/* How many times it was asked for the master. */
unsigned fake_sentinel_asked(struct fake_sentinel *s);
/* How many connections have subscribed. */
unsigned fake_sentinel_subscribers(struct fake_sentinel *s);
/* Whether any request contained this word. */
bool fake_sentinel_heard(struct fake_sentinel *s, const char *word);

#endif

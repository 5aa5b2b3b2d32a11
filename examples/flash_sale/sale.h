/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the flash sale share. A board in shared memory counts; the stock
 * itself is a number in a plain file that only a lock protects. */
#ifndef SALE_H
#define SALE_H

#include <stdatomic.h>
#include <stdbool.h>

enum {
    SALE_ITEMS = 1000,
    SALE_BUYERS_PER_ITEM = 5,
    SALE_PROCESSES = 8,
    SALE_THREADS = 4,       /* per process */
    SALE_PAYMENT_US = 3000, /* the longest time of a payment, */
    SALE_SLOW_EVERY = 300,  /* but one in 300, while the stock lasts, */
    SALE_SLOW_MS = 2500,    /* takes this long */
    SALE_NAIVE_EXPIRY_MS = 1000,
    SALE_LEASE_MS = 2000
};

/* One way to guard the till. lock and unlock end the process on an error. */
struct till {
    const char *word;   /* selects it on the command line */
    const char *title;  /* its row in the table */
    const char *lesson; /* what the row shows */
    int patience_ms;    /* without a served buyer for this long, the run hangs */
    void (*open)(void); /* once per process */
    void (*lock)(void);
    void (*unlock)(void);
};

extern const struct till *const naive_tills[]; /* ends with NULL */
extern const struct till till_with_rlock;

struct board {
    _Atomic long arrived;  /* buyers */
    _Atomic long served;   /* buyers that left, with an item or without */
    _Atomic long payments; /* begun */
    _Atomic long sold;
    _Atomic long longest_wait_us;
};

struct sale {
    const struct till *till;
    struct board *board;
    int stock_fd;
    long items;
};

long long now_us(void);
void sleep_us(long us);

/* A worker process: serves buyers with SALE_THREADS threads until none is left.
 * Returns the exit status. */
int shop_run(const struct sale *sale);

/* Removes the keys of the hand-made locks. */
void naive_clear(void);

#endif

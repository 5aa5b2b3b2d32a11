/* SPDX-License-Identifier: Apache-2.0 */
/* A worker process of the sale. Its threads take buyers from the board. Each purchase is
 * a read, a payment and a write, which is right only if nobody else does the same in
 * between. */
#include "sale.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

long long now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (long long)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void sleep_us(long us)
{
    struct timespec ts = { us / 1000000, us % 1000000 * 1000 };
    while (nanosleep(&ts, &ts) != 0)
        continue;
}

/* The payment's number decides what happens, so that all rows see the same payments: a
 * few take longer than the naive locks live, and in one of them the process dies. */
static void pay(const struct sale *sale)
{
    long payment = sale->board->payments++;
    unsigned spread = (unsigned)payment * 2654435761u >> 16;

    if (payment == sale->items / 2) {
        sleep_us(SALE_PAYMENT_US);
        raise(SIGKILL);
    }
    if (payment < sale->items && payment % SALE_SLOW_EVERY == SALE_SLOW_EVERY / 2)
        sleep_us(SALE_SLOW_MS * 1000L);
    else
        sleep_us((long)(spread % SALE_PAYMENT_US));
}

static void sell(const struct sale *sale)
{
    long stock;

    if (pread(sale->stock_fd, &stock, sizeof(stock), 0) != (ssize_t)sizeof(stock)) {
        perror("read stock");
        _exit(2);
    }
    if (stock <= 0)
        return;
    pay(sale);
    stock--;
    if (pwrite(sale->stock_fd, &stock, sizeof(stock), 0) != (ssize_t)sizeof(stock)) {
        perror("write stock");
        _exit(2);
    }
    sale->board->sold++;
}

static void note_wait(struct board *board, long us)
{
    long longest = board->longest_wait_us;
    while (us > longest &&
           !atomic_compare_exchange_weak(&board->longest_wait_us, &longest, us))
        continue;
}

static void *serve(void *arg)
{
    const struct sale *sale = arg;
    const long buyers = sale->items * SALE_BUYERS_PER_ITEM;

    while (sale->board->arrived++ < buyers) {
        long long asked = now_us();
        sale->till->lock();
        note_wait(sale->board, (long)(now_us() - asked));
        sell(sale);
        sale->till->unlock();
        sale->board->served++;
    }
    return NULL;
}

int shop_run(const struct sale *sale)
{
    pthread_t threads[SALE_THREADS];

    sale->till->open();
    for (int i = 0; i < SALE_THREADS; i++)
        if (pthread_create(&threads[i], NULL, serve, (void *)sale) != 0)
            return 2;
    for (int i = 0; i < SALE_THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

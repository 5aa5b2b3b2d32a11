/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flash sale: 1,000 items, 5,000 buyers, 8 processes with 4 threads each. The sale
 * runs once for every way to guard the till, and prints one table. Some payments are
 * slow, and one process is killed while it holds the lock. Start reading at
 * flash_sale/with_rlock.c.
 *
 *     02_flash_sale [-n items] [none] [setnx] [delete] [compare] [rlock]
 *
 * The server is $RLOCK_URL, else that of rlock.conf(5), else redis://127.0.0.1:6379.
 * Fails when the row of rlock shows anything but every item sold once. The workers run
 * this same program.
 */
#include "flash_sale/sale.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_US = 50000, DIGITS = 24 };

struct result {
    long sold, oversold, lost, time_us, longest_wait_us;
    bool hung, failed;
};

static int board_fd;
static bool live; /* show progress */

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static const struct till *till_find(const char *word)
{
    for (int i = 0; naive_tills[i]; i++)
        if (strcmp(word, naive_tills[i]->word) == 0)
            return naive_tills[i];
    return strcmp(word, till_with_rlock.word) == 0 ? &till_with_rlock : NULL;
}

static struct board *board_map(int fd)
{
    void *p = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        die("board");
    return p;
}

/* A file without a name, which the workers inherit. It goes away however the program
 * ends. */
static int nameless_file(size_t len)
{
    FILE *f = tmpfile();
    if (!f || ftruncate(fileno(f), (off_t)len) != 0)
        die("temporary file");
    return fileno(f);
}

static pid_t worker_start(const struct sale *sale)
{
    char items[DIGITS], stock[DIGITS], board[DIGITS];
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid < 0)
        die("fork");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(2);
    snprintf(items, sizeof(items), "%ld", sale->items);
    snprintf(stock, sizeof(stock), "%d", sale->stock_fd);
    snprintf(board, sizeof(board), "%d", board_fd);
    execl("/proc/self/exe", "02_flash_sale", "--worker", sale->till->word, items, stock,
          board, (char *)NULL);
    _exit(2);
}

static int worker_main(char **argv)
{
    struct sale sale = {
        .till = till_find(argv[2]),
        .items = atol(argv[3]),
        .stock_fd = atoi(argv[4]),
        .board = board_map(atoi(argv[5])),
    };
    return sale.till ? shop_run(&sale) : 2;
}

static void progress(const struct sale *sale, long long begin_us)
{
    if (!live)
        return;
    printf("\r\033[K%-26s %ld sold, %ld of %ld buyers served, %.1f s", sale->till->title,
           sale->board->sold, sale->board->served, sale->items * SALE_BUYERS_PER_ITEM,
           (double)(now_us() - begin_us) / 1e6);
    fflush(stdout);
}

/* Takes note of workers that ended. Only the one that the sale kills may fail. */
static int reap(pid_t *pids, int *killed, bool *failed)
{
    int left = 0;

    for (int i = 0; i < SALE_PROCESSES; i++) {
        int status;
        if (pids[i] && waitpid(pids[i], &status, WNOHANG) == pids[i]) {
            pids[i] = 0;
            if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && *killed == 0)
                ++*killed;
            else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                *failed = true;
        }
        left += pids[i] != 0;
    }
    return left;
}

static void stop_all(pid_t *pids)
{
    for (int i = 0; i < SALE_PROCESSES; i++)
        if (pids[i])
            kill(pids[i], SIGKILL);
    for (int i = 0; i < SALE_PROCESSES; i++)
        if (pids[i])
            waitpid(pids[i], NULL, 0);
}

/* Runs the workers until all have ended or nothing moves any more. */
static void run_workers(const struct sale *sale, struct result *res)
{
    pid_t pids[SALE_PROCESSES];
    int killed = 0;
    long long begin = now_us(), moved = begin;
    long served = 0;

    for (int i = 0; i < SALE_PROCESSES; i++)
        pids[i] = worker_start(sale);
    while (reap(pids, &killed, &res->failed) > 0 && !res->hung) {
        if (sale->board->served != served) {
            served = sale->board->served;
            moved = now_us();
        }
        res->hung = now_us() - moved > sale->till->patience_ms * 1000L;
        progress(sale, begin);
        sleep_us(TICK_US);
    }
    stop_all(pids);
    res->time_us = (long)(now_us() - begin);
    res->longest_wait_us = sale->board->longest_wait_us;
    if (res->hung && now_us() - moved > res->longest_wait_us)
        res->longest_wait_us = (long)(now_us() - moved);
    if (killed == 0)
        res->failed = true; /* the sale did not come to the fatal payment */
}

static void run(const struct sale *sale, struct result *res)
{
    long stock = sale->items;

    memset(res, 0, sizeof(*res));
    memset(sale->board, 0, sizeof(*sale->board));
    if (pwrite(sale->stock_fd, &stock, sizeof(stock), 0) != (ssize_t)sizeof(stock))
        die("stock");
    naive_clear();
    run_workers(sale, res);
    naive_clear();
    if (pread(sale->stock_fd, &stock, sizeof(stock), 0) != (ssize_t)sizeof(stock))
        die("stock");
    res->sold = sale->board->sold;
    res->oversold = res->sold > sale->items ? res->sold - sale->items : 0;
    res->lost = res->sold - (sale->items - stock);
}

static void print_head(void)
{
    printf("%-26s %6s %9s %13s %9s %12s %13s\n", "lock", "sold", "oversold",
           "lost updates", "time", "purchases/s", "longest wait");
}

static void print_row(const struct till *till, const struct result *res)
{
    double time_s = (double)res->time_us / 1e6;
    char wait[DIGITS];

    snprintf(wait, sizeof(wait), "%s%.2f s", res->hung ? "> " : "",
             (double)res->longest_wait_us / 1e6);
    printf("%s%-26s %6ld %9ld %13ld %7.1f s %12.0f %13s%s\n", live ? "\r\033[K" : "",
           till->title, res->sold, res->oversold, res->lost, time_s,
           (double)res->sold / time_s, wait,
           res->failed ? "  FAILED"
           : res->hung ? "  hung, stopped"
                       : "");
    fflush(stdout);
}

/* 0, or 1 when the row of rlock is not what it has to be. */
static int sell_all(struct sale *sale, const struct till *const *rows)
{
    int status = 0;

    printf("Flash sale: %ld items, %ld buyers, %d processes with %d threads each;\n"
           "some payments take %.1f s, and one process is killed during a payment.\n\n",
           sale->items, sale->items * SALE_BUYERS_PER_ITEM, (int)SALE_PROCESSES,
           (int)SALE_THREADS, SALE_SLOW_MS / 1e3);
    print_head();
    for (int i = 0; rows[i]; i++) {
        struct result res;
        sale->till = rows[i];
        run(sale, &res);
        print_row(sale->till, &res);
        if (rows[i] == &till_with_rlock &&
            (res.failed || res.hung || res.sold != sale->items || res.lost != 0))
            status = 1;
    }
    putchar('\n');
    for (int i = 0; rows[i]; i++)
        printf("%-26s %s\n", rows[i]->title, rows[i]->lesson);
    return status;
}

static void usage(void)
{
    fputs("usage: 02_flash_sale [-n items] [none] [setnx] [delete] [compare] [rlock]\n",
          stderr);
    exit(2);
}

int main(int argc, char **argv)
{
    const struct till *rows[8] = { NULL };
    struct sale sale = { .items = SALE_ITEMS };
    size_t count = 0, most = sizeof(rows) / sizeof(rows[0]) - 1;
    int opt;

    if (argc == 6 && strcmp(argv[1], "--worker") == 0)
        return worker_main(argv);
    while ((opt = getopt(argc, argv, "n:")) != -1)
        if (opt != 'n' || (sale.items = atol(optarg)) < 1)
            usage();
    for (int i = optind; i < argc; i++)
        if (count == most || !(rows[count++] = till_find(argv[i])))
            usage();
    if (count == 0) {
        for (int i = 0; naive_tills[i]; i++)
            rows[count++] = naive_tills[i];
        rows[count] = &till_with_rlock;
    }
    live = isatty(STDOUT_FILENO);
    sale.stock_fd = nameless_file(sizeof(long));
    board_fd = nameless_file(sizeof(struct board));
    sale.board = board_map(board_fd);
    return sell_all(&sale, rows);
}

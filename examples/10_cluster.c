/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The warehouse: 4 processes with 4 threads each take orders for 16 articles. Each
 * article has a lock of its own. So orders for different articles do not wait for each
 * other, and in a cluster the locks are spread over its masters. Nothing here knows about
 * clusters but the URL:
 *
 *     RLOCK_URL=redis-cluster://n1.example,n2.example 10_cluster [orders]
 *
 * Names with the same hash tag, as "{article 7}:stock" and "{article 7}:price", are at
 * the same master, before and after each change of the cluster.
 *
 * Try a failover, a restart of a node or a move of hash slots meanwhile. Orders for the
 * articles of that master wait, the others do not. A failover may lose locks
 * (doc/TOPOLOGY.md), so that two threads are at one article. Therefore each hold has a
 * token, and the stock refuses what comes with a smaller one than it has seen; the order
 * is then taken again.
 *
 * The server is $RLOCK_URL, else that of rlock.conf(5), else redis://127.0.0.1:6379.
 * Fails when an item was sold twice or not at all. The processes are forked before the
 * program uses the library.
 */
#include <errno.h>
#include <pthread.h>
#include <rlock.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 4, THREADS = 4, ARTICLES = 16, ORDERS = 800, PAYMENT_US = 2000 };

static struct warehouse {
    atomic_long taken, lost, refused;
    struct article {
        pthread_mutex_t row; /* a database makes each of its statements one step */
        uint64_t token;      /* the greatest so far */
        long sold;
    } articles[ARTICLES];
} * warehouse;

static long orders = ORDERS;
static rlock_mutex_t locks[ARTICLES];

static void must(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s: %s\n", what, rlock_errmsg());
    _exit(2);
}

/* ---- the stock; in a database it would be a table */

static void open_stock(void)
{
    pthread_mutexattr_t attr;

    warehouse = mmap(NULL, sizeof(*warehouse), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(warehouse == MAP_FAILED, "memory");
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    for (int i = 0; i < ARTICLES; i++)
        pthread_mutex_init(&warehouse->articles[i].row, &attr);
    pthread_mutexattr_destroy(&attr);
}

/* UPDATE stock SET token = :token WHERE article = :a AND token <= :token, and SELECT
 * sold. The token is noted before the first write, so that no older holder writes in
 * between. */
static bool stock_read(struct article *a, uint64_t token, long *sold)
{
    pthread_mutex_lock(&a->row);
    bool accepted = token >= a->token;
    if (accepted)
        a->token = token;
    *sold = a->sold;
    pthread_mutex_unlock(&a->row);
    return accepted;
}

/* UPDATE stock SET sold = :sold WHERE article = :a AND token <= :token */
static bool stock_write(struct article *a, uint64_t token, long sold)
{
    pthread_mutex_lock(&a->row);
    bool accepted = token >= a->token;
    if (accepted)
        a->sold = sold;
    pthread_mutex_unlock(&a->row);
    return accepted;
}

/* ---- orders */

/* Returns whether the item is sold. */
static bool sell(int i)
{
    struct article *a = &warehouse->articles[i];
    uint64_t token;
    long sold;

    must(rlock_mutex_lock(&locks[i]), "lock");
    int rc = rlock_mutex_gettoken(&locks[i], &token);
    must(rc == ESTALE ? 0 : rc, "token");
    bool done = rc == 0 && stock_read(a, token, &sold);
    if (done) {
        nanosleep(&(struct timespec){ .tv_nsec = PAYMENT_US * 1000L }, NULL);
        done = stock_write(a, token, sold + 1);
    }
    if (rc == 0 && !done)
        warehouse->refused++;
    rc = rlock_mutex_unlock(&locks[i]);
    if (rc == ESTALE) /* the lease was lost on the way; the stock has judged */
        warehouse->lost++;
    else
        must(rc, "unlock");
    return done;
}

static void *clerk(void *seed)
{
    unsigned draw = *(unsigned *)seed;

    while (warehouse->taken++ < orders) {
        int article = rand_r(&draw) % ARTICLES;
        while (!sell(article))
            ;
    }
    return NULL;
}

static void work(int process, const char *run)
{
    pthread_t threads[THREADS];
    unsigned seeds[THREADS];
    rlock_mutexattr_t attr;
    char name[64];

    rlock_mutexattr_init(&attr);
    must(rlock_mutexattr_setfencing(&attr, 1), "fencing");
    must(rlock_mutexattr_setlease(&attr, 5000), "lease");
    for (int i = 0; i < ARTICLES; i++) {
        snprintf(name, sizeof(name), "%s/{article %d}:stock", run, i);
        must(rlock_mutex_init(&locks[i], &attr, name), "init");
    }
    rlock_mutexattr_destroy(&attr);
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = (unsigned)(process * THREADS + i);
        must(pthread_create(&threads[i], NULL, clerk, &seeds[i]), "thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    exit(0);
}

int main(int argc, char **argv)
{
    char run[32];
    int status;
    long sold = 0;

    if (argc > 1)
        orders = strtol(argv[1], NULL, 10);
    snprintf(run, sizeof(run), "warehouse/%d", (int)getpid());
    open_stock();
    for (int i = 0; i < PROCESSES; i++) {
        pid_t pid = fork();
        must(pid < 0, "fork");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* no clerk outlives the warehouse */
            work(i, run);
        }
    }
    for (int i = 0; i < PROCESSES; i++)
        must(wait(&status) < 0 || status != 0, "a process failed");
    for (int i = 0; i < ARTICLES; i++)
        sold += warehouse->articles[i].sold;
    printf("%ld orders, %ld items sold; %ld locks lost, %ld late orders refused.\n",
           orders, sold, (long)warehouse->lost, (long)warehouse->refused);
    return sold == orders ? 0 : 1;
}

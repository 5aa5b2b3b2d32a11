/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ticket counter: four families of three come to a counter that is still closed. Each
 * family is a process, each member a thread of it. With the fair lock the counter serves
 * the members in the order in which they came, across all families.
 *
 *     03_ticket_counter [--mutex]
 *
 * With --mutex the counter is guarded by the mutex, which promises no order: one thread
 * of a process queues at the server, and the process's other threads wait until that
 * thread is back.
 *
 * The server is $RLOCK_URL, else that of rlock.conf(5), else redis://127.0.0.1:6379.
 * Fails when the fair lock served a member out of turn. The families are forked before
 * the program uses the library.
 */
#include <pthread.h>
#include <rlock.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FAMILIES = 4, CUSTOMERS = 12, LOOK_MS = 1, SERVICE_MS = 20 };

static const char arrivals[CUSTOMERS + 1] = "AABBACCBDDDC";

/* What the processes share. The lock is all that protects the list of the served. */
static struct board {
    atomic_int called, queued; /* how many may come, how many wait */
    int served_count;
    struct served {
        int place; /* in the order of arrival */
        uint64_t token;
    } served[CUSTOMERS];
} * board;

static bool with_mutex;
static rlock_fair_t counter;
static rlock_mutex_t mutex; /* the other one, to compare */

static void must(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s: %s\n", what, rlock_errmsg());
    _exit(2);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static void open_counter(const char *name)
{
    rlock_mutexattr_t attr; /* for both types of lock */
    rlock_mutexattr_init(&attr);
    must(rlock_mutexattr_setfencing(&attr, 1), "fencing"); /* numbers that only grow */
    must(rlock_fair_init(&counter, &attr, name), "init");
    must(rlock_mutex_init(&mutex, &attr, name), "init");
    rlock_mutexattr_destroy(&attr);
}

static uint64_t lock_counter(void)
{
    uint64_t token;
    must(with_mutex ? rlock_mutex_lock(&mutex) : rlock_fair_lock(&counter), "lock");
    must(with_mutex ? rlock_mutex_gettoken(&mutex, &token)
                    : rlock_fair_gettoken(&counter, &token),
         "token");
    return token;
}

/* ESTALE: the hold was lost on the way, and somebody else may have been served. */
static void unlock_counter(void)
{
    must(with_mutex ? rlock_mutex_unlock(&mutex) : rlock_fair_unlock(&counter), "unlock");
}

static void *customer(void *place)
{
    unsigned draw = (unsigned)*(int *)place;
    uint64_t token = lock_counter();
    board->served[board->served_count++] = (struct served){ *(int *)place, token };
    sleep_ms(1 + rand_r(&draw) % SERVICE_MS);
    unlock_counter();
    return NULL;
}

/* Sends a member when it is called. */
static void family(char letter, const char *name)
{
    pthread_t threads[CUSTOMERS];
    int places[CUSTOMERS];
    size_t count = 0;
    rlock_stats_t stats = { .waiters_now = 0 };

    open_counter(name);
    for (int place = 0; place < CUSTOMERS; place++) {
        if (arrivals[place] != letter)
            continue;
        while (board->called <= place)
            sleep_ms(LOOK_MS);
        places[count] = place;
        must(pthread_create(&threads[count], NULL, customer, &places[count]), "thread");
        for (count++; stats.waiters_now < count; sleep_ms(LOOK_MS))
            must(rlock_client_getstats(NULL, &stats), "stats");
        board->queued = place + 1;
    }
    while (count > 0)
        pthread_join(threads[--count], NULL);
    exit(0);
}

/* Calls the next customer, and waits until the server has them in the queue. */
static void arrive(const char *name, int place)
{
    size_t waiters = 0, customers = (size_t)place + 1, families = 0;

    for (const char *letter = "ABCD"; *letter; letter++)
        families += memchr(arrivals, *letter, customers) != NULL;
    board->called = place + 1;
    while (board->queued <= place || waiters != (with_mutex ? families : customers)) {
        rlock_info_t *info;
        must(waitpid(-1, NULL, WNOHANG), "a family left");
        must(rlock_inspect(NULL, name, &info), "inspect");
        waiters = info->waiter_count;
        rlock_info_free(info);
        sleep_ms(LOOK_MS);
    }
}

static bool compare(void)
{
    bool same = true;
    printf("arrived  served  token\n");
    for (int i = 0; i < CUSTOMERS; i++) {
        const struct served *s = &board->served[i];
        printf("%2d %c     %2d %c    %llu\n", i + 1, arrivals[i], s->place + 1,
               arrivals[s->place], (unsigned long long)s->token);
        same = same && s->place == i;
    }
    printf("The order of service %s that of arrival.\n", same ? "is" : "is NOT");
    return same;
}

int main(int argc, char **argv)
{
    char name[64];
    int status, failed = 0;

    with_mutex = argc > 1 && strcmp(argv[1], "--mutex") == 0;
    snprintf(name, sizeof(name), "ticket-counter/%d", (int)getpid());
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    must(board == MAP_FAILED, "memory");
    for (int i = 0; i < FAMILIES; i++) {
        pid_t pid = fork();
        must(pid < 0, "fork");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits at a counter that is gone */
            family((char)('A' + i), name);
        }
    }
    open_counter(name);
    lock_counter(); /* closed as yet, so that everybody has to queue */
    for (int place = 0; place < CUSTOMERS; place++)
        arrive(name, place);
    unlock_counter();
    for (int i = 0; i < FAMILIES; i++)
        failed |= wait(&status) < 0 || status != 0;
    must(failed || board->served_count != CUSTOMERS, "a family failed");
    return compare() || with_mutex ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A bank with statically initialised locks: threads transfer money between accounts, and
 * an auditor adds up all accounts. The sum stays the same. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ACCOUNTS = 4, CLERKS = 4, TRANSFERS = 30, AUDITS = 10, BALANCE = 1000 };

static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t savings = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t escrow = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t vault = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
/* transfers share it, the auditor has it alone */
static pthread_rwlock_t open_hours = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t rates = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static pthread_mutex_t *const lock[ACCOUNTS] = { &checking, &savings, &escrow, &vault };
static long balance[ACCOUNTS] = { BALANCE, BALANCE, BALANCE, BALANCE };
static long fee = 0;

static void must(int rc)
{
    if (rc != 0)
        abort();
}

static void transfer(int from, int to, long amount)
{
    int first = from < to ? from : to, second = from < to ? to : from;

    must(pthread_rwlock_rdlock(&open_hours));
    must(pthread_mutex_lock(lock[first]));
    must(pthread_mutex_lock(lock[second]));
    must(pthread_rwlock_rdlock(&rates));
    balance[from] -= amount + fee;
    balance[to] += amount + fee;
    must(pthread_rwlock_unlock(&rates));
    must(pthread_mutex_unlock(lock[second]));
    must(pthread_mutex_unlock(lock[first]));
    must(pthread_rwlock_unlock(&open_hours));
}

static void *clerk(void *arg)
{
    unsigned seed = *(const unsigned *)arg;
    for (int i = 0; i < TRANSFERS; i++) {
        int from = rand_r(&seed) % ACCOUNTS;
        int to = (from + 1 + rand_r(&seed) % (ACCOUNTS - 1)) % ACCOUNTS;
        transfer(from, to, rand_r(&seed) % 100);
    }
    return NULL;
}

static long audit(void)
{
    long sum = 0;
    must(pthread_rwlock_wrlock(&open_hours));
    for (int i = 0; i < ACCOUNTS; i++)
        sum += balance[i];
    must(pthread_rwlock_unlock(&open_hours));
    must(pthread_rwlock_wrlock(&rates));
    fee++;
    must(pthread_rwlock_unlock(&rates));
    return sum;
}

int main(void)
{
    pthread_t thread[CLERKS];
    unsigned seed[CLERKS];

    for (unsigned i = 0; i < CLERKS; i++) {
        seed[i] = i + 1;
        must(pthread_create(&thread[i], NULL, clerk, &seed[i]));
    }
    for (int i = 0; i < AUDITS; i++)
        printf("audit %d: %ld\n", i, audit());
    for (int i = 0; i < CLERKS; i++)
        must(pthread_join(thread[i], NULL));
    printf("at the end: %ld, fee %ld\n", audit(), fee);
    for (int i = 0; i < ACCOUNTS; i++)
        must(pthread_mutex_destroy(lock[i]));
    must(pthread_rwlock_destroy(&open_hours));
    must(pthread_rwlock_destroy(&rates));
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of threads takes jobs from a list; the caller waits until all are done, and then
 * ends the pool. Handles are static. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, JOBS = 40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;

static struct job {
    struct job *next;
    int number;
} jobs[JOBS], *first, *last;
static int unfinished, ending;
static long total;

static void must(int rc)
{
    if (rc != 0)
        abort();
}

/* The next job, or NULL when the pool ends. With the lock. */
static struct job *next_job(void)
{
    while (!first && !ending)
        must(pthread_cond_wait(&work, &lock));
    struct job *job = first;
    if (job) {
        first = job->next;
        if (!first)
            last = NULL;
    }
    return job;
}

static void *run(void *arg)
{
    struct job *job;

    must(pthread_mutex_lock(&lock));
    while ((job = next_job()) != NULL) {
        must(pthread_mutex_unlock(&lock));
        int square = job->number * job->number;
        must(pthread_mutex_lock(&lock));
        total += square;
        if (--unfinished == 0)
            must(pthread_cond_signal(&idle));
    }
    must(pthread_mutex_unlock(&lock));
    return arg;
}

static void submit(struct job *job)
{
    must(pthread_mutex_lock(&lock));
    if (last)
        last->next = job;
    else
        first = job;
    last = job;
    unfinished++;
    must(pthread_cond_signal(&work));
    must(pthread_mutex_unlock(&lock));
}

int main(void)
{
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, run, NULL));
    for (int i = 0; i < JOBS; i++) {
        jobs[i].number = i + 1;
        submit(&jobs[i]);
    }
    must(pthread_mutex_lock(&lock));
    while (unfinished > 0)
        must(pthread_cond_wait(&idle, &lock));
    printf("%d jobs, %ld in total\n", JOBS, total);
    ending = 1;
    must(pthread_cond_broadcast(&work));
    must(pthread_mutex_unlock(&lock));
    for (int i = 0; i < THREADS; i++)
        must(pthread_join(thread[i], NULL));
    must(pthread_cond_destroy(&work));
    must(pthread_cond_destroy(&idle));
    must(pthread_mutex_destroy(&lock));
    return 0;
}

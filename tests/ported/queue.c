/* SPDX-License-Identifier: Apache-2.0 */
/* Threads produce numbers into a ring that a mutex guards; others consume them.
 * Semaphores count the numbers in it, because condition variables need pthread's own
 * mutexes. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

enum { RING = 8, PRODUCERS = 3, CONSUMERS = 2, NUMBERS = 40, STOP = -1 };

static struct ring {
    pthread_mutex_t lock;
    int number[RING], head, count;
    int most;
} ring;
static sem_t filled, empty;
static pthread_mutex_t total_lock = PTHREAD_MUTEX_INITIALIZER;
static long total, taken;

static void must(int rc)
{
    if (rc != 0)
        abort();
}

static void put(int number)
{
    sem_wait(&empty);
    must(pthread_mutex_lock(&ring.lock));
    ring.number[(ring.head + ring.count++) % RING] = number;
    if (ring.count > ring.most)
        ring.most = ring.count;
    must(pthread_mutex_unlock(&ring.lock));
    sem_post(&filled);
}

static int get(void)
{
    sem_wait(&filled);
    must(pthread_mutex_lock(&ring.lock));
    int number = ring.number[ring.head];
    ring.head = (ring.head + 1) % RING;
    ring.count--;
    must(pthread_mutex_unlock(&ring.lock));
    sem_post(&empty);
    return number;
}

static void *produce(void *arg)
{
    (void)arg;
    for (int i = 1; i <= NUMBERS; i++)
        put(i);
    return NULL;
}

static void *consume(void *arg)
{
    (void)arg;
    for (int number; (number = get()) != STOP;) {
        must(pthread_mutex_lock(&total_lock));
        total += number;
        taken++;
        must(pthread_mutex_unlock(&total_lock));
    }
    return NULL;
}

/* As in other people's code: a call with two arguments among the arguments. */
static struct ring *of(struct ring *rings, int i)
{
    return &rings[i];
}

static pthread_mutex_t *lock_of(struct ring *r)
{
    return &r->lock;
}

int main(void)
{
    pthread_t producer[PRODUCERS], consumer[CONSUMERS];

    sem_init(&filled, 0, 0);
    sem_init(&empty, 0, RING);
    must(pthread_mutex_init(lock_of(of(&ring, 0)), NULL));
    for (int i = 0; i < CONSUMERS; i++)
        must(pthread_create(&consumer[i], NULL, consume, NULL));
    for (int i = 0; i < PRODUCERS; i++)
        must(pthread_create(&producer[i], NULL, produce, NULL));
    for (int i = 0; i < PRODUCERS; i++)
        must(pthread_join(producer[i], NULL));
    for (int i = 0; i < CONSUMERS; i++)
        put(STOP);
    for (int i = 0; i < CONSUMERS; i++)
        must(pthread_join(consumer[i], NULL));
    printf("%ld numbers, %ld in total\n", taken, total);
    printf("the ring never held too many: %s\n", ring.most <= RING ? "yes" : "no");
    must(pthread_mutex_destroy(&ring.lock));
    must(pthread_mutex_destroy(&total_lock));
    return 0;
}

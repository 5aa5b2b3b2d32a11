/* SPDX-License-Identifier: Apache-2.0 */
/* Processes produce numbers into a bounded buffer in shared memory; others consume them.
 * One condition says that there is a number, another that there is room. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 4, PRODUCERS = 2, CONSUMERS = 3, NUMBERS = 30, STOP = -1 };

struct buffer {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    int number[ROOM], head, count, most;
    long total, taken;
};

static void must(int rc)
{
    if (rc != 0)
        abort();
}

static void put(struct buffer *b, int number)
{
    must(pthread_mutex_lock(&b->lock));
    while (b->count == ROOM)
        must(pthread_cond_wait(&b->emptied, &b->lock));
    b->number[(b->head + b->count++) % ROOM] = number;
    if (b->count > b->most)
        b->most = b->count;
    must(pthread_cond_signal(&b->filled));
    must(pthread_mutex_unlock(&b->lock));
}

static int get(struct buffer *b)
{
    must(pthread_mutex_lock(&b->lock));
    while (b->count == 0)
        must(pthread_cond_wait(&b->filled, &b->lock));
    int number = b->number[b->head];
    b->head = (b->head + 1) % ROOM;
    b->count--;
    if (number != STOP) {
        b->total += number;
        b->taken++;
    }
    must(pthread_mutex_unlock(&b->lock));
    must(pthread_cond_signal(&b->emptied));
    return number;
}

static void produce(struct buffer *b)
{
    for (int i = 1; i <= NUMBERS; i++)
        put(b, i);
}

static void consume(struct buffer *b)
{
    while (get(b) != STOP)
        ;
}

static void start(struct buffer *b, void (*run)(struct buffer *), int count)
{
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid < 0)
            abort();
        if (pid == 0) {
            run(b);
            _exit(0);
        }
    }
}

static void make(struct buffer *b)
{
    pthread_mutexattr_t mutexattr;
    pthread_condattr_t condattr;
    int pshared = PTHREAD_PROCESS_PRIVATE;

    must(pthread_mutexattr_init(&mutexattr));
    must(pthread_mutexattr_setpshared(&mutexattr, PTHREAD_PROCESS_SHARED));
    must(pthread_mutex_init(&b->lock, &mutexattr));
    must(pthread_mutexattr_destroy(&mutexattr));
    must(pthread_condattr_init(&condattr));
    must(pthread_condattr_setpshared(&condattr, PTHREAD_PROCESS_SHARED));
    must(pthread_condattr_getpshared(&condattr, &pshared));
    printf("shared: %d\n", pshared == PTHREAD_PROCESS_SHARED);
    fflush(stdout);
    must(pthread_cond_init(&b->filled, &condattr));
    must(pthread_cond_init(&b->emptied, &condattr));
    must(pthread_condattr_destroy(&condattr));
}

int main(void)
{
    int status, failed = 0;
    struct buffer *b =
        mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (b == MAP_FAILED)
        abort();
    make(b);
    start(b, consume, CONSUMERS);
    start(b, produce, PRODUCERS);
    /* each producer is done when all its numbers are in; the consumers end after that */
    for (int ended = 0; ended < PRODUCERS; ended++) {
        wait(&status);
        failed |= status;
    }
    for (int i = 0; i < CONSUMERS; i++)
        put(b, STOP);
    while (wait(&status) > 0)
        failed |= status;
    printf("%ld numbers, %ld in total, failed: %d\n", b->taken, b->total, failed);
    printf("never too many: %d, left: %d\n", b->most <= ROOM, b->count);
    must(pthread_cond_destroy(&b->filled));
    must(pthread_cond_destroy(&b->emptied));
    must(pthread_mutex_destroy(&b->lock));
    return 0;
}

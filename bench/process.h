/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes that do not outlive this one, and what they share with it. Each
 * function ends the process on failure. */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* As fork(); when this process ends, the kernel ends the child. */
pid_t process_fork(void);
/* Waits until the child has ended. Returns its status, or 0 if it was reaped already. */
int process_reap(pid_t pid);
/* CPU of a process, with all its threads. */
double process_cpu_us(pid_t pid);

/* Zeroed memory that children share. */
void *memory_shared(size_t size);
void memory_free(void *memory, size_t size);

void semaphore_wait(sem_t *sem);
/* false: not posted in that time. */
bool semaphore_wait_for(sem_t *sem, double seconds);

#endif

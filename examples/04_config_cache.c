/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The config cache: four processes with four threads each look settings up all the time,
 * and one writer reloads them now and then. A look-up takes 2 ms, as from a distant disk.
 * With the read-write lock look-ups run side by side, and none sees half a reload; with
 * the mutex they wait for each other.
 *
 *     04_config_cache [--mutex | --none]
 *
 * Prints a row for each of the two locks, with --mutex only for the mutex. With --none
 * nothing guards the settings, and one sees that they do get torn.
 *
 * The server is $RLOCK_URL, else that of rlock.conf(5), else redis://127.0.0.1:6379.
 * Fails when settings of two versions were seen together. The processes run this same
 * program.
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

enum { PROCESSES = 4, READERS = 4, SETTINGS = 100, RELOADS = 10, DIGITS = 16 };
enum { LOOK_UP_MS = 2, RELOAD_MS = 5, PAUSE_MS = 80, POLL_MS = 5 };

/* What the processes share. The lock is all that protects the settings. */
static struct board {
    long settings[SETTINGS]; /* each is the version that it was loaded with */
    atomic_long look_ups, torn;
    atomic_int inside, most_inside; /* readers at one time */
    atomic_int readers;             /* that have begun */
    atomic_bool over;
} * board;

static const char *guard; /* "rwlock", "mutex" or "none" */
static rlock_rwlock_t rwlock;
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

static bool guarded_by(const char *type)
{
    return strcmp(guard, type) == 0;
}

static void open_locks(const char *name)
{
    must(rlock_rwlock_init(&rwlock, NULL, name), "init");
    must(rlock_mutex_init(&mutex, NULL, name), "init");
}

static void lock_to_read(void)
{
    if (guarded_by("rwlock"))
        must(rlock_rwlock_rdlock(&rwlock), "read lock");
    else if (guarded_by("mutex"))
        must(rlock_mutex_lock(&mutex), "lock");
}

static void lock_to_write(void)
{
    if (guarded_by("rwlock"))
        must(rlock_rwlock_wrlock(&rwlock), "write lock");
    else if (guarded_by("mutex"))
        must(rlock_mutex_lock(&mutex), "lock");
}

/* From here on others may read, but still nobody else may write. */
static void go_on_reading(void)
{
    if (guarded_by("rwlock"))
        must(rlock_rwlock_downgrade(&rwlock), "downgrade");
}

/* ESTALE: the hold was lost on the way, and what was read may be torn. */
static void unlock(void)
{
    if (guarded_by("rwlock"))
        must(rlock_rwlock_unlock(&rwlock), "unlock");
    else if (guarded_by("mutex"))
        must(rlock_mutex_unlock(&mutex), "unlock");
}

/* ---- a process of readers */

static void look_up(int one, int other)
{
    lock_to_read();
    int inside = ++board->inside, most = board->most_inside;
    while (inside > most &&
           !atomic_compare_exchange_weak(&board->most_inside, &most, inside))
        continue;
    long version = board->settings[one];
    sleep_ms(LOOK_UP_MS);
    bool torn = board->settings[other] != version;
    board->inside--;
    unlock();
    board->torn += torn;
    board->look_ups++;
}

static void *reader(void *unused)
{
    unsigned draw = (unsigned)getpid();
    board->readers++;
    while (!board->over)
        look_up(rand_r(&draw) % SETTINGS, rand_r(&draw) % SETTINGS);
    return unused;
}

static void board_map(int fd)
{
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(board == MAP_FAILED, "memory");
}

static int worker_main(char **argv)
{
    pthread_t threads[READERS];

    guard = argv[2];
    board_map(atoi(argv[4]));
    open_locks(argv[3]);
    for (int i = 0; i < READERS; i++)
        must(pthread_create(&threads[i], NULL, reader, NULL), "thread");
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static void start_worker(const char *name, int board_fd)
{
    char fd[DIGITS];
    pid_t parent = getpid(), pid = fork();

    must(pid < 0, "fork");
    if (pid > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(2);
    snprintf(fd, sizeof(fd), "%d", board_fd);
    execl("/proc/self/exe", "04_config_cache", "--worker", guard, name, fd, (char *)NULL);
    _exit(2);
}

/* ---- the writer */

/* Replaces the settings one by one, then looks through them while others read. */
static void reload(long version)
{
    lock_to_write();
    for (int i = 0; i < SETTINGS; i++) {
        if (i == SETTINGS / 2)
            sleep_ms(RELOAD_MS);
        board->settings[i] = version;
    }
    go_on_reading();
    sleep_ms(RELOAD_MS);
    for (int i = 0; i < SETTINGS; i++)
        board->torn += board->settings[i] != version;
    unlock();
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* A row: readers and the writer together. Returns whether no torn settings were seen. */
static bool run(const char *type, int board_fd)
{
    char name[64];
    int status;

    guard = type;
    memset(board, 0, sizeof(*board));
    snprintf(name, sizeof(name), "config-cache/%d", (int)getpid());
    open_locks(name);
    for (int i = 0; i < PROCESSES; i++)
        start_worker(name, board_fd);
    while (board->readers < PROCESSES * READERS) {
        must(waitpid(-1, NULL, WNOHANG), "a process of readers left");
        sleep_ms(POLL_MS);
    }
    double begin = now_s();
    long before = board->look_ups;
    for (long version = 1; version <= RELOADS; version++) {
        sleep_ms(PAUSE_MS);
        reload(version);
    }
    double rate = (double)(board->look_ups - before) / (now_s() - begin);
    board->over = true;
    for (int i = 0; i < PROCESSES; i++)
        must(wait(&status) < 0 || status != 0, "a process of readers failed");
    must(rlock_rwlock_destroy(&rwlock), "destroy");
    must(rlock_mutex_destroy(&mutex), "destroy");
    printf("%-8s %11.0f %17d %9d %6ld\n", type, rate, board->most_inside, RELOADS,
           board->torn);
    fflush(stdout);
    return board->torn == 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--worker") == 0)
        return worker_main(argv);
    if (argc > 2 || (argc == 2 && strcmp(argv[1], "--mutex") != 0 &&
                     strcmp(argv[1], "--none") != 0)) {
        fputs("usage: 04_config_cache [--mutex | --none]\n", stderr);
        return 2;
    }
    FILE *file = tmpfile(); /* the workers inherit it; it has no name that could stay */
    must(!file || ftruncate(fileno(file), sizeof(*board)) != 0, "temporary file");
    board_map(fileno(file));
    printf("%d processes of %d readers, look-ups of %d ms, and one writer\n\n"
           "guard     look-ups/s   readers at once   reloads   torn\n",
           (int)PROCESSES, (int)READERS, (int)LOOK_UP_MS);
    if (argc == 2)
        return run(argv[1] + strlen("--"), fileno(file)) ? 0 : 1;
    bool whole = run("mutex", fileno(file));
    return run("rwlock", fileno(file)) && whole ? 0 : 1;
}

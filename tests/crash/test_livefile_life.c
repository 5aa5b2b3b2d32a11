/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=G14 */
/*
 * Which processes are alive and which are dead (rules G1, G3, G14). A process that holds
 * "N" does something unusual while a client watches all the time. Then a client that
 * waits for the lock looks at all files; when it has recovered a dead decoy, it has seen
 * the holder's file as well. Leases are too long to matter.
 */
#include "scene.h"

#include "livefile_view.h"
#include "process.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 120000 };

#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9 */
#endif

/* The uuid of a dead client that never existed. */
#define DECOY "00000000-0000-4000-8000-00000000dec0"

/* A process of this program. It communicates by its standard input and output. */
static struct {
    pid_t pid;
    int to, from;
} holder;
static pid_t left_behind; /* by the holder */
static struct worker w, decoy;
static rlock_client_t *looker; /* watches all the time; NULL: no client does */
static char server_line[RLK_LIVEFILE_SERVER_SIZE];
static const char *dir;

static void open_scene(void)
{
    scene_open();
    dir = test_rundir_own();
    memset(&w, 0, sizeof(w));
    memset(&decoy, 0, sizeof(decoy));
    holder.pid = left_behind = 0;
    looker = NULL;
}

static void stop_looking(void)
{
    if (looker)
        ck_assert_int_eq(rlock_client_close(looker), 0);
    looker = NULL;
}

static void close_scene(void)
{
    stop_looking();
    if (holder.pid > 0) {
        kill(holder.pid, SIGKILL);
        waitpid(holder.pid, NULL, 0);
        close(holder.to);
        close(holder.from);
    }
    if (left_behind > 0)
        kill(left_behind, SIGKILL);
    worker_end(&w);
    worker_end(&decoy);
    scene_close();
}

static void say(const char *line)
{
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        _exit(1);
}

/* Waits for a byte from the test. The process ends with the test. */
static void listen_to(void)
{
    char c;
    if (read(STDIN_FILENO, &c, 1) != 1)
        _exit(1);
}

static rlock_mutex_t mutex = RLOCK_MUTEX_INITIALIZER("N");
static const char *used_url;

/* Takes the lock. At the test's first byte runs `how`, at the second one unlocks and
 * writes the result. */
static void live(const char *server_url, void (*how)(void))
{
    char url[TEST_URL_MAX + 64], line[32];
    used_url = server_url;
    snprintf(url, sizeof(url), "%s?lease=%ld", server_url, test_ms(LONG_MS));
    int rc = rlock_client_setdefault(url, NULL);
    if (rc == 0)
        rc = rlock_mutex_lock(&mutex);
    snprintf(line, sizeof(line), "%d\n", rc);
    say(line);
    listen_to();
    how();
    listen_to();
    snprintf(line, sizeof(line), "%d\n", rlock_mutex_unlock(&mutex));
    say(line);
    listen_to();
    exit(0);
}

static void hears(const char *wanted)
{
    char line[32] = "";
    size_t len = 0;
    while (len + 1 < sizeof(line) && read(holder.from, line + len, 1) == 1 &&
           line[len] != '\n')
        len++;
    line[len] = '\0';
    ck_assert_str_eq(line, wanted);
}

static void tell(void)
{
    ck_assert_int_eq(write(holder.to, "x", 1), 1);
}

/* Opens a client that watches all the time. It begins with a look at all files. */
static void look_always(void)
{
    rlock_clientattr_t attr;
    ck_assert_int_eq(rlock_clientattr_init(&attr), 0);
    ck_assert_int_eq(rlock_clientattr_setguard(&attr, RLOCK_GUARD_ALWAYS), 0);
    ck_assert_int_eq(rlock_client_open(&looker, scene_server.url, &attr), 0);
    ck_assert_int_eq(rlock_clientattr_destroy(&attr), 0);
}

/* Returns when a watching client has recovered a decoy, and so has seen all deaths
 * before. */
static void bury_a_decoy(void)
{
    livefile_view_make(dir, DECOY, server_line);
    ck_assert(livefile_view_wait_gone(dir, DECOY));
}

/* how: the name of the function that the holder runs. */
static void start(const char *how)
{
    char path[512];
    int in[2], out[2];
    struct livefile_view file;
    test_build_path(path, sizeof(path), "tests/test_livefile_life");
    scene_worker(&w, scene_server.url, NULL, "N", "");
    livefile_view_open(&file, dir, NULL);
    snprintf(server_line, sizeof(server_line), "%s", livefile_view_line(&file, "server"));
    livefile_view_close(&file);
    scene_worker(&decoy, scene_server.url, NULL, "decoy", "");
    ck_assert_int_eq(pipe(in), 0);
    ck_assert_int_eq(pipe(out), 0);
    holder.pid = fork();
    ck_assert_int_ge(holder.pid, 0);
    if (holder.pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[1]);
        close(out[0]);
        execl(path, path, scene_server.url, how, (char *)NULL);
        _exit(1);
    }
    close(in[0]);
    close(out[1]);
    holder.to = in[1];
    holder.from = out[0];
    hears("0");
    look_always(); /* after the fork, because it starts threads */
    tell();
}

/* The holder has done its part. The watching client has seen the result; then w looks at
 * all files, and recovers the dead ones. */
static void look(int files)
{
    if (looker)
        bury_a_decoy();
    stop_looking();
    worker_kill(&decoy);
    scene_worker_waits(&w, "N", 1);
    ck_assert(test_rundir_wait(dir, files, SCENE_SOON_MS));
}

static void assert_it_lives(void)
{
    ck_assert(!worker_news(&w, "done t", 0));
    ck_assert_int_gt(scene_pttl("N"), test_ms(LONG_MS) / 2);
    tell();
    hears("0"); /* it held the lock all the time */
    scene_worker_ends(&w, "t", "ok");
}

/* ---- alive */

static void close_all(void)
{
    /* by the system call: a sanitizer would say that threads use them, which is true */
    syscall(SYS_close_range, 3, ~0U, 0);
    say("done\n");
}

/* rule: G1 */
START_TEST(process_that_closed_all_descriptors_is_alive)
{
    start("close_all");
    hears("done");
    look(2);
    ck_assert(!worker_news(&w, "done t", 0));
    ck_assert_int_gt(scene_pttl("N"), test_ms(LONG_MS) / 2);
}
END_TEST

static void open_own_file(void)
{
    char path[256];
    snprintf(path, sizeof(path), "cat %s/* >/dev/null; for f in %s/*; do : >>$f; done",
             getenv("RLOCK_RUNDIR"), getenv("RLOCK_RUNDIR"));
    say(system(path) == 0 ? "done\n" : "failed\n");
}

/* rule: G1 */
START_TEST(process_that_opened_and_closed_its_live_file_is_alive)
{
    start("open_own_file");
    hears("done");
    look(2);
    assert_it_lives();
}
END_TEST

/* The rest of the process's life runs in this thread, which holds a lock of its own. */
static void *hold_and_go_on(void *arg)
{
    static rlock_mutex_t other = RLOCK_MUTEX_INITIALIZER("other");
    char line[32];
    (void)arg;
    snprintf(line, sizeof(line), "%d\n", rlock_mutex_lock(&other));
    say(line);
    listen_to();
    snprintf(line, sizeof(line), "%d\n", rlock_mutex_unlock(&other));
    say(line);
    listen_to();
    exit(0);
}

static void end_main_thread(void)
{
    pthread_t thread;
    if (rlock_mutex_unlock(&mutex) != 0 ||
        pthread_create(&thread, NULL, hold_and_go_on, NULL) != 0)
        _exit(1);
    pthread_exit(NULL);
}

/* rule: G3 */
START_TEST(process_without_its_main_thread_is_alive)
{
    start("end_main_thread");
    hears("0");
    scene_says(&w, "ok", "init m2 other");
    bury_a_decoy();
    stop_looking();
    worker_kill(&decoy);
    scene_says(&w, "ok", "async t lock m2");
    ck_assert(test_rundir_wait(dir, 2, SCENE_SOON_MS));
    ck_assert(!worker_news(&w, "done t", 0));
    tell();
    hears("0");
    scene_worker_ends(&w, "t", "ok");
}
END_TEST

/* rule: G14 */
START_TEST(stopped_process_is_alive)
{
    int status;
    start("listen_to");
    kill(holder.pid, SIGSTOP);
    ck_assert_int_eq(waitpid(holder.pid, &status, WUNTRACED), holder.pid);
    look(2);
    kill(holder.pid, SIGCONT);
    tell();
    assert_it_lives();
}
END_TEST

/* rule: G14 */
START_TEST(process_in_a_debugger_is_alive)
{
    int status;
    start("listen_to");
    if (ptrace(PTRACE_SEIZE, holder.pid, NULL, NULL) != 0) {
        printf("skipped: process_in_a_debugger_is_alive: ptrace is not to be had\n");
        return;
    }
    ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, holder.pid, NULL, NULL), 0);
    ck_assert_int_eq(waitpid(holder.pid, &status, 0), holder.pid);
    look(2);
    ck_assert_int_eq(ptrace(PTRACE_DETACH, holder.pid, NULL, NULL), 0);
    tell();
    assert_it_lives();
}
END_TEST

static void remove_file(void)
{
    char command[256];
    snprintf(command, sizeof(command), "rm %s/*", getenv("RLOCK_RUNDIR"));
    say(system(command) == 0 ? "done\n" : "failed\n");
}

/* rule: G3 */
START_TEST(process_without_its_live_file_is_alive)
{
    start("remove_file");
    hears("done");
    bury_a_decoy();
    stop_looking();
    scene_worker_waits(&w, "N", 1);
    worker_kill(&decoy);
    scene_worker(&decoy, scene_server.url, NULL, "decoy", "");
    worker_kill(&decoy);
    ck_assert(test_rundir_wait(dir, 0, SCENE_SOON_MS));
    assert_it_lives();
}
END_TEST

static void remove_directory(void)
{
    char command[256];
    listen_to();
    snprintf(command, sizeof(command), "rm -r %s", getenv("RLOCK_RUNDIR"));
    say(system(command) == 0 ? "done\n" : "failed\n");
}

/* Whether the watching client now leaves it to the kernel: its next timer is far away. */
static bool is_at_rest(void *arg)
{
    enum { LONG_S = 1000, FDS_MAX = 64 };
    char path[64], line[128];
    long left = 0;
    (void)arg;
    for (int fd = 3; fd < FDS_MAX && left < LONG_S; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
        FILE *info = fopen(path, "re");
        while (info && fgets(line, sizeof(line), info))
            (void)sscanf(line, "it_value: (%ld", &left);
        if (info)
            fclose(info);
    }
    return left >= LONG_S;
}

/* A client that watched the removed directory watches the new one. */
/* rule: G3 */
START_TEST(process_without_its_directory_is_alive)
{
    start("remove_directory");
    ck_assert(test_wait_until(is_at_rest, NULL, SCENE_SOON_MS));
    tell();
    hears("done");
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    bury_a_decoy();
    scene_worker_waits(&w, "N", 1);
    bury_a_decoy();
    assert_it_lives();
}
END_TEST

static void have_children(void)
{
    pid_t children[2];
    char line[32];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0 && i == 1)
            execlp("tail", "tail", "-f", "/dev/null", (char *)NULL);
        if (children[i] == 0) {
            for (;;)
                pause();
        }
    }
    snprintf(line, sizeof(line), "%d\n", children[0] > 0 && children[1] > 0);
    say(line);
    listen_to(); /* after the test's next byte they end */
    for (int i = 0; i < 2; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    say("done\n");
}

/* rule: G1 */
START_TEST(process_with_past_and_present_children_is_alive)
{
    start("have_children");
    hears("1");
    bury_a_decoy();
    ck_assert_int_eq(test_rundir_count(dir), 4);
    tell();
    hears("done");
    look(2);
    assert_it_lives();
}
END_TEST

static void *hold_and_end(void *arg)
{
    static rlock_mutex_t other = RLOCK_MUTEX_INITIALIZER("other");
    (void)arg;
    return rlock_mutex_lock(&other) == 0 ? &other : NULL;
}

static void end_a_thread(void)
{
    pthread_t thread;
    void *done = NULL;
    if (pthread_create(&thread, NULL, hold_and_end, NULL) != 0 ||
        pthread_join(thread, &done) != 0 || !done)
        _exit(1);
    say("done\n");
}

/* The process itself releases the ended thread's lock, but no lock of another thread. */
/* rule: G3 */
START_TEST(process_whose_holding_thread_ended_is_alive)
{
    start("end_a_thread");
    hears("done");
    ck_assert(scene_wait_free("other", SCENE_SOON_MS));
    look(2);
    assert_it_lives();
}
END_TEST

static void use_two_clients(void)
{
    rlock_client_t *second = NULL;
    int rc = rlock_client_open(&second, used_url, NULL);
    say(rc == 0 ? "open\n" : "failed\n");
    listen_to();
    say(rlock_client_close(second) == 0 ? "done\n" : "failed\n");
}

/* rule: G1 */
START_TEST(process_that_closed_the_first_of_two_clients_is_alive)
{
    start("use_two_clients");
    hears("open");
    bury_a_decoy();
    ck_assert_int_eq(test_rundir_count(dir), 5);
    tell();
    hears("done");
    look(2);
    assert_it_lives();
}
END_TEST

static void vfork_and_wait(void)
{
    pid_t child = vfork(); /* NOLINT: that is what it is about */
    if (child == 0) {
        for (;;)
            pause();
    }
}

static bool has_child(void *arg)
{
    char path[64], line[64] = "";
    (void)arg;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)holder.pid,
             (int)holder.pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    if (fgets(line, sizeof(line), file))
        left_behind = atoi(line);
    fclose(file);
    return left_behind > 0;
}

static bool waits_for_its_child(void *arg)
{
    char path[64], line[256], state = '?';
    (void)arg;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)holder.pid);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof(line), status))
        (void)sscanf(line, "State: %c", &state);
    if (status)
        fclose(status);
    return state == 'D';
}

/* With a tool that turns vfork into fork there is no vfork child. */
static bool has_vfork_child(const char *test)
{
    enum { AT_ONCE_MS = 200 };
    ck_assert(test_wait_until(has_child, NULL, SCENE_SOON_MS));
    if (test_wait_until(waits_for_its_child, NULL, AT_ONCE_MS))
        return true;
    printf("skipped: %s: vfork is fork here\n", test);
    return false;
}

/* rule: G3 */
START_TEST(process_with_a_vfork_child_is_alive)
{
    start("vfork_and_wait");
    if (!has_vfork_child("process_with_a_vfork_child_is_alive"))
        return;
    look(2);
    kill(left_behind, SIGKILL);
    left_behind = 0;
    assert_it_lives();
}
END_TEST

/* The file's lock ends with the last process that has the memory: until then only the end
 * of the lease frees the lock. */
/* rule: G3 */
START_TEST(killed_process_is_alive_until_its_vfork_child_ends)
{
    start("vfork_and_wait");
    if (!has_vfork_child("killed_process_is_alive_until_its_vfork_child_ends"))
        return;
    kill(holder.pid, SIGKILL);
    ck_assert_int_eq(waitpid(holder.pid, NULL, 0), holder.pid);
    holder.pid = 0;
    look(2);
    ck_assert(!worker_news(&w, "done t", 0));
    kill(left_behind, SIGKILL);
    left_behind = 0;
    scene_worker_ends(&w, "t", "ok");
}
END_TEST

enum { CORE_BYTES = 200 << 20 };

static void dump_core(void)
{
    struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
    char *memory = malloc(CORE_BYTES);
    if (!memory || setrlimit(RLIMIT_CORE, &limit) != 0)
        _exit(1);
    memset(memory, 'x', CORE_BYTES);
    signal(SIGABRT, SIG_DFL);
    say("done\n");
    listen_to();
    abort();
}

/* Whether a core dump goes to a file in the process's working directory. */
static bool can_dump_core(void)
{
    char pattern[128] = "|";
    struct rlimit limit;
    FILE *file = fopen("/proc/sys/kernel/core_pattern", "re");
    bool can = file && fgets(pattern, sizeof(pattern), file) && pattern[0] != '|' &&
               pattern[0] != '/' && pattern[0] != '\n' &&
               getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == RLIM_INFINITY;
    if (file)
        fclose(file);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    can = false; /* the core would be very large */
#endif
    return can;
}

static bool is_dumping(void *arg)
{
    char path[64], line[256];
    bool is = false;
    (void)arg;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)holder.pid);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof(line), status))
        is = is || strcmp(line, "CoreDumping:\t1\n") == 0;
    if (status)
        fclose(status);
    return is;
}

/* rule: G14 */
START_TEST(process_dumping_core_is_alive)
{
    const char *name = "process_dumping_core_is_alive";
    if (!can_dump_core()) {
        printf("skipped: %s: no core to a file of its directory\n", name);
        return;
    }
    ck_assert_int_eq(chdir(scene_server.dir), 0);
    start("dump_core");
    hears("done");
    stop_looking();
    tell();
    bool dumping = test_wait_until(is_dumping, NULL, SCENE_SOON_MS / 10);
    livefile_view_make(dir, DECOY, server_line);
    look_always(); /* a new client looks at all files */
    ck_assert(livefile_view_wait_gone(dir, DECOY));
    bool held = test_redis_exists(scene_redis, "N");
    dumping = dumping && is_dumping(NULL);
    ck_assert(held || !dumping);
    if (!dumping)
        printf("skipped: %s: it was too fast\n", name);
    scene_says(&w, "ok", "async t lock m"); /* until the dump is complete */
    scene_worker_ends(&w, "t", "ok");
}
END_TEST

/* ---- dead */

static void assert_it_is_dead(void)
{
    scene_says(&w, "ok", "async t lock m");
    scene_worker_ends(&w, "t", "ok");
    ck_assert(test_rundir_wait(dir, 3, SCENE_SOON_MS)); /* w, the looker, the decoy */
}

static void fork_a_child(void)
{
    char line[32];
    pid_t child = fork();
    if (child == 0) {
        for (;;)
            pause();
    }
    snprintf(line, sizeof(line), "%d\n", (int)child);
    say(line);
}

/* Reads the pid of the child that the holder leaves behind, and kills the holder. */
static void kill_the_parent(void)
{
    char line[32] = "";
    for (size_t len = 0; len + 1 < sizeof(line) &&
                         read(holder.from, line + len, 1) == 1 && line[len] != '\n';)
        len++;
    left_behind = atoi(line);
    ck_assert_int_gt(left_behind, 0);
    kill(holder.pid, SIGKILL);
    waitpid(holder.pid, NULL, 0);
}

/* rule: G1 */
START_TEST(orphaned_child_does_not_make_its_parent_alive)
{
    start("fork_a_child");
    kill_the_parent();
    assert_it_is_dead();
    ck_assert_int_eq(kill(left_behind, 0), 0);
}
END_TEST

static void spawn_a_program(void)
{
    char line[32];
    pid_t child = fork();
    if (child == 0) {
        execlp("tail", "tail", "-f", "/dev/null", (char *)NULL);
        _exit(1);
    }
    snprintf(line, sizeof(line), "%d\n", (int)child);
    say(line);
}

/* rule: G1 */
START_TEST(program_started_by_a_process_does_not_make_it_alive)
{
    start("spawn_a_program");
    kill_the_parent();
    assert_it_is_dead();
    ck_assert_int_eq(kill(left_behind, 0), 0);
}
END_TEST

static void abort_at_once(void)
{
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void end_at_once(void)
{
    _exit(0);
}

static void become_another(void)
{
    execlp("tail", "tail", "-f", "/dev/null", (char *)NULL);
}

/* rule: G15 */
START_TEST(aborted_process_is_dead)
{
    start("abort_at_once");
    assert_it_is_dead();
}
END_TEST

/* rule: G15 */
START_TEST(process_that_ended_by_exit_without_handlers_is_dead)
{
    start("end_at_once");
    assert_it_is_dead();
}
END_TEST

/* rule: G15 */
START_TEST(process_that_executed_another_program_is_dead)
{
    start("become_another");
    assert_it_is_dead();
    ck_assert_int_eq(kill(holder.pid, 0), 0);
}
END_TEST

/* Nothing continues it. */
/* rule: G14 */
START_TEST(process_killed_while_stopped_is_dead)
{
    int status;
    start("listen_to");
    kill(holder.pid, SIGSTOP);
    ck_assert_int_eq(waitpid(holder.pid, &status, WUNTRACED), holder.pid);
    bury_a_decoy();
    ck_assert_int_eq(test_rundir_count(dir), 4);
    kill(holder.pid, SIGKILL);
    assert_it_is_dead();
}
END_TEST

/* The holder runs this program by exec: a process with a sanitizer may not fork. */
static void be_holder(const char *url, const char *how)
{
    static const struct {
        const char *name;
        void (*how)(void);
    } table[] = {
        { "abort_at_once", abort_at_once },
        { "become_another", become_another },
        { "close_all", close_all },
        { "dump_core", dump_core },
        { "end_a_thread", end_a_thread },
        { "end_at_once", end_at_once },
        { "end_main_thread", end_main_thread },
        { "fork_a_child", fork_a_child },
        { "have_children", have_children },
        { "listen_to", listen_to },
        { "open_own_file", open_own_file },
        { "remove_directory", remove_directory },
        { "remove_file", remove_file },
        { "spawn_a_program", spawn_a_program },
        { "use_two_clients", use_two_clients },
        { "vfork_and_wait", vfork_and_wait },
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(table[i].name, how) == 0)
            live(url, table[i].how);
    _exit(1);
}

int main(int argc, char *argv[])
{
    if (argc == 3)
        be_holder(argv[1], argv[2]);
    Suite *s = suite_create("livefile life");
    TCase *tc = scene_tcase(s, "alive", open_scene, close_scene);
    tcase_add_test(tc, process_that_closed_all_descriptors_is_alive);
    tcase_add_test(tc, process_that_opened_and_closed_its_live_file_is_alive);
    tcase_add_test(tc, process_without_its_main_thread_is_alive);
    tcase_add_test(tc, process_with_past_and_present_children_is_alive);
    tcase_add_test(tc, process_that_closed_the_first_of_two_clients_is_alive);
    tcase_add_test(tc, process_whose_holding_thread_ended_is_alive);
    tcase_add_test(tc, process_without_its_live_file_is_alive);
    tcase_add_test(tc, process_without_its_directory_is_alive);
    tcase_add_test(tc, process_with_a_vfork_child_is_alive);
    tcase_add_test(tc, killed_process_is_alive_until_its_vfork_child_ends);
    tcase_add_test(tc, process_dumping_core_is_alive);
    tcase_add_test(tc, stopped_process_is_alive);
    tcase_add_test(tc, process_in_a_debugger_is_alive);
    tc = scene_tcase(s, "dead", open_scene, close_scene);
    tcase_add_test(tc, orphaned_child_does_not_make_its_parent_alive);
    tcase_add_test(tc, program_started_by_a_process_does_not_make_it_alive);
    tcase_add_test(tc, aborted_process_is_dead);
    tcase_add_test(tc, process_that_ended_by_exit_without_handlers_is_dead);
    tcase_add_test(tc, process_that_executed_another_program_is_dead);
    tcase_add_test(tc, process_killed_while_stopped_is_dead);
    return test_run_suite(s);
}

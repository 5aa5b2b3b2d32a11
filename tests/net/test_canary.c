/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A password is not shown anywhere: in log lines at the most verbose level, messages,
 * reasons of events, output, the process's own name and arguments. It is also not left in
 * memory where the library says that it wipes it. Each test draws a new password and
 * stores it masked, so that each copy that a search finds was made by other code.
 */
#include "scene.h"

#include "conffile.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

enum {
    CANARY_LEN = 40,
    SHOWN_MIN = 6,
    TAIL_LEN = 16,
    COMMAND_MS = 60,
    SEEN_SIZE = 1 << 18
};

/* ---- the canary */

static unsigned char masked[CANARY_LEN];
enum { MASK = 0xa5 };

static void draw_canary(void)
{
    static const char letters[] = "abcdefghjkmnpqrstuvwxyzACDEFGHJKLMNPQRSTUVWXYZ2345679";
    unsigned char bytes[CANARY_LEN];
    ck_assert_int_eq(getrandom(bytes, sizeof(bytes), 0), sizeof(bytes));
    for (int i = 0; i < CANARY_LEN; i++)
        masked[i] = (unsigned char)letters[bytes[i] % (sizeof(letters) - 1)] ^ MASK;
}

/* Writes the password in plain text; the caller wipes it soon. */
static void put_canary(char *buf)
{
    for (int i = 0; i < CANARY_LEN; i++)
        buf[i] = (char)(masked[i] ^ MASK);
    buf[CANARY_LEN] = '\0';
}

/* Replaces each '@@' of the template by the password. */
static void fill_in(char *buf, size_t size, const char *template)
{
    size_t n = 0;
    for (const char *p = template; *p; p++) {
        ck_assert_uint_lt(n + CANARY_LEN + 1, size);
        if (p[0] == '@' && p[1] == '@') {
            put_canary(buf + n);
            n += CANARY_LEN;
            p++;
        } else {
            buf[n++] = *p;
        }
    }
    buf[n] = '\0';
}

/* How many times `len` bytes of the password, beginning at `from`, are in the bytes. */
static long count_part(const char *bytes, size_t size, int from, int len)
{
    long found = 0;
    const char *end = bytes + size, *at = bytes;
    while (end - at >= len &&
           (at = memchr(at, masked[from] ^ MASK, (size_t)(end - at - len + 1))) != NULL) {
        int n = 1;
        while (n < len && ((unsigned char)at[n] ^ MASK) == masked[from + n])
            n++;
        found += n == len;
        at++;
    }
    return found;
}

/* How many times the beginning of the password is in the bytes. */
static long count_canary(const char *bytes, size_t size)
{
    return count_part(bytes, size, 0, SHOWN_MIN);
}

/* ---- what the library writes */

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static char seen[SEEN_SIZE];
static size_t seen_len;
static int output, saved_out, saved_err; /* for the redirected output of the test */

static void see(const char *text)
{
    pthread_mutex_lock(&mu);
    seen_len += (size_t)snprintf(seen + seen_len, sizeof(seen) - seen_len, "%s\n", text);
    if (seen_len > sizeof(seen) - 1024)
        seen_len = sizeof(seen) - 1024;
    pthread_mutex_unlock(&mu);
}

static void see_line(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    see(line);
}

static void see_event(const rlock_event_t *event, void *arg)
{
    (void)arg;
    see(event->reason);
    see(event->name);
}

static void see_code(int rc)
{
    if (rc == 0)
        return;
    see(rlock_strerror(rc));
    see(rlock_errmsg());
}

static void open_scene(void)
{
    scene_open();
    draw_canary();
    seen_len = 0;
    seen[0] = '\0';
    rlock_setlogger(see_line, NULL, LOG_DEBUG);
    fflush(NULL);
    output = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    ck_assert_int_ge(output, 0);
    saved_out = fcntl(1, F_DUPFD_CLOEXEC, 3);
    saved_err = fcntl(2, F_DUPFD_CLOEXEC, 3);
    dup2(output, 1);
    dup2(output, 2);
}

static void restore_output(void)
{
    if (saved_out < 0)
        return;
    fflush(NULL);
    dup2(saved_out, 1);
    dup2(saved_err, 2);
    close(saved_out);
    close(saved_err);
    saved_out = saved_err = -1;
}

/* A file of this process that must not contain the password. */
static void check_file(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    size_t len = fread(text, 1, sizeof(text), file);
    fclose(file);
    ck_assert_msg(count_canary(text, len) == 0, "in %s", path);
}

/* Neither output nor log shows the password or its beginning. */
static void check_unseen(void)
{
    static char text[1 << 16];
    rlock_setlogger(NULL, NULL, 0);
    restore_output();
    ssize_t len = pread(output, text, sizeof(text), 0);
    close(output);
    ck_assert_int_ge(len, 0);
    ck_assert_msg(count_canary(text, (size_t)len) == 0, "in the output");
    pthread_mutex_lock(&mu);
    ck_assert_uint_gt(seen_len, 20);
    ck_assert_msg(count_canary(seen, seen_len) == 0, "%s", seen);
    pthread_mutex_unlock(&mu);
    check_file("/proc/self/cmdline");
    check_file("/proc/self/environ");
    check_file("/proc/self/comm");
    check_file("/proc/self/maps");
}

/* ---- sessions */

/* A client's short life, in which it writes all its texts. `amid` runs in the middle. */
static void live(const char *url, const char *user, bool in_attr, void (*amid)(void))
{
    rlock_clientattr_t attr;
    rlock_client_t *client = NULL;
    rlock_mutex_t m;
    rlock_info_t *info = NULL;
    char secret[CANARY_LEN + 1];
    see_code(rlock_clientattr_init(&attr));
    see_code(rlock_clientattr_seteventcallback(&attr, see_event, NULL));
    see_code(rlock_clientattr_setcommandtimeout(&attr, COMMAND_MS));
    see_code(rlock_clientattr_setconnecttimeout(&attr, COMMAND_MS));
    see_code(rlock_clientattr_setlease(&attr, 300));
    if (in_attr) {
        put_canary(secret);
        see_code(rlock_clientattr_setcredentials(&attr, user, secret));
        explicit_bzero(secret, sizeof(secret));
    }
    int rc = rlock_client_open(&client, url, &attr);
    see_code(rc);
    if (rc == 0) {
        struct timespec soon = test_in_ms(CLOCK_REALTIME, COMMAND_MS);
        scene_mutex(&m, client, "N");
        see_code(rlock_client_ping(client));
        see_code(rlock_mutex_timedlock(&m, &soon));
        if (amid)
            amid();
        see_code(rlock_inspect(client, "N", &info));
        rlock_info_free(info);
        test_pause_ms(20); /* lets the two threads try as well */
        see_code(rlock_mutex_unlock(&m));
        see_code(rlock_mutex_trylock(&m));
        rlock_mutex_unlock(&m);
        see_code(rlock_force_unlock(client, "N"));
        rlock_client_close(client);
    }
    rlock_clientattr_destroy(&attr);
}

/* Once with the password in the URL, once in the attributes. The proxy's rules stay. */
static void live_both(void (*amid)(void))
{
    char url[256];
    char template[128];
    snprintf(template, sizeof(template), "redis://u:@@@127.0.0.1:%u/1",
             (unsigned)test_proxy_port(scene_proxy));
    fill_in(url, sizeof(url), template);
    live(url, NULL, false, amid);
    explicit_bzero(url, sizeof(url));
    live(test_proxy_tcp_url(scene_proxy), "u", true, amid);
}

/* The user "u" with the canary or a wrong password, and with `rule` (NULL: none). */
static void set_user(bool right, const char *rule)
{
    char secret[CANARY_LEN + 2] = ">wrong";
    if (right)
        put_canary(secret + 1);
    test_redis_do(scene_redis, "ACL", "SETUSER", "u", "reset", "on", secret, "~*", "&*",
                  "+@all", rule ? rule : "+@all");
    explicit_bzero(secret, sizeof(secret));
}

/* ---- faults */

START_TEST(password_is_not_shown_while_all_is_well)
{
    set_user(true, NULL);
    live_both(NULL);
    see("not while all is well, as it seems");
    check_unseen();
}
END_TEST

START_TEST(wrong_password_is_not_shown)
{
    set_user(false, NULL);
    live_both(NULL);
    check_unseen();
}
END_TEST

START_TEST(password_is_not_shown_when_a_command_is_refused)
{
    static const char *const rules[] = { "-hset",   "-evalsha",   "-eval",
                                         "-select", "-subscribe", "-time" };
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        set_user(true, rules[i]);
        live_both(NULL);
    }
    check_unseen();
}
END_TEST

static void rotate(void)
{
    test_redis_do(scene_redis, "ACL", "SETUSER", "u", "resetpass", ">another");
    test_redis_kill_clients(scene_redis);
}

START_TEST(password_is_not_shown_when_it_is_changed_while_in_use)
{
    set_user(true, NULL);
    live_both(rotate);
    check_unseen();
}
END_TEST

static void delete_user(void)
{
    test_redis_do(scene_redis, "ACL", "DELUSER", "u");
}

START_TEST(password_is_not_shown_when_its_user_is_deleted_while_in_use)
{
    set_user(true, NULL);
    live_both(delete_user);
    check_unseen();
}
END_TEST

/* A server that gives these answers to a command of the handshake. */
static const struct echo {
    const char *to, *answer;
} echoes[] = {
    { "AUTH", "-ERR wrong number of args for AUTH u @@\r\n" },
    { "AUTH", "-ERR unknown command 'AUTH', with args beginning with: 'u' '@@' \r\n" },
    { "AUTH", "-WRONGPASS u:@@\r\n" },
    { "AUTH", "-NOPERM @@\r\n" },
    { "AUTH", "-LOADING @@\r\n" },
    { "AUTH", "-DENIED u @@\r\n" },
    { "AUTH", "-@@\r\n" },
    { "AUTH", "+@@\r\n-ERR @@\r\n" },
    { "AUTH", "$40\r\n@@\r\n" },
    { "AUTH", "*1\r\n$40\r\n@@\r\n" },
    { "AUTH", "@@\r\n" },
    { "AUTH", "HTTP/1.1 400 Bad Request: @@\r\n\r\n" },
    { "AUTH", "-ERR max number of clients reached, u @@\r\n" },
    { "TIME", "-NOAUTH Authentication required, @@.\r\n" },
    { "TIME", "-ERR @@\r\n" },
    { "TIME", "-MASTERDOWN @@\r\n" },
    { "TIME", "*2\r\n$40\r\n@@\r\n$1\r\n0\r\n" },
    { "SELECT", "-ERR index @@\r\n" },
    { "SETNAME", "-ERR name @@\r\n" },
};

START_TEST(password_is_not_shown_when_the_server_sends_it)
{
    char text[512];
    set_user(true, NULL);
    fill_in(text, sizeof(text), echoes[_i].answer);
    TEST_RULE(scene_proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
              .contains = echoes[_i].to, .text = text);
    explicit_bzero(text, sizeof(text));
    live_both(NULL);
    see("said, or not asked");
    check_unseen();
}
END_TEST

START_TEST(password_is_not_shown_when_the_server_sends_its_beginning)
{
    /* servers cut off their quotations in this way */
    char whole[512], text[64];
    set_user(true, NULL);
    fill_in(whole, sizeof(whole), "-ERR DB index '@@");
    snprintf(text, sizeof(text), "%.*s...'\r\n", 15 + 10, whole);
    TEST_RULE(scene_proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
              .contains = "SELECT", .text = text);
    live_both(NULL);
    check_unseen();
}
END_TEST

START_TEST(password_is_not_shown_when_no_server_replies)
{
    static const enum test_proxy_mode modes[] = { TEST_PROXY_CLOSES, TEST_PROXY_SILENT,
                                                  TEST_PROXY_DOWN };
    set_user(true, NULL);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        test_proxy_set_mode(scene_proxy, modes[i]);
        live_both(NULL);
    }
    test_proxy_set_mode(scene_proxy, TEST_PROXY_OPEN);
    check_unseen();
}
END_TEST

START_TEST(password_is_not_shown_when_the_connection_is_cut)
{
    set_user(true, NULL);
    for (size_t keep = 0; keep < 80; keep += 19) {
        for (int on = TEST_ON_REQUEST; on <= TEST_ON_REPLY; on++) {
            int rule =
                TEST_RULE(scene_proxy, .on = (enum test_point)on, .action = TEST_CUT,
                          .contains = "AUTH", .keep_len = keep, .reset = keep % 2 == 0);
            live_both(NULL);
            test_proxy_remove(scene_proxy, rule);
        }
    }
    check_unseen();
}
END_TEST

/* ---- URLs */

static const char *const bad_urls[] = {
    "redis://u:@@@host:x",
    "redis://u:@@@host:99999999",
    "redis://u:@@@",
    "redis://u:@@@/1",
    "redis://u:@@@host/x",
    "redis://u:@@@host/@@",
    "redis://u:@@%@host",
    "redis://u:@@%00@host",
    "redis://u:@@/@host",
    "redis://u:@@?@host",
    "redis://u:@@@host?@@",
    "redis://u:@@@host?@@=1",
    "redis://u:@@@host?db=@@",
    "redis://u:@@@host?lease=@@",
    "redis://u:@@@host?mutextype=@@",
    "redis://u:@@@[::1",
    "redis://u:@@@[::1]x",
    "redis://u:@@@a:b:c",
    "redis://u:@@@ho st",
    "redis://@@@host",
    "redis://@@:@host:x",
    "redis://:@@",
    "redis://host:@@",
    "redis://[@@",
    "rediss://u:@@@host/x",
    "REDISS://u:@@@host/x",
    "http://u:@@@host",
    "u:@@@host",
    "@@",
    "unix://u:@@@host",
    "unix:@@",
};

START_TEST(password_is_not_shown_when_the_URL_is_wrong)
{
    char url[256];
    fill_in(url, sizeof(url), bad_urls[_i]);
    rlock_client_t *client = NULL;
    int rc = rlock_client_open(&client, url, NULL);
    explicit_bzero(url, sizeof(url));
    ck_assert_int_eq(rc, strncasecmp(bad_urls[_i], "rediss", 6) == 0 && TEST_TLS_CODE != 0
                             ? ENOTSUP
                             : EINVAL);
    see_code(rc);
    see("a line that makes it long enough");
    check_unseen();
}
END_TEST

START_TEST(password_is_not_shown_when_the_URL_of_the_environment_is_wrong)
{
    /* the variable itself is the user's copy: it is unset before the environment is
     * searched */
    char url[256];
    rlock_mutex_t m = RLOCK_MUTEX_INITIALIZER("N");
    fill_in(url, sizeof(url), "redis://u:@@@host:x");
    ck_assert_int_eq(setenv("RLOCK_URL", url, 1), 0);
    explicit_bzero(url, sizeof(url));
    int rc = rlock_mutex_lock(&m);
    ck_assert_int_eq(rc, EINVAL);
    see_code(rc);
    unsetenv("RLOCK_URL");
    see("a line that makes it long enough");
    check_unseen();
}
END_TEST

/* Files in place of /etc/rlock.conf that are wrong. */
static const char *const bad_files[] = {
    "url=redis://u:@@%@host\n",
    "url=redis://u:@@@host:x\n",
    "url=redis://u:@@@host\nuser=@@\n",
    "url=redis://host\nuser=@@\n",
    "@@\n",
    "@@=redis://host\n",
    "url=@@\n",
    "url=@@\nurl=@@\n",
    "password=@@\n",
    "url=redis://u:@@@host\npasswordfile=/x\n",
    "redis://u:@@@host?db=0\n",
};

START_TEST(password_is_not_shown_when_the_file_is_wrong)
{
    char text[512];
    rlock_mutex_t m = RLOCK_MUTEX_INITIALIZER("N");
    conffile_begin();
    fill_in(text, sizeof(text), bad_files[_i]);
    setenv("RLOCK_CONF", conffile_write("conf", text, 0600), 1);
    explicit_bzero(text, sizeof(text));
    int rc = rlock_mutex_lock(&m);
    conffile_end();
    ck_assert_int_eq(rc, EINVAL);
    see_code(rc);
    see("a line that makes it long enough");
    check_unseen();
}
END_TEST

START_TEST(password_of_a_file_is_not_shown_when_it_is_wrong)
{
    char text[512];
    rlock_client_t *client = NULL;
    conffile_begin();
    fill_in(text, sizeof(text), "@@\n");
    conffile_write("password", text, 0600);
    explicit_bzero(text, sizeof(text));
    snprintf(text, sizeof(text),
             "url=redis://127.0.0.1:%u\nuser=u\npasswordfile=^/password\n",
             (unsigned)scene_server.port);
    conffile_use(text);
    ck_assert_int_eq(rlock_client_open(&client, NULL, NULL), 0);
    conffile_end();
    int rc = rlock_client_ping(client);
    ck_assert_int_eq(rc, EACCES);
    see_code(rc);
    ck_assert_int_eq(rlock_client_close(client), 0);
    see("a line that makes it long enough");
    check_unseen();
}
END_TEST

/* ---- memory */

/* How many copies are in this process's writable memory. Only the password's end is
 * searched for, because free() writes over the beginning. */
static long count_copies(void)
{
    static char chunk[1 << 16];
    char text[512];
    long found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ck_assert_ptr_nonnull(maps);
    ck_assert_int_ge(mem, 0);
    while (fgets(text, sizeof(text), maps)) {
        unsigned long from, to;
        char mode[8];
        if (sscanf(text, "%lx-%lx %7s", &from, &to, mode) != 3 || mode[1] != 'w' ||
            to - from > 1ul << 28) /* a sanitizer's shadow memory */
            continue;
        size_t step = sizeof(chunk) - CANARY_LEN;
        for (unsigned long at = from; at < to; at += step) {
            unsigned long own = (unsigned long)(uintptr_t)chunk;
            size_t want = to - at < sizeof(chunk) ? to - at : sizeof(chunk);
            if (at < own + sizeof(chunk) && own < at + want)
                continue; /* the search skips its own buffer */
            ssize_t n = pread(mem, chunk, want, (off_t)at);
            if (n > 0)
                found += count_part(chunk, (size_t)n, CANARY_LEN - TAIL_LEN, TAIL_LEN);
        }
    }
    explicit_bzero(chunk, sizeof(chunk));
    close(mem);
    fclose(maps);
    return found;
}

/* Another process sets the user up, because the test's own connection to Redis leaves a
 * copy of all that it sends in memory. */
static void set_user_elsewhere(void)
{
    int done[2], status = -1;
    char byte = 0;
    ck_assert_int_eq(pipe(done), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct test_redis *r = test_redis_connect(scene_server.path);
        char secret[CANARY_LEN + 2] = ">";
        put_canary(secret + 1);
        test_redis_do(r, "ACL", "SETUSER", "u", "reset", "on", secret, "~*", "&*",
                      "+@all");
        while (write(done[1], &byte, 1) != 1)
            continue;
        for (;;) /* killed: at exit a leak checker would search the parent's data */
            pause();
    }
    ck_assert_int_eq(read(done[0], &byte, 1), 1);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    close(done[0]);
    close(done[1]);
}

static bool are_no_more_than(void *arg)
{
    return count_copies() <= *(long *)arg;
}

/* Waits, because a connection in the making has a copy of its own until it is ready. */
static void check_copies(long most, const char *when)
{
    ck_assert_msg(test_wait_until(are_no_more_than, &most, SCENE_SOON_MS),
                  "%ld copies %s", count_copies(), when);
}

/* Whether a test can search the memory of this process. */
static bool can_search(void)
{
#ifdef __SANITIZE_ADDRESS__
    puts("skipped: canary: AddressSanitizer keeps the frames of what has returned");
    fflush(stdout);
    return false;
#else
    const char *preloaded = getenv("LD_PRELOAD");
    if (preloaded && strstr(preloaded, "vgpreload")) {
        puts("skipped: canary: Valgrind's own memory would be searched for minutes");
        fflush(stdout);
        return false;
    }
    return test_can_fork("canary"); /* ThreadSanitizer's memory also takes too long */
#endif
}

START_TEST(one_copy_is_in_memory_while_the_client_is_open_and_none_later)
{
    char url[256], template[64];
    rlock_client_t *client = NULL;
    rlock_mutex_t m;
    if (!can_search())
        return;
    set_user_elsewhere();
    check_copies(0, "before");
    put_canary(url);
    ck_assert_int_ge(count_copies(), 1); /* proof that the search finds a copy */
    explicit_bzero(url, sizeof(url));
    snprintf(template, sizeof(template), "redis://u:@@@127.0.0.1:%u",
             (unsigned)scene_server.port);
    fill_in(url, sizeof(url), template);
    ck_assert_int_eq(rlock_client_open(&client, url, NULL), 0);
    explicit_bzero(url, sizeof(url));
    check_copies(1, "after open");
    scene_mutex(&m, client, "N");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert(scene_wait_mailboxes(1, SCENE_SOON_MS));
    check_copies(1, "with connections"); /* for later connections */
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert_int_eq(rlock_client_close(client), 0);
    check_copies(0, "after close");
}
END_TEST

START_TEST(attributes_are_wiped_by_destroy)
{
    if (!can_search())
        return;
    rlock_clientattr_t attr;
    rlock_client_t *client = NULL;
    char secret[CANARY_LEN + 1];
    ck_assert_int_eq(rlock_clientattr_init(&attr), 0);
    put_canary(secret);
    ck_assert_int_eq(rlock_clientattr_setcredentials(&attr, "u", secret), 0);
    explicit_bzero(secret, sizeof(secret));
    check_copies(1, "in the attributes");
    ck_assert_int_eq(rlock_client_open(&client, scene_server.url, &attr), 0);
    ck_assert_int_eq(rlock_clientattr_destroy(&attr), 0);
    check_copies(1, "in the client");
    ck_assert_int_eq(rlock_client_close(client), 0);
    check_copies(0, "after close");
}
END_TEST

/* The password in the URL of rlock.conf, or in a file of its own. */
START_TEST(password_of_a_file_is_in_memory_once)
{
    char text[256];
    rlock_client_t *client = NULL;
    if (!can_search())
        return;
    conffile_begin();
    fill_in(text, sizeof(text), _i == 0 ? "url=redis://u:@@@127.0.0.1:1\n" : "@@\n");
    const char *path = conffile_write("secret", text, 0600);
    explicit_bzero(text, sizeof(text));
    conffile_use("url=redis://127.0.0.1:1\npasswordfile=^/secret\n");
    if (_i == 0)
        setenv("RLOCK_CONF", path, 1);
    ck_assert_int_eq(rlock_client_open(&client, NULL, NULL), 0);
    check_copies(1, "after open");
    ck_assert_int_eq(rlock_client_close(client), 0);
    check_copies(0, "after close");
    ck_assert_int_eq(rlock_client_setdefault(NULL, NULL), 0);
    check_copies(0, "after a look");
    chmod(conffile_path("secret"), 0644); /* refused */
    ck_assert_int_eq(rlock_client_open(&client, NULL, NULL), EINVAL);
    check_copies(0, "after a refusal");
    conffile_end();
}
END_TEST

START_TEST(what_failed_to_open_leaves_nothing)
{
    if (!can_search())
        return;
    static const char *const templates[] = {
        "redis://u:@@@host:x",       "redis://u:@@@host?lease=1", "redis://u:@@%@host",
        "redis://u:@@@host?lease=x", "rediss://u:@@@host/x",      "redis://u:@@@host/x",
    };
    for (size_t i = 0; i < sizeof(templates) / sizeof(templates[0]); i++) {
        char url[256];
        rlock_client_t *client = NULL;
        fill_in(url, sizeof(url), templates[i]);
        ck_assert_int_ne(rlock_client_open(&client, url, NULL), 0);
        explicit_bzero(url, sizeof(url));
        check_copies(0, templates[i]);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("canary");
    TCase *shown = scene_tcase(s, "shown", open_scene, scene_close);
    tcase_add_test(shown, password_is_not_shown_while_all_is_well);
    tcase_add_test(shown, wrong_password_is_not_shown);
    tcase_add_test(shown, password_is_not_shown_when_a_command_is_refused);
    tcase_add_test(shown, password_is_not_shown_when_it_is_changed_while_in_use);
    tcase_add_test(shown, password_is_not_shown_when_its_user_is_deleted_while_in_use);
    tcase_add_loop_test(shown, password_is_not_shown_when_the_server_sends_it, 0,
                        sizeof(echoes) / sizeof(echoes[0]));
    tcase_add_test(shown, password_is_not_shown_when_the_server_sends_its_beginning);
    tcase_add_test(shown, password_is_not_shown_when_no_server_replies);
    tcase_add_test(shown, password_is_not_shown_when_the_connection_is_cut);
    TCase *urls = scene_tcase(s, "urls", open_scene, scene_close);
    tcase_add_loop_test(urls, password_is_not_shown_when_the_URL_is_wrong, 0,
                        sizeof(bad_urls) / sizeof(bad_urls[0]));
    tcase_add_test(urls, password_is_not_shown_when_the_URL_of_the_environment_is_wrong);
    tcase_add_loop_test(urls, password_is_not_shown_when_the_file_is_wrong, 0,
                        sizeof(bad_files) / sizeof(bad_files[0]));
    tcase_add_test(urls, password_of_a_file_is_not_shown_when_it_is_wrong);
    TCase *memory = scene_tcase(s, "memory", open_scene, scene_close);
    tcase_add_test(memory, one_copy_is_in_memory_while_the_client_is_open_and_none_later);
    tcase_add_test(memory, attributes_are_wiped_by_destroy);
    tcase_add_loop_test(memory, password_of_a_file_is_in_memory_once, 0, 2);
    tcase_add_test(memory, what_failed_to_open_leaves_nothing);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}

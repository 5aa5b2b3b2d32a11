/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of the log and their forms: what was lost, how long it had been held, why and
 * for how long; outages and their ends; what the server refused. doc/OBSERVABILITY.md
 * lists them. */
#include "fixture.h"

#include "base/log.h"
#include "worker.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

enum { SOON_MS = 20000, LINES_MAX = 1000, LINE_LEN = 512, SECONDS_MAX = 3 };

#define S "([0-9]+\\.[0-9]) s"
#define MORE "( \\([0-9]+ such lines left out before\\))?$"

static rlock_mutex_t m, theirs;

/* ---- what was logged */

static pthread_mutex_t lines_mu = PTHREAD_MUTEX_INITIALIZER;
static char lines[LINES_MAX][LINE_LEN];
static int levels[LINES_MAX];
static size_t line_count;
/* a line with this text waits in the logger until stop_at is NULL */
static const char *stop_at;
static bool stopped;

static void on_line(int level, const char *line, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lines_mu);
    if (line_count < LINES_MAX) {
        levels[line_count] = level;
        snprintf(lines[line_count++], LINE_LEN, "%s", line);
    }
    while (stop_at && strstr(line, stop_at)) {
        stopped = true;
        pthread_mutex_unlock(&lines_mu);
        test_pause_ms(1);
        pthread_mutex_lock(&lines_mu);
    }
    pthread_mutex_unlock(&lines_mu);
}

static void stop_logger(const char *at)
{
    pthread_mutex_lock(&lines_mu);
    stop_at = at;
    stopped = false;
    pthread_mutex_unlock(&lines_mu);
}

static bool logger_stopped(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lines_mu);
    bool is = stopped;
    pthread_mutex_unlock(&lines_mu);
    return is;
}

/* A form of line to look for, and the numbers of seconds in the last match. */
struct sought {
    const char *form;
    int level;
    size_t count;
    double seconds[SECONDS_MAX];
};

static void take_seconds(struct sought *sought, const char *line,
                         const regmatch_t match[])
{
    for (int i = 0; i < SECONDS_MAX; i++)
        sought->seconds[i] =
            match[i + 1].rm_so >= 0 ? strtod(line + match[i + 1].rm_so, NULL) : -1;
}

static bool look(void *arg)
{
    struct sought *sought = arg;
    regmatch_t match[SECONDS_MAX + 1];
    regex_t regex;

    ck_assert_int_eq(regcomp(&regex, sought->form, REG_EXTENDED), 0);
    sought->count = 0;
    pthread_mutex_lock(&lines_mu);
    for (size_t i = 0; i < line_count; i++)
        if (levels[i] == sought->level &&
            regexec(&regex, lines[i], SECONDS_MAX + 1, match, 0) == 0) {
            sought->count++;
            take_seconds(sought, lines[i], match);
        }
    pthread_mutex_unlock(&lines_mu);
    regfree(&regex);
    return sought->count > 0;
}

/* Waits for a line of this form. Asserts that there is exactly one. */
static struct sought line_like(int level, const char *form)
{
    struct sought sought = { .form = form, .level = level };
    bool found = test_wait_until(look, &sought, SOON_MS);

    pthread_mutex_lock(&lines_mu);
    for (size_t i = 0; (!found || sought.count > 1) && i < line_count; i++)
        printf("logged: %d %s\n", levels[i], lines[i]);
    fflush(stdout);
    pthread_mutex_unlock(&lines_mu);
    ck_assert_msg(found, "no line like %s", form);
    ck_assert_uint_eq(sought.count, 1);
    return sought;
}

static void listen(void)
{
    pthread_mutex_lock(&lines_mu);
    line_count = 0;
    pthread_mutex_unlock(&lines_mu);
    rlock_setlogger(on_line, NULL, LOG_INFO);
}

static void set_up(void)
{
    fixture_open();
    m = mutex_of(client, "n");
    theirs = mutex_of(fixture_other(), "n");
    listen();
}

static void tear_down(void)
{
    rlock_setlogger(NULL, NULL, 0);
    fixture_close();
}

/* Closes the other client and opens one with these times, so that every line is about
 * it. */
static void alone_with(long lease_ms, long presence_ms)
{
    char parameters[128];
    close_client(other);
    other = NULL;
    snprintf(parameters, sizeof(parameters), "?lease=%ld&presence=%ld&commandtimeout=%ld",
             lease_ms, presence_ms, test_ms(100));
    reopen_with(parameters);
    m = mutex_of(client, "n");
    listen();
}

/* ---- losses */

START_TEST(loss_by_force_is_called_so)
{
    OK(rlock_mutex_lock(&m));
    OK(rlock_force_unlock(other, "n"));
    const struct told *lost = event_of(RLOCK_EVENT_LOST, SOON_MS);
    line_like(LOG_ERR, "^rlock: lost \"n\" after " S
                       ": the server no longer records this hold: unlocked by force$");
    ck_assert_ptr_nonnull(lost);
    ck_assert_str_eq(lost->reason,
                     "the server no longer records this hold: unlocked by force");
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

START_TEST(loss_of_a_key_that_was_deleted_is_called_so)
{
    alone_with(test_ms(600), 3000);
    OK(rlock_mutex_lock(&m));
    test_redis_do(redis, "DEL", "n");
    line_like(
        LOG_ERR,
        "^rlock: lost \"n\" after " S
        ": the server no longer records this hold: its key was deleted or expired$");
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

START_TEST(loss_of_a_fixed_lease_is_called_so)
{
    /* the risk is reported when a tenth of the lease is left: time for a slow machine */
    const long lease_ms = test_ms(1000) < 5000 ? test_ms(1000) : 5000;
    OK(rlock_mutex_lock_lease(&m, lease_ms));
    struct sought risk =
        line_like(LOG_WARNING, "^rlock: at risk \"n\" after " S
                               ": its fixed lease is about to end; " S " left$");
    struct sought lost =
        line_like(LOG_ERR, "^rlock: lost \"n\" after " S ": its fixed lease ended$");
    ck_assert_double_le(risk.seconds[0], lost.seconds[0]);
    ck_assert_double_ge(lost.seconds[0], (double)lease_ms * 0.9 / 1000);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

static bool is_at_risk(void *arg)
{
    (void)arg;
    return stats_of(client).risks == 1;
}

START_TEST(late_risk_report_says_that_the_section_ended)
{
    const long late_ms = test_ms(2500) < 5000 ? test_ms(2500) : 5000;
    rlock_mutex_t late = mutex_of(client, "late");
    stop_logger("lost \"n\"");
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_lock_lease(&late, late_ms));
    OK(rlock_force_unlock(other, "n"));
    bool in_time = test_wait_until(logger_stopped, NULL, SOON_MS) &&
                   test_wait_until(is_at_risk, NULL, SOON_MS);
    int rc = rlock_mutex_unlock(&late);
    stop_logger(NULL);
    ck_assert(in_time);
    OK(rc);
    struct sought risk = line_like(LOG_WARNING, "^rlock: at risk \"late\" after " S
                                                ": it was unlocked meanwhile$");
    ck_assert_double_ge(risk.seconds[0], (double)late_ms * 0.8 / 1000);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

START_TEST(loss_in_an_outage_says_for_how_long_the_server_is_away)
{
    long lease = test_ms(1500);
    alone_with(lease, test_ms(300));
    OK(rlock_mutex_lock(&m));
    /* so that the outage is shorter than the section, and than the time since the last
     * answer */
    test_pause_ms(test_ms(400));
    test_server_pause(&server);
    int64_t paused = test_now_ms();
    struct sought risk =
        line_like(LOG_WARNING, "^rlock: at risk \"n\" after " S
                               ": server unreachable for " S "; " S " left$");
    struct sought lost = line_like(LOG_ERR, "^rlock: lost \"n\" after " S
                                            ": server unreachable for " S "$");
    double away = (double)(test_now_ms() - paused) / 1000;
    test_server_resume(&server);
    ck_assert_double_lt(risk.seconds[1], lost.seconds[1]);
    ck_assert_double_gt(lost.seconds[0], lost.seconds[1]);
    ck_assert_double_ge(lost.seconds[1], (double)lease / 1000 / 3);
    ck_assert_double_le(lost.seconds[1], away + 0.06); /* the log rounds it */
    const struct told *told = event_of(RLOCK_EVENT_LOST, SOON_MS);
    ck_assert_ptr_nonnull(told);
    ck_assert_ptr_nonnull(strstr(told->reason, "server unreachable for "));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

/* The lines give the length of the reader's own section, also after another reader has
 * left their shared hold. */
START_TEST(risk_of_a_reader_says_how_long_it_has_read)
{
    long lease = test_ms(900);
    alone_with(lease, 3000);
    rlock_rwlock_t rw = rwlock_of(client, "n");
    OK(rlock_rwlock_rdlock(&rw));
    OK(in_thread(run_rdlock, &rw));
    line_like(LOG_ERR, "^rlock: abandoned \"n\" after " S
                       ": its thread ended without unlocking it$");
    test_server_kill(&server);
    struct sought risk =
        line_like(LOG_WARNING, "^rlock: at risk \"n\" after " S ": .*; " S " left$");
    struct sought lost = line_like(LOG_ERR, "^rlock: lost \"n\" after " S ": .*$");
    ck_assert_double_ge(risk.seconds[0], (double)lease / 2000);
    ck_assert_double_ge(lost.seconds[0], risk.seconds[0]);
    ck_assert_double_le(lost.seconds[0], (double)test_ms(SOON_MS) / 1000);
    EXPECT(rlock_rwlock_unlock(&rw), ESTALE);
    test_redis_close(redis);
    test_server_restart(&server);
    redis = test_redis_connect(server.path);
}
END_TEST

START_TEST(loss_of_a_process_that_stood_still_says_so)
{
    struct worker x;
    char command[256];
    worker_start(&x, NULL);
    snprintf(command, sizeof(command), "open %s lease=%ld", server.url, test_ms(600));
    ck_assert(worker_says(&x, command, "ok"));
    ck_assert(worker_says(&x, "logger", "ok"));
    ck_assert(worker_says(&x, "init m w", "ok"));
    ck_assert(worker_says(&x, "lock m", "ok"));
    worker_stop(&x);
    ck_assert(wait_key("w", false, SOON_MS)); /* the lease has ended */
    test_pause_ms(50);
    worker_cont(&x);
    const char *line = worker_news(&x, "log 3", SOON_MS);
    ck_assert_ptr_nonnull(line);
    ck_assert_msg(strstr(line, "rlock: lost \"w\" after "), "%s", line);
    ck_assert_msg(strstr(line, " s: this process or its watchdog did not run; a renewal "
                               "was due "),
                  "%s", line);
    worker_end(&x);
}
END_TEST

START_TEST(thread_that_ended_holding_is_logged)
{
    OK(in_thread(run_lock, &m));
    line_like(LOG_ERR, "^rlock: abandoned \"n\" after " S
                       ": its thread ended without unlocking it$");
}
END_TEST

/* ---- what was refused */

/* Replaces the client by one of a user who may do everything, until a test takes
 * permissions away. */
static void become_user(const char *parameters)
{
    char url[TEST_URL_MAX + 64];
    test_redis_do(redis, "ACL", "SETUSER", "u", "reset", "on", ">secret", "~*", "&*",
                  "+@all");
    close_client(client);
    snprintf(url, sizeof(url), "redis://u:secret@127.0.0.1:%u", (unsigned)server.port);
    client = open_at(url, parameters);
    m = mutex_of(client, "n");
    listen();
}

START_TEST(refused_renewal_is_logged_and_is_why_it_is_lost)
{
    char parameters[32];
    snprintf(parameters, sizeof(parameters), "?lease=%ld", test_ms(600));
    become_user(parameters);
    OK(rlock_mutex_lock(&m));
    test_redis_do(redis, "ACL", "SETUSER", "u", "-eval", "-evalsha");
    struct sought lost =
        line_like(LOG_ERR, "^rlock: lost \"n\" after " S
                           ": the server refused to renew it; last renewed " S " ago$");
    struct sought refused = { .form = "^rlock: renewal of \"n\" refused at "
                                      "[^ ]+: .*EVALSHA.*",
                              .level = LOG_WARNING };
    ck_assert(test_wait_until(look, &refused, SOON_MS));
    ck_assert_double_gt(lost.seconds[1], 0.2);
    ck_assert_uint_ge(stats_of(client).refusals, 1);
    pthread_mutex_lock(&lines_mu);
    for (size_t i = 0; i < line_count; i++)
        ck_assert_ptr_null(strstr(lines[i], "secret"));
    pthread_mutex_unlock(&lines_mu);
    test_redis_do(redis, "ACL", "SETUSER", "u", "+@all");
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

START_TEST(refused_subscription_is_logged)
{
    if (!test_redis_has_channel_rules("refused_subscription_is_logged"))
        return;
    become_user("");
    test_redis_do(redis, "ACL", "SETUSER", "u", "resetchannels");
    test_redis_kill_clients(redis);
    struct sought refused = { .form = "^rlock: subscription refused at [^ ]+: "
                                      ".*SUBSCRIBE.*" MORE,
                              .level = LOG_ERR };
    ck_assert(test_wait_until(look, &refused, SOON_MS));
}
END_TEST

/* ---- outages */

START_TEST(outage_has_a_line_at_each_end_with_its_length)
{
    alone_with(60000, 3000);
    listen();
    test_server_kill(&server);
    line_like(LOG_WARNING, "^rlock: disconnected from [^ ]+ after " S ": .+$");
    test_pause_ms(1100);
    test_redis_close(redis);
    test_server_restart(&server);
    redis = test_redis_connect(server.path);
    struct sought up =
        line_like(LOG_INFO, "^rlock: connected to [^ ]+ again after " S "$");
    ck_assert_double_ge(up.seconds[0], 1.1);
    const struct told *told = event_of(RLOCK_EVENT_CONNECTED, SOON_MS);
    ck_assert_ptr_nonnull(told);
    ck_assert_int_eq(strncmp(told->reason, "again after ", 12), 0);
}
END_TEST

START_TEST(silent_server_is_an_outage_since_it_was_last_heard)
{
    alone_with(60000, test_ms(300));
    test_server_pause(&server);
    line_like(LOG_WARNING,
              "^rlock: disconnected from [^ ]+ after " S ": no reply from the server$");
    test_server_resume(&server);
    struct sought up =
        line_like(LOG_INFO, "^rlock: connected to [^ ]+ again after " S "$");
    /* the length is at least the command timeout, unless scaled */
    ck_assert_double_ge(up.seconds[0], 0.1);
}
END_TEST

START_TEST(first_connection_is_logged)
{
    listen();
    rlock_client_t *c = open_with("");
    line_like(LOG_INFO, "^rlock: connected to [^ ]+$");
    OK(rlock_client_close(c));
}
END_TEST

START_TEST(server_that_was_never_there_is_logged)
{
    rlock_client_t *c = NULL;
    OK(rlock_client_open(&c, "unix:///nonexistent", NULL));
    line_like(LOG_WARNING, "^rlock: cannot connect to [^ ]+: .+$");
    OK(rlock_client_close(c));
}
END_TEST

/* ---- numbers */

START_TEST(numbers_are_the_same_in_all_locales)
{
    static const struct {
        int64_t n, unit;
        int digits;
        const char *text;
    } numbers[] = {
        { 0, 1000, 1, "0.0" },
        { 49, 1000, 1, "0.0" },
        { 50, 1000, 1, "0.1" },
        { 21049, 1000, 1, "21.0" },
        { 21950, 1000, 1, "22.0" },
        { 1999, 1000, 0, "2" },
        { 5, 1000, 3, "0.005" },
        { 1005, 1000, 2, "1.01" },
        { -1500, 1000, 1, "-1.5" },
        { -1, 1000, 1, "0.0" },
        { INT64_MAX, 1, 0, "9223372036854775807" },
        { INT64_MIN, 1000000000, 1, "-9223372036.9" },
    };
    char buf[RLK_LOG_NUMBER_SIZE];
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        ck_assert_str_eq(
            rlk_log_number(buf, numbers[i].n, numbers[i].unit, numbers[i].digits),
            numbers[i].text);
    ck_assert_str_eq(rlk_log_seconds(buf, INT64_C(1250000000)), "1.3");
}
END_TEST

/* ---- not more lines than a person can read */

START_TEST(pace_leaves_lines_out_and_says_how_many)
{
    struct rlk_log_pace pace = { 0 };
    char more[RLK_LOG_MORE_SIZE] = "?";
    const int64_t start = INT64_C(5000000000), second = INT64_C(1000000000);

    for (int i = 0; i < 2; i++) {
        ck_assert(rlk_log_now(&pace, start + i, 2, more));
        ck_assert_str_eq(more, "");
    }
    for (int i = 0; i < 7; i++)
        ck_assert(!rlk_log_now(&pace, start + second - 1, 2, more));
    ck_assert(rlk_log_now(&pace, start + second, 2, more));
    ck_assert_str_eq(more, " (7 such lines left out before)");
    ck_assert(rlk_log_now(&pace, start + second, 2, more));
    ck_assert_str_eq(more, "");
}
END_TEST

/* Many holds are lost at once. */
START_TEST(many_losses_are_logged_or_counted)
{
    enum { MANY = 250, LEASE_MS = 500 };
    static rlock_mutex_t many[MANY + 1];
    char name[32];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "many%d", i);
        many[i] = mutex_of(client, name);
        OK(rlock_mutex_lock_lease(&many[i], test_ms(LEASE_MS)));
    }
    for (int tries = 0; stats_of(client).losses < MANY && tries < SOON_MS; tries++)
        test_pause_ms(1);
    test_pause_ms(1100); /* the next second */
    many[MANY] = mutex_of(client, "last");
    OK(rlock_mutex_lock_lease(&many[MANY], 60));
    struct sought last = { .form = "lost \"last\"", .level = LOG_ERR };
    ck_assert(test_wait_until(look, &last, SOON_MS));
    unsigned told = 0, left_out = 0;
    pthread_mutex_lock(&lines_mu);
    for (size_t i = 0; i < line_count; i++) {
        const char *more = strstr(lines[i], " such lines left out");
        if (!strstr(lines[i], "rlock: lost "))
            continue;
        told++;
        while (more && more > lines[i] && more[-1] != '(')
            more--;
        left_out += more ? (unsigned)atoi(more) : 0;
    }
    pthread_mutex_unlock(&lines_mu);
    ck_assert_uint_eq(told + left_out, MANY + 1);
    for (int i = 0; i <= MANY; i++)
        EXPECT(rlock_mutex_unlock(&many[i]), ESTALE);
}
END_TEST

#define CASE(name, set_up_fn, ...)                                                       \
    TEST_ADD(fixture_tcase(suite, name, set_up_fn, tear_down), __VA_ARGS__)

int main(void)
{
    Suite *suite = suite_create("log");
    CASE("losses", set_up, loss_by_force_is_called_so,
         loss_of_a_key_that_was_deleted_is_called_so, loss_of_a_fixed_lease_is_called_so,
         late_risk_report_says_that_the_section_ended,
         loss_in_an_outage_says_for_how_long_the_server_is_away,
         risk_of_a_reader_says_how_long_it_has_read,
         loss_of_a_process_that_stood_still_says_so, thread_that_ended_holding_is_logged);
    CASE("refusals", set_up, refused_renewal_is_logged_and_is_why_it_is_lost,
         refused_subscription_is_logged);
    CASE("outages", set_up, outage_has_a_line_at_each_end_with_its_length,
         silent_server_is_an_outage_since_it_was_last_heard, first_connection_is_logged,
         server_that_was_never_there_is_logged);
    CASE("numbers", set_up, numbers_are_the_same_in_all_locales);
    CASE("pace", set_up, pace_leaves_lines_out_and_says_how_many,
         many_losses_are_logged_or_counted);
    return test_run_suite(suite);
}

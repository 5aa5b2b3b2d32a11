/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* One TLS connection, with a peer in the same thread: large and half records, bytes that
 * the socket does not take, the end of the peer, names, forks. */
#if TEST_TLS

#include "authority.h"
#include "net/tls_impl.h"
#include "suite.h"
#include "wait.h"

#include <check.h>
#include <openssl/err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RECORD_MAX = 16384, SMALL_BUFFER = 4096 };

static struct rlk_endpoint endpoint;
static struct rlk_tls *tls; /* of the client */
static SSL_CTX *ctx;        /* of the peer */
static SSL *peer;
static int fds[2]; /* client, peer */

static void make_authority(void)
{
    test_authority_begin();
    test_authority_issue("ca", "server", 30, "subjectAltName=DNS:localhost");
}

static void set_up(void)
{
    memset(&endpoint, 0, sizeof(endpoint));
    endpoint.host = strdup("localhost");
    strcpy(endpoint.label, "localhost:1");
    endpoint.tls.on = true;
    endpoint.tls.cafile = strdup(test_authority_path("ca.crt"));
    ck_assert_int_eq(rlk_tls_store_create(&endpoint.tls_store, &endpoint, NULL), 0);
    ctx = SSL_CTX_new(TLS_server_method());
    ck_assert_int_eq(
        SSL_CTX_use_certificate_chain_file(ctx, test_authority_path("server.crt")), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey_file(ctx, test_authority_path("server.key"),
                                                 SSL_FILETYPE_PEM),
                     1);
}

static void tear_down(void)
{
    SSL_free(peer);
    peer = NULL;
    rlk_tls_free(tls);
    tls = NULL;
    close(fds[0]);
    if (fds[1] >= 0)
        close(fds[1]);
    SSL_CTX_free(ctx);
    rlk_tls_store_free(endpoint.tls_store);
    free(endpoint.host);
    free(endpoint.tls.cafile);
}

static enum rlk_tls_result try_to_connect(bool may_read)
{
    enum rlk_tls_result result;

    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    peer = SSL_new(ctx);
    SSL_set_fd(peer, fds[1]);
    ck_assert_int_eq(rlk_tls_open(&tls, &endpoint, may_read), 0);
    while ((result = rlk_tls_shake(tls, fds[0])) == RLK_TLS_WAIT)
        SSL_accept(peer);
    return result;
}

/* Connects both sides. The client's last message of the handshake is not sent yet. */
static void connect_both(void)
{
    enum rlk_tls_result result = try_to_connect(true);
    ck_assert_msg(result == RLK_TLS_DONE, "%s", rlk_tls_text(tls));
}

static void count(void *arg, const char *bytes, size_t len)
{
    (void)bytes;
    *(size_t *)arg += len;
}

/* rule: P3 */
START_TEST(record_of_any_size_is_read_by_one_look)
{
    static char bytes[RECORD_MAX];
    size_t got = 0;

    connect_both();
    ck_assert_int_eq(rlk_tls_send(tls, fds[0], "a", 1), 1);
    ck_assert_int_eq(SSL_accept(peer), 1);
    rlk_tls_receive(tls, fds[0], MSG_DONTWAIT, count, &got); /* tickets */
    ck_assert_uint_eq(got, 0);
    ck_assert_int_eq(SSL_write(peer, bytes, RECORD_MAX), RECORD_MAX);
    ck_assert_int_eq(rlk_tls_receive(tls, fds[0], MSG_DONTWAIT, count, &got), 1);
    ck_assert_uint_eq(got, RECORD_MAX);
    ck_assert_int_eq(rlk_tls_receive(tls, fds[0], MSG_DONTWAIT, count, &got), 0);
}
END_TEST

/* rule: P3 */
START_TEST(bytes_that_a_receive_has_flushed_count_as_begun)
{
    static char bytes[1 << 18], sink[1 << 16];
    int size = SMALL_BUFFER;
    size_t got = 0;

    connect_both();
    ck_assert_int_eq(rlk_tls_send(tls, fds[0], "a", 1), 1);
    ck_assert_int_eq(SSL_accept(peer), 1);
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    ck_assert_int_eq(rlk_tls_send(tls, fds[0], bytes, sizeof(bytes)), 0);
    ck_assert_uint_gt(rlk_tls_unsent(tls), 0);
    ck_assert(rlk_tls_begun(tls));
    for (int i = 0; i < 1000 && rlk_tls_unsent(tls) > 0; i++) {
        while (read(fds[1], sink, sizeof(sink)) > 0)
            ;
        rlk_tls_flush(tls, fds[0]); /* as after a receive */
    }
    ck_assert_uint_eq(rlk_tls_unsent(tls), 0);
    ck_assert(rlk_tls_begun(tls)); /* though no caller knows yet that it was sent */
    ck_assert_int_gt(rlk_tls_send(tls, fds[0], bytes, sizeof(bytes)), 0);
    ck_assert(!rlk_tls_begun(tls));
    rlk_tls_receive(tls, fds[0], MSG_DONTWAIT, count, &got);
}
END_TEST

/* rule: P6 */
START_TEST(alert_of_a_peer_that_has_gone_says_more_than_the_failed_send)
{
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    connect_both();
    ck_assert_int_eq(rlk_tls_send(tls, fds[0], "a", 1), 1);
    ck_assert_int_ne(SSL_accept(peer), 1); /* sends the alert */
    close(fds[1]);
    fds[1] = -1;
    ck_assert_int_eq(rlk_tls_send(tls, fds[0], "b", 1), -1);
    ck_assert_int_eq(rlk_tls_failure(tls), RLK_TLS_FAILED);
    rlk_tls_hear_alert(tls, fds[0]);
    ck_assert_int_eq(rlk_tls_failure(tls), RLK_TLS_REFUSED);
    ck_assert_msg(strstr(rlk_tls_text(tls), "requires a client certificate") != NULL,
                  "%s", rlk_tls_text(tls));
}
END_TEST

/* rule: P3 */
START_TEST(failed_send_loses_no_reply_that_came_before_the_end)
{
    static char replies[3 * RECORD_MAX];
    size_t got = 0;
    int result;

    connect_both();
    ck_assert_int_eq(rlk_tls_send(tls, fds[0], "a", 1), 1);
    ck_assert_int_eq(SSL_accept(peer), 1);
    ck_assert_int_eq(SSL_write(peer, replies, sizeof(replies)), sizeof(replies));
    close(fds[1]);
    fds[1] = -1;
    ck_assert_int_eq(rlk_tls_send(tls, fds[0], "b", 1), -1);
    for (int i = 0; i < 100; i++) {
        result = rlk_tls_receive(tls, fds[0], MSG_DONTWAIT, count, &got);
        if (result < 0)
            break;
    }
    ck_assert_int_lt(result, 0);
    ck_assert_uint_eq(got, sizeof(replies));
}
END_TEST

/* rule: P3 */
START_TEST(half_a_record_is_seen)
{
    char record[64];
    size_t got = 0;
    int wire[2];

    connect_both();
    ck_assert_int_eq(rlk_tls_send(tls, fds[0], "a", 1), 1);
    ck_assert_int_eq(SSL_accept(peer), 1);
    rlk_tls_receive(tls, fds[0], MSG_DONTWAIT, count, &got); /* tickets */
    ck_assert(!rlk_tls_has_part(tls));
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, wire), 0);
    SSL_set_fd(peer, wire[0]);
    ck_assert_int_eq(SSL_write(peer, "reply", 5), 5);
    ssize_t len = read(wire[1], record, sizeof(record));
    ck_assert_int_gt(len, 10);
    ck_assert_int_eq(write(fds[1], record, 10), 10);
    ck_assert_int_eq(rlk_tls_receive(tls, fds[0], MSG_DONTWAIT, count, &got), 0);
    ck_assert(rlk_tls_has_part(tls));
    ck_assert_int_eq(write(fds[1], record + 10, (size_t)len - 10), len - 10);
    ck_assert_int_eq(rlk_tls_receive(tls, fds[0], MSG_DONTWAIT, count, &got), 1);
    ck_assert(!rlk_tls_has_part(tls));
    ck_assert_uint_eq(got, 5);
    close(wire[0]);
    close(wire[1]);
}
END_TEST

/* rule: P1 */
START_TEST(flood_in_the_handshake_does_not_keep_the_caller)
{
    static const char hello_request[] = { 22, 3, 3, 0, 4, 0, 0, 0, 0 };
    static char flood[9 * 7000]; /* more than 16 recvs take, if each gets a part */
    ssize_t sent = 0;

    for (size_t i = 0; i < sizeof(flood); i += sizeof(hello_request))
        memcpy(flood + i, hello_request, sizeof(hello_request));
    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    ck_assert_int_eq(rlk_tls_open(&tls, &endpoint, true), 0);
    for (ssize_t n = 1; n > 0; sent += n > 0 ? n : 0)
        n = write(fds[1], flood, sizeof(flood));
    if (sent < 17 * RLK_TLS_WIRE_SIZE)
        return; /* the socket takes less */
    enum rlk_tls_result result = rlk_tls_shake(tls, fds[0]);
    char c;
    if (result == RLK_TLS_WAIT) /* OpenSSL skips such messages */
        ck_assert_int_eq(recv(fds[0], &c, 1, MSG_PEEK | MSG_DONTWAIT), 1);
}
END_TEST

/* rule: P6 */
START_TEST(error_that_the_program_left_is_not_shown)
{
    static char garbage[] = { 23, 3, 3, 0, 5, 1, 2, 3, 4, 5 };
    size_t got = 0;

    connect_both();
    ck_assert_int_eq(rlk_tls_send(tls, fds[0], "a", 1), 1);
    ck_assert_int_eq(SSL_accept(peer), 1);
    rlk_tls_receive(tls, fds[0], MSG_DONTWAIT, count, &got);
    ERR_raise(ERR_LIB_SSL, SSL_R_CERTIFICATE_VERIFY_FAILED);
    ck_assert_int_eq(write(fds[1], garbage, sizeof(garbage)), sizeof(garbage));
    ck_assert_int_eq(rlk_tls_receive(tls, fds[0], MSG_DONTWAIT, count, &got), -1);
    ck_assert_ptr_null(strstr(rlk_tls_text(tls), "certificate"));
}
END_TEST

/* rule: P6 */
START_TEST(end_is_no_error_though_the_program_left_one)
{
    size_t got = 0;

    connect_both();
    ck_assert_int_eq(rlk_tls_send(tls, fds[0], "a", 1), 1);
    ck_assert_int_eq(SSL_accept(peer), 1);
    rlk_tls_receive(tls, fds[0], MSG_DONTWAIT, count, &got); /* tickets */
    ck_assert_int_eq(SSL_shutdown(peer), 0);                 /* sends close_notify */
    ERR_raise(ERR_LIB_SSL, SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED);
    ck_assert_int_eq(rlk_tls_receive(tls, fds[0], MSG_DONTWAIT, count, &got), -1);
    ck_assert_int_eq(rlk_tls_failure(tls), RLK_TLS_FAILED);
    ck_assert_ptr_nonnull(strstr(rlk_tls_text(tls), "closed the connection"));
}
END_TEST

/* rule: P2 */
START_TEST(name_is_sent_without_the_dot_at_its_end)
{
    free(endpoint.host);
    endpoint.host = strdup("localhost.");
    connect_both();
    ck_assert_str_eq(SSL_get_servername(peer, TLSEXT_NAMETYPE_host_name), "localhost");
}
END_TEST

/* rule: P5 */
START_TEST(child_uses_what_the_parent_has_read)
{
    struct rlk_tls_store *parent = endpoint.tls_store;

    ck_assert_int_eq(unlink(test_authority_path("ca.crt")), 0);
    ck_assert_int_eq(rlk_tls_store_create(&endpoint.tls_store, &endpoint, parent), 0);
    connect_both();
    rlk_tls_store_free(parent);
}
END_TEST

/* ---- forks */

static bool in_child;

/* What a fork in a signal's handler does, at the place that it has interrupted. */
static void fork_here(void)
{
    pid_t pid = -1;

    rlk_sync_sections.count++; /* as prepare_fork, which holds a mutex */
    rlk_tls_hold();
    pid = fork();
    if (pid == 0) {
        ck_assert(rlk_tls_forget(false)); /* the parent's stores are whole */
        in_child = true;
    } else {
        int status = 1;
        waitpid(pid, &status, 0);
        ck_assert_int_eq(status, 0);
        rlk_tls_unhold();
    }
    rlk_sync_sections.count--;
}

/* rule: P5 */
START_TEST(handler_that_forks_does_not_wait_for_its_own_thread)
{
    connect_both();
    switch (_i) {
    case 0: /* inside */
        ck_assert(rlk_tls_gate_enter());
        fork_here();
        rlk_tls_gate_leave();
        break;
    case 1: /* it has been counted, but in_tls is not set yet; or not any more */
        ck_assert(rlk_tls_gate_enter());
        rlk_sync_sections.in_tls = false;
        fork_here();
        rlk_sync_sections.in_tls = true;
        rlk_tls_gate_leave();
        break;
    default: /* it has not been counted yet */
        rlk_sync_sections.count++;
        fork_here();
        rlk_sync_sections.count--;
    }
    /* both processes can enter and fork as before */
    ck_assert(rlk_tls_gate_enter());
    rlk_tls_gate_leave();
    rlk_sync_sections.count++;
    rlk_tls_hold();
    rlk_tls_unhold();
    rlk_sync_sections.count--;
    if (in_child)
        _exit(0);
}
END_TEST

static atomic_bool is_inside, has_left;

static void *stay_inside(void *arg)
{
    (void)arg;
    ck_assert(rlk_tls_gate_enter());
    atomic_store(&is_inside, true);
    test_pause_ms(50);
    atomic_store(&has_left, true);
    rlk_tls_gate_leave();
    return NULL;
}

/* rule: P5 */
START_TEST(fork_waits_for_threads_inside)
{
    pthread_t thread;

    connect_both();
    ck_assert_int_eq(pthread_create(&thread, NULL, stay_inside, NULL), 0);
    while (!atomic_load(&is_inside))
        test_pause_ms(1);
    rlk_sync_sections.count++; /* as prepare_fork, which holds a mutex */
    rlk_tls_hold();
    ck_assert(atomic_load(&has_left));
    rlk_tls_unhold();
    rlk_sync_sections.count--;
    pthread_join(thread, NULL);
}
END_TEST

/* ---- the system's settings */

/* rule: P2 */
START_TEST(later_version_that_the_system_requires_stays)
{
    connect_both();
    SSL_CTX *strict = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(strict, TLS1_3_VERSION);
    rlk_tls_store_floor(strict);
    ck_assert_int_eq(SSL_CTX_get_min_proto_version(strict), TLS1_3_VERSION);
    SSL_CTX_set_min_proto_version(strict, TLS1_VERSION);
    rlk_tls_store_floor(strict);
    ck_assert_int_eq(SSL_CTX_get_min_proto_version(strict), TLS1_2_VERSION);
    SSL_CTX_set_min_proto_version(strict, 0);
    rlk_tls_store_floor(strict);
    ck_assert_int_eq(SSL_CTX_get_min_proto_version(strict), TLS1_2_VERSION);
    SSL_CTX_free(strict);
}
END_TEST

/* rule: P2 */
START_TEST(zone_of_an_address_is_no_part_of_its_name)
{
    free(endpoint.host);
    endpoint.host = strdup("fe80::1%eth0");
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ck_assert_int_eq(rlk_tls_open(&tls, &endpoint, true), 0);
    char *shown = X509_VERIFY_PARAM_get1_ip_asc(SSL_get0_param(tls->ssl));
    ck_assert_ptr_nonnull(shown);
    ck_assert_int_eq(strcasecmp(shown, "fe80:0:0:0:0:0:0:1"), 0);
    ck_assert_ptr_null(SSL_get_servername(tls->ssl, TLSEXT_NAMETYPE_host_name));
    OPENSSL_free(shown);
}
END_TEST

/* rule: P4 */
START_TEST(files_are_looked_at_again_after_a_refusal_that_followed_the_handshake)
{
    char command[512];
    size_t got = 0;

    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    connect_both();
    test_authority_make("other");
    snprintf(command, sizeof(command), "cp %s %s", test_authority_path("other.crt"),
             test_authority_path("ca.crt"));
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(rlk_tls_send(tls, fds[0], "a", 1), 1);
    ck_assert_int_ne(SSL_accept(peer), 1);
    ck_assert_int_eq(rlk_tls_receive(tls, fds[0], MSG_DONTWAIT, count, &got), -1);
    ck_assert_int_eq(rlk_tls_failure(tls), RLK_TLS_REFUSED);
    rlk_tls_free(tls);
    SSL_free(peer);
    close(fds[0]);
    close(fds[1]);
    /* a thread that may not look by itself, and an authority that is another now */
    ck_assert_int_eq(try_to_connect(false), RLK_TLS_REFUSED);
    ck_assert_ptr_nonnull(strstr(rlk_tls_text(tls), "is not an authority of"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tls peer");
    TCase *tc = tcase_create("bytes");

    tcase_add_unchecked_fixture(tc, make_authority, test_authority_end);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, record_of_any_size_is_read_by_one_look);
    tcase_add_test(tc, bytes_that_a_receive_has_flushed_count_as_begun);
    tcase_add_test(tc, alert_of_a_peer_that_has_gone_says_more_than_the_failed_send);
    tcase_add_test(tc, failed_send_loses_no_reply_that_came_before_the_end);
    tcase_add_test(tc, half_a_record_is_seen);
    tcase_add_test(tc, flood_in_the_handshake_does_not_keep_the_caller);
    tcase_add_test(tc, error_that_the_program_left_is_not_shown);
    tcase_add_test(tc, end_is_no_error_though_the_program_left_one);
    tcase_add_test(tc, name_is_sent_without_the_dot_at_its_end);
    tcase_add_test(tc, fork_waits_for_threads_inside);
    tcase_add_loop_test(tc, handler_that_forks_does_not_wait_for_its_own_thread, 0, 3);
    tcase_add_test(tc, later_version_that_the_system_requires_stays);
    tcase_add_test(tc, zone_of_an_address_is_no_part_of_its_name);
    suite_add_tcase(suite, tc);
    TCase *last = tcase_create("child"); /* removes the authority's file */
    tcase_add_unchecked_fixture(last, make_authority, test_authority_end);
    tcase_add_checked_fixture(last, set_up, tear_down);
    tcase_add_test(last, child_uses_what_the_parent_has_read);
    suite_add_tcase(suite, last);
    TCase *renewed = tcase_create("renewed"); /* changes that file */
    tcase_add_unchecked_fixture(renewed, make_authority, test_authority_end);
    tcase_add_checked_fixture(renewed, set_up, tear_down);
    tcase_add_test(renewed,
                   files_are_looked_at_again_after_a_refusal_that_followed_the_handshake);
    suite_add_tcase(suite, renewed);
    return test_run_suite(suite);
}

#else /* configure --without-tls */

#include <stdio.h>

int main(void)
{
    puts("skipped: the library was built without TLS");
    return 77;
}

#endif

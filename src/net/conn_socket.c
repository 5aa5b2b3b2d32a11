/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a connection's socket. No state. Thread: any. */
#include "net/conn_impl.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { KEEPALIVE_PROBES = 3 };

bool rlk_conn_socket_is_own_peer(int fd)
{
    struct sockaddr_storage own, peer;
    socklen_t own_len = sizeof(own), peer_len = sizeof(peer);
    memset(&own, 0, sizeof(own));
    memset(&peer, 0, sizeof(peer));
    return getsockname(fd, (struct sockaddr *)&own, &own_len) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0 &&
           own_len == peer_len && memcmp(&own, &peer, own_len) == 0;
}

static void set_int(int fd, int level, int name, int value)
{
    setsockopt(fd, level, name, &value, sizeof(value));
}

static void set_tcp_options(int fd, int64_t keepalive_ms)
{
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (keepalive_ms <= 0)
        return;
    int ms = keepalive_ms > INT32_MAX ? INT32_MAX : (int)keepalive_ms;
    int idle_s = ms < 1000 ? 1 : ms / 1000;
    int probe_s = idle_s < KEEPALIVE_PROBES ? 1 : idle_s / KEEPALIVE_PROBES;
    if (idle_s > 32767) /* the kernel's limit */
        idle_s = probe_s = 32767;
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
    set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, probe_s);
    set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
}

void rlk_conn_socket_prepare(int fd, bool is_tcp, int64_t keepalive_ms)
{
    struct timeval patience = { .tv_usec = RLK_CONN_PATIENCE_MS * 1000 };

    if (is_tcp)
        set_tcp_options(fd, keepalive_ms);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0)
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

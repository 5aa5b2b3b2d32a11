/* SPDX-License-Identifier: Apache-2.0 */
/* See cluster.h. Asks the kernel by NETLINK_SOCK_DIAG (sock_diag(7)) for struct tcp_info
 * of the established sockets: a right of every user. */
#include "cluster.h"

#include "bench.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, ESTABLISHED = 1 };

struct sum {
    const uint16_t *ports;
    int count;
    double bytes;
    size_t sockets;
};

static int ask(void)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 req;
    } message = { .head = { .nlmsg_len = sizeof(message),
                            .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                            .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
                  .req = { .sdiag_family = AF_INET,
                           .sdiag_protocol = IPPROTO_TCP,
                           .idiag_ext = 1 << (INET_DIAG_INFO - 1),
                           .idiag_states = 1 << ESTABLISHED } };
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    if (fd < 0 || send(fd, &message, sizeof(message), 0) != (ssize_t)sizeof(message))
        die("the kernel tells nothing about its sockets");
    return fd;
}

static bool is_one(const struct sum *sum, const struct inet_diag_msg *m)
{
    for (int i = 0; i < sum->count; i++)
        if (ntohs(m->id.idiag_sport) == sum->ports[i] ||
            ntohs(m->id.idiag_dport) == sum->ports[i])
            return true;
    return false;
}

static void add(struct sum *sum, const struct nlmsghdr *head)
{
    const struct inet_diag_msg *m = NLMSG_DATA(head);
    unsigned left = head->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof(*m));

    if (!is_one(sum, m))
        return;
    for (const struct rtattr *at = (const struct rtattr *)(m + 1); RTA_OK(at, left);
         at = RTA_NEXT(at, left)) {
        struct tcp_info info = { 0 };
        size_t len = RTA_PAYLOAD(at);
        if (at->rta_type != INET_DIAG_INFO)
            continue;
        if (len < offsetof(struct tcp_info, tcpi_bytes_sent) + sizeof(uint64_t))
            die("this kernel does not count the bytes that a socket has sent");
        memcpy(&info, RTA_DATA(at), len < sizeof(info) ? len : sizeof(info));
        sum->bytes += (double)info.tcpi_bytes_sent;
        sum->sockets++;
    }
}

void sockets_sent(const uint16_t *ports, int count, double *ret_bytes,
                  size_t *ret_sockets)
{
    static _Alignas(struct nlmsghdr) char buf[CHUNK];
    struct sum sum = { .ports = ports, .count = count };
    int fd = ask();

    for (bool more = true; more;) {
        ssize_t n = recv(fd, buf, sizeof(buf), 0);
        if (n <= 0)
            die("the kernel tells nothing about its sockets");
        unsigned len = (unsigned)n;
        for (const struct nlmsghdr *head = (const struct nlmsghdr *)buf;
             NLMSG_OK(head, len); head = NLMSG_NEXT(head, len)) {
            if (head->nlmsg_type == NLMSG_ERROR)
                die("the kernel tells nothing about its sockets");
            more = more && head->nlmsg_type != NLMSG_DONE;
            if (head->nlmsg_type == SOCK_DIAG_BY_FAMILY)
                add(&sum, head);
        }
    }
    close(fd);
    *ret_bytes = sum.bytes;
    *ret_sockets = sum.sockets;
}

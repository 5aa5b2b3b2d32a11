/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces. The machine's own network is not touched: both ends of each pair
 * are in namespaces that exist only as descriptors of this process and in the processes
 * that it starts. They vanish with these, even after a kill.
 */
#include "faults_impl.h"

#include "die.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCH_MAX = 65536, PROCESSES_MAX = 200 };

static int current(void)
{
    return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

void nem_net_enter(const struct nem_net *net, int ns)
{
    if (net->on && setns(ns, CLONE_NEWNET) != 0)
        test_die("cannot change the network namespace: %s", strerror(errno));
}

void nem_net_address(char *text, size_t size, unsigned process)
{
    snprintf(text, size, "10.79.%u.2", process);
}

static bool configure(const char *input)
{
    return nem_run_program((const char *const[]){ "ip", "-batch", "-", NULL }, input);
}

/* Thread: in `near`. */
static bool make_pairs(const struct nem_net *net, unsigned processes)
{
    char text[BATCH_MAX];
    int len = snprintf(text, sizeof(text), "link set lo up\n");
    for (unsigned i = 0; i < processes; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len,
                        "link add nem%u type veth peer name nem%u netns /proc/%d/fd/%d\n"
                        "addr add 10.79.%u.1/30 dev nem%u\n"
                        "link set nem%u up\n",
                        i, i, (int)getpid(), net->far, i, i, i);
    return configure(text);
}

/* Thread: in `far`. */
static bool raise_far_ends(unsigned processes)
{
    char text[BATCH_MAX];
    int len = snprintf(text, sizeof(text), "link set lo up\n");
    for (unsigned i = 0; i < processes; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len,
                        "addr add 10.79.%u.2/30 dev nem%u\n"
                        "link set nem%u up\n",
                        i, i, i);
    return configure(text);
}

static int control_socket(void)
{
    return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* Only the thread that calls unshare enters the new namespace. */
static bool make(struct nem_net *net, unsigned processes)
{
    if (net->home < 0 || processes > PROCESSES_MAX || unshare(CLONE_NEWNET) != 0)
        return false;
    net->far = current();
    net->far_control = control_socket();
    if (net->far < 0 || net->far_control < 0 || unshare(CLONE_NEWNET) != 0)
        return false;
    net->near = current();
    net->near_control = control_socket();
    return net->near >= 0 && net->near_control >= 0 && make_pairs(net, processes) &&
           setns(net->far, CLONE_NEWNET) == 0 && raise_far_ends(processes) &&
           setns(net->near, CLONE_NEWNET) == 0;
}

void nem_net_open(struct nem_net *net, unsigned processes)
{
    *net = (struct nem_net){ false, -1, -1, -1, -1, -1 };
    net->home = current();
    net->on = make(net, processes);
    if (net->on)
        return;
    if (net->far >= 0 && setns(net->home, CLONE_NEWNET) != 0)
        test_die("cannot return to the network namespace: %s", strerror(errno));
    nem_net_close(net);
}

void nem_net_close(struct nem_net *net)
{
    nem_net_enter(net, net->home);
    const int fds[] = { net->home, net->near, net->far, net->near_control,
                        net->far_control };
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    *net = (struct nem_net){ false, -1, -1, -1, -1, -1 };
}

void nem_net_set(const struct nem_net *net, unsigned process, bool near_end, bool up)
{
    int control = near_end ? net->near_control : net->far_control;
    struct ifreq request;
    memset(&request, 0, sizeof(request));
    snprintf(request.ifr_name, sizeof(request.ifr_name), "nem%u", process);
    if (ioctl(control, SIOCGIFFLAGS, &request) != 0)
        test_die("%s: %s", request.ifr_name, strerror(errno));
    if (up)
        request.ifr_flags |= IFF_UP;
    else
        request.ifr_flags &= ~IFF_UP;
    if (ioctl(control, SIOCSIFFLAGS, &request) != 0)
        test_die("%s: %s", request.ifr_name, strerror(errno));
}

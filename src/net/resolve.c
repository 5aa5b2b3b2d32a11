/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Name resolution on a thread that may outlive its requester. A job has two references,
 * the requester's and the thread's; the last one frees it. The thread writes the answer,
 * then `done`, then the event; the requester reads the answer only after `done`.
 */
#include "net/resolve.h"

#include "base/error.h"
#include "base/fd.h"
#include "base/sync.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct rlk_resolve {
    /* immutable after start */
    char *host;
    char port[8];
    int fd; /* -1: answered without a thread */

    atomic_int refs;
    atomic_bool done;
    /* the thread's until done, then the requester's */
    struct addrinfo *list;
    int gai_code;
};

static void unref(struct rlk_resolve *job)
{
    if (atomic_fetch_sub(&job->refs, 1) > 1)
        return;
    if (job->list)
        freeaddrinfo(job->list);
    if (job->fd >= 0)
        rlk_fd_close(job->fd);
    free(job->host);
    free(job);
}

static void look_up(struct rlk_resolve *job, int flags)
{
    struct addrinfo hints;
    memset(&hints, 0, sizeof(hints));
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    job->list = NULL;
    job->gai_code = getaddrinfo(job->host, job->port, &hints, &job->list);
    if (job->gai_code != 0)
        job->list = NULL;
}

static void *run(void *arg)
{
    struct rlk_resolve *job = arg;
    look_up(job, 0);
    atomic_store(&job->done, true);
    rlk_fd_ring(job->fd);
    unref(job);
    return NULL;
}

static int start_thread(struct rlk_resolve *job)
{
    job->fd = rlk_fd_event();
    if (job->fd < 0)
        return rlk_error_of_step(errno, "cannot create an event (eventfd)");
    atomic_store(&job->refs, 2);
    int rc = rlk_sync_thread_start_detached("rlock-resolve", run, job);
    if (rc != 0)
        atomic_store(&job->refs, 1);
    return rc;
}

int rlk_resolve_start(struct rlk_resolve **ret_job, const char *host, uint16_t port)
{
    int rc = ENOMEM;
    struct rlk_resolve *job = calloc(1, sizeof(*job));
    if (!job)
        return ENOMEM;
    job->fd = -1;
    atomic_init(&job->refs, 1);
    atomic_init(&job->done, false);
    snprintf(job->port, sizeof(job->port), "%u", (unsigned)port);
    job->host = strdup(host);
    if (!job->host)
        goto out;
    look_up(job, AI_NUMERICHOST);
    if (job->list)
        atomic_store(&job->done, true);
    else if (job->gai_code == EAI_MEMORY)
        goto out;
    else if ((rc = start_thread(job)) != 0)
        goto out;
    *ret_job = job;
    return 0;
out:
    unref(job);
    return rc;
}

int rlk_resolve_fd(const struct rlk_resolve *job)
{
    return job->fd;
}

bool rlk_resolve_done(struct rlk_resolve *job, struct addrinfo **ret_list,
                      int *ret_gai_code)
{
    if (!atomic_load(&job->done))
        return false;
    *ret_list = job->list;
    *ret_gai_code = job->gai_code;
    return true;
}

void rlk_resolve_free(struct rlk_resolve *job)
{
    if (job)
        unref(job);
}

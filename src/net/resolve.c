/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Name resolution on a thread that may outlive its requesters. A job has the references
 * of its requesters and of its thread; the last one frees it. The thread writes the
 * answer, then `done`, then the event, which nobody reads away; a requester reads the
 * answer only after `done`.
 *
 * While a name is being looked up, all who want it wait for the same job: a resolver that
 * does not answer would else get one more thread for each try.
 */
#include "net/resolve.h"

#include "base/error.h"
#include "base/fd.h"
#include "base/list.h"
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
    /* the thread's until done, then the requesters', who only read */
    struct addrinfo *list;
    int gai_code;

    struct rlk_list link; /* in `jobs` until done; guarded by mu */
};

static struct rlk_mutex mu = RLK_MUTEX_INIT;    /* of jobs; nests in nothing */
static struct rlk_list jobs = { &jobs, &jobs }; /* those with a thread that looks up */

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

static void end(struct rlk_resolve *job)
{
    rlk_sync_mutex_lock(&mu);
    rlk_list_remove(&job->link);
    rlk_sync_mutex_unlock(&mu);
    atomic_store(&job->done, true);
    rlk_fd_ring(job->fd);
    unref(job);
}

static void *run(void *arg)
{
    struct rlk_resolve *job = arg;
    look_up(job, 0);
    end(job);
    return NULL;
}

/* The job that looks this name up already, with one more reference. NULL: there is none,
 * and this one is listed. */
static struct rlk_resolve *join_or_list(struct rlk_resolve *job)
{
    struct rlk_resolve *found = NULL;

    rlk_sync_mutex_lock(&mu);
    for (struct rlk_list *l = jobs.next; !found && l != &jobs; l = l->next) {
        struct rlk_resolve *other = RLK_CONTAINER_OF(l, struct rlk_resolve, link);
        if (strcmp(other->host, job->host) == 0 && strcmp(other->port, job->port) == 0)
            found = other;
    }
    if (found)
        atomic_fetch_add(&found->refs, 1);
    else
        rlk_list_append(&jobs, &job->link);
    rlk_sync_mutex_unlock(&mu);
    return found;
}

/* *ret_other: the job to wait for in its place, or NULL. */
static int start_thread(struct rlk_resolve *job, struct rlk_resolve **ret_other)
{
    job->fd = rlk_fd_event();
    if (job->fd < 0)
        return rlk_error_of_step(errno, "cannot create an event (eventfd)");
    atomic_store(&job->refs, 2);
    *ret_other = join_or_list(job);
    if (*ret_other) {
        atomic_store(&job->refs, 1);
        return 0;
    }
    int rc = rlk_sync_thread_start_detached("rlock-resolve", run, job);
    if (rc != 0) { /* others may have joined it */
        job->gai_code = EAI_AGAIN;
        end(job);
    }
    return rc;
}

int rlk_resolve_start(struct rlk_resolve **ret_job, const char *host, uint16_t port)
{
    int rc = ENOMEM;
    struct rlk_resolve *other = NULL;
    struct rlk_resolve *job = calloc(1, sizeof(*job));
    if (!job)
        return ENOMEM;
    job->fd = -1;
    rlk_list_init(&job->link);
    atomic_init(&job->refs, 1);
    atomic_init(&job->done, false);
    snprintf(job->port, sizeof(job->port), "%u", (unsigned)port);
    job->host = strdup(host);
    if (!job->host)
        goto out;
    look_up(job, AI_NUMERICHOST);
    if (!job->list && job->gai_code == EAI_MEMORY)
        goto out;
    if (job->list)
        atomic_store(&job->done, true);
    else if ((rc = start_thread(job, &other)) != 0)
        goto out;
    *ret_job = other ? other : job;
    rc = 0;
    if (!other)
        return 0;
out:
    unref(job);
    return rc;
}

void rlk_resolve_forget(void)
{
    mu = (struct rlk_mutex)RLK_MUTEX_INIT;
    rlk_list_init(&jobs);
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

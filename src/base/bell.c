/* SPDX-License-Identifier: Apache-2.0 */
/* See bell.h. */
#include "base/bell.h"

#include "base/error.h"
#include "base/fd.h"

#include <errno.h>

int rlk_bell_open(struct rlk_bell *bell)
{
    int fd = rlk_fd_event();
    if (fd < 0)
        return rlk_error_of_step(errno, "cannot create an event (eventfd)");
    atomic_store(&bell->fd, fd);
    return 0;
}

void rlk_bell_close(struct rlk_bell *bell)
{
    int fd = atomic_exchange(&bell->fd, -1);
    if (fd >= 0)
        rlk_fd_close(fd);
}

void rlk_bell_ring(const struct rlk_bell *bell)
{
    rlk_fd_ring(atomic_load(&bell->fd));
}

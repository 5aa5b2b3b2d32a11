#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# python-redis-lock 4.0.1: a waiter waits for a dead holder for its own lease, not for the holder's.
# A waiter without a lease waits for ever, for a lock that is free.
#
# Expected: expire is the time that the holder's death costs the others; a waiter gets the lock
#   about then.
# Instead: a waiter sleeps in BLPOP on a list that release fills. A lease that runs out fills no
#   list, so the sleep ends by its own timeout. That is the waiter's own expire; without one it is
#   BLPOP's 0, for ever. Nothing looks at the TTL of the key for which the waiter waits.
# Why it matters: a process that never crashes, and so seemed to need no lease, is stopped for good
#   by the short lease of a process that did crash. A job with a lease of an hour waits an hour for a
#   lease of a second, while any newcomer gets the lock at once.
# Read in: src/redis_lock/__init__.py of that version: what acquire gives to BLPOP.
set -eu
. "$(dirname "$0")/common.sh"
pip_install python-redis-lock==4.0.1 redis==5.3.1
start_server
cat >"$work/finding.py" <<'PY'
import sys, threading, time
import redis_lock
from redis import Redis

redis = Redis(port=int(sys.argv[1]))
LEASE, PATIENCE = 1, 4                       # seconds: of the dead holder; after that we look

def wait_for_dead(name, expire):
    """How long the key and the waiter lasted; None for a waiter who is still there after PATIENCE."""
    assert redis_lock.Lock(redis, name, expire=LEASE).acquire()  # and is never heard of again
    began, got = time.monotonic(), []
    waiter = threading.Thread(daemon=True, target=lambda: got.append(
        redis_lock.Lock(Redis(port=int(sys.argv[1])), name, expire=expire).acquire()))
    waiter.start()
    waiter.join(PATIENCE)
    waited = time.monotonic() - began if got else None
    return waited, redis.exists('lock:' + name)

one, _ = wait_for_dead('a', 1)
print('holder 1 s, waiter 1 s:      gets it after %s' % (one and '%.1f s' % one))
seen = []
for name, expire in ('60 s', 60), ('no lease', None):
    waited, there = wait_for_dead(name, expire)
    newcomer = there or redis_lock.Lock(redis, name, expire=1).acquire(blocking=False)
    seen.append((waited, there, newcomer))
    print('holder 1 s, waiter %-9s after %d s: waits %s, key there %d, a newcomer gets it %s'
          % (name + ':', PATIENCE, waited is None, there, newcomer))
blocked = sum(c['cmd'] == 'blpop' for c in redis.client_list())
print('clients that the server still has in BLPOP: %d' % blocked)
print('still so' if one and seen == [(None, 0, True)] * 2 and blocked == 2 else 'changed')
PY
say 'expected: all of them get it after 1 to 2 s'
"$python" "$work/finding.py" "$port" 2>"$work/errors" >"$work/seen" || cat "$work/errors" >&2
verdict "$work/seen"

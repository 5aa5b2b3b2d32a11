#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# python-redis-lock 4.0.1: after a renewal that failed once, each further acquire of the object
# takes the lock and raises an exception.
#
# Expected: a lock with auto_renewal whose lease was lost says so at release (NotAcquired, as it
#   does), and the object is then as good as new.
# Instead: the renewing thread has died of the same exception. Release looks whether the thread is
#   alive; if not, it leaves the dead thread in its field. The next acquire first sets the key, then
#   wants to start the thread, finds the field taken, and raises AlreadyStarted. The with statement
#   was not entered, so nobody releases: the key stays for all of expire. The same happens at each
#   further attempt of that object.
# Why it matters: after one lost lease (or one broken connection at the time of a renewal) a worker
#   that loops over a lock never works again, and keeps the others out most of the time. The
#   exception reads as if nothing had been taken.
# Read in: src/redis_lock/__init__.py of that version: how the thread is started and stopped, and
#   when acquire starts it.
set -eu
. "$(dirname "$0")/common.sh"
pip_install python-redis-lock==4.0.1 redis==5.3.1
start_server
cat >"$work/finding.py" <<'PY'
import sys, threading
import redis_lock
from redis import Redis

threading.excepthook = lambda args: print('the renewing thread dies of', args.exc_type.__name__)
redis = Redis(port=int(sys.argv[1]))

def call(f):
    try:
        return f()
    except RuntimeError as e:
        return type(e).__name__

lock = redis_lock.Lock(redis, 'job', expire=2, auto_renewal=True)
assert lock.acquire()
renewer = next(t for t in threading.enumerate() if t is not threading.main_thread())
redis_lock.Lock(redis, 'job').reset()       # an operator frees it by the library's own call
renewer.join(20)
print('release of the lost lock: ', call(lock.release))
taken = []
for attempt in 1, 2:
    free = not redis.exists('lock:job')
    answer = call(lambda: lock.acquire(blocking=False))
    other = redis_lock.Lock(redis, 'job', expire=2).acquire(blocking=False)
    taken.append((free, answer, redis.get('lock:job') == lock.id.encode(), other))
    print('attempt %d: lock free %s; acquire raises %s; key is ours %s; another gets it %s' % ((attempt,) + taken[-1]))
    redis_lock.Lock(redis, 'job').reset()
print('still so' if taken == [(True, 'AlreadyStarted', True, False)] * 2 else 'changed')
PY
say 'expected: acquire True, or an exception and the key not ours'
"$python" "$work/finding.py" "$port" 2>"$work/errors" >"$work/seen" || cat "$work/errors" >&2
verdict "$work/seen"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pottery 3.0.1 (Python): when a holder tries its own Redlock once more, the try fails, as it should,
# but the holder can no longer release the lock. Another thread's try of the same object has the
# same effect on the holder.
#
# Expected: Redlock has the calls of threading.Lock, and is meant to stand in its place. There a
#   failed acquire(blocking=False) changes nothing: the holder still holds and may release.
# Instead: acquire draws a new UUID into the object before it asks the servers, and leaves it there
#   when they refuse. The key keeps the old UUID, which the object has forgotten: locked() is 0,
#   release() and extend() raise ReleaseUnlockedLock and ExtendUnlockedLock, and nobody gets the
#   lock until its auto_release_time has passed.
# Why it matters: "if lock.acquire(blocking=False)" in several threads on one object is how
#   a threading.Lock is used. Each refused thread makes the thread in the section lose its hold: that
#   thread cannot extend the hold, and gets the error that it had none.
# Read in: pottery/redlock.py of that version, the order of the first statements behind acquire.
set -eu
. "$(dirname "$0")/common.sh"
pip_install pottery==3.0.1 redis==5.3.1
start_server
cat >"$work/finding.py" <<'PY'
import sys, threading
from pottery import Redlock, ReleaseUnlockedLock, ExtendUnlockedLock
from redis import Redis

redis = Redis(port=int(sys.argv[1]))

def call(f, *names):
    try:
        return f()
    except names as e:
        return type(e).__name__

def hold(key):
    lock = Redlock(key=key, masters={redis}, auto_release_time=60)
    assert lock.acquire()
    return lock

quiet = hold('quiet')
print('nobody tries:        locked', bool(quiet.locked()), ' release', call(quiet.release, ReleaseUnlockedLock))

seen = []
for who in 'itself', 'another thread':
    lock = hold(who)
    tried = []
    if who == 'itself':
        tried.append(lock.acquire(blocking=False))
    else:
        other = threading.Thread(target=lambda: tried.append(lock.acquire(blocking=False)))
        other.start()
        other.join()
    seen.append((tried[0], bool(lock.locked()), call(lock.extend, ExtendUnlockedLock),
                 call(lock.release, ReleaseUnlockedLock), redis.exists(lock.key)))
    print('%-14s tries: %s; then locked %s, extend %s, release %s, key there %d' % ((who,) + seen[-1]))

plain = threading.Lock()
plain.acquire()
tried = plain.acquire(blocking=False)
print('threading.Lock tries itself: %s; then locked %s, release %s' % (tried, plain.locked(), plain.release()))
print('still so' if seen == [(False, False, 'ExtendUnlockedLock', 'ReleaseUnlockedLock', 1)] * 2 else 'changed')
PY
say 'expected: False; then locked True, extend None, release None, key there 0'
"$python" -W ignore "$work/finding.py" "$port" 2>"$work/errors" >"$work/seen" || cat "$work/errors" >&2
verdict "$work/seen"

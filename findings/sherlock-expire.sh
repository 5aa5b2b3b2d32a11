#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sherlock 0.4.1 (Python): its RedisLock made with expire=None excludes nobody, and a RedisLock made
# with a fraction of a second fails and stays locked for ever.
#
# Expected: the documentation says that expire is a float in seconds, and that with None the lock
#   does not expire. So two acquires of an expire=None lock exclude each other, and half a second
#   either works or is refused before anything is taken.
# Instead: None travels as -1, and arrives in Lua as the text "-1", which is unequal to the number
#   that the script compares it with. So the script calls EXPIRE -1, which deletes the key that it
#   has just set, and reports success: everybody gets the lock, at once. Half a second
#   passes SETNX and then fails in EXPIRE, which takes whole seconds. Redis does not roll scripts
#   back, so the caller gets an exception, and the key has no TTL.
# Why it matters: the longest lease that a caller can ask for is none at all, and the shortest lease
#   is endless. No error names either. It is well known that ARGV are strings, that EXPIRE with a
#   negative time is DEL, and that an error in a script undoes nothing; here the three meet.
# Read in: sherlock/lock.py of that version, the three Lua texts of RedisLock.
set -eu
. "$(dirname "$0")/common.sh"
pip_install sherlock==0.4.1 redis==5.3.1
start_server
cat >"$work/finding.py" <<'PY'
import sys
from redis import Redis, ResponseError
from sherlock import RedisLock

redis = Redis(port=int(sys.argv[1]))

kept = []                       # sherlock's locks release what they hold when they are collected

def lock(name, expire):
    kept.append(RedisLock(name, client=redis, expire=expire))
    return kept[-1]

sixty = [lock('sixty', 60).acquire(blocking=False) for _ in range(2)]
print('expire=60:   two acquire: %s' % sixty)
none = [lock('none', None).acquire(blocking=False) for _ in range(2)]
print('expire=None: two acquire: %s, key there: %d' % (none, redis.exists('none')))
try:
    lock('half', 0.5).acquire(blocking=False)
    raised = 'nothing'
except ResponseError as e:
    raised = 'ResponseError'
left = redis.pttl('half')
print('expire=0.5:  raises %s, the TTL left is %d (-1: none, it stays; -2: no key)' % (raised, left))
so = sixty == [True, False] and none == [True, True] and raised == 'ResponseError' and left == -1
print('still so' if so else 'changed')
PY
say 'expected: [True, False] of both; 0.5 leaves a TTL of at most 500, or no key'
"$python" "$work/finding.py" "$port" 2>"$work/errors" >"$work/seen" || cat "$work/errors" >&2
verdict "$work/seen"

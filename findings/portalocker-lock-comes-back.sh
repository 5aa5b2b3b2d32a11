#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# portalocker 3.2.0 (Python): whether a RedisLock whose connection ended is lost, or silently held by
# two processes, depends on the version of redis-py beside it.
#
# Expected: the lock is a subscription. The documentation says that it is gone at once when the
#   connection ends, and the code interrupts the holder's main thread then (KeyboardInterrupt).
# Instead: redis-py 5 raises in the holder's thread, as portalocker expects. From redis-py 6 on, a
#   connection tries again by default, also in a subscription: it connects and subscribes again, and
#   raises nothing. If somebody has taken the lock meanwhile, the channel has two subscribers, each
#   of which believes that it has the lock.
# Besides: a waiter asks the holder whether it lives, and is to end the connection of one that does
#   not answer (unavailable_timeout). The answer that it takes is any message on its own new
#   subscription, and the first one is the confirmation of that subscription. So a process that
#   stands still keeps its lock for as long as it stands still.
# Why it matters: neither library changed what it promises. A holder that was cut off for a moment
#   has to learn that it lost the lock, whatever reconnects below it; and a reply is an answer only
#   if it names the question.
# Read in: portalocker/redis.py (PubSubWorkerThread, check_or_kill_lock); redis/client.py, class
#   PubSub, and the default of Redis(retry=...) in the two versions.
set -eu
. "$(dirname "$0")/common.sh"
cat >"$work/finding.py" <<'PY'
import os, signal, subprocess, sys, threading
import portalocker
from portalocker.redis import RedisLock
from redis import Redis

def connect(port):
    return Redis(port=port, decode_responses=True)

def hold(port, name):
    lock = RedisLock(name, connection=connect(port))
    lock.acquire()
    try:
        print('held', flush=True)
        sys.stdin.readline()
        print('still believes that it has the lock', flush=True)
        os._exit(0)
    except KeyboardInterrupt:
        print('was interrupted', flush=True)
        os._exit(0)

def start(port, name):
    holder = subprocess.Popen([sys.executable, __file__, str(port), name], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert holder.stdout.readline() == 'held\n'
    os.kill(holder.pid, signal.SIGSTOP)
    return holder

def end(holder, after):
    os.kill(holder.pid, signal.SIGCONT)
    threading.Event().wait(after)
    try:
        holder.stdin.write('\n')
        holder.stdin.close()
    except BrokenPipeError:
        pass
    said = holder.stdout.readline().strip()
    holder.wait()
    return said

port, name = int(sys.argv[1]), (sys.argv[2:] or [None])[0]
if name:
    hold(port, name)
admin = connect(port)

holder = start(port, 'cut')
admin.execute_command('CLIENT', 'KILL', 'TYPE', 'pubsub')   # as a server does that missed it for long
mine = RedisLock('cut', connection=connect(port))
mine.acquire(timeout=10)
os.kill(holder.pid, signal.SIGCONT)
for _ in range(100):
    if holder.poll() is not None or admin.pubsub_numsub('cut')[0][1] == 2:
        break
    threading.Event().wait(0.1)
subscribers = admin.pubsub_numsub('cut')[0][1]
said = end(holder, 0)
print('after the cut the first holder %s; subscribers: %d' % (said, subscribers))
mine.release()

holder = start(port, 'frozen')
try:
    RedisLock('frozen', connection=connect(port)).acquire(timeout=4)
    frozen = 'was taken over'
except portalocker.AlreadyLocked:
    frozen = 'stays locked'
end(holder, 0)
print('the lock of a process that stands still %s' % frozen)
PY
start_server
for version in 5.3.1 8.1.0; do
  pip_install portalocker==3.2.0 redis==$version
  "$python" "$work/finding.py" "$port" >"$work/seen.$version"
  sed 's/^/  /' "$work/seen.$version"
done
say 'expected: it is interrupted, and one subscriber; it is taken over after unavailable_timeout (1 s)'
frozen='the lock of a process that stands still stays locked'
printf '%s\n' 'after the cut the first holder was interrupted; subscribers: 1' "$frozen" >"$work/five"
printf '%s\n' 'after the cut the first holder still believes that it has the lock; subscribers: 2' "$frozen" \
  >"$work/eight"
if cmp -s "$work/five" "$work/seen.5.3.1" && cmp -s "$work/eight" "$work/seen.8.1.0"; then
  say 'still so' >"$work/seen"
else
  say changed >"$work/seen"
fi
verdict "$work/seen"

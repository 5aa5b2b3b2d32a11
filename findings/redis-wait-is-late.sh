#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Redis 7.0.15 (Debian 12): a WAIT of 10 ms lasts about 100 ms on a server that has nothing else to do,
# and 10 ms on one that has. The fewer clients there are, the later the answer.
#
# Expected: WAIT 1 10 without a replica answers 0 after some 10 ms.
# Instead: the server looks for blocked clients whose time is over before it sleeps, and then sleeps
#   until something happens; a timeout does not make it wake up. On an idle server the next event is
#   its own timer, hz = 10 times in a second. A client that sends PING each millisecond makes WAIT
#   punctual, and so does hz 100.
# Why it matters: who waits for replicas behind a lock counts on the timeout. With a deadline of 50 ms
#   and WAIT 1 40 the answer comes after the deadline, and the lock's caller takes the server for dead:
#   at night, when nobody else is there, and never in a load test.
# Read in: src/server.c (beforeSleep, serverCron) and src/timeout.c (handleBlockedClientsTimeout) of
#   that version.
set -eu
. "$(dirname "$0")/common.sh"
start_server
cat >"$work/finding.py" <<'PY'
import socket, statistics, sys, threading, time

port = int(sys.argv[1])

def connect():
    s = socket.create_connection(('127.0.0.1', port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s

def call(s, line):
    s.sendall(line + b'\r\n')
    return s.recv(256)

def waits():
    s = connect()
    took = []
    for i in range(20):
        assert call(s, b'SET key %d' % i) == b'+OK\r\n'
        begin = time.monotonic()
        assert call(s, b'WAIT 1 10') == b':0\r\n'
        took.append((time.monotonic() - begin) * 1000)
        time.sleep(0.013)
    return statistics.median(took), max(took)

def ping(stop):
    s = connect()
    while not stop.is_set():
        call(s, b'PING')
        time.sleep(0.001)

def beside(work):
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,))
    thread.start()
    try:
        return waits()
    finally:
        stop.set()
        thread.join()

idle = waits()
busy = beside(ping)
call(connect(), b'CONFIG SET hz 100')
often = waits()
for name, (median, longest) in (('idle', idle), ('beside a client that sends PING', busy), ('idle, hz 100', often)):
    print('WAIT 1 10, %s: median %.0f ms, longest %.0f ms' % (name, median, longest))
print('still so' if idle[0] > 50 and busy[0] < 30 and often[0] < 30 else 'changed')
PY
say 'expected: some 10 ms each'
python3 "$work/finding.py" "$port" >"$work/seen" || exit 2
verdict "$work/seen"

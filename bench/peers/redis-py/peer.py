# SPDX-License-Identifier: Apache-2.0
"""redis-py's Lock, for bench/peer.c: peer.py kind name clients. One client; bench starts one of
these for each."""

import os
import sys
import time

import redis

WARM_UP_S = 0.2


def work(lock, until):
    """Locks and unlocks until it is late; how often."""
    pairs = 0
    while time.monotonic() < until:
        lock.acquire()
        lock.release()
        if time.monotonic() < until:
            pairs += 1
    return pairs


def main():
    name = sys.argv[2]
    client = redis.Redis.from_url(os.environ["RLOCK_URL"])
    work(client.lock(f"{name}-warm-{os.getpid()}", timeout=30), time.monotonic() + WARM_UP_S)
    lock = client.lock(name, timeout=30)
    print("ready", flush=True)
    for line in sys.stdin:
        settle, length = (int(us) / 1e6 for us in line.split()[1:])
        start = time.monotonic() + settle
        time.sleep(settle)
        print("did", work(lock, start + length), flush=True)


main()

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Redis Sentinel 7.0.15 (Debian 12): while a sentinel leads a failover, its two answers to the question
# "who is the master?" differ for seconds. SENTINEL MASTER gives the old master's address together with
# the epoch of the new one; SENTINEL GET-MASTER-ADDR-BY-NAME gives the new address. The old master says
# ROLE master all the time.
#
# Expected: address and config-epoch of one reply belong together, or both commands name one master.
# Instead: the leader's record gets the new config-epoch when the promoted replica says that it is a
#   master; from then on GET-MASTER-ADDR-BY-NAME names that replica. The address in the record changes
#   only at the end of the failover, when all other replicas follow the new master or time is over.
# Why it matters: a client that asks several sentinels and believes the answer with the greatest
#   config-epoch believes the old master, which accepts its writes. All that it locks there is lost
#   when the failover ends: the old master becomes a replica, and drops what it wrote.
# Read in: src/sentinel.c of that version: sentinelRefreshInstanceInfo, sentinelGetCurrentMasterAddress,
#   addReplySentinelRedisInstance, sentinelFailoverDetectEnd.
set -eu
. "$(dirname "$0")/common.sh"
need redis-sentinel redis-server redis-cli python3
start_server
cat >"$work/finding.py" <<'PY'
import json, subprocess, sys, time

master, work = int(sys.argv[1]), sys.argv[2]
free = [int(p) for p in sys.argv[3:]]
started = []

def ask(port, *words):
    out = subprocess.run(['redis-cli', '--json', '-p', str(port), *words], capture_output=True, text=True).stdout
    try:
        return json.loads(out)
    except ValueError:
        return out.strip()

def wait_for(what, seconds=30):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            print('cannot: nothing came of it in %d s' % seconds)
            sys.exit(2)
        time.sleep(0.05)

def start(program, port, *more, config=None):
    with open('%s/%d.conf' % (work, port), 'w') as f:
        f.write('port %d\nbind 127.0.0.1\ndir %s\n%s' % (port, work, config or ''))
    with open('%s/%d.log' % (work, port), 'w') as log:
        started.append(subprocess.Popen([program, f.name, *more], stdout=log, stderr=log))
    wait_for(lambda: ask(port, 'ping') == 'PONG')

def both():
    m = ask(sentinel, 'sentinel', 'master', 'm')
    return int(m['port']), int(m['config-epoch']), int(ask(sentinel, 'sentinel', 'get-master-addr-by-name', 'm')[1])

try:
    replicas, sentinel = free[:2], free[2]
    for port in replicas:
        start('redis-server', port, '--save', '', '--replicaof', '127.0.0.1', str(master))
    start('redis-sentinel', sentinel, config='sentinel monitor m 127.0.0.1 %d 1\n' % master)
    wait_for(lambda: ask(sentinel, 'sentinel', 'master', 'm')['num-slaves'] == '2')
    wait_for(lambda: all(r['role-reported'] == 'slave' and r['master-link-status'] == 'ok'
                         for r in ask(sentinel, 'sentinel', 'replicas', 'm')))
    before = both()
    ask(sentinel, 'sentinel', 'failover', 'm')
    begin = time.monotonic()
    mixed, roles = [], set()
    while time.monotonic() - begin < 60:
        port, epoch, address = both()
        if port == master and epoch > before[1] and address != master:
            mixed.append(time.monotonic())
            roles.add(ask(master, 'role')[0])
        if port != master:
            break
        time.sleep(0.02)
    lasted = mixed[-1] - mixed[0] if mixed else 0
    print('before: %s; after: %s (port of MASTER, its config-epoch, port of GET-MASTER-ADDR-BY-NAME)' % (before, both()))
    print('%d replies of SENTINEL MASTER, in %.1f s, had the old port and the new epoch, while the other command named the new port'
          % (len(mixed), lasted))
    print('the old master said ROLE %s meanwhile' % ', '.join(sorted(roles)))
    print('still so' if lasted >= 0.2 and roles == {'master'} else 'changed')
finally:
    for process in started:
        process.terminate()
    for process in started:
        process.wait()
PY
say 'expected: the address and the epoch of one reply belong together'
python3 "$work/finding.py" "$port" "$work" "$(free_port)" "$(free_port)" "$(free_port)" >"$work/seen" ||
  { cat "$work/seen" >&2; exit 2; }
verdict "$work/seen"

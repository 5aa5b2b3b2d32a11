#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The nemesis in `make check`: four short runs: with all faults; without those that S1
# excludes; with few faults and many processes, to test the order of waiters; and, by turns of the
# minute, over TLS or with replicas that confirm each lock (some 20 s). In the first run half of the
# lives have the crash guard, in the others all or none, as the environment says. At the full level
# one run more: no replica confirms a lock, and the judge, who believes that all do, has to find
# what the failovers lost. Prints how many runs passed, in Check's format.
set -u
scale=${RLOCK_TEST_SCALE:-1}
if [ "$scale" -ge 10 ]; then
  echo "skipped: nemesis: its clocks are real, and this tool makes all too slow"
  exit 77
fi
# The nemesis itself finds what hangs, within its own bounds, and reports it. These also
# grow with the scale, and are less than half of this limit.
nemesis=$RLOCK_TEST_BUILDDIR/tests/nemesis/nemesis
failed=0
count=0
run() {
  count=$((count + 1))
  for try in 1 2 3; do
    echo "nemesis $*"
    status=0
    timeout $((300 * scale)) "$nemesis" "$@" || status=$?
    [ $status = 75 ] && [ $try != 3 ] || break
    echo "repeated: nemesis: this machine stood still"
  done
  [ $status = 0 ] || [ $status = 77 ] || failed=$((failed + 1)) # 77: no TLS
}
guard=off
[ "${RLOCK_TEST_GUARD:-}" != 1 ] || guard=on
run --seconds 12 --gap 250 --guard some
run --seconds 10 --gap 250 --strict --guard $guard
run --seconds 8 --gap 2000 --strict --guard $guard --processes 6 --locks 6 --must order,reads,writes,prompt
over_tls() { run --servers tls --seconds 8 --gap 250 --guard $guard; }
with_replicas() {
  run --servers replicas --seconds 4 --gap 800 --guard $guard --lease 1500 --must tokens \
    --only failover,master-kill,master-stop,kill,stop-short
}
with_a_cluster() {
  run --servers cluster --seconds 5 --gap 300 --guard $guard --lease 2000 --must kept,stuck \
    --only failover,takeover,node-restart,reshard,reshard-halfway,cut,kill
}
# A run whose judge has to report locks that the new master never had: that their holders learn of
# it before their leases end, or that two processes had one at a time.
finds_losses() {
  count=$((count + 1))
  for try in 1 2 3; do
    echo "nemesis --unconfirmed $*"
    said=$(timeout $((300 * scale)) "$nemesis" --unconfirmed --seconds 15 --guard off "$@")
    echo "$said" | sed 's/^/  /' # no violation of this test
    case $said in *'violation of loss'* | *'violation of exclusion'*) return ;; esac
  done
  failed=$((failed + 1))
}
if [ "${RLOCK_TEST_LEVEL:-quick}" = full ]; then
  over_tls
  with_replicas
  with_a_cluster
  run --servers cluster --seconds 20 --gap 9000 --guard $guard --must kept,stuck --processes 64 --locks 30 \
    --threads 1 --only rolling-restart
  finds_losses --servers replicas --gap 1500 --only failover
  finds_losses --servers cluster-replicas --gap 500 --only takeover
else
  case $(($(date +%s) / 60 % 3)) in
    0) over_tls ;;
    1) with_replicas ;;
    2) with_a_cluster ;;
  esac
fi
echo "$(((count - failed) * 100 / count))%: Checks: $count, Failures: $failed, Errors: 0"
[ $failed = 0 ]

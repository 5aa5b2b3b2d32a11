#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The nemesis in `make check`: three short runs: with all faults; without those that S1
# excludes; and with few faults and many processes, to test the order of waiters. In the
# first run half of the lives have the crash guard, in the others all or none, as the
# environment says. Prints how many runs passed, in Check's format.
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
run() {
  for try in 1 2 3; do
    echo "nemesis $*"
    status=0
    timeout $((300 * scale)) "$nemesis" "$@" || status=$?
    [ $status = 75 ] && [ $try != 3 ] || break
    echo "repeated: nemesis: this machine stood still"
  done
  [ $status = 0 ] || failed=$((failed + 1))
}
guard=off
[ "${RLOCK_TEST_GUARD:-}" != 1 ] || guard=on
run --seconds 12 --gap 250 --guard some
run --seconds 10 --gap 250 --strict --guard $guard
run --seconds 8 --gap 2000 --strict --guard $guard --processes 6 --locks 6 --must order,reads,writes,prompt
echo "$(((3 - failed) * 100 / 3))%: Checks: 3, Failures: $failed, Errors: 0"
[ $failed = 0 ]

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh: ports the programs of this directory from pthread to rlock with one sed script,
# builds both versions with -Wall -Wextra -Werror, and runs both: their output must be the
# same to the byte. Together they use every function and constant of the manual's table.
# Runs at the top of the build tree. From make: $RLOCK_TEST_COMPILE and $RLOCK_TEST_LINK,
# the compiler with the build's flags. RLOCK_TEST_SCALE as for the other tests.
set -eu
srcdir=${srcdir:-$(dirname "$0")/../..}
. "$srcdir/scripts/common.sh"
port=$srcdir/scripts/pthread2rlock.sed
compile="${RLOCK_TEST_COMPILE-cc} -Wall -Wextra -Werror"
link=${RLOCK_TEST_LINK-cc}
# The pthread versions are built without sanitizers: their wrong unlocks are intended.
plain() { say "$*" | sed 's/-fsanitize=[^ ]*//g'; }
scale=${RLOCK_TEST_SCALE:-1}
find_server() { say "${RLOCK_TEST_SERVER:-no}"; }
if ! command -v "$(find_server)" >/dev/null; then
  say "skipped: ported programs: no redis-server"
  exit 77
fi

work=$(mktemp -d "$(pwd)/ported.XXXXXX")
clean_up() {
  stop_server
  rm -rf "$work"
}
on_end clean_up
start_server
url=$RLOCK_URL

checks=0
failures=0
# claim what-failed command...
claim() {
  checks=$((checks + 1))
  failed="$1"
  shift
  "$@" && return
  failures=$((failures + 1))
  say "FAILED: $failed"
}

# The library's default mutex differs from glibc's unless it is set; a dead process's lease
# ends soon.
run() {
  lease=30000
  case $1 in */robust) lease=$((3000 * scale)) ;; esac
  status=0
  RLOCK_URL="$url?mutextype=normal&lease=$lease" timeout $((60 * scale)) "$1" >"$1.out" 2>&1 ||
    status=$?
  say "ended with $status" >>"$1.out"
}

# build side compile link library...: builds the program $name.
# shellcheck disable=SC2086 # lists of words
build() {
  side=$1 cc=$2 ld=$3
  shift 3
  $cc -c "$work/$side/$name.c" -o "$work/$side/$name.o" &&
    ./libtool --silent --tag=CC --mode=link $ld -o "$work/$side/$name" \
      "$work/$side/$name.o" "$@"
}

same_after_porting() {
  name=$1
  mkdir -p "$work/before" "$work/after"
  cp "$srcdir/tests/ported/$name.c" "$work/before"
  sed -E -f "$port" "$work/before/$name.c" >"$work/after/$name.c"
  if grep -E 'pthread_(mutex|rwlock)|PTHREAD_(MUTEX|RWLOCK|PRIO|PROCESS)' "$work/after/$name.c"; then
    say "$name: not ported"
    return 1
  fi
  build before "$(plain "$compile")" "$(plain "$link")" -lpthread || return 1
  build after "$compile" "$link" librlk.la -lpthread || return 1
  case $name,$compile in
    robust,*-fsanitize=*thread*)
      say "skipped: ported $name: ThreadSanitizer does not let it fork"
      return 0 ;;
  esac
  run "$work/before/$name" &
  run "$work/after/$name"
  wait $!
  tail -n 1 "$work/before/$name.out" | grep -q 'ended with 0' || {
    cat "$work/before/$name.out"
    return 1
  }
  # the differing lines, in columns: before, after
  diff "$work/before/$name.out" "$work/after/$name.out"
}

# Prints the names in the table that no program uses.
unused() {
  ! sed -nE 's/^\.It (Fn|Dv) (pthread_(mutex|rwlock)\w*|PTHREAD_\w*) Ta .*/\2/p' \
    "$srcdir/doc/man/rlock_pthread.7" | sort -u | while read -r name; do
    grep -qw "$name" "$srcdir"/tests/ported/*.c || say "$name"
  done | grep .
}

# A structure member may have many objects, but the source names it once.
members_get_no_name() {
  printf '%s\n' 'q = { .mu = PTHREAD_MUTEX_INITIALIZER };' 'm = PTHREAD_MUTEX_INITIALIZER;' |
    sed -E -f "$port" >"$work/members"
  printf '%s\n' 'q = { .mu = RLOCK_MUTEX_INITIALIZER };' 'm = RLOCK_MUTEX_INITIALIZER("m");' |
    diff - "$work/members"
}

expressions() {
  [ "$(grep -c '^[^#]' "$port")" -le 5 ]
}

for program in "$srcdir"/tests/ported/*.c; do
  name=$(basename "$program" .c)
  claim "$name is another program after porting" same_after_porting "$name"
done
claim "some of the table is used by no program" unused
claim "a member of a structure got a name" members_get_no_name
claim "more than five expressions" expressions
# in Check's format
say "$((100 * (checks - failures) / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ $failures = 0 ]

# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# The parts of scripts/check, which sources this file. Each function part_NAME runs under set -e
# with its output in a log, below $work; $mode is quick or full, $third says which third of the
# tests is in turn.

# More tests run at a time than there are cores: most of a test's time is waiting for leases to end.
cores=$(getconf _NPROCESSORS_ONLN)

# Chooses the tests that a part runs. Full: all. Quick, for slow tools: the tests that stand for a
# guarantee or a rule, and a third of the others in turn, so that three commits cover all; with
# Valgrind, the slowest, a third of the first, too (AddressSanitizer runs all of these). The tests
# of the test harness are left out; so are, except for ThreadSanitizer, the tests that run once more
# for another type of lock. Where --tests names programs, these are the choice.
choose_tests() {
  part=$1
  if [ "$only" ]; then
    # shellcheck disable=SC2086 # a list of words
    printf '%s\n' $only | sed 's|^tests/||; s|^|tests/|' >"$work/$part.tests"
    [ "$part" != memcheck ] || cp "$work/$part.tests" "$work/gcc.tests" # whose programs it runs
    return
  fi
  if [ "$part" = notls ]; then # what says something else without TLS
    printf 'tests/%s\n' test_url test_conf test_attr test_errno test_client_api test_tls \
      >"$work/$part.tests"
    return
  fi
  [ "$mode" = quick ] || return 0
  case $part in
    clang) build-aux/test-programs list unit | sed 's|^|tests/|' ;;
    memcheck | asan | tsan)
      {
        if [ "$part" = memcheck ]; then
          build-aux/test-programs list claims | awk -v third="$third" 'NR % 3 == third'
        else
          build-aux/test-programs list claims
        fi
        {
          build-aux/test-programs list harness
          [ "$part" = tsan ] || build-aux/test-programs list second
          build-aux/test-programs list claims
        } | sort -u >"$work/.$part.not"
        {
          build-aux/test-programs list all
          # Valgrind runs no scripts: there they would do the same as in part gcc
          [ "$part" = memcheck ] ||
            printf '%s\n' nemesis/check.sh cli/completions.sh ported/run.sh
          sed -n 's/^FUZZ_TARGETS = //p' tests/fuzz/local.mk | tr ' ' '\n' | sed 's|^|fuzz/replay_|'
        } | sort | comm -23 - "$work/.$part.not" | awk -v third="$third" 'NR % 3 == third'
      } >"$work/.$part.some"
      build-aux/test-programs list slow >"$work/.$part.slow"
      {
        grep -xFf "$work/.$part.slow" "$work/.$part.some" || :
        grep -vxFf "$work/.$part.slow" "$work/.$part.some"
      } | sed 's|^|tests/|' ;;
  esac >"$work/$part.tests.new"
  if [ -s "$work/$part.tests.new" ]; then
    mv "$work/$part.tests.new" "$work/$part.tests"
  else
    rm "$work/$part.tests.new"
  fi
}

# build directory [configure option...]
build() {
  make_configure
  configure_in "$@"
  make -C "$1" -j2 all
}

# A machine that has other work as well, for instance a second run of this, gets no more of it
# than it can do: leases that nobody has the time to renew prove nothing.
load=$((10 * cores))

# suite part level scale jobs [make argument...]: runs the part's tests, in $work/PART.
suite() {
  suite_part=$1 jobs=$4
  RLOCK_TEST_LEVEL=$2 RLOCK_TEST_SCALE=$3
  export RLOCK_TEST_LEVEL RLOCK_TEST_SCALE
  shift 4
  if [ -e "$work/$suite_part.tests" ]; then
    $wrapped make -C "$work/$suite_part" -j"$jobs" -l"$load" -k VERBOSE=1 check-chosen \
      CHOSEN="$(tr '\n' ' ' <"$work/$suite_part.tests")" "$@"
  else
    $wrapped make -C "$work/$suite_part" -j"$jobs" -l"$load" -k VERBOSE=1 check "$@"
  fi
}
wrapped=

part_gcc() {
  scripts/build-parts "$work" gcc
  if [ "$mode" = full ]; then level=full; else level=quick; fi
  suite gcc $level 1 $((4 * cores))
}

# clang's warnings for all sources, and the tests without a server, compiled by clang; in full, all
# tests.
part_clang() {
  scripts/build-parts "$work" clang
  make -C "$work/clang" check-syntax
  RLOCK_TEST_GUARD=1 # as users have it; the other parts test what leases do
  export RLOCK_TEST_GUARD
  suite clang quick 1 $((2 * cores))
  [ "$mode" = quick ] || tests/fuzz/run --seconds 5 --build "$work/clang/fuzz"
}

# The library that is built without TLS.
part_notls() {
  scripts/build-parts "$work" notls
  suite notls quick 1 $((2 * cores))
}

# Builds, installs and removes all as from a release. The tests of the release run in part gcc.
part_distcheck() {
  scripts/build-parts "$work" gcc # which makes the release
  make -C "$work/dist" -j2 distcheck TESTS= \
    DISTCHECK_CONFIGURE_FLAGS='--enable-werror --disable-static --disable-tests --disable-bench'
}

# Runs what part gcc has built under Valgrind. Reports go to files, so that a report about a helper
# process that a test starts counts, too.
part_memcheck() {
  reports=$work/memcheck/reports
  scripts/build-parts "$work" gcc
  cp -al "$work/gcc" "$work/memcheck"
  find "$work/memcheck/tests" \( -name '*.log' -o -name '*.trs' \) -delete
  mkdir -p "$reports"
  # fair: otherwise threads that never sleep may keep the others from running, for minutes
  memcheck="valgrind --fair-sched=try --error-exitcode=99 --leak-check=full --track-fds=no"
  memcheck="$memcheck --errors-for-leak-kinds=definite,possible --num-callers=30"
  memcheck="$memcheck --suppressions=$top/scripts/valgrind.supp --log-file=$reports/%p"
  if [ "$mode" = quick ]; then
    RLOCK_TEST_WARM=1
    export RLOCK_TEST_WARM
  fi
  status=0
  suite memcheck quick 10 $((2 * cores)) \
    LOG_COMPILER="./libtool --mode=execute $memcheck" || status=$?
  drop_outdated
  bad=$(grep -l 'ERROR SUMMARY: [1-9]' "$reports"/* || :)
  show_reports
}

part_asan() {
  reports=$work/asan/reports
  scripts/build-parts "$work" asan
  mkdir -p "$reports"
  ASAN_OPTIONS=exitcode=99:detect_stack_use_after_return=1:log_path=$reports/asan:log_exe_name=1
  UBSAN_OPTIONS=exitcode=99:print_stacktrace=1:log_path=$reports/ubsan:log_exe_name=1
  export ASAN_OPTIONS UBSAN_OPTIONS
  status=0
  wrapped='nice -n 5' # Valgrind, beside it, needs the processors more
  suite asan quick 3 $((2 * cores)) || status=$?
  drop_outdated
  drop_killed
  bad=$(find "$reports" -type f -size +0)
  show_reports
}

part_tsan() {
  reports=$work/tsan/reports
  scripts/build-parts "$work" tsan
  mkdir -p "$reports"
  TSAN_OPTIONS=exitcode=99:second_deadlock_stack=1:log_path=$reports/tsan:log_exe_name=1
  TSAN_OPTIONS=$TSAN_OPTIONS:suppressions=$top/scripts/tsan.supp:print_suppressions=0
  RLOCK_TEST_GUARD=1
  export TSAN_OPTIONS RLOCK_TEST_GUARD
  status=0
  wrapped="nice -n 5 $(fixed_addresses)"
  suite tsan quick 5 $((2 * cores)) || status=$?
  drop_outdated
  bad=$(find "$reports" -type f -size +0)
  show_reports
}

# Removes the reports about runs that were repeated: a test that failed mostly left its memory
# behind.
drop_outdated() {
  find "${reports%/*}/tests" -name '*.log' -exec grep -H '^repeated: .*@' {} + |
    while IFS=: read -r repeated line; do
      program=$(basename "${repeated%.log}")
      touch -d "@${line##*@}" "$reports/.repeated"
      find "$reports" -type f ! -name .repeated ! -newer "$reports/.repeated" |
        while read -r report; do
          case $report in */*san."$program".*) rm "$report" ;; esac
          ! grep -qs "^==[0-9]*== Command: .*/$program\$" "$report" || rm "$report"
        done
      rm "$reports/.repeated"
    done || :
}

# Removes the reports that say only that LeakSanitizer did not reach a thread: the test killed the
# process while it ended and looked for leaks. A leak has lines of its own.
drop_killed() {
  find "$reports" -type f -size +0 | while read -r report; do
    grep -qvE 'Unable to get registers from thread [0-9]+\.$|Running thread [0-9]+ was not suspended\. ' \
      "$report" || rm "$report"
  done
}

# Fails when the suite failed, or when there are reports.
show_reports() {
  for report in $bad; do
    say "--- $report"
    tail -n 100 "$report"
  done
  [ -z "$bad" ] && [ "$status" = 0 ]
}

# clang-format has nothing to change in any C file.
check_format() {
  command -v clang-format >/dev/null ||
    { say 'skipped: layers: clang-format: there is none'; return 0; }
  find include src cli guardd tests examples bench findings -name '*.[ch]' \
    ! -path '*/.*' -exec clang-format --dry-run -Werror {} +
}

# Tries three mutants, other ones each time, so that all come in turn.
part_mutants() {
  tests/mutants/run --quick 3
}

part_layers() {
  build-aux/check-layers "$top"
  check_format
  build-aux/test-programs check
  build-aux/check-ci "$top"
  tests/mutants/run --check
}

part_docs() {
  CC=gcc build-aux/check-docs "$top"
  CC=gcc build-aux/check-man "$top"
}

# With both compilers' view of the system's header.
part_pthread() {
  for cc in gcc clang; do
    CC=$cc build-aux/check-pthread "$top"
  done
}

part_exports() {
  scripts/build-parts "$work" gcc
  build-aux/check-exports "$work/gcc/.libs/librlock.so" "$top"
  build-aux/check-probes "$work/gcc/.libs/librlock.so" "$top"
}

# The header alone, as users' compilers see it.
part_header() {
  strict='-pedantic -Wall -Wextra -Werror -fsyntax-only'
  # shellcheck disable=SC2086 # a list of words
  for cc in gcc clang; do
    $cc -x c -std=c11 $strict include/rlock.h
    $cc -x c -std=c11 -D_GNU_SOURCE $strict include/rlock.h
  done
  # shellcheck disable=SC2086
  for cc in g++ clang++; do
    $cc -x c++ -std=c++17 $strict include/rlock.h
    $cc -std=c++17 $strict -Iinclude examples/09_cpp.cpp
  done
}

# Programs of users against the installed library; first README's, built as README says.
part_install() {
  prefix=$work/gcc/prefix
  scripts/build-parts "$work" gcc
  make -C "$work/gcc" install
  mkdir -p "$work/install"
  build-aux/check-docs --programs README.md "$work/install"
  # shellcheck disable=SC2046 # a list of words
  (cd "$work/install" && PKG_CONFIG_PATH=$prefix/lib/pkgconfig && export PKG_CONFIG_PATH &&
    gcc -Wall -Wextra -Werror 1.c $(pkg-config --cflags --libs rlock) -o hello)
  start_server
  LD_LIBRARY_PATH=$prefix/lib timeout 30 "$work/install/hello" a-name </dev/null
  stop_server
  make -C "$work/gcc" uninstall
  scripts/consumers "$work/gcc"
}

# The Debian packages of the release, installed into a private copy of this system.
part_package() {
  scripts/build-parts "$work" gcc
  scripts/package "$work"/dist/rlock-*.tar.xz
}

# Compares the interface with that of the last release.
part_abi() {
  scripts/abi
}

# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# What the scripts share. They source this file at the top of the source tree.

say() { printf '%s\n' "$*"; }
die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# -- packages ----------------------------------------------------------------------

# Words of the form kind:what=package. "cmd" is found in PATH, "pc" by pkg-config, "hdr"
# below the compiler's include directories, "pkg" only as a package; "fuzz" is clang's
# libFuzzer.
BUILD_NEEDS='hdr:stdio.h=libc6-dev cmd:gcc=gcc cmd:make=make cmd:autoconf=autoconf
  cmd:automake=automake cmd:libtoolize=libtool cmd:pkg-config=pkg-config
  pc:hiredis=libhiredis-dev pc:openssl=libssl-dev pc:ncursesw=libncurses-dev cmd:redis-server=redis-server'
CHECK_NEEDS="$BUILD_NEEDS cmd:openssl=openssl cmd:stunnel4=stunnel4 pkg:haproxy=haproxy
  cmd:g++=g++ cmd:clang=clang cmd:clang-format=clang-format
  pc:check=check cmd:valgrind=valgrind
  fuzz:clang=libclang-rt-dev pkg:libc6-dbg=libc6-dbg cmd:xz=xz-utils
  cmd:mandoc=mandoc cmd:yamllint=yamllint cmd:python3=python3 cmd:zsh=zsh cmd:fish=fish
  pkg:bash-completion=bash-completion"

# For programs of users, the Debian packages, and the comparison with a release.
INSTALL_NEEDS='cmd:g++=g++ cmd:cmake=cmake cmd:musl-gcc=musl-tools'
PACKAGE_NEEDS='cmd:g++=g++ cmd:cmake=cmake cmd:dpkg-buildpackage=dpkg-dev cmd:dh=debhelper
  cmd:lintian=lintian pkg:build-essential=build-essential cmd:unshare=util-linux
  hdr:ncurses.h=libncurses-dev hdr:sys/sdt.h=systemtap-sdt-dev'
ABI_NEEDS='cmd:abidiff=abigail-tools'

find_server() {
  (
    PATH=$PATH:/usr/local/bin:/usr/sbin
    command -v redis-server || command -v valkey-server
  )
}

is_there() {
  case $1 in
    cmd:redis-server) find_server >/dev/null ;;
    cmd:*) command -v "${1#*:}" >/dev/null 2>&1 ;;
    pc:*) pkg-config --exists "${1#*:}" >/dev/null 2>&1 ;;
    hdr:*) printf '#include <%s>\n' "${1#*:}" | gcc -E - >/dev/null 2>&1 ;;
    fuzz:*)
      printf 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
        clang -x c -fsanitize=fuzzer,address - -o /dev/null >/dev/null 2>&1 ;;
    pkg:*) # elsewhere than on Debian and its children the tool itself knows
      ! command -v dpkg-query >/dev/null 2>&1 ||
        dpkg-query -W -f '${Status}' "${1#*:}" 2>/dev/null | grep -q ' installed$' ;;
  esac
}

missing_packages() {
  for need in "$@"; do
    is_there "${need%%=*}" || printf '%s ' "${need#*=}"
  done
}

# install_missing kind:what=package...: asks apt only for what is missing. Runs at the same time,
# of any tree or user, take turns.
install_missing() {
  wanted=$(missing_packages "$@")
  [ -n "$wanted" ] || return 0
  command -v apt-get >/dev/null 2>&1 || die "please install: $wanted"
  sudo=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || die "not root, and no sudo; please install: $wanted"
    sudo=sudo
  fi
  # The lock is on the directory itself, so that no user has to own a lock file.
  (
    flock -n 9 || say "waiting for another installation"
    flock 9
    install_in_turn "$@"
  ) 9<"${policy%/*}" || exit 1
  wanted=$(missing_packages "$@")
  [ -z "$wanted" ] || die "still missing after the installation: $wanted"
}

# A server that gets installed is for private instances of these scripts: its package's service
# must not start. This file forbids that while apt-get runs. A policy that is there already is not
# touched.
policy=/usr/sbin/policy-rc.d
policy_mark='# of scripts/common.sh of rlock, for the time of an installation'

apt_get() {
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" 9<&-
}

remove_policy() {
  if [ "$own_policy" ] || grep -qsxF "$policy_mark" $policy; then
    $sudo rm -f $policy
  fi
}

# Runs in a subshell that holds the lock. So a policy with this mark is left from a killed run.
install_in_turn() {
  wanted=$(missing_packages "$@") # the other run may have installed them
  [ -n "$wanted" ] || return 0
  say "installing: $wanted"
  own_policy=
  remove_policy
  on_end remove_policy # after a signal, too: when apt-get has ended
  apt_get update >/dev/null || die "apt-get update failed"
  case " $wanted " in
    *' redis-server '*)
      if ! apt-cache show redis-server >/dev/null 2>&1; then
        wanted=$(say "$wanted" | sed 's/redis-server/valkey-server/')
      fi ;;
  esac
  if [ ! -e $policy ]; then
    own_policy=yes
    printf '%s\n' '#!/bin/sh' "$policy_mark" 'exit 101' | $sudo tee $policy >/dev/null
    $sudo chmod 755 $policy || die "cannot write $policy"
  fi
  # shellcheck disable=SC2086 # a list of words
  apt_get install -y --no-install-recommends $wanted >/dev/null ||
    die "apt-get install failed: $wanted"
}

# -- building ----------------------------------------------------------------------

# The scripts build out of the tree. automake refuses that when the tree itself is configured.
need_clean_tree() {
  [ ! -e config.status ] ||
    die "this tree is configured in itself; the scripts build below build/: make distclean first"
}

# Makes ./configure if it is missing or older than its sources, or if a test was added since. Two
# runs at once in one tree take turns.
make_configure() {
  need_clean_tree
  mkdir -p build
  (
    flock 9
    if [ ! -x configure ] || [ ! -f Makefile.in ] ||
      ! build-aux/test-programs mk | cmp -s - tests/programs.mk ||
      [ -n "$(find configure.ac Makefile.am ./*/*.mk ./*/*/*.mk -newer Makefile.in)" ]; then
      ./autogen.sh
    fi
  ) 9>build/.autogen.lock
}

# configure_in directory [option...]: configures it once; later the makefile does that by itself.
configure_in() {
  dir=$1
  shift
  mkdir -p "$dir"
  (cd "$dir" && { [ -f Makefile ] || "$top/configure" --quiet "$@"; })
}

# The command that starts a program of ThreadSanitizer, whose memory layout does not work with the
# address randomisation of newer kernels.
fixed_addresses() {
  ! setarch "$(uname -m)" -R true 2>/dev/null || say "setarch $(uname -m) -R"
}

# -- what the tests said ------------------------------------------------------------

# count_tests directory: prints "checks failures skipped" from the output of Check and automake. A
# program that failed without a failed check in its closing line counts as one.
count_tests() {
  find "$1" -name '*.trs' -path '*/tests/*' | while read -r trs; do
    result=$(sed -n 's/^:test-result: //p' "$trs")
    awk -v result="$result" '
      /^[0-9]+%: Checks: [0-9]+, Failures: / { checks += $3; bad += $5 + $7 }
      /^repeated: this machine / { checks = bad = 0 } # what was before it does not count
      END {
        if (result != "PASS" && result != "SKIP" && !bad) { checks++; bad = 1 }
        print checks + 0, bad + 0, result == "SKIP"
      }' "${trs%.trs}.log"
  done | awk '{ c += $1; f += $2; s += $3 } END { print c + 0, f + 0, s + 0 }'
}

# -- priorities ---------------------------------------------------------------------

# in_session level command...: becomes the command, in a session of its own, at this nice level.
# Where Linux shares the processors among sessions (autogroup, sched(7)), a nice level counts among
# the processes of one session only: so the session gets it, too.
in_session() {
  # shellcheck disable=SC2016 # for the shell in the session
  exec setsid sh -c 'echo "$0" 2>/dev/null >/proc/self/autogroup; exec nice -n "$0" "$@"' "$@"
}

# -- a private server --------------------------------------------------------------

# Starts a server on a Unix socket in a new temporary directory; sets server_pid, server_dir and
# RLOCK_URL. With a port as argument, the server also listens on that port of the loopback. Fails
# if the port is taken.
start_server() {
  server=$(find_server) || die "no redis-server found"
  server_dir=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
  # In a session of its own, so that Ctrl-C does not end it before its users.
  setsid "$server" --port "${1:-0}" --bind 127.0.0.1 --unixsocket "$server_dir/s" \
    --save '' --appendonly no --dir "$server_dir" --daemonize no >"$server_dir/log" 2>&1 &
  server_pid=$!
  RLOCK_URL=unix://$server_dir/s
  export RLOCK_URL
  tries=0
  while [ ! -S "$server_dir/s" ]; do
    tries=$((tries + 1))
    if [ $tries -gt 100 ] || ! kill -0 "$server_pid" 2>/dev/null; then
      [ -z "${1-}" ] || return 1
      cat "$server_dir/log" >&2
      die "the server did not start"
    fi
    sleep 0.1
  done
}

# Starts a server on a free port of the loopback, which RLOCK_URL names.
start_server_tcp() {
  tries_left=20
  while :; do
    port=$(shuf -i 20000-32000 -n 1)
    start_server "$port" && break
    tries_left=$((tries_left - 1))
    [ $tries_left -gt 0 ] || die "found no free port"
    stop_server
  done
  RLOCK_URL=redis://127.0.0.1:$port
}

# Harmless when no server runs.
stop_server() {
  if [ -n "${server_pid-}" ]; then
    kill "$server_pid" 2>/dev/null || :
    wait "$server_pid" 2>/dev/null || :
    server_pid=
  fi
  [ -z "${server_dir-}" ] || rm -rf "$server_dir"
  server_dir=
}

# on_end function: runs it once, however the script ends.
on_end() {
  # shellcheck disable=SC2064 # the name is known now
  trap "$1" EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

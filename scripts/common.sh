# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# What the scripts share; sourced by them from the top of the source tree.

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
  pc:hiredis=libhiredis-dev cmd:redis-server=redis-server'
CHECK_NEEDS="$BUILD_NEEDS cmd:clang=clang pc:check=check cmd:valgrind=valgrind
  fuzz:clang=libclang-rt-dev pkg:libc6-dbg=libc6-dbg cmd:xz=xz-utils"

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

# install_missing kind:what=package...: asks apt only for what is not there.
install_missing() {
  wanted=$(missing_packages "$@")
  [ -n "$wanted" ] || return 0
  command -v apt-get >/dev/null 2>&1 || die "please install: $wanted"
  sudo=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || die "not root, and no sudo; please install: $wanted"
    sudo=sudo
  fi
  say "installing: $wanted"
  apt_get() {
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"
  }
  apt_get update >/dev/null || die "apt-get update failed"
  case " $wanted " in
    *' redis-server '*)
      if ! apt-cache show redis-server >/dev/null 2>&1; then
        wanted=$(say "$wanted" | sed 's/redis-server/valkey-server/')
      fi ;;
  esac
  # The server is for our own private instances: its package's service stays down.
  policy=/usr/sbin/policy-rc.d
  own_policy=
  if [ ! -e $policy ]; then
    own_policy=$policy
    printf '#!/bin/sh\nexit 101\n' | $sudo tee $policy >/dev/null
    $sudo chmod 755 $policy
  fi
  status=0
  # shellcheck disable=SC2086 # a list of words
  apt_get install -y --no-install-recommends $wanted >/dev/null || status=$?
  [ -z "$own_policy" ] || $sudo rm -f $own_policy
  [ $status = 0 ] || die "apt-get install failed: $wanted"
  wanted=$(missing_packages "$@")
  [ -z "$wanted" ] || die "still missing after the installation: $wanted"
}

# -- building ----------------------------------------------------------------------

# Makes ./configure where it is missing or older than what it is made of. Two runs at
# once in one tree take turns.
make_configure() {
  mkdir -p build
  (
    flock 9
    if [ ! -x configure ] || [ ! -f Makefile.in ] ||
      [ -n "$(find configure.ac Makefile.am ./*/*.mk ./*/*/*.mk -newer Makefile.in)" ]; then
      ./autogen.sh
    fi
  ) 9>build/.autogen.lock
}

# configure_in directory [option...]: once; later the makefile looks after itself.
configure_in() {
  dir=$1
  shift
  mkdir -p "$dir"
  (cd "$dir" && { [ -f Makefile ] || "$top/configure" --quiet "$@"; })
}

# -- a private server --------------------------------------------------------------

# Starts a server on a Unix socket in a new temporary directory; sets server_pid,
# server_dir and RLOCK_URL. With a port as argument, on that port of the loopback, too; it
# fails if the port is taken.
start_server() {
  server=$(find_server) || die "no redis-server found"
  server_dir=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
  # In a session of its own, so that Ctrl-C does not take it from its users' feet.
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

# The same on a free port of the loopback, over which RLOCK_URL goes.
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

# Harmless when none runs.
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

# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# What the findings share; they source this file. A finding has a temporary directory $work and a
# server of its own; both are gone when it ends. Exit codes: 0 the surprise is still there, 1 it is
# not, 2 something could not be installed or started.

say() { printf '%s\n' "$*"; }
cannot() {
  say "cannot: $*" >&2
  exit 2
}

work=$(mktemp -d "${TMPDIR:-/tmp}/finding.XXXXXX") || exit 2
server=
clean_up() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || :
  [ -z "$server" ] || wait "$server" 2>/dev/null || :
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# need program...
need() {
  for program in "$@"; do
    command -v "$program" >/dev/null 2>&1 || cannot "no $program"
  done
}

# try command...: its output is shown only when it fails
try() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; cannot "$*"; }; }

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# start_server [word...]: sets $server and $port. The words stand in front of the server's command
# line, for example env.
start_server() {
  need redis-server redis-cli python3
  port=$(free_port)
  "$@" redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no --dir "$work" \
    --daemonize no >"$work/server.log" 2>&1 &
  server=$!
  tries=100
  until [ "$(redis-cli -p "$port" ping 2>/dev/null)" = PONG ]; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] && kill -0 "$server" 2>/dev/null || cannot "no server on port $port"
    sleep 0.1
  done
  say "server: $(redis-cli -p "$port" info server | tr -d '\r' | sed -n 's/^redis_version:/Redis /p')"
}

# pip_install name==version...: into $work/venv; sets $python
pip_install() {
  need python3
  try python3 -m venv "$work/venv"
  python=$work/venv/bin/python
  try "$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check "$@"
  say "$(python3 --version), $*"
}

# go_get module@version...: $work/go is a module with these; its main.go is to be written first
go_get() {
  need go
  GOPATH=$work/gopath GOFLAGS='-mod=mod -modcacherw'
  export GOPATH GOFLAGS
  cd "$work/go" || exit 2
  try go mod init finding
  for module in "$@"; do
    try go get "$module"
  done
  try env CGO_ENABLED=0 go build -trimpath -o ../finding .
  cd ..
  say "$(go version | cut -d' ' -f3), $*"
}

# verdict file: prints the file; its last line decides
verdict() {
  cat "$1"
  case $(tail -n 1 "$1") in
    'still so') ;;
    *) say "finding: no longer so"; exit 1 ;;
  esac
}

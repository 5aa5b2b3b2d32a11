#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# completions.sh: loads the completions of rlock(1) into those of bash, zsh and fish that are
# installed, and checks what they offer: commands, options, the names of locks that are held,
# and the beginnings of the command of `rlock run`. For zsh it types on a terminal.
# Runs at the top of the build tree. RLOCK_TEST_SCALE as for the other tests.
set -eu
srcdir=${srcdir:-$(dirname "$0")/../..}
. "$srcdir/scripts/common.sh"
scale=${RLOCK_TEST_SCALE:-1}
find_server() { say "${RLOCK_TEST_SERVER:-no}"; }
if ! command -v "$(find_server)" >/dev/null; then
  say "skipped: completions: no redis-server"
  exit 77
fi
top=$(pwd)
files=$(cd "$srcdir/cli/completions" && pwd)

work=$(mktemp -d "$top/completions.XXXXXX")
holder=
clean_up() {
  [ -z "$holder" ] || kill "$holder" 2>/dev/null || :
  stop_server
  rm -rf "$work"
}
on_end clean_up
start_server
mkdir -p "$work/bin" "$work/home" "$work/zsh/functions"
ln -s "$top/cli/rlock" "$work/bin/rlock"
# The completions give up after a second, because a user is waiting. Here no user waits, and a
# busy machine may take longer.
cat >"$work/bin/timeout" <<EOF
#!/bin/sh
[ "\$1" != 1 ] || { shift; set -- 60 "\$@"; }
exec $(command -v timeout) "\$@"
EOF
chmod +x "$work/bin/timeout"
cp "$files/_rlock" "$work/zsh/functions"
# shellcheck disable=SC2031 # common.sh changes it in a subshell, and means to
PATH=$work/bin:$PATH
HOME=$work/home XDG_CONFIG_HOME=$work/home XDG_DATA_HOME=$work/home
TERM=xterm
export PATH HOME XDG_CONFIG_HOME XDG_DATA_HOME TERM
unset ZDOTDIR || :

checks=0
failures=0

# Each of these prints what is offered for the line "$1", word by word.
in_bash() {
  # shellcheck disable=SC2016 # for that shell
  timeout $((20 * scale)) bash --norc --noprofile -c '
    [ -z "$3" ] || . "$3"
    . "$1" || exit
    COMP_LINE=$2 COMP_POINT=${#2}
    # as bash does, but for quotes
    read -ra COMP_WORDS <<<"${2//:/ : }"
    [[ $2 != *\  ]] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _rlock 2>/dev/null
    printf "%s\n" "${COMPREPLY[@]}"' bash "$files/rlock.bash" "$1" "$bash_completion"
}

in_fish() {
  # shellcheck disable=SC2016 # for that shell
  timeout $((20 * scale)) fish --no-config -c 'source $argv[1]; complete -C $argv[2]' \
    "$files/rlock.fish" "$1" | cut -f1
}

# What the terminal shows when Tab and Ctrl-D, which lists, are pressed behind the line "$1",
# until all other words are there.
cat >"$work/tab.zsh" <<'EOF'
zmodload zsh/zpty || exit
line=$1
shift
zpty -b z "zsh -f -i"
zpty -w z "PS1=; fpath=($ZDOTDIR/functions \$fpath); autoload -Uz compinit; compinit -D -u
  LISTMAX=1000 COLUMNS=80 LINES=100; bindkey -e; echo rea\"\"dy"
seen=
until [[ $seen == *ready$'\r'* ]]; do
  zpty -r -t z part && seen+=$part
  sleep 0.02
done
# no newline: the line is not run
zpty -w -n z "$line"$'\t\x04'
seen=
for ((i = 0; i < $RLOCK_TEST_SCALE * 250; i++)); do
  zpty -r -t z part && seen+=$part
  missing=
  for word in "$@"; do [[ $seen == *$word* ]] || missing=$word; done
  [[ -n $missing ]] || break
  sleep 0.02
done
zpty -d z
print -r -- $seen
EOF
in_zsh() {
  ZDOTDIR=$work/zsh RLOCK_TEST_SCALE=$scale timeout $((60 * scale)) zsh -f "$work/tab.zsh" "$@"
}

# claims shell line word...: each of the words is offered; behind a `!`, none of them.
claims() {
  shell=$1 line=$2
  shift 2
  said=$("in_$shell" "$line" "$@") || said="$said (failed)"
  for word in "$@"; do
    checks=$((checks + 1))
    case $shell in
      zsh) say "$said" | grep -qF -e "$word" && continue ;;
      *) say "$said" | grep -qxF -e "$word" && continue ;;
    esac
    failures=$((failures + 1))
    say "FAILED: $shell: \"$line\": $word is not offered, but: $said"
  done
}

# claims_not shell line word other: `other` is offered, `word` is not.
claims_not() {
  claims "$1" "$2" "$4"
  checks=$((checks + 1))
  case $said in
    *"$3"*)
      failures=$((failures + 1))
      say "FAILED: $1: \"$2\": $3 is offered" ;;
  esac
}

# -- a lock to be found ------------------------------------------------------------------

# the other one would be taken for an option, if it were offered
cli/rlock run deploy:web -- \
  cli/rlock run -- --url=redis://evil sh -c "touch '$work/held'; exec sleep 600" &
holder=$!
tries=0
until [ -e "$work/held" ]; do
  tries=$((tries + 1))
  [ $tries -lt $((200 * scale)) ] || die "the lock was not taken"
  sleep 0.05
done
names=yes
if [ "$(cli/rlock list 2>/dev/null | cut -f1)" != "--url=redis://evil
deploy:web" ]; then
  say "skipped: completion of names: rlock list does not tell them"
  names=
fi

# -- the shells --------------------------------------------------------------------------

# what all of them offer
all_of() {
  claims "$1" 'rlock ru' run
  claims "$1" 'rlock run --f' --fair --fd
  claims "$1" 'rlock release --fo' --force
  claims "$1" 'rlock run --on-lost w' warn
  claims "$1" 'rlock run --verb' --verbose
  claims "$1" 'rlock run --lease 500ms --no-w' --no-wait
  claims_not "$1" 'rlock show --' --fair --json
  [ -z "$names" ] || claims "$1" "rlock show dep" deploy:web
  [ -z "$names" ] || claims_not "$1" 'rlock show ' evil deploy:web
}

bash_completion=
if command -v bash >/dev/null; then
  for bash_completion in '' /usr/share/bash-completion/bash_completion; do
    if [ -n "$bash_completion" ] && [ ! -r "$bash_completion" ]; then
      say "skipped: completions: bash with bash-completion: not installed"
      continue
    fi
    all_of bash
    claims bash 'rlock run n tim' timeout
    claims bash 'rlock run --wait 3 a:b -- tim' timeout
    [ -z "$bash_completion" ] || claims_not bash 'rlock run n rlock show --' --fair --json
    claims bash 'rlock ' run list show watch wait release doctor
    [ -z "$names" ] || claims bash 'rlock run deploy:w' web
  done
else
  say "skipped: completions: bash is not installed"
fi
if command -v fish >/dev/null; then
  all_of fish
  claims fish 'rlock run n tim' timeout
  claims fish 'rlock run --wait 3 a:b -- tim' timeout
  claims_not fish 'rlock run n rlock show --' --fair --json
  claims fish 'rlock ' run list show watch wait release doctor
  [ -z "$names" ] || claims fish 'rlock run deploy:w' deploy:web
else
  say "skipped: completions: fish is not installed"
fi
if command -v zsh >/dev/null; then
  all_of zsh
  claims zsh 'rlock run n tim' timeout
  claims zsh 'rlock run --wait 3 a:b -- tim' timeout
  claims_not zsh 'rlock run n rlock show --' --fair --json
else
  say "skipped: completions: zsh is not installed"
fi

# -- many keys ---------------------------------------------------------------------------

# A Tab looks at fewer than half of the keys, 200 keys a page.
count_scans() {
  redis-cli -s "$server_dir/s" INFO commandstats | tr ,= '  ' |
    sed -n 's/^cmdstat_scan:calls \([0-9]*\) .*/\1/p'
}
if [ -n "$names" ] && command -v redis-cli >/dev/null; then
  keys=1000000 # a fast server gives a thousand pages to one Tab
  redis-cli -s "$server_dir/s" EVAL \
    "for i = 1, $keys do redis.call('SET', 'other' .. i, '') end" 0 >/dev/null
  for shell in bash fish zsh; do
    command -v $shell >/dev/null || continue
    redis-cli -s "$server_dir/s" CONFIG RESETSTAT >/dev/null
    "in_$shell" 'rlock show dep' deploy:web >/dev/null || :
    scans=$(count_scans)
    checks=$((checks + 1))
    if [ "${scans:-0}" = 0 ] || [ "$scans" -ge $((keys / 400)) ]; then
      failures=$((failures + 1))
      say "FAILED: $shell: ${scans:-0} pages of $keys keys were looked at"
    fi
  done
else
  say "skipped: completions among many keys: redis-cli is not installed"
fi

# -- all options -------------------------------------------------------------------------

# Each option that a command's --help names is completed, in each shell's file.
for command in run list show watch wait release doctor; do
  cli/rlock $command --help 2>/dev/null | grep -oE -e '--[a-z][a-z-]+' | sort -u
done | sort -u >"$work/options"
while read -r option; do
  for file in rlock.bash _rlock rlock.fish; do
    checks=$((checks + 1))
    grep -qE -e "$option\b|-l ${option#--}\b|[(|]${option#--}[|)]" "$files/$file" && continue
    failures=$((failures + 1))
    say "FAILED: $option is not in $file"
  done
done <"$work/options"

# as Check says it
say "$((100 * (checks - failures) / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ $failures = 0 ]

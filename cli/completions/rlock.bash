# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Completions of rlock(1) for bash; works with and without the package bash-completion.
#
# In here, words are what stands between blanks: bash's own fall apart at the colons that
# names and URLs have.

# Options that the next word belongs to.
_rlock_valued='--(url|user|password-file|tls-(cafile|cadir|certfile|keyfile|name|verify)|interval|wait|conflict-exit-code|lease|on-lost|grace|max-hold|min-hold|fd|within)|-E'

# The names of the locks that are held, from the server that these words name: those that
# are found in a fifth of a second, for a database may have millions of keys. Quiet; left
# out are names with unprintable bytes, and those that would be taken for options.
_rlock_names() {
  local rlock=$1 server=()
  while (($# > 1)); do
    case $1 in
      --url | --user | --password-file | --tls-*) [[ $2 == - ]] || server+=("$1" "$2") ;;
    esac
    shift
  done
  timeout 1 "$rlock" list --within 200ms "${server[@]}" 2>/dev/null </dev/null |
    cut -f1 | grep -v -e '\\x' -e '^-'
}

# Offers those lines of its input that begin with $1. What stands before the last colon
# is typed already, for bash.
_rlock_offer() {
  local line before=''
  [[ $1 == *:* && $COMP_WORDBREAKS == *:* ]] && before=${1%:*}:
  while IFS= read -r line; do
    if [[ $line == "$1"* ]]; then
      printf -v line %q "${line#"$before"}"
      COMPREPLY+=("$line")
    fi
  done
}

# Completes the command behind the first $1 words.
_rlock_command() {
  local count=$1 at=0 text='' piece
  shift
  for piece in "${@:1:count}"; do
    # as many of bash's words as this one consists of
    for (( ; at < COMP_CWORD; at++)); do
      text+=${COMP_WORDS[at]}
      [[ $text != "$piece" ]] || break
    done
    ((at++))
    text=
  done
  if declare -F _command_offset >/dev/null; then
    _command_offset "$at"
  elif ((at == COMP_CWORD)); then
    mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
  else
    compopt -o default 2>/dev/null
  fi
}

_rlock() {
  local words last word i own names=yes
  local common='--url --user --password-file --tls-cafile --tls-cadir --tls-certfile --tls-keyfile --tls-name --tls-verify --help'
  read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
  [[ ${COMP_LINE:0:COMP_POINT} != *[[:space:]] ]] || words+=('')
  last=$((${#words[@]} - 1))
  word=${words[last]}
  COMPREPLY=()
  if ((last == 1)); then
    _rlock_offer "$word" < <(printf '%s\n' run list show watch wait release doctor \
      --help --version)
    return
  fi
  case ${words[1]} in
    run) own='--fair --read --write --wait --no-wait --conflict-exit-code --quiet --verbose --lease
      --on-lost --grace --no-token --leave --max-hold --min-hold --fd' ;;
    list) own='--json --within' names= ;;
    show) own=--json ;;
    watch) own=--interval names= ;;
    wait) own=--wait ;;
    release) own='--force --yes' ;;
    doctor) own=--json names= ;;
    *) return ;;
  esac
  # i: the first operand
  for ((i = 2; i < last; i++)); do
    if [[ ${words[i]} == -- ]]; then
      ((i++))
      break
    fi
    [[ ${words[i]} == -* ]] || break
    [[ ! ${words[i]} =~ ^($_rlock_valued)$ ]] || ((i++))
  done
  if ((i > last)); then # the value of an option
    case ${words[last - 1]} in
      --on-lost) _rlock_offer "$word" < <(printf '%s\n' term warn) ;;
      --tls-verify) _rlock_offer "$word" < <(printf '%s\n' full ca) ;;
      --password-file | --tls-*file | --tls-cadir) compopt -o default 2>/dev/null ;;
    esac
  elif ((i == last)) && [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$own $common" -- "$word")
  elif ((i == last)); then
    [[ -z $names ]] || _rlock_offer "$word" < <(_rlock_names "${words[@]}")
  elif [[ ${words[1]} == run ]]; then
    ((i++))
    [[ ${words[i]} != -- ]] || ((i == last)) || ((i++))
    _rlock_command "$i" "${words[@]}"
  fi
}

complete -F _rlock rlock

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# glibc 2.36 (Debian 12) on 32 bits: with a time_t of 64 bits and _FORTIFY_SOURCE together, ppoll
# does not wait. Either of the two alone is fine.
#
# Expected: with -D_TIME_BITS=64 each function that takes a time calls its sibling for 64 bits, such
#   as __ppoll64, and _FORTIFY_SOURCE adds a check of the length of the array before that.
# Instead: the checking function has no sibling. The compiler writes the time with 64 bits, and
#   __ppoll_chk reads it as one of 32 bits. The seconds are right, where they fit. In the place of the
#   nanoseconds stands the upper half of the seconds, 0. A wait of 300 ms is over at once, a wait of
#   1.9 s takes 1 s. Nothing warns; the result is 0, as of a wait that is over.
# Why it matters: a loop that waits for its next task burns a processor, and a wait with a deadline
#   gives up early. Distributions build with _FORTIFY_SOURCE, and move their 32-bit ports to a time_t
#   of 64 bits.
# Met in: rlock's build with -m32; src/base/ppoll.h names the right function.
# Needs gcc 12 and the packages of Debian 12, amd64; its kernel runs 32-bit programs.
set -eu
. "$(dirname "$0")/common.sh"
need gcc apt-get dpkg
version=2.36-9+deb12u14
compiler=12.2.0-14+deb12u1

mkdir "$work/debs" "$work/root"
cd "$work/debs"
try apt-get download "libc6-dev=$version" "libc6-dev-i386=$version" "libc6-i386=$version" \
  "lib32gcc-12-dev=$compiler" "lib32gcc-s1=$compiler" linux-libc-dev
for deb in *.deb; do try dpkg -x "$deb" "$work/root"; done
cd "$work"
say "glibc $version, i386, $(gcc --version | sed -n 1p)"

cat >wait.c <<'C'
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <time.h>

int main(int argc, char **argv)
{
    struct pollfd fds[1] = { { -1, 0, 0 } };
    struct timespec wait = { 0, 300000000 }, begin, end;
    (void)argv;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    int rc = ppoll(fds, (nfds_t)argc, &wait, NULL); /* a length that the compiler cannot know */
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%d %zu %ld\n", rc, sizeof(time_t),
           (long)((end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000));
    return 0;
}
C

# waits flag...: "result, bytes of a time_t, ms", of a program compiled with these
root=$work/root
waits() {
  try gcc -m32 -O2 --sysroot="$root" -B"$root/usr/lib/gcc/x86_64-linux-gnu/12/32/" \
    -L"$root/usr/lib32" -B"$root/usr/lib32/" "$@" wait.c -o wait
  "$root/lib32/ld-linux.so.2" --library-path "$root/lib32:$root/usr/lib32" ./wait ||
    cannot 'run a program of 32 bits'
}
wide='-D_TIME_BITS=64 -D_FILE_OFFSET_BITS=64'
{
  # shellcheck disable=SC2086 # two flags
  set -- "$(waits)" "$(waits -D_FORTIFY_SOURCE=2)" "$(waits $wide)" "$(waits $wide -D_FORTIFY_SOURCE=2)"
  say 'ppoll for 300 ms: its result, bytes of time_t, ms that it took'
  say "plain                       $1"
  say "_FORTIFY_SOURCE             $2"
  say "_TIME_BITS=64               $3"
  say "_TIME_BITS=64 and fortified $4"
  if [ "${1##* }" -ge 299 ] && [ "${2##* }" -ge 299 ] && [ "${3##* }" -ge 299 ] &&
    [ "${4% *}" = '0 8' ] && [ "${4##* }" -lt 200 ]; then
    say 'still so'
  else
    say 'no longer so'
  fi
} >seen
verdict seen

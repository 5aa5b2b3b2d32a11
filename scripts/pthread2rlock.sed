# SPDX-License-Identifier: Apache-2.0
# Ports the locks of a program from pthread's to rlock's: sed -E -f pthread2rlock.sed. It replaces
# the header (rlock's includes pthread's), the functions and types, the constants, the static
# initializers, and init. A static initializer gets the variable's name, but not in a structure, of
# which there may be many: there the compiler asks for a name. init gets NULL, that is, a name that
# no other lock has: give it a name where other hosts are to find the same lock. Each call has to
# stand on one line.
s/<pthread\.h>/<rlock.h>/
s/\bpthread_(mutex|rwlock)/rlock_\1/g
s/\bPTHREAD_(MUTEX|RWLOCK|PROCESS|PRIO|RECURSIVE|ERRORCHECK|ADAPTIVE)/RLOCK_\1/g
s/(^|[^.[:alnum:]_])(\w+)( *= *RLOCK_\w*INITIALIZER(_NP)?)\b/\1\2\3("\2")/g
s/\b(rlock_(mutex|rwlock)_init *\(([^(),]|\(([^()]|\([^()]*\))*\))+,([^(),]|\(([^()]|\([^()]*\))*\))+)\)/\1, NULL)/g

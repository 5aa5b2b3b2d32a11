# SPDX-License-Identifier: Apache-2.0
# Ports the locks of a program from pthread's to rlock's: sed -E -f pthread2rlock.sed.
# The header, which includes pthread's; the functions and types; the constants; static
# initializers, which get the variable's name (not members of structures, of which there
# may be many: the compiler asks for theirs); init, which gets NULL, a name of its own: give
# it one where other hosts are to find the same lock. Calls stand on one line.
s/<pthread\.h>/<rlock.h>/
s/\bpthread_(mutex|rwlock)/rlock_\1/g
s/\bPTHREAD_(MUTEX|RWLOCK|PROCESS|PRIO|RECURSIVE|ERRORCHECK|ADAPTIVE)/RLOCK_\1/g
s/(^|[^.[:alnum:]_])(\w+)( *= *RLOCK_\w*INITIALIZER(_NP)?)\b/\1\2\3("\2")/g
s/\b(rlock_(mutex|rwlock)_init *\(([^(),]|\(([^()]|\([^()]*\))*\))+,([^(),]|\(([^()]|\([^()]*\))*\))+)\)/\1, NULL)/g

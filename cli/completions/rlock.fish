# SPDX-License-Identifier: Apache-2.0
# Completions of rlock(1) for fish.

# The names of the locks that are held, from the server that the words before name: those
# that are found in a fifth of a second, for a database may have millions of keys. Quiet;
# left out are names with unprintable bytes, and those that would be taken for options.
function __rlock_names
    set -l server
    set -l words (commandline -opc)
    for i in (seq 2 (math (count $words) - 1))
        switch $words[$i]
            case --url --user --password-file --tls-cafile --tls-cadir --tls-certfile --tls-keyfile --tls-name --tls-verify
                test "$words[(math $i + 1)]" = -
                or set -a server $words[$i] $words[(math $i + 1)]
        end
    end
    timeout 1 rlock list --within 200ms $server 2>/dev/null </dev/null | cut -f1 | string match -rv '\\\\x|^-'
end

# How many operands stand behind the command of rlock that is given: 0 when the next word is
# the first one; 1 and more for run's command.
function __rlock_operands
    set -l words (commandline -opc)[3..-1]
    set -l valued --url --user --password-file --tls-cafile --tls-cadir --tls-certfile \
        --tls-keyfile --tls-name --tls-verify --interval --wait -E --conflict-exit-code \
        --lease --on-lost --grace --max-hold --min-hold --fd --within
    while set -q words[1]
        switch $words[1]
            case --
                set -e words[1]
                break
            case '-*'
                contains -- $words[1] $valued
                and set -e words[1]
                set -e words[1]
            case '*'
                break
        end
    end
    count $words
end

# Whether one of these commands was given, and an operand of it may come.
function __rlock_in
    contains -- (commandline -opc)[2] $argv
    and test (__rlock_operands) = 0
end

function __rlock_runs
    test "$(commandline -opc)[2]" = run
    and test (__rlock_operands) -gt 0
end

# What stands behind the lock's name, and the word that is typed.
function __rlock_command
    set -l words (commandline -opc)
    set -l from (math (count $words) - (__rlock_operands) + 2)
    test "$words[$from]" = --
    and set from (math $from + 1)
    set -l line
    test $from -le (count $words)
    and set line (string escape -- $words[$from..-1])
    set line (string join ' ' -- $line (commandline -ct))
    complete --do-complete="$line"
end

complete -c rlock -f
set -l first 'test (count (commandline -opc)) -eq 1'
complete -c rlock -n $first -a run -d 'Run a command while holding a lock'
complete -c rlock -n $first -a list -d 'The locks that are held'
complete -c rlock -n $first -a show -d 'Who holds a lock, and who waits'
complete -c rlock -n $first -a watch -d 'The same, live'
complete -c rlock -n $first -a wait -d 'Until nobody holds a lock'
complete -c rlock -n $first -a release -d 'Take a lock from its holder'
complete -c rlock -n $first -a doctor -d 'Is this server fit for locks?'
complete -c rlock -n $first -l version -d 'The version'
complete -c rlock -n $first -s h -l help -d 'What there is'

set -l all '__rlock_in run list show watch wait release doctor'
complete -c rlock -n $all -l url -x -d 'The server'
complete -c rlock -n $all -l user -x -d 'Its user'
complete -c rlock -n $all -l password-file -r -F -d 'First line of this file'
complete -c rlock -n $all -l tls-cafile -r -F -d 'Authorities of the server'
complete -c rlock -n $all -l tls-cadir -r -F -d 'Directory of authorities'
complete -c rlock -n $all -l tls-certfile -r -F -d 'Own certificate'
complete -c rlock -n $all -l tls-keyfile -r -F -d 'Its key'
complete -c rlock -n $all -l tls-name -x -d 'Name in the certificate'
complete -c rlock -n $all -l tls-verify -x -a 'full ca' -d 'What is compared'
complete -c rlock -n $all -s h -l help -d 'Options of the command'

complete -c rlock -n '__rlock_in run' -l fair -d 'In the order of arrival'
complete -c rlock -n '__rlock_in run' -l read -d 'Beside other readers'
complete -c rlock -n '__rlock_in run' -l write -d 'Alone, of a read-write lock'
complete -c rlock -n '__rlock_in run wait' -l wait -x -d 'At most: 500ms, 60s, 2m'
complete -c rlock -n '__rlock_in run' -l no-wait -d 'Not at all'
complete -c rlock -n '__rlock_in run' -s E -l conflict-exit-code -x -d 'When not obtained in time'
complete -c rlock -n '__rlock_in run' -s q -l quiet -d 'No message about it'
complete -c rlock -n '__rlock_in run' -s v -l verbose -d 'The server, and where its URL comes from'
complete -c rlock -n '__rlock_in run' -l lease -x -d 'Length of the lease: 500ms, 60s, 2m'
complete -c rlock -n '__rlock_in run' -l on-lost -x -a 'term warn' -d 'When the lease is lost'
complete -c rlock -n '__rlock_in run' -l grace -x -d 'From SIGTERM to SIGKILL: 500ms, 60s, 2m'
complete -c rlock -n '__rlock_in run' -l no-token -d 'No fencing token, and no lasting key for it'
complete -c rlock -n '__rlock_in run' -l max-hold -x -d 'Ends the command after it: 500ms, 60s, 2m'
complete -c rlock -n '__rlock_in run' -l min-hold -x -d 'Holds at least for it: 500ms, 60s, 2m'
complete -c rlock -n '__rlock_in run' -l leave -d 'For the command alone, not for its descendants'
complete -c rlock -n '__rlock_in run' -l fd -x -d 'Events of the lease are read there'
complete -c rlock -n '__rlock_in list show doctor' -l json -d 'For programs'
complete -c rlock -n '__rlock_in list' -l within -x -d 'At most: 500ms, 60s, 2m'
complete -c rlock -n '__rlock_in watch' -l interval -x -d 'Between two looks: 500ms, 60s, 2m'
complete -c rlock -n '__rlock_in release' -l force -d Required
complete -c rlock -n '__rlock_in release' -l yes -d 'Do not ask'
complete -c rlock -n '__rlock_in run show wait release' -a '(__rlock_names)' -d Lock
complete -c rlock -n __rlock_runs -a '(__rlock_command)'

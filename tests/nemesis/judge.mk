# SPDX-License-Identifier: Apache-2.0
# The ledger of the server's changes, and the judge of a round.

NEMESIS_LEDGER = \
	tests/nemesis/oplog.h tests/nemesis/marks.h \
	tests/nemesis/ledger.h tests/nemesis/ledger_impl.h \
	tests/nemesis/ledger.c tests/nemesis/ledger_keys.c tests/nemesis/ledger_book.c
NEMESIS_JUDGE = $(NEMESIS_LEDGER) \
	tests/nemesis/times.h tests/nemesis/times.c \
	tests/nemesis/judge.h tests/nemesis/judge_impl.h tests/nemesis/judge_line.h \
	tests/nemesis/judge.c tests/nemesis/judge_read.c \
	tests/nemesis/judge_index.c tests/nemesis/judge_time.c \
	tests/nemesis/judge_exclusion.c tests/nemesis/judge_holds.c \
	tests/nemesis/judge_losses.c tests/nemesis/judge_forces.c tests/nemesis/judge_passed.c \
	tests/nemesis/judge_calls.c tests/nemesis/judge_tokens.c \
	tests/nemesis/judge_server.c tests/nemesis/judge_order.c \
	tests/nemesis/judge_phases.c tests/nemesis/judge_joins.c \
	tests/nemesis/judge_failovers.c tests/nemesis/judge_records.c \
	tests/nemesis/judge_cluster.c tests/nemesis/judge_waits.c \
	tests/nemesis/judge_deaths.c tests/nemesis/judge_ends.c

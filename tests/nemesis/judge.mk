# SPDX-License-Identifier: Apache-2.0
# The history checker: what the server did, and what is to be made of it.

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
	tests/nemesis/judge_losses.c tests/nemesis/judge_passed.c \
	tests/nemesis/judge_calls.c tests/nemesis/judge_tokens.c \
	tests/nemesis/judge_server.c tests/nemesis/judge_order.c \
	tests/nemesis/judge_phases.c tests/nemesis/judge_joins.c \
	tests/nemesis/judge_deaths.c tests/nemesis/judge_ends.c
NEMESIS_CPPFLAGS = $(TEST_CPPFLAGS) -I$(top_srcdir)/tests/nemesis

# The judge of the nemesis, with forged histories; the ledger, with a server's files.
UNIT_TESTS += tests/test_judge tests/test_judge_excuses tests/test_judge_calls \
	tests/test_judge_server tests/test_judge_passed tests/test_judge_holds tests/test_judge_told tests/test_judge_losses \
	tests/test_judge_tokens tests/test_judge_order tests/test_judge_waiters \
	tests/test_judge_deaths \
	tests/test_ledger

if HAVE_CHECK

FORGED = tests/forged.h tests/forged.c

tests_test_judge_SOURCES = tests/test_judge.c $(FORGED) $(NEMESIS_JUDGE)
tests_test_judge_CPPFLAGS = $(NEMESIS_CPPFLAGS)
tests_test_judge_LDADD = $(TEST_LIBS)

tests_test_judge_excuses_SOURCES = tests/test_judge_excuses.c $(FORGED) $(NEMESIS_JUDGE)
tests_test_judge_excuses_CPPFLAGS = $(NEMESIS_CPPFLAGS)
tests_test_judge_excuses_LDADD = $(TEST_LIBS)

tests_test_judge_calls_SOURCES = tests/test_judge_calls.c $(FORGED) $(NEMESIS_JUDGE)
tests_test_judge_calls_CPPFLAGS = $(NEMESIS_CPPFLAGS)
tests_test_judge_calls_LDADD = $(TEST_LIBS)

tests_test_judge_server_SOURCES = tests/test_judge_server.c $(FORGED) $(NEMESIS_JUDGE)
tests_test_judge_server_CPPFLAGS = $(NEMESIS_CPPFLAGS)
tests_test_judge_server_LDADD = $(TEST_LIBS)

tests_test_judge_passed_SOURCES = tests/test_judge_passed.c $(FORGED) $(NEMESIS_JUDGE)
tests_test_judge_passed_CPPFLAGS = $(NEMESIS_CPPFLAGS)
tests_test_judge_passed_LDADD = $(TEST_LIBS)

tests_test_judge_holds_SOURCES = tests/test_judge_holds.c $(FORGED) $(NEMESIS_JUDGE)
tests_test_judge_holds_CPPFLAGS = $(NEMESIS_CPPFLAGS)
tests_test_judge_holds_LDADD = $(TEST_LIBS)

tests_test_judge_told_SOURCES = tests/test_judge_told.c $(FORGED) $(NEMESIS_JUDGE)
tests_test_judge_told_CPPFLAGS = $(NEMESIS_CPPFLAGS)
tests_test_judge_told_LDADD = $(TEST_LIBS)

tests_test_judge_losses_SOURCES = tests/test_judge_losses.c $(FORGED) $(NEMESIS_JUDGE)
tests_test_judge_losses_CPPFLAGS = $(NEMESIS_CPPFLAGS)
tests_test_judge_losses_LDADD = $(TEST_LIBS)

tests_test_judge_tokens_SOURCES = tests/test_judge_tokens.c $(FORGED) $(NEMESIS_JUDGE)
tests_test_judge_tokens_CPPFLAGS = $(NEMESIS_CPPFLAGS)
tests_test_judge_tokens_LDADD = $(TEST_LIBS)

tests_test_judge_order_SOURCES = tests/test_judge_order.c $(FORGED) $(NEMESIS_JUDGE)
tests_test_judge_order_CPPFLAGS = $(NEMESIS_CPPFLAGS)
tests_test_judge_order_LDADD = $(TEST_LIBS)

tests_test_judge_waiters_SOURCES = tests/test_judge_waiters.c $(FORGED) $(NEMESIS_JUDGE)
tests_test_judge_waiters_CPPFLAGS = $(NEMESIS_CPPFLAGS)
tests_test_judge_waiters_LDADD = $(TEST_LIBS)

tests_test_judge_deaths_SOURCES = tests/test_judge_deaths.c $(FORGED) $(NEMESIS_JUDGE)
tests_test_judge_deaths_CPPFLAGS = $(NEMESIS_CPPFLAGS)
tests_test_judge_deaths_LDADD = $(TEST_LIBS)

tests_test_ledger_SOURCES = tests/test_ledger.c $(BYHAND) $(NEMESIS_LEDGER)
tests_test_ledger_CPPFLAGS = $(UNIT_CPPFLAGS) -I$(top_srcdir)/tests/nemesis \
	-DBYHAND_LOCK='"nemesis2"'
tests_test_ledger_LDADD = $(UNIT_LIBS)

endif

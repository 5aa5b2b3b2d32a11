# SPDX-License-Identifier: Apache-2.0
# The nemesis: workers under faults, and a judge of what they did (tests/README.md).

check_PROGRAMS += tests/nemesis/crewman
tests_nemesis_crewman_SOURCES = tests/nemesis/crewman.c tests/nemesis/oplog.h \
	tests/nemesis/link.h tests/nemesis/link.c \
	tests/nemesis/pulse.h tests/nemesis/pulse.c \
	tests/nemesis/target.h tests/nemesis/target.c
tests_nemesis_crewman_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir) -I$(top_srcdir)/src \
	$(HIREDIS_CFLAGS)
tests_nemesis_crewman_LDADD = librlk.la -lpthread -ldl

# The driver, which is a user of the workers and of nothing else of the library.
check_PROGRAMS += tests/nemesis/nemesis
tests_nemesis_nemesis_SOURCES = tests/nemesis/nemesis.c \
	tests/nemesis/options.h tests/nemesis/options.c \
	tests/nemesis/crew.h tests/nemesis/crew.c tests/nemesis/pulse.h tests/nemesis/pulse.c \
	tests/nemesis/round.h tests/nemesis/round.c \
	tests/nemesis/shelf.h tests/nemesis/shelf.c \
	$(NEMESIS_FAULTS) $(NEMESIS_JUDGE)
tests_nemesis_nemesis_CPPFLAGS = $(TEST_CPPFLAGS)
tests_nemesis_nemesis_LDADD = $(TEST_LIBS)

NEMESIS_TEST = tests/nemesis/check.sh
TESTS += $(NEMESIS_TEST)
EXTRA_DIST += $(NEMESIS_TEST) tests/mutants/run tests/mutants/list

# SPDX-License-Identifier: Apache-2.0
# The nemesis: workers under faults, and a judge of their records (tests/README.md). Judge,
# schedule and faults are in the archives of tests/local.mk, where their tests find them.

NEMESIS_STARTED = tests/nemesis/crewman tests/nemesis/stranger tests/nemesis/nemesis
NEMESIS_TEST = tests/nemesis/check.sh
EXTRA_DIST += $(NEMESIS_TEST) \
	tests/mutants/run tests/mutants/check tests/mutants/mutate.awk tests/mutants/list

if HAVE_CHECK

tests_nemesis_crewman_SOURCES = tests/nemesis/crewman.c tests/nemesis/oplog.h \
	tests/nemesis/link.h tests/nemesis/link.c \
	tests/nemesis/pulse.h tests/nemesis/pulse.c \
	tests/nemesis/robbery.h tests/nemesis/robbery.c \
	tests/nemesis/sacrifice.h tests/nemesis/sacrifice.c \
	tests/nemesis/target.h tests/nemesis/target.c \
	tests/nemesis/usage.h tests/nemesis/usage.c
tests_nemesis_crewman_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir) -I$(top_srcdir)/src \
	$(HIREDIS_CFLAGS)
tests_nemesis_crewman_LINK = $(TEST_LINK)
tests_nemesis_crewman_LDADD = $(RLK_ARCHIVE) $(HIREDIS_LIBS) $(OPENSSL_LIBS) -lpthread -ldl

# Acts as strangers: uses the server and <rlock.h>.
tests_nemesis_stranger_SOURCES = tests/nemesis/stranger.c tests/nemesis/oplog.h \
	tests/nemesis/schedule.h tests/nemesis/faults.h
tests_nemesis_stranger_CPPFLAGS = $(TEST_CPPFLAGS)
tests_nemesis_stranger_LINK = $(TEST_LINK)
tests_nemesis_stranger_LDADD = $(RLK_ARCHIVE) $(HIREDIS_LIBS) $(OPENSSL_LIBS) -lpthread -ldl

# The driver, which runs the workers and does not use the library itself.
tests_nemesis_nemesis_SOURCES = tests/nemesis/nemesis.c \
	tests/nemesis/options.h tests/nemesis/options.c \
	tests/nemesis/crew.h tests/nemesis/crew.c tests/nemesis/pulse.h tests/nemesis/pulse.c \
	tests/nemesis/round.h tests/nemesis/round.c \
	tests/nemesis/shelf.h tests/nemesis/shelf.c
tests_nemesis_nemesis_CPPFLAGS = $(TEST_CPPFLAGS)
tests_nemesis_nemesis_LINK = $(TEST_LINK)
tests_nemesis_nemesis_LDADD = tests/libtests.a tests/libjudge.a $(TEST_LIBS)

endif

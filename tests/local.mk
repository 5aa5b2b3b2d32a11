# SPDX-License-Identifier: Apache-2.0
# The tests. A program is a file tests/ROOM/test_x.c and no line here: programs.mk, which
# build-aux/test-programs makes from the files and their first lines, says how each is built.
# A helper, a scene or a program that tests start is a file and no line here, either. What
# programs share is in a few archives, of which the linker takes what a program uses.

# -- what a test program is built with ------------------------------------------------

TEST_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/tests/scenes -I$(top_srcdir)/tests/helpers \
	-I$(top_srcdir)/tests/nemesis $(HIREDIS_CFLAGS) $(CHECK_CFLAGS) $(CLI_CPPFLAGS) \
	-DTEST_SRCDIR='"$(abs_top_srcdir)"' -DTEST_SYSCONFDIR='"$(sysconfdir)"'
if WITH_TLS
TEST_CPPFLAGS += $(OPENSSL_CFLAGS) -DTEST_TLS=1 -DTEST_TLS_CODE=0
else
TEST_CPPFLAGS += -DTEST_TLS=0 -DTEST_TLS_CODE=ENOTSUP
endif
INSIDE_CPPFLAGS = $(TEST_CPPFLAGS) -I$(top_builddir) -I$(top_srcdir)/src
# Linked without libtool, which takes longer than the linker: with the library's objects, or
# with none of the library. Only programs that use the shared library need it.
TEST_LINK = $(CCLD) $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS) -o $@
RLK_ARCHIVE = .libs/librlk.a
.libs/librlk.a: librlk.la
	@:
TEST_LIBS = tests/libtesthelp.a $(HIREDIS_LIBS) $(OPENSSL_LIBS) $(CHECK_LIBS) -lpthread -ldl -lrt -lutil

include $(srcdir)/tests/programs.mk

# Again when a program says something else of itself; written only when it differs.
$(srcdir)/tests/programs.mk: $(srcdir)/build-aux/test-programs $(TEST_FILES)
	@$(srcdir)/build-aux/test-programs mk | cmp -s - $@ || \
	  { $(srcdir)/build-aux/test-programs mk >$@.tmp && mv $@.tmp $@; }
$(TEST_FILES): # one that was renamed or removed does not stop make

# Programs of pthread's, ported by a script, and the completions of rlock(1) in the shells
# that are there: they need no Check.
TEST_EXTENSIONS = .sh
PORTED_TESTS = tests/ported/run.sh
SHELL_TESTS = tests/cli/completions.sh
# Says how many seconds a program took.
LOG_DRIVER = $(SHELL) $(top_srcdir)/build-aux/test-driver
SH_LOG_DRIVER = $(LOG_DRIVER)

if HAVE_CHECK

# The longest first.
TESTS = $(NEMESIS_TEST) $(CHECK_ALL) $(FUZZ_REPLAYS) $(PORTED_TESTS) $(SHELL_TESTS)
check_PROGRAMS = $(CHECK_ALL) $(FUZZ_REPLAYS) $(STARTED)
check_LIBRARIES = tests/libtesthelp.a tests/libhands.a tests/libjudge.a tests/libtests.a \
	$(SCENE_LIBS)

# -- what they share ------------------------------------------------------------------

# Servers, proxies, processes, waiting: nothing of the library.
tests_libtesthelp_a_SOURCES = $(HELPER_FILES) tests/shims/alloc_shim.h tests/shims/clock_file.h
tests_libtesthelp_a_CPPFLAGS = $(TEST_CPPFLAGS) -DTEST_BUILDDIR='"$(abs_top_builddir)"'

# The registry and holds, by hand.
tests_libhands_a_SOURCES = tests/scenes/handscene.h tests/scenes/handscene.c
tests_libhands_a_CPPFLAGS = $(INSIDE_CPPFLAGS)

# Judges of what happened, with the rounds that their tests make up.
tests_libjudge_a_SOURCES = $(SCENE_JUDGES) $(NEMESIS_JUDGE) $(NEMESIS_SCHEDULE)
tests_libjudge_a_CPPFLAGS = $(TEST_CPPFLAGS)

# The rest; a program has one of $(SCENE_LIBS) besides.
tests_libtests_a_SOURCES = $(SCENE_FILES) $(NEMESIS_FAULTS)
tests_libtests_a_CPPFLAGS = $(INSIDE_CPPFLAGS)

# Sends the scripts to another lock than the others: has byhand.c with another name in it.
tests_test_ledger_SOURCES = tests/nemesis/test_ledger.c tests/scenes/byhand.h tests/scenes/byhand.c
tests_test_ledger_CPPFLAGS = $(INSIDE_CPPFLAGS) -DBYHAND_LOCK='"nemesis2"'
tests_test_ledger_LINK = $(TEST_LINK)
tests_test_ledger_LDADD = tests/libjudge.a $(RLK_ARCHIVE) $(TEST_LIBS)

# -- programs that tests start --------------------------------------------------------

STARTED = $(STARTED_BY_TESTS) $(NEMESIS_STARTED)

# Preloaded into programs that have no sanitizer, and wanted also with --disable-shared: built
# without libtool and without the flags of the others.
SHIMS = tests/shims/clock_shim.so tests/shims/alloc_shim.so
SHIM_CFLAGS = -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -fPIC -shared
check_DATA = $(SHIMS)
tests/shims/clock_shim.so: tests/shims/clock_shim.c tests/shims/clock_file.h
	$(AM_V_CC)$(MKDIR_P) tests/shims && \
	$(CC) $(SHIM_CFLAGS) -o $@ $(srcdir)/tests/shims/clock_shim.c
tests/shims/alloc_shim.so: tests/shims/alloc_shim.c tests/shims/alloc_shim.h
	$(AM_V_CC)$(MKDIR_P) tests/shims && \
	$(CC) $(SHIM_CFLAGS) -o $@ $(srcdir)/tests/shims/alloc_shim.c -lpthread -ldl
CLEANFILES += $(SHIMS)

else
TESTS = $(PORTED_TESTS) $(SHELL_TESTS)
endif

# -- running them ---------------------------------------------------------------------

# More at a time than there are cores, unless the command line says how many: most of a test
# is waiting for leases to end.
AM_MAKEFLAGS = $(if $(filter check%,$(MAKECMDGOALS)),$(if $(filter -j%,$(MAKEFLAGS)),,-j$(TEST_JOBS)))

# What `make check` builds before it runs them.
test-programs: $(BUILT_SOURCES) $(check_PROGRAMS) $(check_LIBRARIES) $(check_DATA)

# What needs no server, and no more than that is built.
check-unit: $(BUILT_SOURCES)
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(CHECK_UNIT)' check_PROGRAMS= check_LIBRARIES= \
	  check_DATA=

# make check-chosen CHOSEN='tests/test_url tests/test_fork': those alone, and what they start.
build-chosen: $(BUILT_SOURCES) $(STARTED) $(check_DATA)
	$(MAKE) $(AM_MAKEFLAGS) $(filter-out %.sh,$(CHOSEN))
check-chosen: build-chosen
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(CHOSEN)' check_PROGRAMS= check_LIBRARIES= \
	  check_DATA=

# Every test source as the compiler sees it, for the warnings of one that builds few of them.
check-syntax: lua_scripts.h
	$(AM_V_GEN)$(COMPILE) $(INSIDE_CPPFLAGS) -fsyntax-only $(filter-out $(FAIR_ONLY_FILES), \
	  $(TEST_FILES) $(wildcard $(addprefix $(srcdir)/tests/, helpers/*.c nemesis/*.c \
	    programs/*.c scenes/*.c)))
	$(AM_V_at)$(COMPILE) $(INSIDE_CPPFLAGS) -include $(top_srcdir)/tests/scenes/as_fair.h \
	  -fsyntax-only $(FAIR_FILES)

# All of them, for scripts that choose.
list-tests:
	@for test in $(TESTS); do echo $$test; done

.PHONY: test-programs check-unit build-chosen check-chosen check-syntax list-tests

# A time limit for each test that leaves room for slow machines, and no server but the
# tests' own.
AM_TESTS_ENVIRONMENT = \
	: $${RLOCK_TEST_SERVER:=$(REDIS_SERVER)} $${CK_DEFAULT_TIMEOUT:=120}; \
	RLOCK_TEST_BUILDDIR='$(abs_top_builddir)'; \
	RLOCK_TEST_COMPILE='$(CC) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS)'; \
	RLOCK_TEST_LINK='$(CC) $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS)'; \
	export RLOCK_TEST_SERVER CK_DEFAULT_TIMEOUT RLOCK_TEST_BUILDDIR; \
	export RLOCK_TEST_COMPILE RLOCK_TEST_LINK; \
	unset RLOCK_URL; RLOCK_CONF=/dev/null; export RLOCK_CONF;


EXTRA_DIST += build-aux/test-programs build-aux/test-driver tests/README.md tests/shims/clock_shim.c

EXTRA_DIST += \
	scripts/pthread2rlock.sed \
	tests/cli/completions.sh \
	tests/ported/run.sh \
	tests/ported/attributes.c \
	tests/ported/bank.c \
	tests/ported/cache.c \
	tests/ported/deadlines.c \
	tests/ported/queue.c \
	tests/ported/robust.c \
	tests/ported/types.c

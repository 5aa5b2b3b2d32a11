# SPDX-License-Identifier: Apache-2.0
# The benchmarks. `make bench` runs them all, `make bench BENCH_FLAGS=-q` for a short while;
# see bench/README.md. Nothing is asserted, so nothing of it is in make check.
EXTRA_DIST += bench/README.md bench/run

if BUILD_BENCH

# The library as programs use it, and beside it the text of its scripts for the control.
noinst_PROGRAMS += bench/bench
bench_bench_SOURCES = \
	bench/bench.h bench/bench.c \
	bench/team.h bench/team.c \
	bench/process.h bench/process.c \
	bench/report.h bench/report.c \
	bench/scenarios.h bench/scenarios.c \
	bench/contender.h \
	bench/with_rlock.c \
	bench/control.c \
	bench/queue.c \
	bench/readers.c \
	bench/dead.c \
	bench/scripts.h bench/scripts.c \
	bench/redis.h bench/redis.c
nodist_bench_bench_SOURCES = lua_scripts.c
bench_bench_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir) -I$(top_srcdir)/src $(HIREDIS_CFLAGS)
bench_bench_LDADD = librlock.la $(HIREDIS_LIBS) -lpthread

CLEANFILES += bench.csv

bench: bench/bench
	RLOCK_BENCH=bench/bench $(srcdir)/bench/run -o bench.csv $(BENCH_FLAGS)

else

bench:
	@echo 'configured with --disable-bench'; exit 1

endif

.PHONY: bench

# SPDX-License-Identifier: Apache-2.0
# The benchmarks. `make bench` runs them all, `make bench BENCH_FLAGS=-q` for a short while;
# see bench/README.md. They assert nothing, so make check runs none of them.
EXTRA_DIST += bench/README.md bench/run bench/tls_run bench/replicas_run bench/failover_run bench/cluster_run bench/hosts bench/before bench/path bench/plot \
	bench/peers/redisson/Peer.java bench/peers/redisson/Failover.java bench/peers/redisson/pom.xml \
	bench/peers/redisson/prepare bench/peers/redisson/run \
	bench/peers/redis-py/peer.py bench/peers/redis-py/prepare bench/peers/redis-py/run \
	bench/peers/redsync/main.go bench/peers/redsync/go.mod bench/peers/redsync/go.sum \
	bench/peers/redsync/prepare bench/peers/redsync/run

if BUILD_BENCH

# The library as programs use it, and beside it the text of its scripts for the control.
noinst_PROGRAMS += bench/bench bench/pairs bench/versus
bench_bench_SOURCES = \
	bench/bench.h bench/base.c bench/bench.c \
	bench/team.h bench/team.c \
	bench/peer.h bench/peer.c \
	bench/histogram.h bench/histogram.c \
	bench/process.h bench/process.c \
	bench/report.h bench/report.c \
	bench/scenarios.h bench/scenarios.c \
	bench/contender.h \
	bench/with_rlock.c \
	bench/with_pthread.c bench/go_mutex.h bench/go_mutex.c \
	bench/with_peers.c \
	bench/control.c \
	bench/queue.c \
	bench/readers.c \
	bench/dead.c \
	bench/burden.h bench/burden.c \
	bench/sample.h bench/sample.c \
	bench/guarded.h bench/guarded.c \
	bench/guard_cost.c \
	bench/guard_idle.c \
	bench/guard_killed.c \
	bench/scripts.h bench/scripts.c \
	bench/redis.h bench/redis.c
nodist_bench_bench_SOURCES = lua_scripts.c
bench_bench_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir) -I$(top_srcdir)/src $(HIREDIS_CFLAGS)
bench_bench_LDADD = librlock.la $(HIREDIS_LIBS) -lpthread -lm

bench_pairs_SOURCES = bench/pairs.c
bench_pairs_LDADD = librlock.la -lpthread

noinst_PROGRAMS += bench/replicas
bench_replicas_SOURCES = bench/bench.h bench/base.c bench/replicas.c bench/process.h bench/process.c \
	bench/scripts.h bench/scripts.c bench/redis.h bench/redis.c
nodist_bench_replicas_SOURCES = lua_scripts.c
bench_replicas_CPPFLAGS = $(bench_bench_CPPFLAGS)
bench_replicas_LDADD = librlock.la $(HIREDIS_LIBS) -lpthread -lm

# Start servers as the tests do.
BENCH_SERVERS = \
	tests/helpers/die.h tests/helpers/die.c \
	tests/helpers/port.h tests/helpers/port.c \
	tests/helpers/program.h tests/helpers/program.c \
	tests/helpers/redis.h tests/helpers/redis.c \
	tests/helpers/rundir.h tests/helpers/rundir.c \
	tests/helpers/server.h tests/helpers/server.c \
	tests/helpers/supervisor.h tests/helpers/supervisor.c \
	tests/helpers/wait.h tests/helpers/wait.c
noinst_PROGRAMS += bench/failover bench/failover_rlock
bench_failover_SOURCES = bench/bench.h bench/base.c bench/failover.h bench/failover.c bench/failover_servers.c \
	bench/failover_watch.c bench/failover_locks.c \
	$(BENCH_SERVERS)
bench_failover_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/tests/helpers $(HIREDIS_CFLAGS)
bench_failover_LDADD = $(HIREDIS_LIBS)
bench_failover_rlock_SOURCES = bench/failover_rlock.c
bench_failover_rlock_LDADD = librlock.la -lpthread

# Reads maps of a cluster with the library's own parser.
noinst_PROGRAMS += bench/cluster
bench_cluster_SOURCES = bench/bench.h bench/base.c bench/cluster.h bench/cluster.c bench/cluster_servers.c \
	bench/cluster_pair.c bench/cluster_teams.c bench/cluster_handoff.c bench/cluster_bus.c \
	bench/cluster_sockets.c bench/cluster_map.c bench/cluster_memory.c \
	bench/process.h bench/process.c bench/redis.h bench/redis.c \
	bench/sample.h bench/sample.c bench/scripts.h bench/scripts.c \
	$(BENCH_SERVERS)
bench_cluster_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir) -I$(top_srcdir)/src -I$(top_srcdir)/tests \
	-I$(top_srcdir)/tests/helpers $(HIREDIS_CFLAGS)
bench_cluster_LDADD = librlk.la $(HIREDIS_LIBS) -lpthread -lm

if WITH_TLS
noinst_PROGRAMS += bench/tls
bench_tls_SOURCES = bench/bench.h bench/base.c bench/tls.c bench/tls_many.h bench/tls_many.c \
	bench/tls_raw.h bench/tls_raw.c bench/process.h bench/process.c \
	bench/sample.h bench/sample.c bench/scripts.h bench/scripts.c \
	bench/redis.h bench/redis.c
nodist_bench_tls_SOURCES = lua_scripts.c
bench_tls_CPPFLAGS = $(bench_bench_CPPFLAGS) $(OPENSSL_CFLAGS)
bench_tls_LDADD = librlock.la $(HIREDIS_LIBS) $(OPENSSL_LIBS) -lpthread -lm
endif

# Loads two builds of the library by itself.
bench_versus_SOURCES = \
	bench/bench.h bench/base.c bench/process.h bench/process.c bench/redis.h bench/redis.c \
	bench/sample.h bench/sample.c \
	bench/versus.h bench/versus.c \
	bench/versus_table.c \
	bench/versus_pair.c \
	bench/versus_deaths.c \
	bench/versus_forced.c \
	bench/versus_forged.c \
	bench/versus_handoff.c \
	bench/versus_memory.c
bench_versus_CPPFLAGS = $(AM_CPPFLAGS) $(HIREDIS_CFLAGS)
bench_versus_LDADD = $(HIREDIS_LIBS) -ldl -lpthread -lm

bench: bench/bench
	RLOCK_BENCH=bench/bench $(srcdir)/bench/run $(BENCH_FLAGS)

clean-local: clean-bench
clean-bench:
	rm -rf bench-results bench-peers bench-before bench-path

else

bench:
	@echo 'configured with --disable-bench'; exit 1

endif

.PHONY: bench clean-bench

# SPDX-License-Identifier: Apache-2.0
# Programs that use the library as its users do. The flash sale needs hiredis for the hand-made
# locks that it compares.
noinst_PROGRAMS = examples/01_hello examples/02_flash_sale examples/03_ticket_counter \
	examples/04_config_cache examples/05_prefork examples/06_cron_once examples/07_leader \
	examples/08_guard_file examples/08_guard_file_trim examples/10_cluster

examples_01_hello_SOURCES = examples/01_hello.c
examples_01_hello_LDADD = librlock.la

examples_02_flash_sale_SOURCES = \
	examples/02_flash_sale.c \
	examples/flash_sale/sale.h \
	examples/flash_sale/with_rlock.c \
	examples/flash_sale/naive.c \
	examples/flash_sale/shop.c
examples_02_flash_sale_CPPFLAGS = $(AM_CPPFLAGS) $(HIREDIS_CFLAGS)
examples_02_flash_sale_LDADD = librlock.la $(HIREDIS_LIBS) -lpthread

examples_03_ticket_counter_SOURCES = examples/03_ticket_counter.c
examples_03_ticket_counter_LDADD = librlock.la -lpthread

examples_04_config_cache_SOURCES = examples/04_config_cache.c
examples_04_config_cache_LDADD = librlock.la -lpthread

examples_05_prefork_SOURCES = examples/05_prefork.c
examples_05_prefork_LDADD = librlock.la

examples_06_cron_once_SOURCES = examples/06_cron_once.c
examples_06_cron_once_LDADD = librlock.la

examples_07_leader_SOURCES = examples/07_leader.c
examples_07_leader_LDADD = librlock.la

examples_08_guard_file_SOURCES = examples/08_guard_file.c
examples_08_guard_file_LDADD = librlock.la

examples_08_guard_file_trim_SOURCES = examples/08_guard_file_trim.c
examples_08_guard_file_trim_LDADD = librlock.la

examples_10_cluster_SOURCES = examples/10_cluster.c
examples_10_cluster_LDADD = librlock.la -lpthread

# Where a compiler for C++17 was found.
examples_09_cpp_SOURCES = examples/09_cpp.cpp
examples_09_cpp_CXXFLAGS = $(RLK_CXXFLAGS)
examples_09_cpp_LDADD = librlock.la -lpthread
if HAVE_CXX
CPP_EXAMPLES = examples/09_cpp
noinst_PROGRAMS += $(CPP_EXAMPLES)
endif

# Files for a host; tests/cli/test_cron.c runs what they say.
examplesdir = $(docdir)/examples
dist_examples_DATA = examples/rlock.conf
croneddir = $(examplesdir)/cron.d
dist_croned_DATA = examples/cron.d/nightly
timeddir = $(examplesdir)/systemd
dist_timed_DATA = examples/systemd/nightly.service examples/systemd/nightly.timer

check-examples: examples/03_ticket_counter examples/04_config_cache examples/05_prefork \
	examples/06_cron_once examples/07_leader examples/08_guard_file \
	examples/08_guard_file_trim examples/10_cluster $(CPP_EXAMPLES)

# SPDX-License-Identifier: Apache-2.0
# Hostile bytes. Each target has two programs: tests/fuzz/replay_<target>, a test; and, for
# tests/fuzz/run, which configures for clang, tests/fuzz/fuzz_<target>.
FUZZ_TARGETS = url conf name mailbox reply inspect client
FUZZ_REPLAYS = tests/fuzz/replay_url tests/fuzz/replay_conf tests/fuzz/replay_name \
	tests/fuzz/replay_mailbox tests/fuzz/replay_reply tests/fuzz/replay_inspect tests/fuzz/replay_client
EXTRA_PROGRAMS = tests/fuzz/fuzz_url tests/fuzz/fuzz_conf tests/fuzz/fuzz_name \
	tests/fuzz/fuzz_mailbox tests/fuzz/fuzz_reply tests/fuzz/fuzz_inspect tests/fuzz/fuzz_client

FUZZ_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir) -I$(top_srcdir)/src \
	-I$(top_srcdir)/tests/fuzz -I$(top_srcdir)/tests/helpers $(HIREDIS_CFLAGS) \
	-DFUZZ_CORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus"'
FUZZ_LIBS = librlk.la $(HIREDIS_LIBS) -lpthread
LINK_FUZZER = $(AM_LDFLAGS) -fsanitize=fuzzer
FUZZ_COMMON = tests/fuzz/fuzz.h tests/fuzz/fuzz.c
FUZZ_WIRE = tests/fuzz/wire.h tests/fuzz/wire.c
FUZZ_CLIENT = tests/fuzz/peer.h tests/fuzz/peer.c
FUZZ_REPLAY = tests/fuzz/replay.c tests/helpers/wait.h tests/helpers/wait.c

tests_fuzz_fuzz_url_SOURCES = tests/fuzz/fuzz_url.c $(FUZZ_COMMON)
tests_fuzz_fuzz_url_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_url_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_url_LDFLAGS = $(LINK_FUZZER)

tests_fuzz_fuzz_conf_SOURCES = tests/fuzz/fuzz_conf.c $(FUZZ_COMMON)
tests_fuzz_fuzz_conf_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_conf_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_conf_LDFLAGS = $(LINK_FUZZER)

tests_fuzz_fuzz_name_SOURCES = tests/fuzz/fuzz_name.c $(FUZZ_COMMON)
tests_fuzz_fuzz_name_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_name_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_name_LDFLAGS = $(LINK_FUZZER)

tests_fuzz_fuzz_mailbox_SOURCES = tests/fuzz/fuzz_mailbox.c $(FUZZ_COMMON)
tests_fuzz_fuzz_mailbox_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_mailbox_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_mailbox_LDFLAGS = $(LINK_FUZZER)

tests_fuzz_fuzz_reply_SOURCES = tests/fuzz/fuzz_reply.c $(FUZZ_COMMON) $(FUZZ_WIRE)
tests_fuzz_fuzz_reply_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_reply_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_reply_LDFLAGS = $(LINK_FUZZER)

tests_fuzz_fuzz_inspect_SOURCES = tests/fuzz/fuzz_inspect.c $(FUZZ_COMMON) $(FUZZ_WIRE)
tests_fuzz_fuzz_inspect_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_inspect_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_inspect_LDFLAGS = $(LINK_FUZZER)

tests_fuzz_fuzz_client_SOURCES = tests/fuzz/fuzz_client.c $(FUZZ_COMMON) $(FUZZ_CLIENT) \
	tests/helpers/wait.h tests/helpers/wait.c
tests_fuzz_fuzz_client_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_client_LDADD = $(FUZZ_LIBS)
tests_fuzz_fuzz_client_LDFLAGS = $(LINK_FUZZER)

if HAVE_CHECK

tests_fuzz_replay_url_SOURCES = tests/fuzz/fuzz_url.c $(FUZZ_COMMON) $(FUZZ_REPLAY)
tests_fuzz_replay_url_CPPFLAGS = $(FUZZ_CPPFLAGS) -DFUZZ_TARGET='"url"'
tests_fuzz_replay_url_LDADD = $(RLK_ARCHIVE) $(HIREDIS_LIBS) $(OPENSSL_LIBS) -lpthread
tests_fuzz_replay_url_LINK = $(TEST_LINK)

# Each input needs files, and is parsed eight times.
tests_fuzz_replay_conf_SOURCES = tests/fuzz/fuzz_conf.c $(FUZZ_COMMON) $(FUZZ_REPLAY)
tests_fuzz_replay_conf_CPPFLAGS = $(FUZZ_CPPFLAGS) -DFUZZ_TARGET='"conf"' \
	-DFUZZ_ROUNDS=20000
tests_fuzz_replay_conf_LDADD = $(RLK_ARCHIVE) $(HIREDIS_LIBS) $(OPENSSL_LIBS) -lpthread
tests_fuzz_replay_conf_LINK = $(TEST_LINK)

tests_fuzz_replay_name_SOURCES = tests/fuzz/fuzz_name.c $(FUZZ_COMMON) $(FUZZ_REPLAY)
tests_fuzz_replay_name_CPPFLAGS = $(FUZZ_CPPFLAGS) -DFUZZ_TARGET='"name"'
tests_fuzz_replay_name_LDADD = $(RLK_ARCHIVE) $(HIREDIS_LIBS) $(OPENSSL_LIBS) -lpthread
tests_fuzz_replay_name_LINK = $(TEST_LINK)

tests_fuzz_replay_mailbox_SOURCES = tests/fuzz/fuzz_mailbox.c $(FUZZ_COMMON) $(FUZZ_REPLAY)
tests_fuzz_replay_mailbox_CPPFLAGS = $(FUZZ_CPPFLAGS) -DFUZZ_TARGET='"mailbox"'
tests_fuzz_replay_mailbox_LDADD = $(RLK_ARCHIVE) $(HIREDIS_LIBS) $(OPENSSL_LIBS) -lpthread
tests_fuzz_replay_mailbox_LINK = $(TEST_LINK)

tests_fuzz_replay_reply_SOURCES = tests/fuzz/fuzz_reply.c $(FUZZ_COMMON) $(FUZZ_WIRE) \
	$(FUZZ_REPLAY)
tests_fuzz_replay_reply_CPPFLAGS = $(FUZZ_CPPFLAGS) -DFUZZ_TARGET='"reply"'
tests_fuzz_replay_reply_LDADD = $(RLK_ARCHIVE) $(HIREDIS_LIBS) $(OPENSSL_LIBS) -lpthread
tests_fuzz_replay_reply_LINK = $(TEST_LINK)

tests_fuzz_replay_inspect_SOURCES = tests/fuzz/fuzz_inspect.c $(FUZZ_COMMON) $(FUZZ_WIRE) \
	$(FUZZ_REPLAY)
tests_fuzz_replay_inspect_CPPFLAGS = $(FUZZ_CPPFLAGS) -DFUZZ_TARGET='"inspect"'
tests_fuzz_replay_inspect_LDADD = $(RLK_ARCHIVE) $(HIREDIS_LIBS) $(OPENSSL_LIBS) -lpthread
tests_fuzz_replay_inspect_LINK = $(TEST_LINK)

# Each input takes time: connections, timeouts.
tests_fuzz_replay_client_SOURCES = tests/fuzz/fuzz_client.c $(FUZZ_COMMON) $(FUZZ_CLIENT) \
	$(FUZZ_REPLAY)
tests_fuzz_replay_client_CPPFLAGS = $(FUZZ_CPPFLAGS) -DFUZZ_TARGET='"client"' \
	-DFUZZ_ROUNDS=300
tests_fuzz_replay_client_LDADD = $(RLK_ARCHIVE) $(HIREDIS_LIBS) $(OPENSSL_LIBS) -lpthread
tests_fuzz_replay_client_LINK = $(TEST_LINK)
endif

EXTRA_DIST += tests/fuzz/run tests/fuzz/corpus

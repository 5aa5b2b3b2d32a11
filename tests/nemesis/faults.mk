# SPDX-License-Identifier: Apache-2.0
# The nemesis: the schedule of its faults, and how they are done.
NEMESIS_FAULTS = \
	tests/nemesis/oplog.h \
	tests/nemesis/schedule.h tests/nemesis/schedule.c \
	tests/nemesis/faults.h tests/nemesis/faults_impl.h tests/nemesis/faults.c \
	tests/nemesis/faults_process.c tests/nemesis/faults_link.c tests/nemesis/faults_net.c \
	tests/nemesis/faults_server.c tests/nemesis/faults_data.c \
	tests/nemesis/marks.h tests/nemesis/marks.c

USER_TESTS += tests/test_schedule tests/test_nemesis_faults tests/test_nemesis_links \
	tests/test_nemesis_kills tests/test_nemesis_data

# A server with its proxies, and a plan that runs while a test looks.
FAULTSCENE = tests/faultscene.h tests/faultscene.c $(NEMESIS_FAULTS)

if HAVE_CHECK

tests_test_schedule_SOURCES = tests/test_schedule.c tests/nemesis/oplog.h \
	tests/nemesis/schedule.h tests/nemesis/schedule.c
tests_test_schedule_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_schedule_LDADD = $(TEST_LIBS)

tests_test_nemesis_faults_SOURCES = tests/test_nemesis_faults.c $(FAULTSCENE)
tests_test_nemesis_faults_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_nemesis_faults_LDADD = $(TEST_LIBS)

tests_test_nemesis_links_SOURCES = tests/test_nemesis_links.c $(FAULTSCENE)
tests_test_nemesis_links_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_nemesis_links_LDADD = $(TEST_LIBS)

tests_test_nemesis_kills_SOURCES = tests/test_nemesis_kills.c $(FAULTSCENE)
tests_test_nemesis_kills_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_nemesis_kills_LDADD = $(TEST_LIBS)

tests_test_nemesis_data_SOURCES = tests/test_nemesis_data.c $(FAULTSCENE)
tests_test_nemesis_data_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_nemesis_data_LDADD = $(TEST_LIBS)

endif

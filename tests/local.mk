# SPDX-License-Identifier: Apache-2.0
# The tests. To add a program tests/test_x.c: name it in UNIT_TESTS (uses the library's
# internals) or in USER_TESTS (uses <rlock.h> only), and add the three lines that say how to
# build it, as those below.

UNIT_TESTS = tests/test_url tests/test_conn tests/test_conn_frame tests/test_conn_reply tests/test_pool tests/test_mailbox \
	tests/test_mutex_api tests/test_deadlines tests/test_handle tests/test_scripts \
	tests/test_scripts_handover tests/test_scripts_token \
	tests/test_registry tests/test_handoff_rules tests/test_keep_rules tests/test_token_rules tests/test_gate tests/test_handoff tests/test_retain tests/test_holdings \
	tests/test_wakes tests/test_timer tests/test_attr tests/test_mutex_lease \
	tests/test_client_api tests/test_events tests/test_admin
# Whether a server is fit for locks.
UNIT_TESTS += tests/test_diagnose tests/test_diagnose_call tests/test_diagnose_acl
# What it tells of itself.
UNIT_TESTS += tests/test_stats tests/test_log
# What a process runs out of.
UNIT_TESTS += tests/test_errno tests/test_memory tests/test_memory_threads \
	tests/test_descriptors tests/test_threads
USER_TESTS = tests/test_helpers
# The order of the fair lock's grants, between many processes.
USER_TESTS += tests/test_history tests/test_fair_order tests/test_fair_crowd
# Locking under faults and between processes; internals: the scripts, by hand.
SCENE_TESTS = tests/test_rules tests/test_rules_answers tests/test_two_grants tests/test_faults \
	tests/test_refusals tests/test_outage tests/test_exclusion \
	tests/test_liveness tests/test_redisson tests/test_setnx
# Found by reading, mended.
SCENE_TESTS += tests/test_mended
UNIT_TESTS += $(SCENE_TESTS) tests/test_mended_process
# rlock(1), as a process.
USER_TESTS += tests/test_cli_run tests/test_cli_signals tests/test_cli_lost \
	tests/test_cli_terminal tests/test_cli_doctor
# Looking at locks, and interfering with them, from the command line.
UNIT_TESTS += tests/test_cli_look tests/test_cli_release tests/test_cli_watch
# rlock-guard(8), as a process.
USER_TESTS += tests/test_guardd tests/test_guardd_stop tests/test_guardd_burials
# The tests of the mutex once more, for the fair lock.
AS_FAIR_TESTS = tests/test_fair_api tests/test_fair_lease tests/test_fair_handle \
	tests/test_fair_events tests/test_fair_rules tests/test_fair_rules_answers \
	tests/test_fair_two_grants \
	tests/test_fair_faults tests/test_fair_refusals tests/test_fair_outage \
	tests/test_fair_exclusion tests/test_fair_liveness tests/test_fair_mended \
	tests/test_fair_by_hand tests/test_fair_tokens
# What is the fair lock's own.
FAIR_TESTS = tests/test_fair tests/test_fair_gone tests/test_fair_polls \
	tests/test_fair_scripts tests/test_fair_found
UNIT_TESTS += $(AS_FAIR_TESTS) $(FAIR_TESTS)
# Once more, for the writers of the read-write lock.
AS_RWLOCK_TESTS = tests/test_rwlock_lease \
	tests/test_rwlock_handle \
	tests/test_rwlock_events \
	tests/test_rwlock_rules \
	tests/test_rwlock_rules_answers \
	tests/test_rwlock_two_grants \
	tests/test_rwlock_faults \
	tests/test_rwlock_refusals \
	tests/test_rwlock_outage \
	tests/test_rwlock_exclusion \
	tests/test_rwlock_liveness \
	tests/test_rwlock_mended \
	tests/test_rwlock_by_hand \
	tests/test_rwlock_tokens tests/test_rwlock_retain
# What is the read-write lock's own.
RWLOCK_TESTS = tests/test_levels \
	tests/test_rwlock_scripts \
	tests/test_rwlock_phases \
	tests/test_rwlock_grants tests/test_rwlock_keys tests/test_rwlock_chain \
	tests/test_rwlock_leases tests/test_rwlock_parties \
	tests/test_rwlock \
	tests/test_rwlock_shared \
	tests/test_rwlock_gone \
	tests/test_rwlock_replies \
	tests/test_rwlock_order \
	tests/test_rwlock_crowd tests/test_rwlock_wire tests/test_rwlock_polls \
	tests/test_rwlock_keepers tests/test_rwlock_keep tests/test_rwlock_keep_write \
	tests/test_join_rules \
	tests/test_rwhistory
UNIT_TESTS += $(AS_RWLOCK_TESTS) $(RWLOCK_TESTS)
# Handles in shared memory.
USER_TESTS += tests/test_shared
# When handles may be destroyed, for each type; clients that many threads open.
UNIT_TESTS += tests/test_init_destroy tests/test_destroy tests/test_fair_destroy tests/test_rwlock_destroy
# Programs of pthread's, ported by a script; needs no Check.
TEST_EXTENSIONS = .sh
PORTED_TESTS = tests/ported/run.sh
# The completions of rlock(1), in the shells that are there.
SHELL_TESTS = tests/cli/completions.sh
# Processes that die, on the host of others.
UNIT_TESTS += tests/test_guard_life
UNIT_TESTS += tests/test_deaths tests/test_deaths_faults \
	tests/test_deaths_robust tests/test_deaths_many tests/test_deaths_buriers
UNIT_TESTS += tests/test_bury_scripts tests/test_bury_marks
# The directory in which they are seen to have lived, and what is in it.
UNIT_TESTS += tests/test_rundir tests/test_guard tests/test_guard_slots \
	tests/test_guard_ends tests/test_guard_places
# Robust locks, mutex and fair.
UNIT_TESTS += tests/test_robust tests/test_fair_robust \
	tests/test_robust_spoilt tests/test_fair_robust_spoilt \
	tests/test_robust_faults tests/test_fair_robust_faults \
	tests/test_robust_scripts tests/test_robust_marks tests/test_retain_robust tests/test_fair_robust_scripts
# Children of forks.
UNIT_TESTS += tests/test_fork tests/test_fork_amid tests/test_fork_ways
# Threads and processes that end.
UNIT_TESTS += tests/test_thread_exit tests/test_fair_thread_exit tests/test_rwlock_thread_exit \
	tests/test_thread_exit_readers tests/test_process_exit
# Cancellation and signals.
UNIT_TESTS += tests/test_cancel tests/test_fair_cancel tests/test_rwlock_cancel \
	tests/test_cancel_ends tests/test_signals tests/test_signals_threads \
	tests/test_leading
# What the server says and does: error replies, states, lost data.
UNIT_TESTS += tests/test_server_errors tests/test_server_waits tests/test_server_states \
	tests/test_server_cluster tests/test_server_data
# Clocks that step or run apart: the server's, and a client's.
UNIT_TESTS += tests/test_standstill tests/test_clocks tests/test_fair_clocks tests/test_rwlock_clocks \
	tests/test_clocks_client
# A watchdog that stands still.
UNIT_TESTS += tests/test_wedged
# What Redis makes of channels.
UNIT_TESTS += tests/test_pubsub
# What the fuzz targets found.
UNIT_TESTS += tests/test_odd_answers

# What a test program is built with.
TEST_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/helpers $(HIREDIS_CFLAGS) $(CHECK_CFLAGS)
UNIT_CPPFLAGS = $(TEST_CPPFLAGS) -I$(top_builddir) -I$(top_srcdir)/src
TEST_LIBS = tests/libtesthelp.la $(HIREDIS_LIBS) $(CHECK_LIBS) -lpthread -ldl
UNIT_LIBS = librlk.la $(TEST_LIBS)
USER_LIBS = librlock.la $(TEST_LIBS)
# What the tests of the public functions share.
FIXTURE = tests/fixture.h tests/fixture.c
# Processes that ask in turn, and what happened to them.
GATHERING = tests/gathering.h tests/gathering.c tests/history.h tests/history.c
# Children that use the library like their parent.
FORKED = tests/forked.h tests/forked.c
# Every public function, called.
CALLS = tests/calls.h tests/calls.c
# A file of the crash guard, as others see it.
GUARDFILE = tests/guardfile.h tests/guardfile.c
# Mounts and the like of a test's own.
NAMESPACES = tests/namespaces.h tests/namespaces.c
# What a diagnosis told.
FINDINGS = tests/findings.h tests/findings.c
# The scripts, sent by hand.
BYHAND = tests/byhand.h tests/byhand.c
# Processes that read and write, what they logged, and who judges it.
RWSCENE = tests/rwscene.h tests/rwscene.c $(RWHISTORY)
RWHISTORY = tests/rwhistory.h tests/rwhistory.c tests/rwlog.h
# A lock in shared memory, and what it guards.
SHARING = tests/sharing.h tests/sharing.c
# What the tests of locking share.
SCENE = tests/scene.h tests/scene.c
# Workers that die, and who finds them so.
DEATHSCENE = tests/deathscene.h tests/deathscene.c
# rlock(1) as a process, with pipes or on a terminal.
CLI = tests/cli.h tests/cli.c
RUNSCENE = tests/runscene.h tests/runscene.c $(CLI)
# rlock-guard(8) as a process, with a directory and a service manager.
GUARDSCENE = tests/guardscene.h tests/guardscene.c $(CLI)
# In front of every file of a program that tests the fair lock as the mutex.
AS_FAIR_CPPFLAGS = $(UNIT_CPPFLAGS) -include $(top_srcdir)/tests/as_fair.h
# The same for the writers of the read-write lock.
AS_RWLOCK_CPPFLAGS = $(UNIT_CPPFLAGS) -include $(top_srcdir)/tests/as_rwlock.h

if HAVE_CHECK

TESTS = $(UNIT_TESTS) $(USER_TESTS)
check_PROGRAMS = $(UNIT_TESTS) $(USER_TESTS) tests/worker tests/hammer
check_LTLIBRARIES = tests/libtesthelp.la

# What many share is compiled once, or once for each type of lock that it is to be about.
check_LTLIBRARIES += \
	tests/libbyhand.la \
	tests/libbyhand_fair.la \
	tests/libbyhand_rwlock.la \
	tests/libfixture.la \
	tests/libfixture_fair.la \
	tests/libfixture_rwlock.la \
	tests/libscene.la \
	tests/libscene_fair.la \
	tests/libscene_rwlock.la
tests_libbyhand_la_SOURCES = $(BYHAND)
tests_libbyhand_la_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_libbyhand_fair_la_SOURCES = $(BYHAND)
tests_libbyhand_fair_la_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_libbyhand_rwlock_la_SOURCES = $(BYHAND)
tests_libbyhand_rwlock_la_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_libfixture_la_SOURCES = $(FIXTURE)
tests_libfixture_la_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_libfixture_fair_la_SOURCES = $(FIXTURE)
tests_libfixture_fair_la_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_libfixture_rwlock_la_SOURCES = $(FIXTURE)
tests_libfixture_rwlock_la_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_libscene_la_SOURCES = $(SCENE)
tests_libscene_la_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_libscene_fair_la_SOURCES = $(SCENE)
tests_libscene_fair_la_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_libscene_rwlock_la_SOURCES = $(SCENE)
tests_libscene_rwlock_la_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)

tests_test_helpers_SOURCES = tests/test_helpers.c tests/shims/alloc_shim.c
tests_test_helpers_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_helpers_LDADD = $(TEST_LIBS)

tests_test_url_SOURCES = tests/test_url.c
tests_test_url_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_url_LDADD = $(UNIT_LIBS)

tests_test_conn_SOURCES = tests/test_conn.c
tests_test_conn_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_conn_LDADD = $(UNIT_LIBS)

tests_test_conn_frame_SOURCES = tests/test_conn_frame.c
tests_test_conn_frame_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_conn_frame_LDADD = $(UNIT_LIBS)

tests_test_conn_reply_SOURCES = tests/test_conn_reply.c tests/shims/alloc_shim.c
tests_test_conn_reply_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_conn_reply_LDADD = $(UNIT_LIBS)

tests_test_pool_SOURCES = tests/test_pool.c
tests_test_pool_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_pool_LDADD = $(UNIT_LIBS)

tests_test_rules_SOURCES = tests/test_rules.c tests/rulescene.h
tests_test_rules_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rules_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_mailbox_SOURCES = tests/test_mailbox.c
tests_test_mailbox_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_mailbox_LDADD = $(UNIT_LIBS)

tests_test_mutex_api_SOURCES = tests/test_mutex_api.c
tests_test_mutex_api_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_mutex_api_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_handle_SOURCES = tests/test_handle.c
tests_test_handle_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_handle_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_two_grants_SOURCES = tests/test_two_grants.c tests/rulescene.h
tests_test_two_grants_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_two_grants_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_rules_answers_SOURCES = tests/test_rules_answers.c
tests_test_rules_answers_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rules_answers_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_scripts_SOURCES = tests/test_scripts.c
tests_test_scripts_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_scripts_LDADD = tests/libbyhand.la $(UNIT_LIBS)

tests_test_scripts_handover_SOURCES = tests/test_scripts_handover.c
tests_test_scripts_handover_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_scripts_handover_LDADD = tests/libbyhand.la $(UNIT_LIBS)

tests_test_faults_SOURCES = tests/test_faults.c
tests_test_faults_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_faults_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_handoff_rules_SOURCES = tests/test_handoff_rules.c tests/handscene.h tests/handscene.c
tests_test_handoff_rules_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_handoff_rules_LDADD = $(UNIT_LIBS)

tests_test_keep_rules_SOURCES = tests/test_keep_rules.c tests/handscene.h tests/handscene.c
tests_test_keep_rules_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_keep_rules_LDADD = $(UNIT_LIBS)

tests_test_token_rules_SOURCES = tests/test_token_rules.c tests/handscene.h tests/handscene.c
tests_test_token_rules_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_token_rules_LDADD = $(UNIT_LIBS)

tests_test_gate_SOURCES = tests/test_gate.c tests/handscene.h tests/handscene.c
tests_test_gate_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_gate_LDADD = $(UNIT_LIBS)

tests_test_retain_SOURCES = tests/test_retain.c
tests_test_retain_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_retain_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_holdings_SOURCES = tests/test_holdings.c
tests_test_holdings_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_holdings_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_handoff_SOURCES = tests/test_handoff.c
tests_test_handoff_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_handoff_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_registry_SOURCES = tests/test_registry.c
tests_test_registry_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_registry_LDADD = $(UNIT_LIBS)

tests_test_wakes_SOURCES = tests/test_wakes.c
tests_test_wakes_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_wakes_LDADD = $(UNIT_LIBS)

tests_test_timer_SOURCES = tests/test_timer.c
tests_test_timer_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_timer_LDADD = $(UNIT_LIBS)

tests_test_attr_SOURCES = tests/test_attr.c
tests_test_attr_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_attr_LDADD = $(UNIT_LIBS)

tests_test_mutex_lease_SOURCES = tests/test_mutex_lease.c
tests_test_mutex_lease_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_mutex_lease_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_refusals_SOURCES = tests/test_refusals.c
tests_test_refusals_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_refusals_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_outage_SOURCES = tests/test_outage.c
tests_test_outage_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_outage_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_client_api_SOURCES = tests/test_client_api.c
tests_test_client_api_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_client_api_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_exclusion_SOURCES = tests/test_exclusion.c
tests_test_exclusion_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_exclusion_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_stats_SOURCES = tests/test_stats.c
tests_test_stats_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_stats_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_log_SOURCES = tests/test_log.c
tests_test_log_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_log_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_events_SOURCES = tests/test_events.c
tests_test_events_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_events_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_admin_SOURCES = tests/test_admin.c
tests_test_admin_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_admin_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_diagnose_SOURCES = tests/test_diagnose.c $(FINDINGS)
tests_test_diagnose_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_diagnose_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_diagnose_call_SOURCES = tests/test_diagnose_call.c $(FINDINGS)
tests_test_diagnose_call_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_diagnose_call_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_diagnose_acl_SOURCES = tests/test_diagnose_acl.c \
	tests/acl_line.h tests/acl_line.c $(FINDINGS)
tests_test_diagnose_acl_CPPFLAGS = $(UNIT_CPPFLAGS) -DACL_DOC='"$(abs_top_srcdir)/doc/ACL.md"'
tests_test_diagnose_acl_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_liveness_SOURCES = tests/test_liveness.c
tests_test_liveness_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_liveness_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_redisson_SOURCES = tests/test_redisson.c
tests_test_redisson_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_redisson_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_setnx_SOURCES = tests/test_setnx.c
tests_test_setnx_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_setnx_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_scripts_token_SOURCES = tests/test_scripts_token.c
tests_test_scripts_token_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_scripts_token_LDADD = tests/libbyhand.la $(UNIT_LIBS)

tests_test_mended_SOURCES = tests/test_mended.c
tests_test_mended_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_mended_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_deadlines_SOURCES = tests/test_deadlines.c
tests_test_deadlines_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_deadlines_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_mended_process_SOURCES = tests/test_mended_process.c
tests_test_mended_process_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_mended_process_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_fair_api_SOURCES = tests/test_mutex_api.c tests/as_fair.h
tests_test_fair_api_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_api_LDADD = tests/libfixture_fair.la $(UNIT_LIBS)

tests_test_fair_lease_SOURCES = tests/test_mutex_lease.c tests/as_fair.h
tests_test_fair_lease_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_lease_LDADD = tests/libfixture_fair.la $(UNIT_LIBS)

tests_test_fair_handle_SOURCES = tests/test_handle.c tests/as_fair.h
tests_test_fair_handle_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_handle_LDADD = tests/libfixture_fair.la $(UNIT_LIBS)

tests_test_fair_events_SOURCES = tests/test_events.c tests/as_fair.h
tests_test_fair_events_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_events_LDADD = tests/libfixture_fair.la $(UNIT_LIBS)

tests_test_fair_rules_SOURCES = tests/test_rules.c tests/rulescene.h tests/as_fair.h
tests_test_fair_rules_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_rules_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_fair_two_grants_SOURCES = tests/test_two_grants.c tests/rulescene.h tests/as_fair.h
tests_test_fair_two_grants_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_two_grants_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_fair_rules_answers_SOURCES = tests/test_rules_answers.c tests/as_fair.h
tests_test_fair_rules_answers_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_rules_answers_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_fair_faults_SOURCES = tests/test_faults.c tests/as_fair.h
tests_test_fair_faults_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_faults_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_fair_refusals_SOURCES = tests/test_refusals.c tests/as_fair.h
tests_test_fair_refusals_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_refusals_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_fair_outage_SOURCES = tests/test_outage.c tests/as_fair.h
tests_test_fair_outage_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_outage_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_fair_exclusion_SOURCES = tests/test_exclusion.c tests/as_fair.h
tests_test_fair_exclusion_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_exclusion_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_fair_liveness_SOURCES = tests/test_liveness.c tests/as_fair.h
tests_test_fair_liveness_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_liveness_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_fair_mended_SOURCES = tests/test_mended.c tests/as_fair.h
tests_test_fair_mended_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_mended_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_fair_by_hand_SOURCES = tests/test_scripts.c tests/as_fair.h
tests_test_fair_by_hand_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_by_hand_LDADD = tests/libbyhand_fair.la $(UNIT_LIBS)

tests_test_fair_tokens_SOURCES = tests/test_scripts_token.c tests/as_fair.h
tests_test_fair_tokens_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_tokens_LDADD = tests/libbyhand_fair.la $(UNIT_LIBS)

tests_test_rwlock_lease_SOURCES = tests/test_mutex_lease.c tests/as_rwlock.h
tests_test_rwlock_lease_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_lease_LDADD = tests/libfixture_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_handle_SOURCES = tests/test_handle.c tests/as_rwlock.h
tests_test_rwlock_handle_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_handle_LDADD = tests/libfixture_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_events_SOURCES = tests/test_events.c tests/as_rwlock.h
tests_test_rwlock_events_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_events_LDADD = tests/libfixture_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_rules_SOURCES = tests/test_rules.c tests/rulescene.h tests/as_rwlock.h
tests_test_rwlock_rules_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_rules_LDADD = tests/libscene_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_two_grants_SOURCES = tests/test_two_grants.c tests/rulescene.h tests/as_rwlock.h
tests_test_rwlock_two_grants_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_two_grants_LDADD = tests/libscene_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_rules_answers_SOURCES = tests/test_rules_answers.c tests/as_rwlock.h
tests_test_rwlock_rules_answers_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_rules_answers_LDADD = tests/libscene_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_faults_SOURCES = tests/test_faults.c tests/as_rwlock.h
tests_test_rwlock_faults_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_faults_LDADD = tests/libscene_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_refusals_SOURCES = tests/test_refusals.c tests/as_rwlock.h
tests_test_rwlock_refusals_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_refusals_LDADD = tests/libscene_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_outage_SOURCES = tests/test_outage.c tests/as_rwlock.h
tests_test_rwlock_outage_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_outage_LDADD = tests/libscene_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_exclusion_SOURCES = tests/test_exclusion.c tests/as_rwlock.h
tests_test_rwlock_exclusion_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_exclusion_LDADD = tests/libscene_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_liveness_SOURCES = tests/test_liveness.c tests/as_rwlock.h
tests_test_rwlock_liveness_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_liveness_LDADD = tests/libscene_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_mended_SOURCES = tests/test_mended.c tests/as_rwlock.h
tests_test_rwlock_mended_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_mended_LDADD = tests/libscene_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_by_hand_SOURCES = tests/test_scripts.c tests/as_rwlock.h
tests_test_rwlock_by_hand_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_by_hand_LDADD = tests/libbyhand_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_tokens_SOURCES = tests/test_scripts_token.c tests/as_rwlock.h
tests_test_rwlock_tokens_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_tokens_LDADD = tests/libbyhand_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_retain_SOURCES = tests/test_retain.c tests/as_rwlock.h
tests_test_rwlock_retain_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_retain_LDADD = tests/libfixture_rwlock.la $(UNIT_LIBS)

tests_test_rwlock_keepers_SOURCES = tests/test_rwlock_keepers.c
tests_test_rwlock_keepers_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_keepers_LDADD = tests/libbyhand.la $(UNIT_LIBS)

tests_test_rwlock_keep_SOURCES = tests/test_rwlock_keep.c
tests_test_rwlock_keep_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_keep_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_rwlock_keep_write_SOURCES = tests/test_rwlock_keep_write.c
tests_test_rwlock_keep_write_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_keep_write_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_join_rules_SOURCES = tests/test_join_rules.c tests/handscene.h tests/handscene.c
tests_test_join_rules_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_join_rules_LDADD = $(UNIT_LIBS)

tests_test_levels_SOURCES = tests/test_levels.c
tests_test_levels_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_levels_LDADD = $(UNIT_LIBS)

tests_test_rwlock_scripts_SOURCES = tests/test_rwlock_scripts.c
tests_test_rwlock_scripts_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_scripts_LDADD = tests/libbyhand.la $(UNIT_LIBS)

tests_test_rwlock_phases_SOURCES = tests/test_rwlock_phases.c
tests_test_rwlock_phases_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_phases_LDADD = tests/libbyhand.la $(UNIT_LIBS)

tests_test_rwlock_grants_SOURCES = tests/test_rwlock_grants.c
tests_test_rwlock_grants_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_grants_LDADD = tests/libbyhand.la $(UNIT_LIBS)

tests_test_rwlock_keys_SOURCES = tests/test_rwlock_keys.c
tests_test_rwlock_keys_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_keys_LDADD = tests/libbyhand.la $(UNIT_LIBS)

tests_test_rwlock_leases_SOURCES = tests/test_rwlock_leases.c
tests_test_rwlock_leases_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_leases_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_rwlock_parties_SOURCES = tests/test_rwlock_parties.c
tests_test_rwlock_parties_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_parties_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_rwlock_chain_SOURCES = tests/test_rwlock_chain.c
tests_test_rwlock_chain_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_chain_LDADD = tests/libbyhand.la $(UNIT_LIBS)

tests_test_rwlock_wire_SOURCES = tests/test_rwlock_wire.c
tests_test_rwlock_wire_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_wire_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_rwlock_polls_SOURCES = tests/test_rwlock_polls.c
tests_test_rwlock_polls_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_polls_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_rwhistory_SOURCES = tests/test_rwhistory.c $(RWHISTORY)
tests_test_rwhistory_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwhistory_LDADD = $(UNIT_LIBS)

tests_test_rwlock_SOURCES = tests/test_rwlock.c
tests_test_rwlock_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_rwlock_shared_SOURCES = tests/test_rwlock_shared.c
tests_test_rwlock_shared_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_shared_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_rwlock_gone_SOURCES = tests/test_rwlock_gone.c
tests_test_rwlock_gone_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_gone_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_rwlock_replies_SOURCES = tests/test_rwlock_replies.c
tests_test_rwlock_replies_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_replies_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_rwlock_order_SOURCES = tests/test_rwlock_order.c $(RWSCENE)
tests_test_rwlock_order_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_order_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_rwlock_crowd_SOURCES = tests/test_rwlock_crowd.c $(RWSCENE)
tests_test_rwlock_crowd_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rwlock_crowd_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_fair_SOURCES = tests/test_fair.c tests/as_fair.h
tests_test_fair_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_fair_gone_SOURCES = tests/test_fair_gone.c tests/as_fair.h
tests_test_fair_gone_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_gone_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_fair_polls_SOURCES = tests/test_fair_polls.c tests/as_fair.h
tests_test_fair_polls_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_polls_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_fair_scripts_SOURCES = tests/test_fair_scripts.c
tests_test_fair_scripts_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_fair_scripts_LDADD = tests/libbyhand.la $(UNIT_LIBS)

tests_test_fair_found_SOURCES = tests/test_fair_found.c
tests_test_fair_found_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_fair_found_LDADD = tests/libbyhand.la $(UNIT_LIBS)

tests_test_history_SOURCES = tests/test_history.c tests/history.h tests/history.c
tests_test_history_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_history_LDADD = $(TEST_LIBS)

tests_test_fair_order_SOURCES = tests/test_fair_order.c $(GATHERING)
tests_test_fair_order_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_fair_order_LDADD = $(USER_LIBS)

tests_test_fair_crowd_SOURCES = tests/test_fair_crowd.c $(GATHERING)
tests_test_fair_crowd_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_fair_crowd_LDADD = $(USER_LIBS)

# -- what they share ------------------------------------------------------------------

tests_libtesthelp_la_SOURCES = \
	tests/helpers/alloc.h tests/helpers/alloc.c \
	tests/helpers/clock.h tests/helpers/clock.c \
	tests/helpers/die.h tests/helpers/die.c \
	tests/helpers/link.h tests/helpers/link.c \
	tests/helpers/port.h tests/helpers/port.c \
	tests/helpers/process.h tests/helpers/process.c \
	tests/helpers/program.h tests/helpers/program.c \
	tests/helpers/proxy.h tests/helpers/proxy.c \
	tests/helpers/redis.h tests/helpers/redis.c \
	tests/helpers/resp.h tests/helpers/resp.c \
	tests/helpers/rundir.h tests/helpers/rundir.c \
	tests/helpers/rules.h tests/helpers/rules.c \
	tests/helpers/server.h tests/helpers/server.c \
	tests/helpers/suite.h tests/helpers/suite.c \
	tests/helpers/supervisor.h tests/helpers/supervisor.c \
	tests/helpers/wait.h tests/helpers/wait.c \
	tests/helpers/worker.h tests/helpers/worker.c \
	tests/shims/alloc_shim.h tests/shims/clock_file.h
tests_libtesthelp_la_CPPFLAGS = $(TEST_CPPFLAGS) -DTEST_BUILDDIR='"$(abs_top_builddir)"'

# With the library's objects in it rather than the shared library, so that it is no libtool
# wrapper: tests start, stop and kill it by the dozen.
tests_worker_SOURCES = tests/worker.c tests/worker_commands.h tests/worker_commands.c \
	tests/worker_exit.h tests/worker_exit.c
tests_worker_CPPFLAGS = $(AM_CPPFLAGS)
tests_worker_LDADD = librlk.la -lpthread

# -- rlock(1): the built program, by its path
tests_test_cli_run_SOURCES = tests/test_cli_run.c $(RUNSCENE)
tests_test_cli_run_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_cli_run_LDADD = $(USER_LIBS)

tests_test_cli_doctor_SOURCES = tests/test_cli_doctor.c $(CLI)
tests_test_cli_doctor_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_cli_doctor_LDADD = $(USER_LIBS) -lutil
tests_test_cli_signals_SOURCES = tests/test_cli_signals.c $(RUNSCENE)
tests_test_cli_signals_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_cli_signals_LDADD = $(USER_LIBS)

tests_test_cli_lost_SOURCES = tests/test_cli_lost.c $(RUNSCENE)
tests_test_cli_lost_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_cli_lost_LDADD = $(USER_LIBS)

tests_test_cli_terminal_SOURCES = tests/test_cli_terminal.c $(RUNSCENE)
tests_test_cli_terminal_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_cli_terminal_LDADD = $(USER_LIBS)

# a command for it
check_PROGRAMS += tests/sleeper
tests_sleeper_SOURCES = tests/sleeper.c
tests_sleeper_CPPFLAGS = $(AM_CPPFLAGS)
tests_test_cli_look_SOURCES = tests/test_cli_look.c $(CLI)
tests_test_cli_look_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_cli_look_LDADD = tests/libfixture.la $(UNIT_LIBS) -lutil

tests_test_cli_release_SOURCES = tests/test_cli_release.c $(CLI)
tests_test_cli_release_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_cli_release_LDADD = tests/libfixture.la $(UNIT_LIBS) -lutil

tests_test_cli_watch_SOURCES = tests/test_cli_watch.c tests/screen.h tests/screen.c $(CLI)
tests_test_cli_watch_CPPFLAGS = $(UNIT_CPPFLAGS) $(CLI_CPPFLAGS)
tests_test_cli_watch_LDADD = tests/libfixture.la $(UNIT_LIBS) -lutil

# -- the daemon

tests_test_guardd_SOURCES = tests/test_guardd.c $(GUARDSCENE)
tests_test_guardd_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_guardd_LDADD = $(USER_LIBS)

tests_test_guardd_stop_SOURCES = tests/test_guardd_stop.c $(GUARDSCENE)
tests_test_guardd_stop_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_guardd_stop_LDADD = $(USER_LIBS)

tests_test_guardd_burials_SOURCES = tests/test_guardd_burials.c $(GUARDSCENE)
tests_test_guardd_burials_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_guardd_burials_LDADD = $(USER_LIBS)

# -- pthread semantics: robust locks

tests_test_robust_SOURCES = tests/test_robust.c
tests_test_robust_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_robust_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_fair_robust_SOURCES = tests/test_robust.c tests/as_fair.h
tests_test_fair_robust_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_robust_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_robust_spoilt_SOURCES = tests/test_robust_spoilt.c
tests_test_robust_spoilt_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_robust_spoilt_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_fair_robust_spoilt_SOURCES = tests/test_robust_spoilt.c tests/as_fair.h
tests_test_fair_robust_spoilt_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_robust_spoilt_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_robust_faults_SOURCES = tests/test_robust_faults.c
tests_test_robust_faults_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_robust_faults_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_fair_robust_faults_SOURCES = tests/test_robust_faults.c tests/as_fair.h
tests_test_fair_robust_faults_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_robust_faults_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_robust_scripts_SOURCES = tests/test_robust_scripts.c
tests_test_robust_scripts_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_robust_scripts_LDADD = tests/libbyhand.la $(UNIT_LIBS)

tests_test_guard_life_SOURCES = tests/test_guard_life.c $(GUARDFILE)
tests_test_guard_life_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_guard_life_LDADD = tests/libscene.la $(UNIT_LIBS)
tests_test_rundir_SOURCES = tests/test_rundir.c $(FINDINGS) $(NAMESPACES)
tests_test_rundir_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_rundir_LDADD = tests/libfixture.la $(UNIT_LIBS)
tests_test_guard_SOURCES = tests/test_guard.c $(FINDINGS) $(FORKED) $(GUARDFILE) $(NAMESPACES)
tests_test_guard_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_guard_LDADD = tests/libfixture.la $(UNIT_LIBS)
tests_test_guard_ends_SOURCES = tests/test_guard_ends.c $(FORKED) $(GUARDFILE)
tests_test_guard_ends_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_guard_ends_LDADD = tests/libfixture.la $(UNIT_LIBS)
tests_test_guard_places_SOURCES = tests/test_guard_places.c $(FORKED) $(GUARDFILE) \
	$(NAMESPACES)
tests_test_guard_places_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_guard_places_LDADD = tests/libfixture.la $(UNIT_LIBS)
tests_test_guard_slots_SOURCES = tests/test_guard_slots.c $(GUARDFILE)
tests_test_guard_slots_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_guard_slots_LDADD = tests/libfixture.la $(UNIT_LIBS)
tests_test_bury_scripts_SOURCES = tests/test_bury_scripts.c tests/acl_line.h \
	tests/acl_line.c
tests_test_bury_scripts_CPPFLAGS = $(UNIT_CPPFLAGS) \
	-DACL_DOC='"$(abs_top_srcdir)/doc/ACL.md"'
tests_test_bury_scripts_LDADD = tests/libbyhand.la $(UNIT_LIBS)
tests_test_deaths_faults_SOURCES = tests/test_deaths_faults.c
tests_test_deaths_faults_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_deaths_faults_LDADD = tests/libscene.la $(UNIT_LIBS)
tests_test_bury_marks_SOURCES = tests/test_bury_marks.c
tests_test_bury_marks_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_bury_marks_LDADD = tests/libbyhand.la $(UNIT_LIBS)
tests_test_deaths_SOURCES = tests/test_deaths.c
tests_test_deaths_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_deaths_LDADD = tests/libscene.la $(UNIT_LIBS)
tests_test_deaths_robust_SOURCES = tests/test_deaths_robust.c $(DEATHSCENE)
tests_test_deaths_robust_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_deaths_robust_LDADD = tests/libscene.la $(UNIT_LIBS)
tests_test_deaths_many_SOURCES = tests/test_deaths_many.c $(DEATHSCENE)
tests_test_deaths_many_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_deaths_many_LDADD = tests/libscene.la $(UNIT_LIBS)
tests_test_deaths_buriers_SOURCES = tests/test_deaths_buriers.c $(DEATHSCENE)
tests_test_deaths_buriers_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_deaths_buriers_LDADD = tests/libscene.la $(UNIT_LIBS)
tests_test_robust_marks_SOURCES = tests/test_robust_marks.c
tests_test_robust_marks_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_robust_marks_LDADD = tests/libbyhand.la $(UNIT_LIBS)

tests_test_retain_robust_SOURCES = tests/test_retain_robust.c
tests_test_retain_robust_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_retain_robust_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_fair_robust_scripts_SOURCES = tests/test_robust_scripts.c tests/as_fair.h
tests_test_fair_robust_scripts_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_robust_scripts_LDADD = tests/libbyhand_fair.la $(UNIT_LIBS)

# -- pthread semantics: fork

tests_test_fork_SOURCES = tests/test_fork.c $(FORKED)
tests_test_fork_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_fork_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_fork_amid_SOURCES = tests/test_fork_amid.c $(FORKED)
tests_test_fork_amid_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_fork_amid_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_fork_ways_SOURCES = tests/test_fork_ways.c $(FORKED)
tests_test_fork_ways_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_fork_ways_LDADD = tests/libfixture.la $(UNIT_LIBS)

# -- pthread semantics: threads and processes that end

tests_test_thread_exit_SOURCES = tests/test_thread_exit.c
tests_test_thread_exit_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_thread_exit_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_fair_thread_exit_SOURCES = tests/test_thread_exit.c tests/as_fair.h
tests_test_fair_thread_exit_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_thread_exit_LDADD = tests/libfixture_fair.la $(UNIT_LIBS)

tests_test_rwlock_thread_exit_SOURCES = tests/test_thread_exit.c tests/as_rwlock.h
tests_test_rwlock_thread_exit_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_thread_exit_LDADD = tests/libfixture_rwlock.la $(UNIT_LIBS)

tests_test_thread_exit_readers_SOURCES = tests/test_thread_exit_readers.c
tests_test_thread_exit_readers_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_thread_exit_readers_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_process_exit_SOURCES = tests/test_process_exit.c
tests_test_process_exit_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_process_exit_LDADD = tests/libscene.la $(UNIT_LIBS)

# Loads the shared library by itself; tests start it.
check_PROGRAMS += tests/loader
tests_loader_SOURCES = tests/loader.c
tests_loader_CPPFLAGS = $(AM_CPPFLAGS)
tests_loader_LDADD = -lpthread -ldl

# -- pthread semantics: cancellation and signals

tests_test_cancel_SOURCES = tests/test_cancel.c $(CALLS)
tests_test_cancel_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_cancel_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_fair_cancel_SOURCES = tests/test_cancel.c tests/as_fair.h $(CALLS)
tests_test_fair_cancel_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_cancel_LDADD = tests/libfixture_fair.la $(UNIT_LIBS)

tests_test_rwlock_cancel_SOURCES = tests/test_cancel.c tests/as_rwlock.h $(CALLS)
tests_test_rwlock_cancel_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_cancel_LDADD = tests/libfixture_rwlock.la $(UNIT_LIBS)

tests_test_cancel_ends_SOURCES = tests/test_cancel_ends.c
tests_test_cancel_ends_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_cancel_ends_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_signals_SOURCES = tests/test_signals.c $(CALLS)
tests_test_signals_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_signals_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_signals_threads_SOURCES = tests/test_signals_threads.c
tests_test_signals_threads_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_signals_threads_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_leading_SOURCES = tests/test_leading.c
tests_test_leading_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_leading_LDADD = tests/libfixture.la $(UNIT_LIBS)

# -- pthread semantics: the table of equivalence

TESTS += $(PORTED_TESTS) $(SHELL_TESTS)

# -- pthread semantics: shared memory, init and destroy

tests_test_shared_SOURCES = tests/test_shared.c $(SHARING)
tests_test_shared_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_shared_LDADD = $(USER_LIBS) -lrt

tests_test_init_destroy_SOURCES = tests/test_init_destroy.c
tests_test_init_destroy_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_init_destroy_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_destroy_SOURCES = tests/test_destroy.c
tests_test_destroy_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_destroy_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_fair_destroy_SOURCES = tests/test_destroy.c tests/as_fair.h
tests_test_fair_destroy_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_destroy_LDADD = tests/libfixture_fair.la $(UNIT_LIBS)

tests_test_rwlock_destroy_SOURCES = tests/test_destroy.c tests/as_rwlock.h
tests_test_rwlock_destroy_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_destroy_LDADD = tests/libfixture_rwlock.la $(UNIT_LIBS)

# -- pthread semantics: errno, memory, descriptors, stacks

tests_test_errno_SOURCES = tests/test_errno.c
tests_test_errno_CPPFLAGS = $(UNIT_CPPFLAGS) -DTEST_HEADER='"$(abs_top_srcdir)/include/rlock.h"'
tests_test_errno_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_memory_SOURCES = tests/test_memory.c tests/shims/alloc_shim.c
tests_test_memory_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_memory_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_memory_threads_SOURCES = tests/test_memory_threads.c tests/shims/alloc_shim.c
tests_test_memory_threads_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_memory_threads_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_descriptors_SOURCES = tests/test_descriptors.c
tests_test_descriptors_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_descriptors_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_threads_SOURCES = tests/test_threads.c
tests_test_threads_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_threads_LDADD = tests/libfixture.la $(UNIT_LIBS)

# -- what the server says and does

tests_test_server_errors_SOURCES = tests/test_server_errors.c
tests_test_server_errors_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_server_errors_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_server_waits_SOURCES = tests/test_server_waits.c
tests_test_server_waits_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_server_waits_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_server_states_SOURCES = tests/test_server_states.c
tests_test_server_states_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_server_states_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_server_cluster_SOURCES = tests/test_server_cluster.c
tests_test_server_cluster_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_server_cluster_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_server_data_SOURCES = tests/test_server_data.c
tests_test_server_data_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_server_data_LDADD = tests/libscene.la $(UNIT_LIBS)
# -- faults: clocks

tests_test_standstill_SOURCES = tests/test_standstill.c
tests_test_standstill_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_standstill_LDADD = tests/libbyhand.la $(UNIT_LIBS)

tests_test_clocks_SOURCES = tests/test_clocks.c
tests_test_clocks_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_clocks_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_fair_clocks_SOURCES = tests/test_clocks.c tests/as_fair.h
tests_test_fair_clocks_CPPFLAGS = $(AS_FAIR_CPPFLAGS)
tests_test_fair_clocks_LDADD = tests/libscene_fair.la $(UNIT_LIBS)

tests_test_rwlock_clocks_SOURCES = tests/test_clocks.c tests/as_rwlock.h
tests_test_rwlock_clocks_CPPFLAGS = $(AS_RWLOCK_CPPFLAGS)
tests_test_rwlock_clocks_LDADD = tests/libscene_rwlock.la $(UNIT_LIBS)

tests_test_clocks_client_SOURCES = tests/test_clocks_client.c
tests_test_clocks_client_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_clocks_client_LDADD = tests/libscene.la $(UNIT_LIBS)

tests_test_wedged_SOURCES = tests/test_wedged.c
tests_test_wedged_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_wedged_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_pubsub_SOURCES = tests/test_pubsub.c
tests_test_pubsub_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_pubsub_LDADD = tests/libscene.la $(UNIT_LIBS)
# -- what the fuzz targets found

tests_test_odd_answers_SOURCES = tests/test_odd_answers.c
tests_test_odd_answers_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_odd_answers_LDADD = tests/libfixture.la $(UNIT_LIBS)

# -- programs that tests start

tests_hammer_SOURCES = tests/hammer.c
tests_hammer_CPPFLAGS = $(AM_CPPFLAGS)
tests_hammer_LDADD = librlk.la -lpthread

check_PROGRAMS += tests/sharer
tests_sharer_SOURCES = tests/sharer.c $(SHARING)
tests_sharer_CPPFLAGS = $(AM_CPPFLAGS)
tests_sharer_LDADD = librlk.la -lpthread -lrt

check_PROGRAMS += tests/rwcrowd
tests_rwcrowd_SOURCES = tests/rwcrowd.c tests/rwlog.h
tests_rwcrowd_CPPFLAGS = $(AM_CPPFLAGS)
tests_rwcrowd_LDADD = librlk.la -lpthread

check_PROGRAMS += tests/crowd
tests_crowd_SOURCES = tests/crowd.c
tests_crowd_CPPFLAGS = $(AM_CPPFLAGS)
tests_crowd_LDADD = librlk.la -lpthread

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


include $(srcdir)/tests/nemesis/local.mk
# -- links, servers and load: connections that fail in every way, servers that are not what
# they were, many holds at once

UNIT_TESTS += tests/test_links tests/test_links_down tests/test_servers \
	tests/test_load tests/test_renewals tests/test_ready_at_once
tests_test_links_SOURCES = tests/test_links.c
tests_test_links_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_links_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_links_down_SOURCES = tests/test_links_down.c
tests_test_links_down_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_links_down_LDADD = tests/libfixture.la $(UNIT_LIBS) -ldl

tests_test_servers_SOURCES = tests/test_servers.c
tests_test_servers_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_servers_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_renewals_SOURCES = tests/test_renewals.c
tests_test_renewals_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_renewals_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_load_SOURCES = tests/test_load.c
tests_test_load_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_load_LDADD = tests/libfixture.la $(UNIT_LIBS)

tests_test_ready_at_once_SOURCES = tests/test_ready_at_once.c
tests_test_ready_at_once_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_ready_at_once_LDADD = tests/libfixture.la $(UNIT_LIBS)

# Least privilege, hostile peers, and what must never be shown.
UNIT_TESTS += tests/test_refusal_texts tests/test_acl tests/test_canary tests/test_hostile \
	tests/test_hostile_server
tests_test_refusal_texts_SOURCES = tests/test_refusal_texts.c
tests_test_refusal_texts_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_refusal_texts_LDADD = $(UNIT_LIBS)
tests_test_acl_SOURCES = tests/test_acl.c tests/acl_line.h tests/acl_line.c \
	tests/acl_tour.h tests/acl_tour.c
tests_test_acl_CPPFLAGS = $(UNIT_CPPFLAGS) -DACL_DOC='"$(abs_top_srcdir)/doc/ACL.md"'
tests_test_acl_LDADD = tests/libscene.la $(UNIT_LIBS)
EXTRA_DIST += doc/ACL.md
tests_test_canary_SOURCES = tests/test_canary.c
tests_test_canary_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_canary_LDADD = tests/libscene.la $(UNIT_LIBS)
tests_test_hostile_SOURCES = tests/test_hostile.c tests/pair.h
tests_test_hostile_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_hostile_LDADD = tests/libscene.la $(UNIT_LIBS)
tests_test_hostile_server_SOURCES = tests/test_hostile_server.c tests/pair.h
tests_test_hostile_server_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_test_hostile_server_LDADD = tests/libscene.la $(UNIT_LIBS)

else
TESTS = $(PORTED_TESTS) $(SHELL_TESTS)
endif

# What `make check` builds before it runs them.
test-programs: $(check_PROGRAMS) $(check_LTLIBRARIES) $(check_DATA)
.PHONY: test-programs

# A time limit for each test that leaves room for slow machines, and no server but the
# tests' own.
AM_TESTS_ENVIRONMENT = \
	: $${RLOCK_TEST_SERVER:=$(REDIS_SERVER)} $${CK_DEFAULT_TIMEOUT:=120}; \
	RLOCK_TEST_BUILDDIR='$(abs_top_builddir)'; \
	RLOCK_TEST_COMPILE='$(CC) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS)'; \
	RLOCK_TEST_LINK='$(CC) $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS)'; \
	export RLOCK_TEST_SERVER CK_DEFAULT_TIMEOUT RLOCK_TEST_BUILDDIR; \
	export RLOCK_TEST_COMPILE RLOCK_TEST_LINK; \
	unset RLOCK_URL;

# The shims' rules are not automake's.
EXTRA_DIST += tests/README.md tests/shims/clock_shim.c

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

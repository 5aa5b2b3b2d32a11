# SPDX-License-Identifier: Apache-2.0
# The manual pages. What a page has in its section NAME beside its own name is found by
# that name, too: those files (".so man3/page.3") are made when the pages are installed.
dist_man3_MANS = \
	doc/man/rlock_client_diagnose.3 \
	doc/man/rlock_client_getstats.3 \
	doc/man/rlock_client_open.3 \
	doc/man/rlock_clientattr_init.3 \
	doc/man/rlock_event.3 \
	doc/man/rlock_fair_lock.3 \
	doc/man/rlock_getrundir.3 \
	doc/man/rlock_inspect.3 \
	doc/man/rlock_mutex_consistent.3 \
	doc/man/rlock_mutex_getprioceiling.3 \
	doc/man/rlock_mutex_gettoken.3 \
	doc/man/rlock_mutex_init.3 \
	doc/man/rlock_mutex_lock.3 \
	doc/man/rlock_mutex_lock_lease.3 \
	doc/man/rlock_mutexattr_init.3 \
	doc/man/rlock_mutexattr_setfencing.3 \
	doc/man/rlock_mutexattr_sethandoffms.3 \
	doc/man/rlock_mutexattr_setlease.3 \
	doc/man/rlock_mutexattr_setoutage.3 \
	doc/man/rlock_mutexattr_setpshared.3 \
	doc/man/rlock_mutexattr_setretain.3 \
	doc/man/rlock_mutexattr_setrobust.3 \
	doc/man/rlock_mutexattr_settype.3 \
	doc/man/rlock_rwlock_init.3 \
	doc/man/rlock_rwlock_rdlock.3 \
	doc/man/rlock_rwlock_rdlock_lease.3 \
	doc/man/rlock_rwlock_unlock.3 \
	doc/man/rlock_rwlockattr_init.3 \
	doc/man/rlock_strerror.3
dist_man5_MANS = doc/man/rlock.conf.5
dist_man7_MANS = \
	doc/man/rlock.7 \
	doc/man/rlock_pthread.7
EXTRA_DIST += \
	build-aux/check-doc-examples \
	build-aux/check-man \
	build-aux/man-aliases

install-data-hook: install-man-aliases
install-man-aliases:
	$(srcdir)/build-aux/man-aliases --install '$(DESTDIR)$(mandir)' '$(srcdir)'

uninstall-hook: uninstall-man-aliases
uninstall-man-aliases:
	$(srcdir)/build-aux/man-aliases --uninstall '$(DESTDIR)$(mandir)' '$(srcdir)'

check-local: check-man check-doc-examples
check-man:
	$(AM_V_GEN)CC='$(CC)' $(srcdir)/build-aux/check-man $(srcdir)

check-doc-examples: librlock.la cli/rlock
	$(AM_V_GEN)CC='$(CC)' CFLAGS='$(CFLAGS)' \
	  LINK='$(CC) $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS)' \
	  $(srcdir)/build-aux/check-doc-examples $(srcdir)

.PHONY: install-man-aliases uninstall-man-aliases check-man check-doc-examples

# SPDX-License-Identifier: Apache-2.0
# rlock-guard(8), on the public header only, and what systemd needs to run it.
sbin_PROGRAMS = guardd/rlock-guard

guardd_rlock_guard_SOURCES = \
	guardd/guardd.h guardd/main.c guardd/say.c guardd/urls.c guardd/clients.c guardd/notify.c
guardd_rlock_guard_LDADD = librlock.la -lpthread

dist_man8_MANS = doc/man/rlock-guard.8

# -- the service: its unit, the group whose members take part, and their directory. Of the
# latter two systemd looks in /usr/lib and /usr/local/lib.
EXTRA_DIST += guardd/rlock-guard.service.in guardd/guard.urls
CLEANFILES += guardd/rlock-guard.service
guardd/rlock-guard.service: guardd/rlock-guard.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) guardd && \
	$(SED) -e 's|@sbindir[@]|$(sbindir)|' -e 's|@sysconfdir[@]|$(sysconfdir)|' \
	  $(srcdir)/guardd/rlock-guard.service.in >$@.tmp && mv $@.tmp $@

sysusersdir = $(prefix)/lib/sysusers.d
tmpfilesdir = $(prefix)/lib/tmpfiles.d
if WITH_SYSTEMD_UNIT
nodist_systemdsystemunit_DATA = guardd/rlock-guard.service
dist_sysusers_DATA = guardd/sysusers.d/rlock-guard.conf
dist_tmpfiles_DATA = guardd/tmpfiles.d/rlock-guard.conf
endif

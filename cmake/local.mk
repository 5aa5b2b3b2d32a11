# SPDX-License-Identifier: Apache-2.0
# What find_package(rlock) of CMake reads; configure makes the other file.
cmakedir = $(libdir)/cmake/rlock
nodist_cmake_DATA = rlockConfig.cmake rlockConfigVersion.cmake
CLEANFILES += rlockConfig.cmake
EXTRA_DIST += cmake/rlockConfig.cmake.in build-aux/relative-path

rlockConfig.cmake: cmake/rlockConfig.cmake.in build-aux/relative-path Makefile
	$(AM_V_GEN)back=`$(srcdir)/build-aux/relative-path '$(cmakedir)' '$(includedir)'` && \
	  $(SED) -e "s|@includedir_from_here@|$$back|" -e "s|@with_tls_here@|$(RLOCK_WITH_TLS)|" $(srcdir)/cmake/rlockConfig.cmake.in >$@.tmp && mv $@.tmp $@

# Uninstalling takes away the directories that a bare prefix had not, as long as they are
# empty; bin, sbin, include, lib, share and share/man stay in any case.
uninstall-hook:
	for dir in '$(cmakedir)' '$(libdir)/cmake' '$(pkgconfigdir)' \
	  '$(mandir)/man1' '$(mandir)/man3' '$(mandir)/man5' '$(mandir)/man7' '$(mandir)/man8' \
	  '$(systemdsystemunitdir)' '$(prefix)/lib/systemd' '$(sysusersdir)' '$(tmpfilesdir)' \
	  '$(datadir)/bash-completion/completions' '$(datadir)/bash-completion' \
	  '$(datadir)/zsh/site-functions' '$(datadir)/zsh/vendor-completions' '$(datadir)/zsh' \
	  '$(datadir)/fish/vendor_completions.d' '$(datadir)/fish' '$(examplesdir)/cron.d' '$(examplesdir)/systemd' \
	  '$(examplesdir)' '$(docdir)' '$(datadir)/doc'; do \
	  test ! -d "$(DESTDIR)$$dir" || rmdir "$(DESTDIR)$$dir" 2>/dev/null || :; \
	done

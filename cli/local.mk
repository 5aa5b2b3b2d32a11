# SPDX-License-Identifier: Apache-2.0
# rlock(1), on the public header only.
bin_PROGRAMS = cli/rlock

cli_rlock_SOURCES = \
	cli/cli.h cli/cli.c cli/duration.c cli/main.c \
	cli/json.h cli/json.c \
	cli/table.h cli/table.c cli/look.h cli/look.c \
	cli/run.h cli/run.c cli/run_lock.c cli/run_signals.c \
	cli/run_terminal.c cli/run_supervisor.c cli/run_command.c cli/run_watch.c cli/run_tell.c \
	cli/list.c cli/show.c \
	cli/watch.h cli/watch.c cli/watch_plain.c cli/watch_screen.c \
	cli/pace.h cli/pace.c cli/looker.h cli/looker.c \
	cli/wait.c cli/release.c \
	cli/doctor.c
cli_rlock_CPPFLAGS = $(AM_CPPFLAGS) $(CLI_CPPFLAGS) $(NCURSES_CFLAGS)
cli_rlock_LDADD = librlock.la $(NCURSES_LIBS)

dist_man1_MANS = doc/man/rlock.1

# -- completions: each shell looks into a directory of its own
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
fishcompletiondir = $(datadir)/fish/vendor_completions.d
dist_zshcompletion_DATA = cli/completions/_rlock
dist_fishcompletion_DATA = cli/completions/rlock.fish
EXTRA_DIST += cli/completions/rlock.bash

# bash looks for the command's name
install-data-local: install-bash-completion
install-bash-completion:
	$(MKDIR_P) $(DESTDIR)$(bashcompletiondir)
	$(INSTALL_DATA) $(srcdir)/cli/completions/rlock.bash $(DESTDIR)$(bashcompletiondir)/rlock
uninstall-local: uninstall-bash-completion
uninstall-bash-completion:
	rm -f $(DESTDIR)$(bashcompletiondir)/rlock
.PHONY: install-bash-completion uninstall-bash-completion

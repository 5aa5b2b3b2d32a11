/* SPDX-License-Identifier: Apache-2.0 */
/* Files like /etc/rlock.conf, and those with passwords beside them, in a directory of the
 * test's own. State: one directory at a time. Thread: main. */
#ifndef TEST_CONFFILE_H
#define TEST_CONFFILE_H

#include <stddef.h>
#include <sys/types.h>

/* For checked fixtures: an empty directory that all may look into; and it is gone. The
 * variables RLOCK_URL and RLOCK_CONF are not there from then on. */
void conffile_begin(void);
void conffile_end(void);

/* The path of that name in it; valid until the next call for that name but one. */
const char *conffile_path(const char *name);
/* Writes such a file, whatever the umask is; its path. */
const char *conffile_write(const char *name, const char *text, mode_t mode);
const char *conffile_write_bytes(const char *name, const char *bytes, size_t len,
                                 mode_t mode);
/* Writes the file "conf", which all may read, with "^" for the directory's path, and
 * names it by RLOCK_CONF; "RLOCK_CONF=path", for programs. Valid until the next call. */
const char *conffile_use(const char *text);

/* From here on the rights of files count for the calling thread and what it starts,
 * though it be root's: mode 0 is unreadable. */
void conffile_obey_rights(void);

#endif

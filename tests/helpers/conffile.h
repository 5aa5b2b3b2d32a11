/* SPDX-License-Identifier: Apache-2.0 */
/* Files like /etc/rlock.conf and their password files, in a directory of the test. State:
 * one directory at a time. Thread: main. */
#ifndef TEST_CONFFILE_H
#define TEST_CONFFILE_H

#include <stddef.h>
#include <sys/types.h>

/* For checked fixtures. begin: makes an empty directory that every user may read, and
 * removes the variables RLOCK_URL and RLOCK_CONF from the environment. end: removes the
 * directory. */
void conffile_begin(void);
void conffile_end(void);

/* The path of the file with this name in the directory. A path stays valid until the
 * second call after it. */
const char *conffile_path(const char *name);
/* Writes the file with exactly this mode, whatever the umask is. Returns its path. */
const char *conffile_write(const char *name, const char *text, mode_t mode);
const char *conffile_write_bytes(const char *name, const char *bytes, size_t len,
                                 mode_t mode);
/* Writes the file "conf", readable by all, with the directory's path in place of each
 * "^". Points RLOCK_CONF to it. Returns "RLOCK_CONF=path", for the environment of
 * programs; valid until the next call. */
const char *conffile_use(const char *text);

/* From here on file permissions apply to the calling thread, and to the programs that it
 * starts, even if they run as root: a file of mode 0 cannot be read. */
void conffile_obey_rights(void);

#endif

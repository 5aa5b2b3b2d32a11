/* SPDX-License-Identifier: Apache-2.0 */
/* Moves a test's process into namespaces of its own, so that its mounts affect no other
 * process. This needs root's capabilities, or a user namespace where the system allows
 * one; otherwise the test prints that it is skipped. Thread: the main one, before it
 * starts other threads, so that they are in the namespaces, too. */
#ifndef TEST_NAMESPACES_H
#define TEST_NAMESPACES_H

#include <stdbool.h>
#include <stddef.h>

/* Moves the calling process into new namespaces of these kinds (CLONE_NEWNS, ...). Its
 * mounts stay invisible outside. It keeps its user. */
bool namespaces_enter(const char *test, int kinds);
/* Mounts an empty tmpfs that belongs to the user, of this many bytes; 0: without a
 * limit. */
void namespaces_mount(const char *path, size_t bytes);
/* Changes the limit of that tmpfs. */
void namespaces_resize(const char *path, size_t bytes);

#endif

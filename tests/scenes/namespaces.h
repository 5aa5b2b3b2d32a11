/* SPDX-License-Identifier: Apache-2.0 */
/* A test's process in namespaces of its own, so that it may mount what would be
 * everybody's otherwise. With the capabilities of root, or in a user namespace where
 * those are to be had; else the test says that it is skipped. Thread: the main one,
 * before there are others: who starts later is in them, too. */
#ifndef TEST_NAMESPACES_H
#define TEST_NAMESPACES_H

#include <stdbool.h>
#include <stddef.h>

/* The calling process has these (CLONE_NEWNS, ...) from now on; mounts stay its own. The
 * user is the same. */
bool namespaces_enter(const char *test, int kinds);
/* An empty tmpfs there, of the user's own, of so many bytes; 0: as many as it likes. */
void namespaces_mount(const char *path, size_t bytes);
/* It has so many from now on. */
void namespaces_resize(const char *path, size_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the server for a client whose program names none: $RLOCK_URL, else the
 * system's configuration file, else a built-in URL. rlock.conf(5) describes the file
 * and all rules. No state of its own. */
#ifndef RLK_CONF_H
#define RLK_CONF_H

#include "net/url.h"

/*
 * As rlk_url_parse, with the URL from the environment or the file. The file's credentials
 * apply if neither *config nor the URL has any. Notes the source of the URL.
 *
 * Returns 0, EINVAL, ENOTSUP, ENOMEM, EMFILE or ENFILE. The message names the variable,
 * or the file and the line, and never shows their text. A missing file counts as no file.
 * A file that cannot be used is EINVAL and never passed over: two hosts would then use
 * two servers as if they were one.
 *
 * A program with more rights than its caller ignores the environment. Thread: any.
 * Blocks: reads files.
 */
int rlk_conf_parse(struct rlk_config *config);

#endif

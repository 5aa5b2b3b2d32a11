/* SPDX-License-Identifier: Apache-2.0 */
/* Which server is meant where the program names none: $RLOCK_URL, else the system's
 * file, else one that is built in. rlock.conf(5) has the file's form and all rules. */
#ifndef RLK_CONF_H
#define RLK_CONF_H

#include "net/url.h"

/*
 * As rlk_url_parse with the URL that the environment or the file says, and with the
 * credentials of the file where *config has none and the URL neither. Notes the source.
 *
 * 0, EINVAL, ENOTSUP, ENOMEM, EMFILE, ENFILE. The message names the variable, or the file
 * and its line, and never shows what stands there. A file that is not there is none; one
 * that cannot be used is EINVAL, never passed over: two hosts would then take two servers
 * for one.
 *
 * A program with more rights than its caller does not look at the environment.
 * Thread: any. Blocks: reads files.
 */
int rlk_conf_parse(struct rlk_config *config);

#endif

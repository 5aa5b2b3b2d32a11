/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker of the nemesis uses of its machine. No state. */
#ifndef NEM_USAGE_H
#define NEM_USAGE_H

#include <stdio.h>

/* Writes a line: "descriptors threads bytes"; bytes of the process's own memory, without
 * files. May wait for a second, until no thread closes a descriptor. */
void nem_usage_tell(FILE *out);

#endif

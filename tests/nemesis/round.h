/* SPDX-License-Identifier: Apache-2.0 */
/* A round of the nemesis in files: writes the data at its end, and reads them again. */
#ifndef NEM_ROUND_H
#define NEM_ROUND_H

#include "crew.h"
#include "judge.h"
#include "marks.h"

/* The resources of each process at its first look. Begins zeroed. */
struct nem_looks {
    struct nem_end *firsts;
    size_t count;
};

/* When all rest: waits until what ends by itself has ended, then writes the data left at
 * the server and the resources of each process, now and at the first look, into
 * <dir>/left and <dir>/end. */
void nem_round_look(struct nem_faults *faults, struct nem_crew *crew,
                    const struct nem_round *round, struct nem_looks *looks,
                    const char *dir);

/* The numbers of a round, in <dir>/round. load: false when there is no such file. */
void nem_round_save(const struct nem_round *round, const char *dir);
bool nem_round_load(struct nem_round *ret_round, const char *dir);

/* The memory that a round points to. */
struct nem_files {
    struct nem_op *ops;
    struct nem_fault *faults;
    struct nem_ledger ledger;
    struct nem_end *ends;
    char *left_text;
    const char **left;
};

/* Reads all files in `dir`, and makes the round point to the data. */
bool nem_files_read(struct nem_files *files, const char *dir, struct nem_round *round);
void nem_files_free(struct nem_files *files);

void nem_remove_tree(const char *dir);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a worker a program that uses the descriptors 0 to 2 itself while the library
 * runs, and that closes all descriptors that it does not know. Therefore the driver's
 * lines are read and written at other numbers.
 */
#ifndef NEM_ROBBERY_H
#define NEM_ROBBERY_H

#include <stdio.h>

/* Call it first: moves stdin and stdout to the files of nem_lines_in and out, and puts
 * /dev/null at 0 and 1. stderr is kept for later. Aborts on failure. */
void nem_lines_open(void);
FILE *nem_lines_in(void);
FILE *nem_lines_out(void);
/* In a child that outlives the process: closes these files, and 0 to 2. */
void nem_lines_leave(void);

/* Descriptors that the program knows. Between begin and end nothing is robbed: for files
 * that another thread than the robbing one opens. */
void nem_own_begin(void);
void nem_own_end(void);
void nem_own(int fd);
/* The same, at a number from 3 on. */
int nem_own_raised(int fd);
void nem_disown(int fd);
void nem_own_close(int fd);

/* `what`: the amount of NEM_DESCRIPTORS. rob closes 0 to 2; with bit 1 it also closes all
 * from 3 on that are not the program's own, and opens others there, which stay until the
 * next robbery or rest. rob_end opens a pipe with some input (bit 0), or /dev/null, at 0
 * and 1, and restores stderr. They abort when the library has read that input, written to
 * the output, or has a number below 3. Thread: one. */
void nem_rob(unsigned what);
void nem_rob_end(unsigned what);
void nem_rob_rest(void);

#endif

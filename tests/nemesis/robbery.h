/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker as a program that takes the numbers 0 to 2 for itself while the library runs,
 * and closes all others that it does not know. The lines of its driver are therefore read
 * and written at other numbers.
 */
#ifndef NEM_ROBBERY_H
#define NEM_ROBBERY_H

#include <stdio.h>

/* First of all: moves stdin and stdout to where nem_lines_in and out are; /dev/null comes
 * to 0 and 1. stderr is kept for later. Aborts on failure. */
void nem_lines_open(void);
FILE *nem_lines_in(void);
FILE *nem_lines_out(void);
/* A child that outlives us: closes them, and 0 to 2. */
void nem_lines_leave(void);

/* Descriptors that the program knows. Between begin and end nothing is robbed: for what
 * is opened by another thread than the one that robs. */
void nem_own_begin(void);
void nem_own_end(void);
void nem_own(int fd);
/* The same, at a number from 3 on. */
int nem_own_raised(int fd);
void nem_disown(int fd);
void nem_own_close(int fd);

/* `what`: the amount of NEM_DESCRIPTORS. rob closes 0 to 2, and with bit 1 all from 3 on
 * that are not the program's own, and opens others there, which stay until it robs again
 * or rests. rob_end opens a pipe with some input (bit 0), or /dev/null, at 0 and 1, and
 * gives stderr back. They abort when somebody has read that input, or has a number
 * below 3. Thread: one. */
void nem_rob(unsigned what);
void nem_rob_end(unsigned what);
void nem_rob_rest(void);

#endif

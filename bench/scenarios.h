/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured; bench/README.md says why. */
#ifndef BENCH_SCENARIOS_H
#define BENCH_SCENARIOS_H

#include "report.h"

enum { SCENARIO_COUNT = 22 };

extern const struct scenario scenarios[SCENARIO_COUNT];

#endif

/* Results of benchmarks as a picture. */
#ifndef SPANCL_CLI_PLOT_H
#define SPANCL_CLI_PLOT_H

#include <stdio.h>

#include "base/bytes.h"
#include "base/status.h"

/* Draw an SVG: for each measurement what it takes natively, through SpanCL, and what the link alone
 * takes. `results` is JSON: "floor", "native" and "spancl" are objects of measurements, each an object with
 * "unit" and "median"; anything else is left out, so that bench/run.py's files do. The scale is
 * logarithmic, with a part for each unit. SP_E_INVAL: it is not that. */
SP_NODISCARD int plot_write(FILE *out, struct bytes results);

#endif

/* A picture of benchmark results. */
#ifndef SPANCL_CLI_PLOT_H
#define SPANCL_CLI_PLOT_H

#include <stdio.h>

#include "base/bytes.h"
#include "base/status.h"

/* Draw an SVG. For each measurement it shows three values, through SpanCL, and of the link alone.
 * `results` is JSON: "floor", "native" and "spancl" are objects of measurements, each an object
 * with "unit" and "median". Other members are ignored, so that files of bench/run.py are valid.
 * The scale is logarithmic, with a part for each unit. SP_E_INVAL: the text has another form. */
SP_NODISCARD int plot_write(FILE *out, struct bytes results);

#endif

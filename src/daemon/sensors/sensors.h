/* The sensors: the process that reads the state of this host's devices, for queries of statistics and for the energy of
 * sessions. It asks the driver's management library (NVML), and reads the processors' counters of energy (RAPL). It
 * loads a library of the driver, so it is not the supervisor, and it meets no client. It keeps root's rights, because
 * only root may read the counters. It gets CONTROL_SENSE and answers with CONTROL_SENSED: text with two kinds of lines.
 *
 * - "BUSY USED TOTAL TEMPERATURE POWER ENERGY NAME" for each device: percent, bytes, bytes, degrees Celsius,
 *   milliwatts, and microjoules since some time. "-": it is not known.
 * - "cpu NUMBER ENERGY RANGE" for each processor: microjoules. The counter goes on with 0 above RANGE.
 *
 * Without any of them the text is empty. Source: NVML API Reference Guide; Documentation/power/powercap/powercap.rst
 * of Linux. */
#ifndef SPANCL_DAEMON_SENSORS_H
#define SPANCL_DAEMON_SENSORS_H

#include "config/options.h"

/* Run the process. Returns its exit status when the supervisor is gone, or has not asked for a minute. */
int sensors_main(const struct config_options *o);

#endif

/* The sensors: the process that asks the drivers' management library (NVML) about the devices of this host, for queries
 * of statistics. It loads a library of the driver, so it is not the supervisor, and it meets no client. It gets
 * CONTROL_SENSE and answers with CONTROL_SENSED, a line of text for each device:
 * "BUSY USED TOTAL TEMPERATURE POWER NAME" (percent, bytes, bytes, degrees Celsius, milliwatts; "-": not known).
 * Without a library the text is empty. */
#ifndef SPANCL_DAEMON_SENSORS_H
#define SPANCL_DAEMON_SENSORS_H

/* Run the process. Returns its exit status when the supervisor is gone, or has not asked for a minute. */
int sensors_main(void);

#endif

/* The exporter: a process beside the supervisor that serves metrics over HTTP (--metrics). It faces
 * every process that reaches its address, so the supervisor does not: the supervisor gives it a
 * listening socket, and answers one query of statistics at a time.
 *
 * One thread. At most 64 connections of five seconds each; beyond, the oldest is closed. A query a
 * second at most: scrapes in between get the same text. Started by root it becomes a user without
 * rights. */
#ifndef SPANCL_DAEMON_EXPORTER_H
#define SPANCL_DAEMON_EXPORTER_H

/* Run the exporter, with CONTROL_FD. Its first message is CONTROL_METRICS with the listening
 * socket. Returns the exit status. */
int exporter_main(void);

#endif

/* A worker's links to other servers: the worker makes no sockets, but asks the dialler
 * (daemon/dialler/dialler.h). One state per process. Any thread may connect; only the main thread calls
 * the other functions. */
#ifndef SPANCL_DAEMON_DIALLING_H
#define SPANCL_DAEMON_DIALLING_H

#include "loop/dial.h"

/* Connect as server_loop_params.connect, and wait for the dialler's answer. Errors as
 * loop_connect; SP_E_LINK also: there is no dialler now, or it does not answer. */
SP_NODISCARD int dialling_connect(void *user, const struct dial_params *p, struct conn **ret,
                                  struct dial_reply *reply);

/* Use this socket with the dialler from now on; -1: none. The call takes the socket over. Threads
 * that wait for an answer over the previous socket get SP_E_LINK. */
void dialling_begin(int socket);

/* Return the socket to poll for POLLIN; -1: none. */
int dialling_socket(void);

/* Receive one answer and wake the thread that waits for it. */
void dialling_receive(void);

#endif

/* Sockets that carry packets, and descriptors with them: connections over the loopback interface. A packet travels as a
 * header, one record for each descriptor, and its bytes.
 *
 * The sender copies a handle into the receiver's process, so it has to know that process and have rights on it. Only
 * a parent, or a process that the parent has given the other end last, does. The receiver needs no rights. */
#ifndef SPANCL_OS_WINDOWS_PACKETS_H
#define SPANCL_OS_WINDOWS_PACKETS_H

#include <stdbool.h>
#include <sys/types.h>

/* Have this connected pair carry packets. Neither end takes descriptors in this process. False: there is no memory. */
bool packets_begin(const int pair[2]);

/* The same for one end that another process has made. `other`: the process that has the other end. `takes`: it takes
 * descriptors, which the other process thus has to be trusted with. */
bool packets_adopt(int fd, pid_t other, bool takes);

/* The process `pid` has a copy of this end, so descriptors that are sent to the other end are for that process. */
void packets_given(int fd, pid_t pid);

/* Forget this socket. file_close() calls it first. */
void packets_forget(int fd);

#endif

/* Descriptors: those of the C library for files and pipes, and numbers with a bit of their own for sockets. So one int
 * stands for both, as on Linux. Any thread. */
#ifndef SPANCL_OS_WINDOWS_DESCRIPTOR_H
#define SPANCL_OS_WINDOWS_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/socket.h>

/* Start Winsock, once. False: errno gives the reason. Calls that make sockets or resolve names need it. */
bool descriptor_start(void);

/* Set errno to the reason of Winsock's last failure in this thread. Returns -1. */
int descriptor_fail(void);

/* Convert an error of Winsock to an errno. */
int descriptor_error(int winsock_error);

/* Set errno to the reason of the last failure of the system's other calls. Returns -1. */
int descriptor_fail_system(void);

/* Return the descriptor of a new socket, whose calls return at once unless `waits`. -1: the socket is invalid or can't
 * be used; this function has closed it. */
int descriptor_of(SOCKET s, bool waits);

/* Return a descriptor that owns the handle of a file. -1: the handle is INVALID_HANDLE_VALUE (errno), or there is
 * no descriptor, and this function has closed it. */
int descriptor_of_file(void *handle);

/* Give this socket the descriptor `fd`, which the C library then gives to no file. For one socket of the process,
 * before it has threads. False: it is no socket, or there is no such number. */
bool descriptor_place(SOCKET s, int fd);

bool descriptor_is_socket(int fd);

/* Return the socket of a descriptor. INVALID_SOCKET: the descriptor is no socket. */
SOCKET descriptor_socket(int fd);

#endif

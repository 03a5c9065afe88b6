/* The names of this host and of its user. */
#ifndef SPANCL_OS_HOST_H
#define SPANCL_OS_HOST_H

#include <stddef.h>

/* Get the name of this host; "": it has none. A name that is too long is cut. */
void host_name(char *ret, size_t size);

/* Get the name of this process's user; "": it has none. Not at the same time in several threads. */
void host_user(char *ret, size_t size);

#endif

/* The names of this host and of its user, what else tells hosts apart, and its clock. */
#ifndef SPANCL_OS_HOST_H
#define SPANCL_OS_HOST_H

#include <stddef.h>

/* Get the name of this host; "": it has none. A name that is too long is cut. */
void host_name(char *ret, size_t size);

/* The same up to the first dot; `otherwise` if that is empty. */
void host_short_name(char *ret, size_t size, const char *otherwise);

/* Get what tells this host from others: the number that its system was given (machine-id(5)), or "", a space, and its
 * name. Containers and copied disks may share either. Cut as a name is. */
void host_identity(char *ret, size_t size);

/* Get the name of the counter by which the kernel tells the time, for example "tsc" on Linux; "": it is not known. */
void host_clock_source(char *ret, size_t size);

/* Get the name of the user of this process; "": it is not known. */
void host_user(char *ret, size_t size);

#endif

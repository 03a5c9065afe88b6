/* The names of kernels and of kinds of commands, as numbers: a record of a call has room for no more. Numbers and texts
 * stay as long as the process. The client's lock guards the table. */
#ifndef SPANCL_CORE_PROFILE_NAMES_H
#define SPANCL_CORE_PROFILE_NAMES_H

#include "core/client.h"

struct kernel_info;

enum { NAMES_LENGTH = 64 }; /* of a text with its end; longer names are cut */

/* Return the number of a command that launches no kernel. */
unsigned names_of_kind(cl_command_type type);

/* Return the number of a kernel's name, from 1 to UINT16_MAX, and keep it in the kernel. When there are too many names,
 * or no memory, all further ones have one number. */
unsigned names_of_kernel(struct kernel_info *k) REQUIRES(client_held);

/* Return the text of a number. NULL: 0, or there is none. */
const char *names_text(unsigned number) REQUIRES(client_held);

#endif

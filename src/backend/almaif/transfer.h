/* Commands that read, write, copy or fill buffers; the host executes them. */
#ifndef SPANCL_BACKEND_ALMAIF_TRANSFER_H
#define SPANCL_BACKEND_ALMAIF_TRANSFER_H

#include "backend/almaif/state.h"

cl_int transfer_check(const struct domain *d, const struct backend_command *c);
void transfer_run(struct command *k);

#endif

/* The device filter of struct backend_params: which of the devices found are used. Stateless. */
#ifndef SPANCL_BACKEND_FILTER_H
#define SPANCL_BACKEND_FILTER_H

#include <CL/cl.h>
#include <stdbool.h>

/* Does `filter` let the device pass? `number` counts all devices found, before any filter. Terms
 * are separated by commas; blanks around them don't count. A term is a number, a type (cpu, gpu,
 * accelerator, custom, all), or else a part of the name in upper or lower case. A term with `!` in
 * front excludes the devices that it matches, whatever other terms say. NULL or no other terms: all
 * others pass. */
bool filter_match(const char *filter, unsigned number, cl_device_type type, const char *name);

#endif

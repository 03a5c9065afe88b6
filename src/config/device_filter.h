/* The filter of devices: the grammar of SPANCL_DEVICES. A filter is a value and borrows the text that it was read
 * from. Any thread. */
#ifndef SPANCL_CONFIG_DEVICE_FILTER_H
#define SPANCL_CONFIG_DEVICE_FILTER_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum { DEVICE_FILTER_TERMS = 32 };

struct device_filter {
        struct {
                bool vendor;      /* else the name */
                const char *glob; /* `size` bytes */
                size_t size;
        } globs[DEVICE_FILTER_TERMS];
        size_t glob_count;
        cl_device_type types; /* 0: all */
        cl_ulong memory_min;  /* bytes */
        cl_uint count_max;    /* CL_UINT_MAX: any number */
        enum {
                DEVICE_ORDER_FOUND,
                DEVICE_ORDER_LATENCY,
                DEVICE_ORDER_LOAD, /* sessions of the server */
                DEVICE_ORDER_MEMORY,
        } order;
};

/* Read a filter; "" takes all devices. `origin` names the text in messages. SP_E_INVAL with *ret_error, which the
 * caller frees with mem_free; *ret then takes no device. */
SP_NODISCARD int device_filter_parse(const char *text, const char *origin,
                                     struct device_filter *ret, char **ret_error);

/* The values of one device that filters compare. */
struct device_traits {
        cl_device_type type;
        const char *vendor, *name;
        cl_ulong memory;
};

/* Return true if the device passes. The number of devices does not count here. */
bool device_filter_takes(const struct device_filter *f, const struct device_traits *t);

/* The kind of term that the device does not pass, for people; NULL: it passes. */
const char *device_filter_refuses(const struct device_filter *f, const struct device_traits *t);

#endif

/* One kernel on the devices of a server, in a process of its own, which loads SpanCL as a program
 * does. Blocking; one thread. */
#ifndef SPANCL_CLI_COMPUTE_H
#define SPANCL_CLI_COMPUTE_H

#include "config/server_spec.h"

enum { COMPUTE_TEXT_MAX = 1600 };

enum compute {
        COMPUTE_RIGHT,
        COMPUTE_NOT,   /* no device compiles OpenCL C */
        COMPUTE_WRONG, /* a wrong result, or a failure */
};

/* Compute on all devices of `spec`, and check the results. `library`: the path of libspancl; "": the
 * one beside this program. Returns an enum compute; `ret` is a sentence about the result, or empty if
 * no process could be started. */
int compute_apart(const char *library, const struct server_spec *spec, char ret[COMPUTE_TEXT_MAX]);

#endif

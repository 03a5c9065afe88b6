/* What the OpenCL programs of the system tests share: a call that fails is named with its code, "CALL: error N", and
 * ends the program. */
#ifndef SPANCL_TESTS_TRY_H
#define SPANCL_TESTS_TRY_H

#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

#define TRY(...)                                                               \
        do {                                                                   \
                cl_int err_ = (__VA_ARGS__);                                   \
                if (err_ != CL_SUCCESS) {                                      \
                        fprintf(stderr, "%s: error %d\n", #__VA_ARGS__, err_); \
                        exit(1);                                               \
                }                                                              \
        } while (0)

#endif

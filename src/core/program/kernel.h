/* Kernels: argument values, checked against the build's information and kept here. A launch sends
 * the values that the server does not have yet (kernel->version, ->sent). */
#ifndef SPANCL_CORE_KERNEL_H
#define SPANCL_CORE_KERNEL_H

#include "core/client.h"
#include "core/handle.h"

/* A kernel of the program's build. SP_E_NOMEM. */
SP_NODISCARD int kernel_new(cl_program p, struct kernel_info *info, cl_kernel *ret)
        REQUIRES(client_held);

/* The same with copies of `from`'s arguments. */
SP_NODISCARD int kernel_clone(cl_kernel from, cl_kernel *ret) REQUIRES(client_held);

/* The application's last reference went: the program may be built again. Drops the hold. */
void kernel_release(cl_kernel k) REQUIRES(client_held);

/* False: the argument can't have this size, so that kernel_set_arg does not read the value. */
bool kernel_arg_fits(const struct _cl_kernel *k, cl_uint index, size_t size);

/* clSetKernelArg behind its handle check: SP_E_NOMEM or what clSetKernelArg returns. */
SP_NODISCARD int kernel_set_arg(cl_kernel k, cl_uint index, size_t size, const void *value)
        REQUIRES(client_held);

/* clSetKernelArgSVMPointer and clSetKernelArgMemPointerINTEL behind their handle check. `at` is
 * NULL, or lies in an allocation of the context if a kernel is to access it. */
SP_NODISCARD int kernel_set_svm(cl_kernel k, cl_uint index, const void *at) REQUIRES(client_held);

/* CL_KERNEL_EXEC_INFO_SVM_PTRS or _USM_PTRS_INTEL. SP_E_NOMEM. */
SP_NODISCARD int kernel_set_reach(cl_kernel k, enum kernel_reach how, size_t count,
                                  const void *pointers) REQUIRES(client_held);

/* Is argument i, if it is a queue, one of this device? */
bool kernel_queue_fits(const struct _cl_kernel *k, cl_uint i, const struct _cl_device_id *d)
        REQUIRES(client_held);

/* Ask the server of device i of the program's (proto/schema: kernel_query); the answer is `count` numbers.
 * SP_E_* or cl_int. Releases the lock while it waits. */
SP_NODISCARD int kernel_query(cl_kernel k, cl_uint i, uint32_t name, const size_t *input,
                              size_t input_count, size_t count, size_t *ret) REQUIRES(client_held);

/* Does the object of argument i, if it has one, still exist? They are not retained. */
bool kernel_arg_is_alive(const struct _cl_kernel *k, cl_uint i) REQUIRES(client_held);

/* Are all arguments set, to objects that still exist? */
bool kernel_is_ready(const struct _cl_kernel *k) REQUIRES(client_held);

/* kernel_is_right records that all arguments of the current version are valid for a launch on the
 * device. kernel_right returns the newest version so recorded (0: none); arguments of it and of
 * earlier versions need no check. The record lapses when any object is freed that might be an
 * argument. */
void kernel_is_right(cl_kernel k, cl_device_id d) REQUIRES(client_held);
uint64_t kernel_right(const struct _cl_kernel *k, const struct _cl_device_id *d)
        REQUIRES(client_held);

/* Bytes of local memory that the arguments ask for. */
cl_ulong kernel_local_args(const struct _cl_kernel *k) REQUIRES(client_held);

/* Make sure that the server knows the kernel (sends kernel_create once per server). SP_E_*. */
SP_NODISCARD int kernel_declare(cl_kernel k, struct server *s) REQUIRES(client_held);

void kernel_hold(cl_kernel k) REQUIRES(client_held);
void kernel_unhold(cl_kernel k) REQUIRES(client_held);

#endif

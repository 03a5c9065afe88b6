/* From the compiler's intermediate text to what a program's kernels are called by: for each kernel a function
 * that takes its arguments from memory, and a description. Stateless. */
#ifndef SPANCL_BACKEND_RISCV_KERNELS_H
#define SPANCL_BACKEND_RISCV_KERNELS_H

#include "base/bytes.h"

/* Append OpenCL C for all kernels in `text` (LLVM's assembly, with kernel_arg_* metadata) to `ret`. SP_E_UNSUPP: one
 * has an argument that there can't be; a sentence is appended to `log`. SP_E_INVAL: the text is not understood.
 * SP_E_NOMEM. */
SP_NODISCARD int kernels_write(struct bytes text, struct buf *ret, struct buf *log);

/* What the compiler for RISC-V does not take, or must not know, in place: the calling convention of kernels (LLVM 14
 * crashes), and that nobody else sees local memory. */
SP_NODISCARD int kernels_adapt(struct bytes text, struct buf *ret);

#endif

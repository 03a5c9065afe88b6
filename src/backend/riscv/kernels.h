/* Rewrites the compiler's intermediate text so that a program's kernels can be called. For each
 * kernel it makes a function that takes its arguments from memory, and a description. Stateless. */
#ifndef SPANCL_BACKEND_RISCV_KERNELS_H
#define SPANCL_BACKEND_RISCV_KERNELS_H

#include "base/bytes.h"

/* Append OpenCL C for all kernels in `text` (LLVM's assembly, with kernel_arg_* metadata) to `ret`.
 * SP_E_UNSUPP: a kernel has an unsupported argument; a sentence is appended to `log`. SP_E_INVAL:
 * the text is not understood. SP_E_NOMEM. */
SP_NODISCARD int kernels_write(struct bytes text, struct buf *ret, struct buf *log);

/* Remove two properties of kernels that the compiler for RISC-V must not see. It crashes on their
 * calling convention (LLVM 14), and must not assume that nobody else sees local memory. */
SP_NODISCARD int kernels_adapt(struct bytes text, struct buf *ret);

#endif

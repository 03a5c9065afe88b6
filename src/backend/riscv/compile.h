/* OpenCL C to programs for RISC-V, by clang and lld, which are external tools. Any thread. */
#ifndef SPANCL_BACKEND_RISCV_COMPILE_H
#define SPANCL_BACKEND_RISCV_COMPILE_H

#include "backend/riscv/program.h"

struct riscv_compiler;

/* clang: its path, "" for the first in PATH; scratch_dir: for temporary files, NULL: where such are put. Borrowed.
 * SP_E_NOENT with a sentence: something that it needs is not there; SP_E_NOMEM. */
SP_NODISCARD int riscv_compiler_new(const char *clang, const char *scratch_dir,
                                    struct riscv_compiler **ret, char error[RISCV_ERROR_SIZE]);
struct riscv_compiler *riscv_compiler_free(struct riscv_compiler *c);

/* Source to an object for riscv_link; messages are appended to `log`. Returns what clCompileProgram would. */
cl_int riscv_compile(const struct riscv_compiler *c, struct bytes source, const char *options,
                     struct buf *ret, struct buf *log);

/* Objects to a program, or to one object (`library`). As clLinkProgram. */
cl_int riscv_link(const struct riscv_compiler *c, const struct bytes *objects, size_t count,
                  bool library, struct buf *ret, struct buf *log);

/* The firmware, to be executed as it is. SP_E_NOENT with a sentence. */
SP_NODISCARD int riscv_firmware(struct buf *ret, char error[RISCV_ERROR_SIZE]);

#endif

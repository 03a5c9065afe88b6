/* Compiles OpenCL C to programs for RISC-V, by the external tools clang and lld. Any thread. */
#ifndef SPANCL_BACKEND_RISCV_COMPILE_H
#define SPANCL_BACKEND_RISCV_COMPILE_H

#include "backend/riscv/program.h"

struct riscv_compiler;

/* Make a compiler. clang: its path, "" for the first in PATH. scratch_dir: for temporary files,
 * NULL: the system's folder. Both are borrowed. SP_E_NOENT with a sentence: a tool is missing;
 * SP_E_NOMEM. */
SP_NODISCARD int riscv_compiler_new(const char *clang, const char *scratch_dir,
                                    struct riscv_compiler **ret, char error[RISCV_ERROR_SIZE]);
struct riscv_compiler *riscv_compiler_free(struct riscv_compiler *c);

/* Compile source to an object for riscv_link; messages are appended to `log`. Returns
 * clCompileProgram's result. */
cl_int riscv_compile(const struct riscv_compiler *c, struct bytes source, const char *options,
                     struct buf *ret, struct buf *log);

/* Link objects to a program, or to one object (`library`). Returns clLinkProgram's result. */
cl_int riscv_link(const struct riscv_compiler *c, const struct bytes *objects, size_t count,
                  bool library, struct buf *ret, struct buf *log);

/* Get the firmware, which is executed as it is. SP_E_NOENT with a sentence. */
SP_NODISCARD int riscv_firmware(struct buf *ret, char error[RISCV_ERROR_SIZE]);

#endif

/* An accelerator that runs compiled kernels: QEMU's `virt` machine with a RISC-V core (rv32im). Its
 * memory is the file that the host maps, too. Registers, queue and memories lie in it as
 * include/spancl/almaif.h says. */
#ifndef SPANCL_EMULATOR_RISCV_H
#define SPANCL_EMULATOR_RISCV_H

#include "backend/emulator/emulator.h"

struct riscv_machine;

/* Make the registers, start QEMU, and wait until the accelerator is in reset. Uses the path and the
 * sizes of the memories in `params`. SP_E_NOENT: something is missing, or QEMU ended; a sentence is
 * on standard error. */
SP_NODISCARD int riscv_machine_new(const struct emulator_params *params,
                                   struct riscv_machine **ret);
/* Wait until SIGTERM or SIGINT, which this handles. SP_E_NODEV: QEMU ended by itself. */
int riscv_machine_wait(struct riscv_machine *m);
struct riscv_machine *riscv_machine_free(struct riscv_machine *m);

#endif

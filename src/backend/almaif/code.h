/* The memory of a unit for compiled programs, and the text that they print. */
#ifndef SPANCL_BACKEND_ALMAIF_CODE_H
#define SPANCL_BACKEND_ALMAIF_CODE_H

#include "backend/almaif/state.h"

/* Set up a unit with isa=rv32im for compiled programs; other units are left alone. SP_E_UNSUPP,
 * SP_E_NOMEM. */
int code_open(struct unit *u, const char *scratch_dir, char error[SPEC_ERROR_SIZE]);
void code_close(struct unit *u);
/* Get the program's offset in the configuration memory; it is loaded if it is not there yet. It
 * stays as long as another owner holds the program. */
cl_int code_place(struct unit *u, struct riscv_program *p, uint64_t *ret);
/* After a reset: load all programs again. SP_E_NOMEM. */
int code_again(struct unit *u) REQUIRES(almaif_held);
/* Move printed text from the device to u->printed. */
void code_take_output(struct unit *u) REQUIRES(almaif_held);
/* Write the text to standard output, and free it. */
void code_print(struct buf *text);

#endif

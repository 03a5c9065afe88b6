/* The accelerators that SPANCL_ALMAIF describes: their places, and properties that their registers
 * do not report. docs/internals/almaif.md has the grammar. Stateless. */
#ifndef SPANCL_BACKEND_ALMAIF_SPEC_H
#define SPANCL_BACKEND_ALMAIF_SPEC_H

#include "backend/almaif/window.h"

enum { SPEC_IDS_MAX = 64, SPEC_ERROR_SIZE = WINDOW_ERROR_SIZE + 200 };

enum spec_args { SPEC_ARGS_NATURAL, SPEC_ARGS_PACKED, SPEC_ARGS_STRIDE };

struct almaif_spec {
        char text[160]; /* the place as it was written, for messages */
        struct place place;
        char name[64];                  /* "": made of the registers */
        char image[WINDOW_PATH_SIZE];   /* file for the configuration memory; "": none */
        char kernels[WINDOW_PATH_SIZE]; /* file with rows of the registry; "": none */
        uint16_t ids[SPEC_IDS_MAX];     /* kernels; count 0: those of the registers */
        unsigned id_count;
        unsigned profile;             /* 2, 3: of the interface */
        bool rv32im;                  /* it runs compiled kernels of this ISA */
        char clang[WINDOW_PATH_SIZE]; /* ""; the first in PATH */
        bool completion_zero;         /* signals fall to zero, else they rise */
        bool index_adds;              /* the device adds a value written to the write index to it */
        enum spec_args args;
        uint64_t shared_base, shared_size; /* memory of the bus that it works on, too; 0: none */
        uint64_t timeout_ms;               /* for one packet; 0: no limit */
        uint64_t spin_us;
};

/* SP_E_INVAL with a sentence in `error`, SP_E_NOMEM. *ret is freed with mem_free. */
SP_NODISCARD int almaif_specs_parse(const char *text, struct almaif_spec **ret, size_t *ret_count,
                                    char error[SPEC_ERROR_SIZE]);

#endif

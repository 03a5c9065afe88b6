/* An accelerator in software: the device's side of include/spancl/almaif.h over a file in shared
 * memory. Its kernels are those of the registry. Tests can inject faults. One owner. */
#ifndef SPANCL_BACKEND_EMULATOR_EMULATOR_H
#define SPANCL_BACKEND_EMULATOR_EMULATOR_H

#include <spancl/almaif.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "backend/builtin/registry.h"

enum { EMULATOR_FAULTS_MAX = 16 };

enum emulator_args { EMULATOR_ARGS_NATURAL, EMULATOR_ARGS_PACKED, EMULATOR_ARGS_STRIDE };

enum emulator_fault_kind {
        EMULATOR_BAD_STATUS, /* the kernel runs, and failure is signalled */
        EMULATOR_GARBAGE,    /* the signal gets a value that means nothing */
        EMULATOR_HANG,       /* stop until the next reset */
        EMULATOR_WRONG_INDEX, /* the read index is moved to a slot that was never written, and hang */
        EMULATOR_EARLY_WAKE, /* wake the host before anything is done */
        EMULATOR_DEAD,       /* hang, and do not even answer a reset */
        EMULATOR_FAULT_KINDS
};

struct emulator_fault {
        enum emulator_fault_kind kind;
        uint64_t at; /* at the dispatch of this number, from 0 */
};

struct emulator_params {
        const char *path; /* created or enlarged if need be; NULL: memory without a name */
        uint64_t base;    /* its offset in the file, which is its bus address */
        uint64_t config_size, packets, data_size;
        unsigned profile; /* 2, 3 */
        bool completion_zero, index_adds, bus_master, compiled;
        enum emulator_args args;
        unsigned pointer_size; /* v3 */
        uint16_t ids[ALMAIF_KERNELS_MAX];
        unsigned id_count;
        const struct registry_rows *rows; /* NULL: none */
        uint64_t first_index;
        uint64_t file_size; /* at least; for memory that is shared with others */
        uint64_t spin_us;
        struct emulator_fault faults[EMULATOR_FAULTS_MAX];
        unsigned fault_count;
};

#define EMULATOR_DEFAULTS                                                                   \
        {                                                                                   \
                .profile = 2, .completion_zero = true, .packets = 64, .data_size = 1 << 20, \
                .pointer_size = 8, .spin_us = 50                                            \
        }

/* Select all kernels that the registry's table can compute, up to the room for ids. */
void emulator_all_kernels(struct emulator_params *p);

struct emulator;

/* SP_E_NOENT, SP_E_NOMEM, SP_E_INVAL, with errno. */
SP_NODISCARD int emulator_new(const struct emulator_params *params, struct emulator **ret);
/* Execute until *stop, which a signal handler may set. */
void emulator_run(struct emulator *e, const atomic_bool *stop);
/* Wake it from another thread, so that it reads *stop again. */
void emulator_wake(struct emulator *e);
/* The descriptor of its memory, which the emulator owns. */
int emulator_fd(const struct emulator *e);
struct emulator *emulator_free(struct emulator *e);

#endif

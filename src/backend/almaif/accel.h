/* One accelerator behind its registers: identify it, start it, and fill its ring of packets. The
 * host's side of include/spancl/almaif.h. One owner. */
#ifndef SPANCL_BACKEND_ALMAIF_ACCEL_H
#define SPANCL_BACKEND_ALMAIF_ACCEL_H

#include <spancl/almaif.h>

#include "backend/almaif/spec.h"
#include "base/bytes.h"

/* A memory of the accelerator: offset in the window, bytes, and the device's address of its first
 * byte. */
struct region {
        uint64_t at, size, address;
};

struct accel {
        const struct almaif_spec *spec; /* borrowed */
        struct window *window;
        uint32_t vendor, id, cores;
        unsigned pointer_size;
        bool bus_master;
        struct region config, queue, data;
        uint16_t ids[SPEC_IDS_MAX]; /* of built-in kernels */
        unsigned id_count;
        bool compiled; /* runs compiled kernels */

        uint64_t packets, slots_at, read_at, write_at;
        uint64_t write, read; /* indices; `read` as last seen */
        bool started;
        struct bytes image; /* borrowed: for the configuration memory, else the file's */
};

/* Map the accelerator and read its description. Nothing is written, so another process may be using
 * it. Each error names the register that is wrong. SP_E_NOENT, SP_E_INVAL, SP_E_NOMEM,
 * SP_E_UNSUPP. */
SP_NODISCARD int accel_open(const struct almaif_spec *spec, struct accel *ret,
                            char error[SPEC_ERROR_SIZE]);
/* Stop the accelerator if it was started, and unmap it. Zeroed memory is allowed. */
void accel_close(struct accel *a);

/* Lock it, reset it, load its image, clear its ring and let it run; also again after it failed.
 * SP_E_BUSY: another process has it. SP_E_TIMEOUT: it does not answer. */
SP_NODISCARD int accel_start(struct accel *a, char error[SPEC_ERROR_SIZE]);

/* Get the number of packets that fit now. SP_E_PROTO: the device's read index is impossible. */
SP_NODISCARD int accel_room(struct accel *a, uint64_t *ret);

/* Write one packet (64 bytes; the header's type first); there must be room. */
void accel_push(struct accel *a, const void *packet);

/* Notify the device of pushed packets. */
void accel_kick(struct accel *a);

/* ---- signals in a window -------------------------------------------------------------------- */

enum signal_state { SIGNAL_PENDING, SIGNAL_SUCCESS, SIGNAL_FAILURE };

/* Set a signal to pending, before a device gets it. */
void signal_arm(struct window *w, uint64_t at, bool zero);
enum signal_state signal_state(struct window *w, uint64_t at, bool zero);
/* Set a signal as a device does at completion. */
void signal_set(struct window *w, uint64_t at, bool zero, bool success);

#endif

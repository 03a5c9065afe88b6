/* One accelerator behind its registers: finding out what it is, starting it, its ring of packets. The host's
 * side of include/spancl/almaif.h. One owner. */
#ifndef SPANCL_BACKEND_ALMAIF_ACCEL_H
#define SPANCL_BACKEND_ALMAIF_ACCEL_H

#include <spancl/almaif.h>

#include "backend/almaif/spec.h"
#include "base/bytes.h"

/* A memory of it: offset in the window, bytes, and what the device calls its first byte. */
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

/* Map it and read what it is; nothing is written, so another process may be using it. Each error names the
 * register that is wrong. SP_E_NOENT, SP_E_INVAL, SP_E_NOMEM, SP_E_UNSUPP. */
SP_NODISCARD int accel_open(const struct almaif_spec *spec, struct accel *ret,
                            char error[SPEC_ERROR_SIZE]);
/* Stops it, if it was started. Also of zeroed memory. */
void accel_close(struct accel *a);

/* Take it, reset it, load its image, clear its ring, let it run; also again after it failed. SP_E_BUSY: it
 * is another process's. SP_E_TIMEOUT: it does not answer. */
SP_NODISCARD int accel_start(struct accel *a, char error[SPEC_ERROR_SIZE]);

/* Packets that fit now. SP_E_PROTO: the device's read index is one that can't be. */
SP_NODISCARD int accel_room(struct accel *a, uint64_t *ret);

/* Write one packet (64 bytes; the header's type first) where there is room. */
void accel_push(struct accel *a, const void *packet);

/* Tell the device of what was pushed. */
void accel_kick(struct accel *a);

/* ---- signals in a window -------------------------------------------------------------------- */

enum signal_state { SIGNAL_PENDING, SIGNAL_SUCCESS, SIGNAL_FAILURE };

/* Before it is given to a device. */
void signal_arm(struct window *w, uint64_t at, bool zero);
enum signal_state signal_state(struct window *w, uint64_t at, bool zero);
/* What a device does when it is done. */
void signal_set(struct window *w, uint64_t at, bool zero, bool success);

#endif

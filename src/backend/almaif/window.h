/* A window is a piece of a bus's address space that the host can reach. One row of a table says how
 * it is reached: shared memory, an emulator in this process, physical memory, a UIO device, the
 * resource file of a PCIe device, or Xilinx XRT.
 *
 * A bus address is an offset in the file of shared memory, in /dev/mem or in the resource file.
 * UIO's bus addresses are the physical ones of its first map. XRT's begin at the address in the
 * place.
 *
 * Loads acquire and stores release. So a side that sees a store also sees memory written before it.
 * Thread-safe, except open and close. */
#ifndef SPANCL_BACKEND_ALMAIF_WINDOW_H
#define SPANCL_BACKEND_ALMAIF_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { WINDOW_PATH_SIZE = 512, WINDOW_ERROR_SIZE = 400 };

struct window;

/* The place of a window: the words before the first comma of an entry of SPANCL_ALMAIF. */
struct place {
        const struct window_ops *ops;
        char path[WINDOW_PATH_SIZE]; /* a file; XRT: of the xclbin; emulator: its name */
        char kernel[128];            /* XRT: the name of its kernel */
        unsigned card;               /* XRT */
        uint64_t data;               /* emulator: bytes of its memory; 0: 64 MiB */
        uint64_t base;               /* bus address */
        uint64_t size;               /* 0: as large as the file says, or not known */
};

struct window_ops {
        const char *name;
        /* Map `size` bytes (0: to the end) from bus address w->base on; fills in the rest of `w`.
         * SP_E_NOENT, SP_E_INVAL, SP_E_NOMEM, SP_E_UNSUPP with a sentence in `error`. */
        int (*open)(struct window *w, const struct place *p, char error[WINDOW_ERROR_SIZE]);
        void (*close)(struct window *w);
        /* NULL for mapped windows (w->map). 4 bytes, aligned. */
        uint32_t (*load32)(struct window *w, uint64_t at);
        void (*store32)(struct window *w, uint64_t at, uint32_t value);
        /* Sleep until the device may have made progress, at most for timeout_ns. `word`: offset of
         * a counter that the device increments; `seen`: its value before the caller polled. May
         * return early. */
        void (*wait)(struct window *w, uint64_t word, uint32_t seen, uint64_t timeout_ns);
};

struct window {
        const struct window_ops *ops;
        uint64_t base, size;
        uint64_t limit; /* bytes that exist from `base` on; 0: unknown */
        uint8_t *map;   /* NULL: by load32 and store32 */
        size_t map_size;
        bool futex; /* memory that processes share: a thread that sleeps on a word can be woken */
        int fd, irq_fd;
        void *handle[2]; /* XRT: card and kernel; emulator: itself */
};

/* The rows: "shm", "emu", "mem", "uio", "pci", "xrt". */
extern const struct window_ops window_shm, window_emu, window_mem, window_uio, window_pci,
        window_xrt;

/* The folder in which the system lists UIO devices; tests have one of their own. */
extern const char *window_uio_class;

/* For the rows. Map w->fd from `at` on, of `limit` bytes in all (0: unknown); `name` is for messages. */
SP_NODISCARD int window_map(struct window *w, const char *name, uint64_t at, uint64_t limit,
                            char *error);
void window_unmap(struct window *w);

/* A window on `size` bytes from bus address `base` on of `p`; see the operation. */
SP_NODISCARD int window_open(const struct place *p, uint64_t base, uint64_t size,
                             struct window **ret, char error[WINDOW_ERROR_SIZE]);
struct window *window_close(struct window *w);

/* Lock `size` bytes from `at` on against other processes, until it is closed. SP_E_BUSY: one has it. */
SP_NODISCARD int window_lock(struct window *w, uint64_t at, uint64_t size);

/* Wake the threads that sleep on this word, if `futex`. */
void window_wake(struct window *w, uint64_t at);

uint32_t window_load32(struct window *w, uint64_t at);
void window_store32(struct window *w, uint64_t at, uint32_t value);
uint64_t window_load64(struct window *w, uint64_t at);
void window_store64(struct window *w, uint64_t at, uint64_t value);
/* Store to a register that adds the written value to its own. */
void window_add64(struct window *w, uint64_t at, uint64_t value);
/* Sequentially consistent exchange; 0 without `futex`. */
uint32_t window_exchange32(struct window *w, uint64_t at, uint32_t value);

/* Any alignment. */
void window_read(struct window *w, uint64_t at, void *to, size_t size);
void window_write(struct window *w, uint64_t at, const void *from, size_t size);

#endif

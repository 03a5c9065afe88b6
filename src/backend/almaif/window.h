/* A window: a piece of a bus's address space that the host can reach. How it is reached is one row of a
 * table: shared memory, an emulator in this process, physical memory, a UIO device, the resource file of a
 * PCIe device, Xilinx XRT.
 *
 * Bus addresses are offsets in what the place names: of the file of shared memory, of /dev/mem, of the
 * resource file; UIO's are the physical ones of its first map; XRT's begin where the place says.
 *
 * Loads acquire and stores release, so that memory written before a store is seen by whoever saw it.
 * Thread-safe, but for open and close. */
#ifndef SPANCL_BACKEND_ALMAIF_WINDOW_H
#define SPANCL_BACKEND_ALMAIF_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { WINDOW_PATH_SIZE = 512, WINDOW_ERROR_SIZE = 400 };

struct window;

/* Where something is: the words before the first comma of an entry of SPANCL_ALMAIF. */
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
        /* NULL for what is mapped (w->map). 4 bytes, aligned. */
        uint32_t (*load32)(struct window *w, uint64_t at);
        void (*store32)(struct window *w, uint64_t at, uint32_t value);
        /* Sleep until the device may have done something, at most that long. `word`: offset of a counter
         * that it moves, `seen`: its value before the caller looked. May return early. */
        void (*wait)(struct window *w, uint64_t word, uint32_t seen, uint64_t timeout_ns);
};

struct window {
        const struct window_ops *ops;
        uint64_t base, size;
        uint64_t limit; /* bytes that there are from `base` on; 0: unknown */
        uint8_t *map;   /* NULL: by load32 and store32 */
        size_t map_size;
        bool futex; /* memory that processes share: whoever sleeps on a word can be woken */
        int fd, irq_fd;
        void *handle[2]; /* XRT: card and kernel; emulator: itself */
};

/* The rows: "shm", "emu", "mem", "uio", "pci", "xrt". */
extern const struct window_ops window_shm, window_emu, window_mem, window_uio, window_pci,
        window_xrt;

/* Where the system tells of UIO devices; tests have one of their own. */
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

/* Wake who sleeps on this word, if `futex`. */
void window_wake(struct window *w, uint64_t at);

uint32_t window_load32(struct window *w, uint64_t at);
void window_store32(struct window *w, uint64_t at, uint32_t value);
uint64_t window_load64(struct window *w, uint64_t at);
void window_store64(struct window *w, uint64_t at, uint64_t value);
/* To a register that adds what is written to it. */
void window_add64(struct window *w, uint64_t at, uint64_t value);
/* Sequentially consistent exchange; 0 where there is no `futex`. */
uint32_t window_exchange32(struct window *w, uint64_t at, uint32_t value);

/* Any alignment. */
void window_read(struct window *w, uint64_t at, void *to, size_t size);
void window_write(struct window *w, uint64_t at, const void *from, size_t size);

#endif

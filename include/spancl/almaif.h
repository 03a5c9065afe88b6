/* AlmaIF v2: the interface between a host and a memory-mapped accelerator, for designers of hardware and
 * firmware. Plain C, no OpenCL, nothing to link. docs/internals/almaif.md explains it.
 *
 * All values are little-endian. Offsets of registers are from the start of the accelerator. */
#ifndef SPANCL_ALMAIF_H
#define SPANCL_ALMAIF_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- control registers ---------------------------------------------------------------------- */

#define ALMAIF_CONTROL_SIZE 0x400 /* bytes of control registers */

#define ALMAIF_STATUS         0x000 /* 32 bits, read only: ALMAIF_STATUS_* */
#define ALMAIF_STATUS_STALLED 1u    /* waits, for whatever reason */
#define ALMAIF_STATUS_FROZEN  2u    /* frozen from outside (ALMAIF_COMMAND_FREEZE) */
#define ALMAIF_STATUS_RESET   4u    /* in reset */

/* Indices of the ring, 64 bits. They only grow, and wrap; slot = index % packets. Profile v2 has them
 * here, v3 at the start of the command queue memory (ALMAIF_V3_*). */
#define ALMAIF_READ_INDEX  0x100 /* of the next packet that the device executes; it counts it up */
#define ALMAIF_WRITE_INDEX 0x108 /* of the next packet that the host writes; it counts it up */

#define ALMAIF_COMMAND        0x200 /* 32 bits */
#define ALMAIF_COMMAND_RESET  1u    /* go into reset: execution stops, indices become equal */
#define ALMAIF_COMMAND_RUN    2u    /* lift reset and freeze */
#define ALMAIF_COMMAND_FREEZE 4u    /* optional */

#define ALMAIF_DEVICE_CLASS      0x300 /* 32 bits: the vendor id that OpenCL shows */
#define ALMAIF_DEVICE_ID         0x304 /* 32 bits */
#define ALMAIF_INTERFACE_VERSION 0x308 /* 32 bits: 2 or 3 */
#define ALMAIF_CORE_COUNT        0x30C /* 32 bits: at least 1 */

/* Memories: sizes in bytes; starts are bus addresses with ALMAIF_FEATURE_BUS_MASTER, else offsets from the
 * start of the accelerator. */
#define ALMAIF_CONFIG_SIZE  0x314 /* 32 bits; 0: there is none */
#define ALMAIF_CONFIG_START 0x318 /* 64 bits */
#define ALMAIF_QUEUE_SIZE   0x320 /* 64 bits */
#define ALMAIF_QUEUE_START  0x328 /* 64 bits */
#define ALMAIF_DATA_SIZE    0x330 /* 64 bits */
#define ALMAIF_DATA_START   0x338 /* 64 bits */

#define ALMAIF_FEATURES 0x340 /* 64 bits: ALMAIF_FEATURE_* */
#define ALMAIF_FEATURE_BUS_MASTER \
        1u /* reaches bus addresses outside of itself; all addresses are such */

#define ALMAIF_KERNEL_COUNT 0x348 /* v2, 16 bits: built-in kernels, at most ALMAIF_KERNELS_MAX */
#define ALMAIF_KERNEL_IDS   0x34A /* v2, 16 bits each */
#define ALMAIF_POINTER_SIZE \
        0x348 /* v3, 32 bits: bytes of an address in an argument buffer, 4 or 8 */
#define ALMAIF_KERNELS_MAX     64
#define ALMAIF_KERNEL_COMPILED 0xFFFFu /* among the ids: runs kernels that were compiled for it */

/* Only in shared memory, where a futex is the interrupt; hardware leaves them alone. A side that is
 * about to sleep sets its word to 1, checks again, and sleeps on the low half of the other side's
 * index. A side that counts an index up exchanges the word with 0, and wakes the sleeper if the
 * word was 1. */
#define ALMAIF_HOST_SLEEPS   0x3F0 /* 32 bits: the host sleeps on ALMAIF_READ_INDEX */
#define ALMAIF_DEVICE_SLEEPS 0x3F4 /* 32 bits: the device sleeps on ALMAIF_WRITE_INDEX */

/* ---- command queue memory ------------------------------------------------------------------- */

#define ALMAIF_PACKET_SIZE 64

/* v2: packets fill it. v3: packets follow a header of 64 bytes with the indices. */
#define ALMAIF_V3_HEADER_SIZE 64
#define ALMAIF_V3_WRITE_INDEX 0x28
#define ALMAIF_V3_READ_INDEX  0x30

/* Bits 7:0 of a packet's header. */
#define ALMAIF_PACKET_INVALID  1u /* nothing to execute; the device writes it when it is done */
#define ALMAIF_PACKET_DISPATCH 2u
#define ALMAIF_PACKET_BARRIER  3u
#define ALMAIF_HEADER_TYPE     0xFFu

#define ALMAIF_BARRIER_DEPS 5

/* Execute a kernel. The header is written last, with release order. */
struct almaif_dispatch {
        uint16_t header;
        uint16_t dimensions;
        uint16_t group_x, group_y, group_z;
        uint16_t reserved0;
        uint32_t grid_x, grid_y, grid_z; /* in work-items */
        uint32_t private_size, group_size;
        uint64_t kernel;    /* id of a built-in kernel, or address of code */
        uint64_t arguments; /* address */
        uint64_t reserved1;
        uint64_t completion; /* address of a signal; 0: none */
};

/* Wait until all these signals are complete. */
struct almaif_barrier {
        uint16_t header;
        uint16_t reserved0[3];
        uint64_t deps[ALMAIF_BARRIER_DEPS]; /* addresses of signals; 0: none */
        uint64_t reserved1;
        uint64_t completion;
};

/* ---- signals -------------------------------------------------------------------------------- */

/* A signal's value is its first 32 bits. The host gives each signal a slot of this size, zeroed behind the
 * value: hardware may write 64 bits. */
#define ALMAIF_SIGNAL_SIZE 32

/* completion=one: pending 0, then one of these. */
#define ALMAIF_SIGNAL_SUCCESS 1u
#define ALMAIF_SIGNAL_FAILURE 2u

/* completion=zero, as HSA's signals: pending 1, then 0, or a negative value for failure. */
#define ALMAIF_SIGNAL_ZERO_PENDING 1u
#define ALMAIF_SIGNAL_ZERO_FAILURE 0xFFFFFFFFu

/* Only in shared memory: behind the value, 1 if a thread sleeps on the value; the writer then wakes
 * it. */
#define ALMAIF_SIGNAL_SLEEPERS 4

/* ---- arguments ------------------------------------------------------------------------------ */

/* In the order of declaration; a buffer is its address. args=natural: each at a multiple of its size;
 * args=packed: without gaps; args=stride: each at a multiple of this. */
#define ALMAIF_ARGUMENT_STRIDE 128

#ifdef __cplusplus
}
static_assert(sizeof(almaif_dispatch) == ALMAIF_PACKET_SIZE, "64 bytes");
static_assert(sizeof(almaif_barrier) == ALMAIF_PACKET_SIZE, "64 bytes");
#else
_Static_assert(sizeof(struct almaif_dispatch) == ALMAIF_PACKET_SIZE, "64 bytes");
_Static_assert(sizeof(struct almaif_barrier) == ALMAIF_PACKET_SIZE, "64 bytes");
#endif

#endif

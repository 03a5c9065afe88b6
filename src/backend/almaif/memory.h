/* A domain's memory: signals and buffers. */
#ifndef SPANCL_BACKEND_ALMAIF_MEMORY_H
#define SPANCL_BACKEND_ALMAIF_MEMORY_H

#include "backend/almaif/state.h"

/* Lay out signals and arguments. SP_E_LIMIT, SP_E_NOMEM. */
int domain_memory_init(struct domain *d);
void domain_memory_fini(struct domain *d);
/* The largest size of one buffer, and the size of all memory. */
uint64_t domain_buffer_max(const struct domain *d);
uint64_t domain_memory_size(const struct domain *d);

/* Take a free signal, pending, with one reference; -1: all are in use. */
int signal_take(struct domain *d) REQUIRES(almaif_held);
void signal_ref(struct domain *d, int signal) REQUIRES(almaif_held);
void signal_unref(struct domain *d, int signal) REQUIRES(almaif_held);
/* The offset of a signal in memories[0].window, and its address for devices. */
uint64_t signal_at(const struct domain *d, int signal);
uint64_t signal_address(const struct domain *d, int signal);

struct backend_buffer *buffer_ref(struct backend_buffer *m);
/* Drop a reference; the last one takes the lock. */
void buffer_unref(struct backend_buffer *m);
cl_int buffer_new(struct domain *d, size_t size, struct backend_buffer **ret);
cl_int buffer_part(struct backend_buffer *whole, size_t origin, size_t size,
                   struct backend_buffer **ret);

#endif

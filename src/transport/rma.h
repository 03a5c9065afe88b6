/* Remote memory access by libfabric: an endpoint that writes into the memory of one other endpoint.
 * The library is loaded when the first endpoint is opened, so a process that opens none does not
 * need it. One owner; no lock inside.
 *
 * Each endpoint has its own domain, completion queue and address vector. When it is closed, all its
 * operations end, and nothing reads or writes memory on its behalf any more (fi_endpoint(3),
 * fi_close). */
#ifndef SPANCL_TRANSPORT_RMA_H
#define SPANCL_TRANSPORT_RMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "os/net/socket_address.h"

enum {
        RMA_ADDRESS_MAX = 256, /* bytes of an endpoint's address */
        RMA_NAME_MAX = 64,
};

struct rma;

/* Memory that the other side may write to, or that this side writes from. */
struct rma_region {
        void *handle; /* NULL: none */
        uint64_t address, key;
};

struct rma_event {
        bool arrived; /* the other side has written, and sent `data`; else a write of this side completed */
        uint32_t data;
        void *context; /* of rma_write */
};

/* Look for a provider on this host. SP_E_UNSUPP: there is no libfabric, here or when this was
 * built; SP_E_VERSION: this libfabric is too old for the provider; SP_E_NOENT: libfabric has no
 * provider of this name that can do remote writes. */
SP_NODISCARD int rma_find(const char *provider);

/* Open an endpoint. `near`: an address of this host, used if the provider has addresses of this
 * kind; NULL: any. SP_E_UNSUPP, SP_E_NOENT, SP_E_NOMEM, SP_E_LINK; `ret_why` names the step that
 * failed. */
SP_NODISCARD int rma_open(const char *provider, const struct socket_address *near, struct rma **ret,
                          const char **ret_why);
struct rma *rma_free(struct rma *r);

/* Abort the operations in flight. Only rma_release and rma_free may follow. */
void rma_stop(struct rma *r);

const char *rma_provider(const struct rma *r);

/* The endpoint's address for the other side, and the address's form. */
struct bytes rma_address(const struct rma *r, uint64_t *ret_form);

/* Set the endpoint that this one writes to. SP_E_PROTO: not an address of the same form;
 * SP_E_LINK. */
SP_NODISCARD int rma_connect(struct rma *r, struct bytes address, uint64_t form);

/* A descriptor to poll for POLLIN while rma_may_sleep is true; -1: the provider has none. */
int rma_fd(const struct rma *r);

/* True while operations are in flight that no descriptor reports: call rma_poll. */
bool rma_must_poll(const struct rma *r);

/* True if no event is there: the caller may sleep until rma_fd is ready. */
bool rma_may_sleep(struct rma *r);

/* Register memory, which stays where it is until rma_release. `remote`: the other side will write
 * to it. Else this side writes from it, which most providers need no registration for.
 * SP_E_LINK. */
SP_NODISCARD int rma_register(struct rma *r, const void *data, size_t size, bool remote,
                              struct rma_region *ret);
void rma_release(struct rma *r, struct rma_region *region);

/* Begin to write to `address` of a region of the other side whose key is `key`. The other side is
 * notified with `tell`. The bytes stay valid until the event with `context`. SP_E_AGAIN: call
 * rma_poll, then try again; SP_E_LINK. */
SP_NODISCARD int rma_write(struct rma *r, struct bytes data, const struct rma_region *from,
                           uint64_t address, uint64_t key, uint32_t tell, void *context);

/* Make progress and return the number of events, at most `max`. SP_E_LINK: it is broken
 * (rma_error). */
SP_NODISCARD int rma_poll(struct rma *r, struct rma_event *ret, int max);

/* The last error, in libfabric's words. */
const char *rma_error(const struct rma *r);

#endif

/* Remote memory access by libfabric: an endpoint that writes into the memory of one other endpoint. The library
 * is loaded when the first one is opened, so that who never does needs none. One owner; no lock inside.
 *
 * Each has its own domain, completion queue and address vector: closing it ends all that was under way, and
 * nothing reads or writes memory on its behalf any more (fi_endpoint(3), fi_close). */
#ifndef SPANCL_TRANSPORT_RMA_H
#define SPANCL_TRANSPORT_RMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/bytes.h"

enum {
        RMA_ADDRESS_MAX = 256, /* bytes of an endpoint's address */
        RMA_NAME_MAX = 64,
};

struct rma;

/* Memory that the other side may write to, or this one writes from. */
struct rma_region {
        void *handle; /* NULL: none */
        uint64_t address, key;
};

struct rma_event {
        bool arrived; /* the other side has written, and said `data`; else a write of this one is done */
        uint32_t data;
        void *context; /* of rma_write */
};

/* Is there such a provider on this host? SP_E_UNSUPP: there is no libfabric, here or when this was built;
 * SP_E_VERSION: it is not used with so old a libfabric; SP_E_NOENT: it knows none of that name that can do
 * what is needed. */
SP_NODISCARD int rma_find(const char *provider);

/* `near`: an address of this host, to be used where addresses of the provider are of its kind; NULL: any.
 * SP_E_UNSUPP, SP_E_NOENT, SP_E_NOMEM, SP_E_LINK; `ret_why` says which step. */
SP_NODISCARD int rma_open(const char *provider, const struct sockaddr *near, struct rma **ret,
                          const char **ret_why);
struct rma *rma_free(struct rma *r);

/* End what is under way: only rma_release and rma_free may follow. */
void rma_stop(struct rma *r);

const char *rma_provider(const struct rma *r);

/* Where it is, for the other side, and in what form. */
struct bytes rma_address(const struct rma *r, uint64_t *ret_form);

/* Whom to write to. SP_E_PROTO: that is no address of the same form; SP_E_LINK. */
SP_NODISCARD int rma_connect(struct rma *r, struct bytes address, uint64_t form);

/* To poll for POLLIN while rma_may_sleep; -1: the provider has none. */
int rma_fd(const struct rma *r);

/* While something is under way rma_poll has to be called: no fd tells of it. */
bool rma_must_poll(const struct rma *r);

/* Nothing is there: sleep until rma_fd is ready. */
bool rma_may_sleep(struct rma *r);

/* Register memory that stays where it is until rma_release. `remote`: for the other side's writes; else for
 * writes from there, which most providers need no registration for. SP_E_LINK. */
SP_NODISCARD int rma_register(struct rma *r, const void *data, size_t size, bool remote,
                              struct rma_region *ret);
void rma_release(struct rma *r, struct rma_region *region);

/* Begin to write to `address` of a region of the other side that has `key`, and have it told `data`. The bytes
 * stay until the event with `context`. SP_E_AGAIN: call rma_poll, and then again; SP_E_LINK. */
SP_NODISCARD int rma_write(struct rma *r, struct bytes data, const struct rma_region *from,
                           uint64_t address, uint64_t key, uint32_t tell, void *context);

/* Make progress; up to `max` events. Returns how many; SP_E_LINK: it is broken (rma_error). */
SP_NODISCARD int rma_poll(struct rma *r, struct rma_event *ret, int max);

/* What went wrong last, in libfabric's words. */
const char *rma_error(const struct rma *r);

#endif

#include "transport/rma.h"

#include "base/mem.h"

#ifdef SPANCL_HAVE_FABRIC

#include <stdio.h>
#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "os/once.h"
#include "os/process/library.h"
#include "os/random.h"

enum { CQ_SIZE = 256, EVENTS = 16 };

struct rma {
        struct fi_info *info;
        struct fid_fabric *fabric;
        struct fid_domain *domain;
        struct fid_cq *cq;
        struct fid_av *av;
        struct fid_ep *ep;
        fi_addr_t other;
        int fd;
        char provider[RMA_NAME_MAX];
        uint8_t address[RMA_ADDRESS_MAX];
        size_t address_size;
        char error[200];
};

/* ---- the library ---------------------------------------------------------------------------- */

static struct {
        __typeof__(fi_getinfo) *getinfo;
        __typeof__(fi_freeinfo) *freeinfo;
        __typeof__(fi_dupinfo) *dupinfo;
        __typeof__(fi_fabric) *fabric;
        __typeof__(fi_strerror) *strerror;
        __typeof__(fi_version) *version;
} lib;

static bool loaded;
static struct once once = ONCE_INIT;

static void load(void)
{
        /* An endpoint has one other side here, and queues are made for as many as this says. */
        setenv("FI_UNIVERSE_SIZE", "4", 0);
        /* Writes by process_vm_writev(2) would reach memory of a process that has closed its endpoint. */
        setenv("FI_SHM_DISABLE_CMA", "1", 1);
        struct library *m = library_load("libfabric.so.1", LIBRARY_FOR_EVER);
        if (!m)
                return;
        const struct {
                void *place;
                const char *name;
        } symbols[] = {
                { &lib.getinfo, "fi_getinfo" },   { &lib.freeinfo, "fi_freeinfo" },
                { &lib.dupinfo, "fi_dupinfo" },   { &lib.fabric, "fi_fabric" },
                { &lib.strerror, "fi_strerror" }, { &lib.version, "fi_version" },
        };
        for (size_t i = 0; i < array_size(symbols); i++) {
                void *s = library_symbol(m, symbols[i].name);
                if (!s)
                        return;
                memcpy(symbols[i].place, &s, sizeof(s));
        }
        loaded = true;
}

/* Libfabric 1.17 has faults in two providers. ofi_rxm over tcp was seen to crash in fi_close during
 * a write. A test over net, which became tcp with 1.18, was seen to hang now and then. */
static bool is_too_old(const char *provider)
{
        return lib.version() < FI_VERSION(1, 18) &&
               (!strncmp(provider, "tcp", 3) || !strncmp(provider, "net", 3));
}

/* Ask libfabric for a provider with the features that SpanCL needs. The caller owns the returned
 * list. */
static int get_info(const char *provider, const char *node, struct fi_info **ret)
{
        once_run(&once, load);
        if (loaded && is_too_old(provider))
                return SP_E_VERSION;
        struct fi_info *hints = loaded ? lib.dupinfo(NULL) : NULL;
        if (!hints)
                return loaded ? SP_E_NOMEM : SP_E_UNSUPP;
        hints->caps = FI_MSG | FI_RMA;
        hints->ep_attr->type = FI_EP_RDM;
        hints->domain_attr->mr_mode =
                FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
        hints->domain_attr->cq_data_size = sizeof(uint32_t);
        hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
        hints->fabric_attr->prov_name = strdup(provider); /* freed with the hints */
        int r = lib.getinfo(FI_VERSION(1, 11), node, NULL, node ? FI_SOURCE | FI_NUMERICHOST : 0,
                            hints, ret);
        lib.freeinfo(hints);
        return r ? SP_E_NOENT : 0;
}

int rma_find(const char *provider)
{
        struct fi_info *info;
        int r = get_info(provider, NULL, &info);
        if (!r)
                lib.freeinfo(info);
        return r;
}

/* The provider's interface that has the address, if it is of that kind. */
static int choose(struct rma *r, const struct socket_address *near)
{
        char node[IP_TEXT_MAX];
        struct ip ip;
        struct fi_info *closer;
        int s = get_info(r->provider, NULL, &r->info);
        if (s < 0)
                return s;
        uint32_t form = r->info->addr_format;
        if (!near || (form != FI_SOCKADDR && form != FI_SOCKADDR_IN && form != FI_SOCKADDR_IN6))
                return 0;
        if (!socket_address_ip(near, &ip))
                return 0;
        ip_text(&ip, node);
        if (get_info(r->provider, node, &closer) == 0) {
                lib.freeinfo(r->info);
                r->info = closer;
        }
        return 0;
}

/* ---- endpoints ------------------------------------------------------------------------------ */

static int set_up(struct rma *r, const char **ret_why)
{
        struct fi_cq_attr cq = { .size = CQ_SIZE,
                                 .format = FI_CQ_FORMAT_DATA,
                                 .wait_obj = FI_WAIT_FD };
        struct fi_av_attr av = { .type = FI_AV_UNSPEC, .count = 1 };
        int e = lib.fabric(r->info->fabric_attr, &r->fabric, NULL);
        *ret_why = "fi_fabric";
        if (!e) {
                e = fi_domain(r->fabric, r->info, &r->domain, NULL);
                *ret_why = "fi_domain";
        }
        if (!e) {
                e = fi_cq_open(r->domain, &cq, &r->cq, NULL);
                if (e) {
                        cq.wait_obj = FI_WAIT_NONE;
                        e = fi_cq_open(r->domain, &cq, &r->cq, NULL);
                }
                *ret_why = "fi_cq_open";
        }
        if (!e && cq.wait_obj == FI_WAIT_FD && fi_control(&r->cq->fid, FI_GETWAIT, &r->fd))
                r->fd = -1;
        if (!e) {
                e = fi_av_open(r->domain, &av, &r->av, NULL);
                *ret_why = "fi_av_open";
        }
        if (!e) {
                e = fi_endpoint(r->domain, r->info, &r->ep, NULL);
                *ret_why = "fi_endpoint";
        }
        if (!e)
                e = fi_ep_bind(r->ep, &r->av->fid, 0);
        if (!e)
                e = fi_ep_bind(r->ep, &r->cq->fid, FI_TRANSMIT | FI_RECV);
        if (!e) {
                e = fi_enable(r->ep);
                *ret_why = "fi_enable";
        }
        if (!e) {
                r->address_size = sizeof(r->address);
                e = fi_getname(&r->ep->fid, r->address, &r->address_size);
                *ret_why = "fi_getname";
        }
        if (!e)
                return 0;
        return e == -FI_ENOMEM ? SP_E_NOMEM : SP_E_LINK;
}

int rma_open(const char *provider, const struct socket_address *near, struct rma **ret,
             const char **ret_why)
{
        struct rma *r = mem_zalloc(sizeof(*r));
        *ret_why = "out of memory";
        if (!r)
                return SP_E_NOMEM;
        r->fd = -1;
        snprintf(r->provider, sizeof(r->provider), "%s", provider);
        *ret_why = "fi_getinfo";
        int s = choose(r, near);
        if (!s)
                s = set_up(r, ret_why);
        if (s < 0) {
                rma_free(r);
                return s;
        }
        *ret = r;
        return 0;
}

void rma_stop(struct rma *r)
{
        if (r->ep)
                fi_close(&r->ep->fid);
        r->ep = NULL;
}

struct rma *rma_free(struct rma *r)
{
        if (!r)
                return NULL;
        rma_stop(r);
        if (r->av)
                fi_close(&r->av->fid);
        if (r->cq)
                fi_close(&r->cq->fid);
        if (r->domain)
                fi_close(&r->domain->fid);
        if (r->fabric)
                fi_close(&r->fabric->fid);
        if (r->info)
                lib.freeinfo(r->info);
        mem_free(r);
        return NULL;
}

const char *rma_provider(const struct rma *r)
{
        return r->provider;
}

struct bytes rma_address(const struct rma *r, uint64_t *ret_form)
{
        *ret_form = r->info->addr_format;
        return bytes_of(r->address, r->address_size);
}

int rma_connect(struct rma *r, struct bytes address, uint64_t form)
{
        /* libfabric reads an address as long as its kind, a text up to its end. */
        uint8_t a[RMA_ADDRESS_MAX + 1] = { 0 };
        if (form != r->info->addr_format || !address.size || address.size > RMA_ADDRESS_MAX) {
                snprintf(r->error, sizeof(r->error), "the other side's address is of another kind");
                return SP_E_PROTO;
        }
        memcpy(a, address.data, address.size);
        if (fi_av_insert(r->av, a, 1, &r->other, 0, NULL) == 1)
                return 0;
        snprintf(r->error, sizeof(r->error), "fi_av_insert");
        return SP_E_LINK;
}

int rma_fd(const struct rma *r)
{
        return r->fd;
}

bool rma_must_poll(const struct rma *r)
{
        return r->fd < 0;
}

bool rma_may_sleep(struct rma *r)
{
        struct fid *wait = &r->cq->fid;
        return r->fd >= 0 && fi_trywait(r->fabric, &wait, 1) == 0;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Record the failed step. Memory that devices reach is locked, so ENOMEM is often a limit on locked
 * memory. The queues of a connection are locked, too, and are made with the first write. */
static int fail(struct rma *r, const char *what, int error)
{
        snprintf(r->error, sizeof(r->error), "%s: %s%s", what, lib.strerror(error),
                 error == FI_ENOMEM ? " (may spancld lock more memory? ulimit -l, LimitMEMLOCK=)"
                                    : "");
        return SP_E_LINK;
}

int rma_register(struct rma *r, const void *data, size_t size, bool remote, struct rma_region *ret)
{
        int mode = r->info->domain_attr->mr_mode;
        uint64_t key = 0;
        struct fid_mr *mr;
        *ret = (struct rma_region){ 0 };
        if (!remote && !(mode & FI_MR_LOCAL))
                return 0;
        /* No other process that reaches the endpoint can guess it. */
        if (!(mode & FI_MR_PROV_KEY) && !random_fill(&key, sizeof(key)))
                return SP_E_LINK;
        size_t key_size = r->info->domain_attr->mr_key_size;
        if (key_size < sizeof(key))
                key &= (1ull << (8 * key_size)) - 1;
        int e = fi_mr_reg(r->domain, data, size, remote ? FI_REMOTE_WRITE : FI_WRITE, 0, key, 0,
                          &mr, NULL);
        if (e)
                return fail(r, "fi_mr_reg", -e);
        *ret = (struct rma_region){
                .handle = mr,
                .address = mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)data : 0,
                .key = fi_mr_key(mr),
        };
        return 0;
}

void rma_release(struct rma *r, struct rma_region *region)
{
        struct fid_mr *mr = region->handle;
        (void)r;
        if (mr)
                fi_close(&mr->fid);
        region->handle = NULL;
}

int rma_write(struct rma *r, struct bytes data, const struct rma_region *from, uint64_t address,
              uint64_t key, uint32_t tell, void *context)
{
        struct fid_mr *mr = from->handle;
        ssize_t e = fi_writedata(r->ep, data.data, data.size, mr ? fi_mr_desc(mr) : NULL, tell,
                                 r->other, address, key, context);
        if (!e)
                return 0;
        if (e == -FI_EAGAIN)
                return SP_E_AGAIN;
        return fail(r, "fi_writedata", (int)-e);
}

int rma_poll(struct rma *r, struct rma_event *ret, int max)
{
        struct fi_cq_data_entry entries[EVENTS];
        ssize_t n = fi_cq_read(r->cq, entries, max < EVENTS ? (size_t)max : EVENTS);
        if (n == -FI_EAGAIN)
                return 0;
        if (n < 0) {
                struct fi_cq_err_entry e = { 0 };
                if (n == -FI_EAVAIL && fi_cq_readerr(r->cq, &e, 0) == 1)
                        snprintf(r->error, sizeof(r->error), "%s", lib.strerror(e.err));
                else
                        snprintf(r->error, sizeof(r->error), "fi_cq_read: %s",
                                 lib.strerror((int)-n));
                return SP_E_LINK;
        }
        for (ssize_t i = 0; i < n; i++)
                ret[i] = (struct rma_event){
                        .arrived = (entries[i].flags & FI_REMOTE_CQ_DATA) != 0,
                        .data = (uint32_t)entries[i].data,
                        .context = entries[i].op_context,
                };
        return (int)n;
}

const char *rma_error(const struct rma *r)
{
        return r->error;
}

#else /* built without libfabric: nothing can be opened */

int rma_find(const char *provider)
{
        (void)provider;
        return SP_E_UNSUPP;
}

int rma_open(const char *provider, const struct socket_address *near, struct rma **ret,
             const char **ret_why)
{
        (void)provider, (void)near, (void)ret;
        *ret_why = "built without libfabric";
        return SP_E_UNSUPP;
}

struct rma *rma_free(struct rma *r)
{
        return r; /* NULL */
}

void rma_stop(struct rma *r)
{
        (void)r;
}

const char *rma_provider(const struct rma *r)
{
        (void)r;
        return "";
}

struct bytes rma_address(const struct rma *r, uint64_t *ret_form)
{
        (void)r;
        *ret_form = 0;
        return bytes_of(NULL, 0);
}

int rma_connect(struct rma *r, struct bytes address, uint64_t form)
{
        (void)r, (void)address, (void)form;
        return SP_E_UNSUPP;
}

int rma_fd(const struct rma *r)
{
        (void)r;
        return -1;
}

bool rma_must_poll(const struct rma *r)
{
        (void)r;
        return false;
}

bool rma_may_sleep(struct rma *r)
{
        (void)r;
        return true;
}

int rma_register(struct rma *r, const void *data, size_t size, bool remote, struct rma_region *ret)
{
        (void)r, (void)data, (void)size, (void)remote, (void)ret;
        return SP_E_UNSUPP;
}

void rma_release(struct rma *r, struct rma_region *region)
{
        (void)r, (void)region;
}

int rma_write(struct rma *r, struct bytes data, const struct rma_region *from, uint64_t address,
              uint64_t key, uint32_t tell, void *context)
{
        (void)r, (void)data, (void)from, (void)address, (void)key, (void)tell, (void)context;
        return SP_E_UNSUPP;
}

int rma_poll(struct rma *r, struct rma_event *ret, int max)
{
        (void)r, (void)ret, (void)max;
        return SP_E_UNSUPP;
}

const char *rma_error(const struct rma *r)
{
        (void)r;
        return "";
}

#endif

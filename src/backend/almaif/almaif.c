/* The AlmaIF backend: accelerators as devices, through the operations of backend.h. */
#include "backend/almaif/code.h"
#include "backend/almaif/command.h"
#include "backend/almaif/memory.h"
#include "backend/almaif/program.h"
#include "backend/almaif/state.h"
#include "backend/almaif/thread.h"

#include <stdio.h>

#include "backend/builtin/devinfo.h"
#include "backend/filter.h"
#include "base/log.h"
#include "base/mem.h"

#define LOG "almaif"

/* ---- finding units -------------------------------------------------------------------------- */

static void unit_free(struct unit *u)
{
        if (!u)
                return;
        accel_close(&u->accel);
        condition_fini(&u->watch.work);
        code_close(u);
        registry_rows_free(u->rows);
        mem_free(u);
}

static int find_kernels(struct unit *u, char error[SPEC_ERROR_SIZE])
{
        const struct almaif_spec *s = u->accel.spec;
        char why[REGISTRY_ERROR_SIZE];
        if (*s->kernels) {
                int r = registry_rows_load(s->kernels, &u->rows, why);
                if (r < 0) {
                        snprintf(error, SPEC_ERROR_SIZE, "%s: kernels=: %s", s->text, why);
                        return r;
                }
        }
        for (unsigned i = 0; i < u->accel.id_count; i++) {
                const struct registry_kernel *k = registry_rows_find_id(u->rows, u->accel.ids[i]);
                if (k)
                        u->kernels[u->kernel_count++] = k;
                else
                        log_warn(
                                LOG,
                                "%s: KERNEL_IDS (0x%03x) has the unknown kernel %u; describe it by a row of "
                                "kernels=FILE",
                                s->text, ALMAIF_KERNEL_IDS, u->accel.ids[i]);
        }
        if (u->kernel_count || u->code.riscv)
                return 0;
        snprintf(error, SPEC_ERROR_SIZE, "%s: %s", s->text,
                 u->accel.compiled
                         ? "it runs compiled kernels only; isa=rv32im would say that it is a "
                           "RISC-V of that kind"
                         : "none of its kernels is known");
        return SP_E_UNSUPP;
}

/* Bytes for the arguments of any of its kernels. */
static size_t args_size_of(const struct unit *u)
{
        if (u->code.riscv)
                return CODE_ARGS_SIZE;
        bool stride = u->accel.spec->args == SPEC_ARGS_STRIDE;
        unsigned most = 1;
        for (size_t i = 0; i < u->kernel_count; i++) {
                unsigned n = registry_arg_count(u->kernels[i]);
                most = n > most ? n : most;
        }
        return most * (stride ? ALMAIF_ARGUMENT_STRIDE : sizeof(uint64_t));
}

static int unit_new(struct backend *b, const struct almaif_spec *s, unsigned number,
                    struct unit **ret, char error[SPEC_ERROR_SIZE])
{
        struct unit *u = mem_zalloc(sizeof(*u));
        if (!u) {
                snprintf(error, SPEC_ERROR_SIZE, "out of memory");
                return SP_E_NOMEM;
        }
        u->backend = b;
        u->number = number;
        list_init(&u->in_flight);
        atomic_init(&u->head_at, NO_HEAD);
        list_init(&u->backlog);
        list_init(&u->code.programs);
        condition_init(&u->watch.work);
        int r = accel_open(s, &u->accel, error);
        if (!r)
                r = code_open(u, b->scratch_dir, error);
        if (!r)
                r = find_kernels(u, error);
        if (r < 0) {
                unit_free(u);
                return r;
        }
        u->args.size = args_size_of(u);
        if (*s->name)
                snprintf(u->name, sizeof(u->name), "%s", s->name);
        else
                snprintf(u->name, sizeof(u->name), "AlmaIF %04x:%04x at %s", u->accel.vendor,
                         u->accel.id, s->text);
        *ret = u;
        return 0;
}

/* ---- domains -------------------------------------------------------------------------------- */

static void domain_free(struct domain *d)
{
        if (!d)
                return;
        domain_memory_fini(d);
        window_close(d->shared);
        mem_free(d);
}

static bool same_memory(const struct almaif_spec *a, const struct almaif_spec *b)
{
        return a->shared_size && a->shared_base == b->shared_base &&
               a->shared_size == b->shared_size && a->place.ops == b->place.ops &&
               !strcmp(a->place.path, b->place.path);
}

static void add_memory(struct domain *d, struct window *w, uint64_t at, uint64_t address,
                       uint64_t size)
{
        struct memory *m = &d->memories[d->memory_count++];
        *m = (struct memory){ .window = w, .at = at, .address = address };
        heap_init(&m->heap, size);
}

/* One alone: its own memory, then the shared one. Several: the shared one. */
static void lay_out(struct domain *d)
{
        const struct accel *a = &d->units[0]->accel;
        for (unsigned i = 0; i < d->memory_count; i++)
                heap_fini(&d->memories[i].heap);
        d->memory_count = 0;
        if (d->unit_count == 1)
                add_memory(d, a->window, a->data.at, a->data.address, a->data.size);
        if (d->shared)
                add_memory(d, d->shared, 0, a->spec->shared_base, a->spec->shared_size);
}

static int add_kernels(struct domain *d, const struct unit *u)
{
        for (size_t i = 0; i < u->kernel_count; i++) {
                bool known = false;
                for (size_t j = 0; j < d->kernel_count; j++)
                        known |= d->kernels[j] == u->kernels[i];
                if (known)
                        continue;
                if (d->kernel_count == KERNELS_MAX)
                        return SP_E_LIMIT;
                d->kernels[d->kernel_count++] = u->kernels[i];
        }
        return 0;
}

static int domain_new(struct backend *b, struct unit *u, char error[SPEC_ERROR_SIZE],
                      struct domain **ret)
{
        const struct almaif_spec *s = u->accel.spec;
        struct domain *d = mem_zalloc(sizeof(*d));
        if (!d)
                return SP_E_NOMEM;
        d->backend = b;
        d->zero = s->completion_zero;
        int r = 0;
        if (s->shared_size)
                r = window_open(&s->place, s->shared_base, s->shared_size, &d->shared, error);
        if (r < 0) {
                mem_free(d);
                return r;
        }
        *ret = d;
        return 0;
}

/* Add the unit to the domain of the units that share its memory, or to a new one. */
static int join_domain(struct backend *b, struct unit *u, char error[SPEC_ERROR_SIZE])
{
        struct domain *d = NULL;
        int r = 0;
        for (unsigned i = 0; i < b->domain_count; i++)
                if (same_memory(u->accel.spec, b->domains[i]->units[0]->accel.spec))
                        d = b->domains[u->domain_index = i];
        if (d && d->zero != u->accel.spec->completion_zero) {
                snprintf(error, SPEC_ERROR_SIZE,
                         "%s: completion= differs from that of %s, with "
                         "which it shares memory",
                         u->accel.spec->text, d->units[0]->accel.spec->text);
                return SP_E_INVAL;
        }
        if (!d) {
                r = domain_new(b, u, error, &d);
                if (r < 0)
                        return r;
                u->domain_index = b->domain_count;
                b->domains[b->domain_count++] = d;
        }
        u->domain = d;
        d->units[d->unit_count++] = u;
        lay_out(d);
        return add_kernels(d, u);
}

/* ---- open, close ---------------------------------------------------------------------------- */

static void almaif_close(struct backend *b);

static int find_units(struct backend *b, const struct backend_params *params, size_t count)
{
        char error[SPEC_ERROR_SIZE];
        for (size_t i = 0; i < count && b->unit_count < UNITS_MAX; i++) {
                struct unit *u;
                int r = unit_new(b, &b->specs[i], (unsigned)i, &u, error);
                if (!r && !filter_match(config_option_text(params->options, CONFIG_devices),
                                        params->first_number + (unsigned)i, CL_DEVICE_TYPE_CUSTOM,
                                        u->name)) {
                        unit_free(u);
                        continue;
                }
                if (!r) {
                        r = join_domain(b, u, error);
                        if (u->domain)
                                b->units[b->unit_count++] = u;
                        else
                                unit_free(u);
                }
                if (r == SP_E_NOMEM || r == SP_E_LIMIT)
                        return r;
                if (r < 0)
                        log_error(LOG, "%s", error);
        }
        return b->unit_count ? 0 : SP_E_NODEV;
}

static int almaif_open(const struct backend_params *params, struct backend **ret)
{
        char error[SPEC_ERROR_SIZE] = "out of memory";
        size_t count;
        struct backend *b = mem_zalloc(sizeof(*b));
        if (!b)
                return SP_E_NOMEM;
        b->complete = params->complete;
        b->user = params->user;
        b->clear = config_option_number(params->options, CONFIG_clear_memory);
        b->scratch_dir = params->scratch_dir;
        list_init(&b->host);
        lock_init(&b->lock);
        condition_init(&b->changed);
        int r = almaif_specs_parse(config_option_text(params->options, CONFIG_almaif), &b->specs,
                                   &count, error);
        if (r < 0)
                log_error(LOG, "SPANCL_ALMAIF: %s", error);
        else
                r = find_units(b, params, count);
        if (r < 0) {
                almaif_close(b);
                return r;
        }
        *ret = b;
        return 0;
}

static bool busy(const struct backend *b)
{
        bool any = !list_empty(&b->host);
        for (unsigned i = 0; i < b->unit_count; i++)
                any |= !list_empty(&b->units[i]->in_flight) || !list_empty(&b->units[i]->backlog);
        return any;
}

static void stop_threads(struct backend *b)
{
        threads_poll(b, true);
        almaif_lock(b);
        b->closing = true;
        while (busy(b))
                almaif_wait(b, &b->changed);
        b->stop = true;
        condition_broadcast(&b->changed);
        for (unsigned i = 0; i < b->unit_count; i++)
                condition_signal(&b->units[i]->watch.work);
        almaif_unlock(b);
        for (unsigned i = 0; i < b->unit_count; i++)
                if (b->units[i]->watch.threaded)
                        thread_join(b->units[i]->watch.thread);
        if (b->threaded)
                thread_join(b->thread);
}

static void almaif_close(struct backend *b)
{
        if (!b)
                return;
        stop_threads(b);
        for (unsigned i = 0; i < b->unit_count; i++)
                unit_free(b->units[i]);
        for (unsigned i = 0; i < b->domain_count; i++)
                domain_free(b->domains[i]);
        condition_fini(&b->changed);
        lock_fini(&b->lock);
        mem_free(b->specs);
        mem_free(b);
}

/* At the first use: until then another process may have them. */
static cl_int domain_start(struct domain *d)
{
        char error[SPEC_ERROR_SIZE];
        if (d->started)
                return CL_SUCCESS;
        int r = d->shared ? window_lock(d->shared, 0, d->shared->size) : 0;
        if (r < 0)
                snprintf(error, sizeof(error), "%s: another process uses the shared memory",
                         d->units[0]->accel.spec->text);
        for (unsigned i = 0; !r && i < d->unit_count; i++)
                r = d->units[i]->accel.started ? 0 : accel_start(&d->units[i]->accel, error);
        if (r < 0) {
                log_error(LOG, "%s", error);
                return CL_DEVICE_NOT_AVAILABLE;
        }
        domain_memory_fini(d);
        r = domain_memory_init(d);
        if (!r)
                r = threads_start(d);
        if (r == SP_E_LIMIT)
                log_error(LOG, "%s: its memory is too small even for one launch",
                          d->units[0]->accel.spec->text);
        if (r < 0)
                return r == SP_E_LIMIT ? CL_OUT_OF_RESOURCES : CL_OUT_OF_HOST_MEMORY;
        d->started = true;
        return CL_SUCCESS;
}

/* ---- devices -------------------------------------------------------------------------------- */

static unsigned almaif_device_count(struct backend *b)
{
        return b->unit_count;
}

static unsigned almaif_device_domain(struct backend *b, unsigned device)
{
        return b->units[device]->domain_index;
}

static unsigned almaif_domain_count(struct backend *b)
{
        return b->domain_count;
}

static int almaif_device_info(struct backend *b, unsigned device, struct buf *out)
{
        if (device >= b->unit_count)
                return SP_E_INVAL;
        const struct unit *u = b->units[device];
        struct emit e = { .out = out };
        char vendor[32];
        snprintf(vendor, sizeof(vendor), "AlmaIF vendor 0x%04x", u->accel.vendor);
        devinfo_device(&e,
                       &(struct devinfo_params){
                               .name = u->name,
                               .vendor = vendor,
                               .version = "OpenCL 3.0 SpanCL AlmaIF",
                               .platform = "SpanCL AlmaIF",
                               .vendor_id = u->accel.vendor,
                               .compute_units = u->accel.cores,
                               .domain = u->domain_index,
                               .buffer_max = domain_buffer_max(u->domain),
                               .memory = domain_memory_size(u->domain),
                               .kernels = u->kernels,
                               .kernel_count = u->kernel_count,
                               .rv32im = u->code.riscv,
                               .compiler = u->code.compiler != NULL,
                               .group_max = u->code.riscv ? u->code.group_max : DEVINFO_GROUP_MAX,
                       });
        return e.status;
}

/* ---- objects -------------------------------------------------------------------------------- */

static cl_int almaif_buffer_create(struct backend *b, unsigned domain, cl_mem_flags flags,
                                   size_t size, struct backend_buffer **ret)
{
        if (domain >= b->domain_count)
                return CL_INVALID_CONTEXT;
        struct domain *d = b->domains[domain];
        if (!size || size > domain_buffer_max(d))
                return CL_INVALID_BUFFER_SIZE;
        cl_int r = domain_start(d);
        return r == CL_SUCCESS ? buffer_new(d, size, ret) : r;
}

/* Any is as good. */
static cl_int almaif_host_memory(struct backend *b, unsigned domain, size_t size, void *given,
                                 void **ret)
{
        return CL_INVALID_OPERATION;
}

static cl_int almaif_sub_buffer_create(struct backend *b, struct backend_buffer *parent,
                                       cl_mem_flags flags, size_t origin, size_t size,
                                       struct backend_buffer **ret)
{
        return buffer_part(parent, origin, size, ret);
}

/* No device says that it has shared virtual memory. */
static cl_int almaif_svm_create(struct backend *b, unsigned device, uint64_t address, size_t size,
                                bool mapped, struct backend_svm **ret, uint64_t *ret_address)
{
        return CL_INVALID_OPERATION;
}

static cl_int almaif_svm_buffer_create(struct backend *b, unsigned domain, struct backend_svm *svm,
                                       cl_mem_flags flags, size_t offset, size_t size,
                                       struct backend_buffer **ret)
{
        return almaif_buffer_create(b, domain, flags, size, ret);
}

static void almaif_svm_release(struct backend_svm *svm)
{
}

static cl_int almaif_queue_create(struct backend *b, unsigned device,
                                  cl_command_queue_properties props, struct backend_queue **ret)
{
        if (device >= b->unit_count)
                return CL_INVALID_DEVICE;
        if (props & ~(cl_command_queue_properties)DEVINFO_QUEUE_PROPS)
                return CL_INVALID_QUEUE_PROPERTIES;
        cl_int r = domain_start(b->units[device]->domain);
        if (r != CL_SUCCESS)
                return r;
        struct backend_queue *q = mem_zalloc(sizeof(*q));
        if (!q)
                return CL_OUT_OF_HOST_MEMORY;
        *q = (struct backend_queue){ .refs = 1, .unit = b->units[device], .props = props };
        list_init(&q->commands);
        *ret = q;
        return CL_SUCCESS;
}

static void almaif_queue_flush(struct backend_queue *q)
{
        /* Nothing is held back. */
}

static void almaif_program_release(struct backend_program *p)
{
        if (!p)
                return;
        code_program_fini(p);
        builtin_program_fini(&p->p);
        mem_free(p);
}

static cl_int almaif_program_create(struct backend *b, unsigned domain, unsigned kind,
                                    const unsigned *devices, size_t device_count,
                                    struct bytes parts, struct backend_program **ret)
{
        if (domain >= b->domain_count)
                return CL_INVALID_CONTEXT;
        struct domain *d = b->domains[domain];
        struct backend_program *p = mem_zalloc(sizeof(*p));
        if (!p)
                return CL_OUT_OF_HOST_MEMORY;
        *p = (struct backend_program){ .domain = d, .domain_index = domain };
        cl_int r = code_program_is(d, kind)
                           ? code_program_init(p, kind, parts)
                           : builtin_program_init(&p->p, kind, parts, d->kernels, d->kernel_count);
        if (r != CL_SUCCESS) {
                code_program_fini(p);
                mem_free(p);
                return r;
        }
        *ret = p;
        return CL_SUCCESS;
}

static cl_int almaif_program_build(struct backend_program *p, const unsigned *devices,
                                   size_t device_count, const char *options, struct buf *info)
{
        if (p->compiled)
                return code_program_build(p, devices, device_count, options, info);
        return builtin_program_build(&p->p, devices, device_count, info);
}

static cl_int almaif_program_compile(struct backend_program *p, const unsigned *devices,
                                     size_t device_count, const char *options, struct buf *info)
{
        if (p->compiled)
                return code_program_compile(p, devices, device_count, options, info);
        return builtin_program_compile(p, devices, device_count, options, info);
}

static cl_int almaif_program_link(struct backend *b, unsigned domain, const unsigned *devices,
                                  size_t device_count, struct backend_program *const *inputs,
                                  size_t input_count, const char *options, struct buf *info,
                                  struct backend_program **ret)
{
        if (domain >= b->domain_count)
                return CL_INVALID_CONTEXT;
        struct domain *d = b->domains[domain];
        if (!d->units[0]->code.riscv)
                return CL_LINKER_NOT_AVAILABLE;
        struct backend_program *p = mem_zalloc(sizeof(*p));
        if (!p)
                return CL_OUT_OF_HOST_MEMORY;
        p->domain = d;
        p->domain_index = domain;
        cl_int r =
                code_program_link(d, devices, device_count, inputs, input_count, options, info, p);
        if (r == CL_SUCCESS)
                *ret = p;
        else
                almaif_program_release(p);
        return r;
}

static cl_int almaif_program_binary(struct backend_program *p, unsigned device, struct buf *out)
{
        return p->compiled ? code_program_binary(p, out) : builtin_program_binary(p, device, out);
}

static cl_int almaif_kernel_create(struct backend_program *p, const char *name,
                                   struct backend_kernel **ret)
{
        const struct registry_kernel *found = NULL;
        struct code_kernel *code = NULL;
        cl_int r = p->compiled ? code_kernel_new(p, name, &code)
                               : builtin_program_find(&p->p, name, &found);
        if (r != CL_SUCCESS)
                return r;
        struct backend_kernel *k = mem_zalloc(sizeof(*k));
        if (!k) {
                code_kernel_release(code);
                return CL_OUT_OF_HOST_MEMORY;
        }
        k->code = code;
        k->domain = p->domain;
        k->kernel = found;
        *ret = k;
        return CL_SUCCESS;
}

static cl_int almaif_kernel_set_arg(struct backend_kernel *k, const struct arg *a,
                                    struct backend_buffer *buffer, struct backend_sampler *sampler)
{
        if (k->code)
                return code_kernel_set_arg(k->code, k->domain, a, buffer);
        cl_int r = builtin_check_arg(k->kernel, a);
        if (r != CL_SUCCESS)
                return r;
        struct kernel_arg *arg = &k->args[a->index];
        if (!k->kernel->args[a->index].buffer) {
                *arg = (struct kernel_arg){ .set = true };
                memcpy(&arg->value, a->value, a->size);
                return CL_SUCCESS;
        }
        if (a->kind != ARG_BUFFER)
                return CL_INVALID_ARG_VALUE;
        if (buffer && buffer->domain != k->domain)
                return CL_INVALID_MEM_OBJECT;
        buffer_ref(buffer);
        buffer_unref(arg->buffer);
        *arg = (struct kernel_arg){ .set = true, .buffer = buffer };
        return CL_SUCCESS;
}

static void almaif_kernel_release(struct backend_kernel *k)
{
        if (!k)
                return;
        for (unsigned i = 0; i < REGISTRY_ARGS_MAX; i++)
                buffer_unref(k->args[i].buffer);
        code_kernel_release(k->code);
        mem_free(k);
}

static cl_int almaif_event_status(struct backend_event *e)
{
        struct backend *b = e->domain->backend;
        almaif_lock(b);
        cl_int status = e->status;
        almaif_unlock(b);
        return status < 0 ? status : CL_COMPLETE;
}

const struct backend_ops backend_almaif = {
        .name = "almaif",
        .open = almaif_open,
        .close = almaif_close,
        .domain_count = almaif_domain_count,
        .device = {
                .count = almaif_device_count,
                .domain = almaif_device_domain,
                .info = almaif_device_info,
        },
        .buffer = {
                .create = almaif_buffer_create,
                .create_sub = almaif_sub_buffer_create,
                .create_image = builtin_image_create,
                .release = buffer_unref,
        },
        .host_memory = almaif_host_memory,
        .svm = {
                .create = almaif_svm_create,
                .create_buffer = almaif_svm_buffer_create,
                .release = almaif_svm_release,
        },
        .sampler = {
                .create = builtin_sampler_create,
                .release = builtin_sampler_release,
        },
        .queue = {
                .create = almaif_queue_create,
                .release = command_queue_unref,
                .flush = almaif_queue_flush,
        },
        .program = {
                .create = almaif_program_create,
                .build = almaif_program_build,
                .compile = almaif_program_compile,
                .link = almaif_program_link,
                .constant = builtin_program_constant,
                .binary = almaif_program_binary,
                .release = almaif_program_release,
        },
        .kernel = {
                .create = almaif_kernel_create,
                .set_arg = almaif_kernel_set_arg,
                .query = builtin_kernel_query,
                .release = almaif_kernel_release,
        },
        .submit = command_submit,
        .poll = threads_poll,
        .event = {
                .release = almaif_event_unref,
                .status = almaif_event_status,
        },
};

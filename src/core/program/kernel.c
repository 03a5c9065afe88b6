#include "core/program/kernel.h"

#include "base/mem.h"
#include "core/client.h"
#include "core/device.h"
#include "core/handle.h"
#include "core/link/request.h"
#include "core/link/server.h"
#include "core/memory/mem.h"
#include "core/program/build.h"
#include "core/program/content.h"
#include "core/program/program.h"
#include "core/status.h"

int kernel_new(cl_program p, struct kernel_info *info, cl_kernel *ret)
{
        cl_kernel k = mem_zalloc(sizeof(*k));
        if (!k)
                return SP_E_NOMEM;
        k->args = mem_zalloc(info->arg_count * sizeof(*k->args));
        k->sent = mem_zalloc(p->context->client->server_count * sizeof(*k->sent));
        if (!k->args || !k->sent) {
                mem_free(k->args);
                mem_free(k->sent);
                mem_free(k);
                return SP_E_NOMEM;
        }
        handle_init(&k->h, HANDLE_KERNEL);
        k->program = p;
        program_hold(p);
        k->id = client_new_id(p->context->client, OBJECT_KERNEL);
        k->info = info;
        k->build = p->build;
        program_build_hold(k->build);
        /* A server that knows the kernel and no arguments has version 1; 0 is for those that don't. */
        k->version = 1;
        p->kernel_count++;
        *ret = k;
        return 0;
}

static void destroy(cl_kernel k) REQUIRES(client_held)
{
        cl_program p = k->program;
        for (cl_uint i = 0; i < p->device_count; i++) {
                struct server *s = p->devices[i]->server;
                struct session *session = server_session(s);
                /* Without memory the server keeps it until the session ends. */
                if (k->sent[server_index(s)] && session &&
                    session_send(session, release, .object = k->id) == 0)
                        server_kick(s);
                k->sent[server_index(s)] = 0;
        }
        for (cl_uint i = 0; i < k->info->arg_count; i++)
                mem_free((void *)(uintptr_t)k->args[i].arg.value);
        mem_free(k->args);
        mem_free(k->sent);
        for (size_t i = 0; i < array_size(k->reached); i++)
                mem_free(k->reached[i].at);
        program_build_unhold(k->build);
        program_unhold(p);
        handle_free(&k->h, sizeof(*k));
}

void kernel_hold(cl_kernel k)
{
        atomic_fetch_add(&k->h.holds, 1);
}

void kernel_unhold(cl_kernel k)
{
        if (atomic_fetch_sub(&k->h.holds, 1) == 1)
                destroy(k);
}

void kernel_release(cl_kernel k)
{
        k->program->kernel_count--;
        kernel_unhold(k);
}

int kernel_clone(cl_kernel from, cl_kernel *ret)
{
        cl_kernel k;
        int r = kernel_new(from->program, from->info, &k);
        if (r < 0)
                return r;
        for (cl_uint i = 0; i < from->info->arg_count && !r; i++) {
                const struct kernel_arg *a = &from->args[i];
                if (!a->version)
                        continue;
                k->args[i] = *a;
                k->args[i].version = ++k->version;
                if (a->arg.value) {
                        k->args[i].arg.value = mem_dup(a->arg.value, a->arg.size);
                        r = k->args[i].arg.value ? 0 : SP_E_NOMEM;
                }
        }
        for (unsigned i = 0; i < array_size(from->reached) && !r; i++)
                r = kernel_set_reach(k, i, from->reached[i].count, from->reached[i].at);
        k->reaches = from->reaches;
        if (r < 0) {
                kernel_release(k);
                return r;
        }
        *ret = k;
        return 0;
}

int kernel_declare(cl_kernel k, struct server *s)
{
        unsigned i = server_index(s);
        if (k->sent[i])
                return 0;
        int r = program_declare(k->program, s, CONTENT_KNOWN);
        if (r < 0)
                return r;
        r = session_send(server_session(s), kernel_create, .kernel = k->id,
                         .program = k->program->id, .name = bytes_str(k->info->name));
        if (!r)
                k->sent[i] = 1;
        return r;
}

/* ---- arguments ------------------------------------------------------------------------------ */

/* Guess the kind of an argument from its value. Some drivers do not tell it, or tell (for programs
 * from binaries) only that it takes something of a pointer's size. An OpenCL object taken for a
 * plain value would reach the driver as a wild pointer. */
static enum arg_kind guess(struct client *c, size_t size, const void *value) REQUIRES(client_held)
{
        if (!value)
                return ARG_LOCAL;
        void *address;
        if (size != sizeof(address))
                return ARG_VALUE;
        memcpy(&address, value, sizeof(address));
        const struct handle *h = client_object(c, address);
        if (!h)
                return ARG_VALUE;
        if (h->type == HANDLE_SAMPLER)
                return ARG_SAMPLER;
        if (mem_is_pipe(address))
                return ARG_PIPE;
        return mem_is_image(address) ? ARG_IMAGE : ARG_BUFFER;
}

/* Is this the argument's value already? Many programs set all arguments before each launch;
 * unchanged ones are not sent again. */
static bool is_set(const struct kernel_arg *a, const struct arg *arg, cl_mem mem, const void *value)
{
        const struct arg *old = &a->arg;
        if (!a->version || old->kind != arg->kind || old->size != arg->size ||
            old->object != arg->object || a->mem != mem)
                return false;
        return value ? old->value && !memcmp(old->value, value, arg->size) : mem != NULL;
}

static int set(cl_kernel k, cl_uint index, const struct arg *arg, cl_mem mem, const void *value)
{
        struct kernel_arg *a = &k->args[index];
        void *copy = NULL;
        if (is_set(a, arg, mem, value))
                return 0;
        if (value) {
                /* Mostly the same size again. */
                bool fits = a->arg.value && a->arg.size == arg->size;
                copy = fits ? (void *)(uintptr_t)a->arg.value : mem_alloc(arg->size);
                if (!copy)
                        return SP_E_NOMEM;
                memcpy(copy, value, arg->size);
        }
        if (a->arg.value != copy)
                mem_free((void *)(uintptr_t)a->arg.value);
        a->arg = *arg;
        a->arg.index = index;
        a->arg.value = copy;
        a->mem = mem;
        a->sampler = NULL;
        a->version = ++k->version;
        return 0;
}

/* "CL_INVALID_MEM_OBJECT if [...] does not point to a valid memory object"; "CL_INVALID_CONTEXT if the
 * context associated with kernel and an OpenCL object pointed to by arg_value are not the same." */
static int check_mem(const struct _cl_kernel *k, cl_mem m) REQUIRES(client_held)
{
        const struct _cl_context *x = k->program->context;
        const struct handle *h = client_object(x->client, m);
        if (!h || h->type != HANDLE_MEM)
                return CL_INVALID_MEM_OBJECT;
        return m->context == x ? CL_SUCCESS : CL_INVALID_CONTEXT;
}

static int set_mem(cl_kernel k, cl_uint index, size_t size, const void *value) REQUIRES(client_held)
{
        cl_mem m = NULL;
        /* CL_INVALID_ARG_SIZE if the argument is a memory object and arg_size is not sizeof(cl_mem). */
        if (size != sizeof(m) &&
            (value || !context_accepts(k->program->context, DEVICE_ACCEPTS_NULL_ARG_SIZE)))
                return CL_INVALID_ARG_SIZE;
        /* arg_value, or the value that it points at, may be NULL: then the kernel gets NULL. */
        if (value)
                memcpy(&m, value, sizeof(m));
        if (m) {
                int r = check_mem(k, m);
                if (r || mem_is_image(m) || mem_is_pipe(m))
                        return r ? r : CL_INVALID_MEM_OBJECT;
        }
        return set(k, index,
                   &(struct arg){ .kind = ARG_BUFFER, .size = 8, .object = m ? m->id : 0 }, m,
                   NULL);
}

/* "If the kernel argument is a 1D image, then the image memory object must be of image type
 * CL_MEM_OBJECT_IMAGE1D", and so on; "[...] a 2D depth image, then [...] of image type
 * CL_MEM_OBJECT_IMAGE2D and image channel order CL_DEPTH." */
static bool takes_image(const struct kernel_arg_info *info, const struct image_desc *image)
{
        static const struct {
                const char *name;
                cl_mem_object_type type;
                bool depth;
        } types[] = {
                { "image1d_t", CL_MEM_OBJECT_IMAGE1D, false },
                { "image1d_buffer_t", CL_MEM_OBJECT_IMAGE1D_BUFFER, false },
                { "image1d_array_t", CL_MEM_OBJECT_IMAGE1D_ARRAY, false },
                { "image2d_t", CL_MEM_OBJECT_IMAGE2D, false },
                { "image2d_array_t", CL_MEM_OBJECT_IMAGE2D_ARRAY, false },
                { "image2d_depth_t", CL_MEM_OBJECT_IMAGE2D, true },
                { "image2d_array_depth_t", CL_MEM_OBJECT_IMAGE2D_ARRAY, true },
                { "image3d_t", CL_MEM_OBJECT_IMAGE3D, false },
        };
        for (size_t i = 0; info->type_name && i < array_size(types); i++)
                if (!strcmp(info->type_name, types[i].name))
                        return image->type == types[i].type &&
                               (!types[i].depth || image->order == CL_DEPTH);
        return true; /* the driver did not tell */
}

static int set_image(cl_kernel k, cl_uint index, size_t size, const void *value)
        REQUIRES(client_held)
{
        cl_mem m = NULL;
        if (size != sizeof(m))
                return CL_INVALID_ARG_SIZE;
        if (value)
                memcpy(&m, value, sizeof(m));
        /* Only a buffer may be NULL. "[...] but the memory object is not valid for the kernel argument
         * specified by arg_index" is CL_INVALID_MEM_OBJECT, too. */
        int r = check_mem(k, m);
        if (r)
                return r;
        if (!mem_is_image(m) || !takes_image(&k->info->args[index], &m->image))
                return CL_INVALID_MEM_OBJECT;
        /* CL_INVALID_ARG_VALUE: the argument is declared read_only and the image was created with
         * CL_MEM_WRITE_ONLY, or the argument is declared write_only and the image was created with
         * CL_MEM_READ_ONLY. */
        cl_kernel_arg_access_qualifier access = k->info->args[index].access;
        if ((access == CL_KERNEL_ARG_ACCESS_READ_ONLY && m->flags & CL_MEM_WRITE_ONLY) ||
            (access == CL_KERNEL_ARG_ACCESS_WRITE_ONLY && m->flags & CL_MEM_READ_ONLY))
                return CL_INVALID_ARG_VALUE;
        return set(k, index, &(struct arg){ .kind = ARG_IMAGE, .size = 8, .object = m->id }, m,
                   NULL);
}

static int set_pipe(cl_kernel k, cl_uint index, size_t size, const void *value)
        REQUIRES(client_held)
{
        cl_mem m = NULL;
        if (size != sizeof(m))
                return CL_INVALID_ARG_SIZE;
        if (value)
                memcpy(&m, value, sizeof(m));
        int r = check_mem(k, m);
        if (r || !mem_is_pipe(m))
                return r ? r : CL_INVALID_MEM_OBJECT;
        return set(k, index, &(struct arg){ .kind = ARG_PIPE, .size = 8, .object = m->id }, m,
                   NULL);
}

static int set_queue(cl_kernel k, cl_uint index, size_t size, const void *value)
{
        struct client *c = k->program->context->client;
        cl_command_queue wanted = NULL, q;
        size_t pos = 0;
        /* "CL_INVALID_ARG_SIZE if [...] the argument is of type queue_t and arg_size is not
         * sizeof(cl_command_queue)." */
        if (size != sizeof(wanted))
                return CL_INVALID_ARG_SIZE;
        if (value)
                memcpy(&wanted, value, sizeof(wanted));
        while ((q = map_next(&c->queues, &pos)))
                if (q == wanted)
                        break;
        /* "CL_INVALID_DEVICE_QUEUE for an argument declared to be of type queue_t when the specified
         * arg_value is not a valid device queue object." */
        if (!q || !(q->properties & CL_QUEUE_ON_DEVICE))
                return CL_INVALID_DEVICE_QUEUE;
        if (q->context != k->program->context)
                return CL_INVALID_CONTEXT;
        return set(k, index, &(struct arg){ .kind = ARG_QUEUE, .size = 8, .object = q->id }, NULL,
                   NULL);
}

static int set_sampler(cl_kernel k, cl_uint index, size_t size, const void *value)
        REQUIRES(client_held)
{
        cl_sampler s = NULL;
        /* CL_INVALID_ARG_SIZE if arg_size != sizeof(cl_sampler) and the argument is a sampler. */
        if (size != sizeof(s))
                return CL_INVALID_ARG_SIZE;
        if (value)
                memcpy(&s, value, sizeof(s));
        /* "CL_INVALID_SAMPLER if the kernel argument is a sampler, but arg_value does not point to a valid
         * sampler object"; "CL_INVALID_CONTEXT", as above. */
        const struct handle *h = client_object(k->program->context->client, s);
        if (!h || h->type != HANDLE_SAMPLER)
                return CL_INVALID_SAMPLER;
        if (s->context != k->program->context)
                return CL_INVALID_CONTEXT;
        int r = set(k, index, &(struct arg){ .kind = ARG_SAMPLER, .size = 8, .object = s->id },
                    NULL, NULL);
        if (r == 0)
                k->args[index].sampler = s;
        return r;
}

static bool value_fits(const struct _cl_kernel *k, const struct kernel_arg_info *info, size_t size)
{
        if (!size || size > ARG_VALUE_MAX)
                return false;
        if (!info->size || size == info->size)
                return true;
        return size * 4 == info->size * 3 &&
               context_accepts(k->program->context, DEVICE_ACCEPTS_VECTOR_ARG_SHORT);
}

bool kernel_arg_fits(const struct _cl_kernel *k, cl_uint index, size_t size)
{
        return index < k->info->arg_count &&
               (size == sizeof(cl_mem) || value_fits(k, &k->info->args[index], size));
}

int kernel_set_arg(cl_kernel k, cl_uint index, size_t size, const void *value)
{
        /* CL_INVALID_ARG_INDEX if arg_index is not a valid argument index. */
        if (index >= k->info->arg_count)
                return CL_INVALID_ARG_INDEX;
        const struct kernel_arg_info *info = &k->info->args[index];
        enum arg_kind kind = info->kind;
        if (!kind || (!k->info->native_info && value && kind != ARG_LOCAL)) {
                enum arg_kind looks = guess(k->program->context->client, size, value);
                if (!kind || looks != ARG_VALUE)
                        kind = looks;
        }

        switch (kind) {
        case ARG_BUFFER:
                return set_mem(k, index, size, value);
        case ARG_LOCAL:
                /* CL_INVALID_ARG_VALUE if arg_value is not NULL for an argument with the local
                 * qualifier; CL_INVALID_ARG_SIZE if arg_size is zero for one. */
                if (value)
                        return CL_INVALID_ARG_VALUE;
                if (!size && !context_accepts(k->program->context, DEVICE_ACCEPTS_LOCAL_ARG_EMPTY))
                        return CL_INVALID_ARG_SIZE;
                return set(k, index, &(struct arg){ .kind = ARG_LOCAL, .size = size }, NULL, NULL);
        case ARG_VALUE:
                /* CL_INVALID_ARG_VALUE if arg_value is not a valid value: there has to be one. */
                if (!value)
                        return CL_INVALID_ARG_VALUE;
                /* CL_INVALID_ARG_SIZE if arg_size does not match the size of the data type. */
                if (!value_fits(k, info, size))
                        return CL_INVALID_ARG_SIZE;
                return set(k, index, &(struct arg){ .kind = ARG_VALUE, .size = size }, NULL, value);
        case ARG_IMAGE:
                return set_image(k, index, size, value);
        case ARG_SAMPLER:
                return set_sampler(k, index, size, value);
        case ARG_QUEUE:
                return set_queue(k, index, size, value);
        case ARG_PIPE:
                return set_pipe(k, index, size, value);
        case ARG_SVM: /* no kind of a parameter, but of its value */
                break;
        }
        return CL_INVALID_ARG_VALUE;
}

/* Does its object, if it has one, still exist? Another one may have come to the same place. */
static bool arg_is_alive(struct client *c, const struct kernel_arg *a) REQUIRES(client_held)
{
        const struct handle *h;
        if (a->mem) {
                h = client_object(c, a->mem);
                return h && h->type == HANDLE_MEM && a->mem->id == a->arg.object;
        }
        if (a->sampler) {
                h = client_object(c, a->sampler);
                return h && h->type == HANDLE_SAMPLER && a->sampler->id == a->arg.object;
        }
        return a->arg.kind != ARG_QUEUE || map_get(&c->queues, a->arg.object);
}

bool kernel_arg_is_alive(const struct _cl_kernel *k, cl_uint i)
{
        return arg_is_alive(k->program->context->client, &k->args[i]);
}

bool kernel_queue_fits(const struct _cl_kernel *k, cl_uint i, const struct _cl_device_id *d)
{
        const struct kernel_arg *a = &k->args[i];
        if (a->arg.kind != ARG_QUEUE)
                return true;
        const struct _cl_command_queue *q = map_get(&d->client->queues, a->arg.object);
        return q && q->device == d;
}

bool kernel_is_ready(const struct _cl_kernel *k)
{
        struct client *c = k->program->context->client;
        for (cl_uint i = 0; i < k->info->arg_count; i++)
                if (!k->args[i].version || !arg_is_alive(c, &k->args[i]))
                        return false;
        return true;
}

int kernel_set_svm(cl_kernel k, cl_uint index, const void *at)
{
        /* CL_INVALID_ARG_INDEX if arg_index is not a valid argument index. */
        if (index >= k->info->arg_count)
                return CL_INVALID_ARG_INDEX;
        /* "The SVM pointer can only be used for arguments that are declared to be a pointer to global or
         * constant memory." "CL_INVALID_ARG_VALUE if arg_value specified is not a valid value." */
        enum arg_kind kind = k->info->args[index].kind;
        if (kind && kind != ARG_BUFFER)
                return CL_INVALID_ARG_VALUE;
        uint64_t address = (uint64_t)(uintptr_t)at;
        return set(k, index,
                   &(struct arg){ .kind = at ? ARG_SVM : ARG_BUFFER, .size = 8, .object = address },
                   NULL, NULL);
}

int kernel_set_reach(cl_kernel k, enum kernel_reach how, size_t count, const void *pointers)
{
        const void **copy = count ? mem_dup(pointers, count * sizeof(*copy)) : NULL;
        if (count && !copy)
                return SP_E_NOMEM;
        mem_free(k->reached[how].at);
        k->reached[how] = (struct kernel_pointers){ copy, count };
        k->version++;
        return 0;
}

void kernel_is_right(cl_kernel k, cl_device_id d)
{
        k->right.device = d;
        k->right.version = k->version;
        k->right.gone = d->client->objects.gone;
}

uint64_t kernel_right(const struct _cl_kernel *k, const struct _cl_device_id *d)
{
        bool still = k->right.device == d && k->right.gone == d->client->objects.gone;
        return still ? k->right.version : 0;
}

cl_ulong kernel_local_args(const struct _cl_kernel *k)
{
        cl_ulong sum = 0;
        for (cl_uint i = 0; i < k->info->arg_count; i++) {
                if (k->args[i].version && k->args[i].arg.kind == ARG_LOCAL)
                        sum += k->args[i].arg.size;
        }
        return sum;
}

/* ---- queries -------------------------------------------------------------------------------- */

/* The arguments that the server does not have yet; it knows the buffers among all. */
static int put_args(cl_kernel k, struct server *s, struct buf *out) REQUIRES(client_held)
{
        for (cl_uint i = 0; i < k->info->arg_count; i++) {
                const struct kernel_arg *a = &k->args[i];
                if (!arg_is_alive(s->client, a))
                        continue;
                int r = a->mem ? mem_declare(a->mem, s) : 0;
                if (!r && a->version > k->sent[server_index(s)])
                        r = args_put(out, &a->arg);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int send_query(cl_kernel k, cl_uint i, const struct wire_kernel_query *query)
        REQUIRES(client_held)
{
        struct server *s = k->program->devices[i]->server;
        struct buf args = { 0 };
        int r = kernel_declare(k, s);
        if (!r)
                r = put_args(k, s, &args);
        struct wire_kernel_query m = *query;
        m.kernel = k->id;
        m.device = k->program->devices[i]->index;
        m.args = bytes_of(args.data, args.size);
        if (!r)
                r = session_send(server_session(s), kernel_query, .request = m.request,
                                 .kernel = m.kernel, .device = m.device, .name = m.name,
                                 .input = m.input, .size = m.size, .args = m.args);
        if (!r)
                k->sent[server_index(s)] = k->version;
        buf_fini(&args);
        return r;
}

int kernel_query(cl_kernel k, cl_uint i, uint32_t name, const size_t *input, size_t input_count,
                 size_t count, size_t *ret)
{
        struct client *c = k->program->context->client;
        struct request request = { 0 };
        uint64_t values[6];
        if (!server_session(k->program->devices[i]->server))
                return SP_E_GONE;
        if (input_count > sizeof(values) / sizeof(values[0]))
                return SP_E_INVAL;
        for (size_t n = 0; n < input_count; n++)
                values[n] = input[n];
        int r = request_begin(c, k->program->devices[i]->server, &request);
        if (r < 0)
                return r;
        r = send_query(k, i,
                       &(struct wire_kernel_query){
                               .request = request.id,
                               .name = name,
                               .input = { values, input_count },
                               .size = count * 8,
                       });
        if (r < 0)
                request_done(c, request.id, status_to_cl(r), bytes_of(NULL, 0));
        kernel_hold(k);
        request_wait(c, &request);
        kernel_unhold(k);
        r = request.status;
        if (!r && request.info.size != count * 8)
                r = SP_E_PROTO;
        for (size_t n = 0; n < count && !r; n++) {
                uint64_t value = bytes_get_u64(request.info.data + n * 8);
                ret[n] = value < SIZE_MAX ? (size_t)value : SIZE_MAX;
        }
        buf_fini(&request.info);
        return r;
}

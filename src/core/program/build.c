#include "core/program/build.h"

#include "base/mem.h"
#include "core/client.h"
#include "proto/info.h"

void build_reply_unhold(struct build_reply *r)
{
        if (!r || --r->holds)
                return;
        buf_fini(&r->info);
        mem_free(r);
}

static void kernel_info_free(struct kernel_info *k)
{
        if (!k)
                return;
        for (cl_uint i = 0; k->args && i < k->arg_count; i++) {
                mem_free(k->args[i].type_name);
                mem_free(k->args[i].name);
        }
        mem_free(k->args);
        mem_free(k->name);
        mem_free(k->attributes);
        mem_free(k->devices);
        mem_free(k);
}

void program_build_hold(struct program_build *b)
{
        b->holds++;
}

void program_build_unhold(struct program_build *b)
{
        if (!b || --b->holds)
                return;
        for (size_t i = 0; i < b->kernel_count; i++)
                kernel_info_free(b->kernels[i]);
        mem_free(b->kernels);
        for (cl_uint i = 0; b->devices && i < b->device_count; i++) {
                mem_free(b->devices[i].options);
                mem_free(b->devices[i].log);
                build_reply_unhold(b->devices[i].reply);
        }
        mem_free(b->devices);
        mem_free(b);
}

struct program_build *program_build_new(cl_uint device_count)
{
        struct program_build *b = mem_zalloc(sizeof(*b));
        if (!b)
                return NULL;
        b->holds = 1;
        b->device_count = device_count;
        b->devices = mem_zalloc(device_count * sizeof(*b->devices));
        if (!b->devices) {
                program_build_unhold(b);
                return NULL;
        }
        for (cl_uint i = 0; i < device_count; i++)
                b->devices[i].status = CL_BUILD_NONE;
        return b;
}

/* A text as it came, which may lack its NUL. */
static int take_text(struct bytes block, uint32_t key, char **ret)
{
        struct bytes v;
        if (!info_find(block, key, &v))
                return 0;
        size_t n = strnlen(v.data, v.size);
        char *s = mem_alloc(n + 1);
        if (!s)
                return SP_E_NOMEM;
        memcpy(s, v.data, n);
        s[n] = 0;
        *ret = s;
        return 0;
}

static cl_uint take_u32(struct bytes block, uint32_t key, cl_uint fallback)
{
        struct bytes v;
        return info_find(block, key, &v) && v.size == 4 ? bytes_get_u32(v.data) : fallback;
}

static cl_ulong take_u64(struct bytes block, uint32_t key, cl_ulong fallback)
{
        return info_u64(block, key, fallback);
}

int device_build_take(struct device_build *d, uint64_t device, struct build_reply *reply,
                      cl_program_binary_type made)
{
        d->reply = reply;
        reply->holds++;
        struct bytes block = bytes_of(reply->info.data, reply->info.size);
        struct info_entry e;
        while (info_next(&block, &e)) {
                if (e.key != INFO_BUILD ||
                    info_u64(e.value, INFO_BUILD_DEVICE, UINT64_MAX) != device)
                        continue;
                d->status = (cl_build_status)take_u32(e.value, CL_PROGRAM_BUILD_STATUS,
                                                      (cl_uint)d->status);
                d->type = take_u32(e.value, CL_PROGRAM_BINARY_TYPE,
                                   d->status == CL_BUILD_SUCCESS ? made
                                                                 : CL_PROGRAM_BINARY_TYPE_NONE);
                d->globals = take_u64(e.value, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE, 0);
                int r = take_text(e.value, CL_PROGRAM_BUILD_LOG, &d->log);
                return r < 0 ? r : 1;
        }
        return 0;
}

int device_build_copy(const struct device_build *old, struct device_build *d)
{
        *d = *old;
        d->options = old->options ? mem_strdup(old->options) : NULL;
        d->log = old->log ? mem_strdup(old->log) : NULL;
        if (d->reply)
                d->reply->holds++;
        return (old->options && !d->options) || (old->log && !d->log) ? SP_E_NOMEM : 0;
}

static int parse_arg(struct bytes block, struct kernel_arg_info *a)
{
        a->kind = (enum arg_kind)info_u64(block, INFO_ARG_KIND, 0);
        a->size = info_u64(block, INFO_ARG_SIZE, 0);
        a->address =
                take_u32(block, CL_KERNEL_ARG_ADDRESS_QUALIFIER, CL_KERNEL_ARG_ADDRESS_PRIVATE);
        a->access = take_u32(block, CL_KERNEL_ARG_ACCESS_QUALIFIER, CL_KERNEL_ARG_ACCESS_NONE);
        a->type_qualifier = take_u64(block, CL_KERNEL_ARG_TYPE_QUALIFIER, CL_KERNEL_ARG_TYPE_NONE);
        a->read_only = a->address == CL_KERNEL_ARG_ADDRESS_CONSTANT ||
                       (a->type_qualifier & CL_KERNEL_ARG_TYPE_CONST);
        int r = take_text(block, CL_KERNEL_ARG_TYPE_NAME, &a->type_name);
        return r < 0 ? r : take_text(block, CL_KERNEL_ARG_NAME, &a->name);
}

static int parse_kernel(struct bytes block, cl_uint device_count, struct kernel_info **ret)
{
        struct kernel_info *k = mem_zalloc(sizeof(*k));
        if (!k)
                return SP_E_NOMEM;
        k->arg_count = take_u32(block, CL_KERNEL_NUM_ARGS, 0);
        k->native_info = info_u64(block, INFO_ARG_NATIVE_INFO, 0);
        int r = k->arg_count <= ARG_INDEX_MAX ? 0 : SP_E_PROTO;
        if (!r) {
                k->devices = mem_zalloc(device_count * sizeof(*k->devices));
                k->args = mem_zalloc(k->arg_count * sizeof(*k->args));
                r = k->devices && k->args ? 0 : SP_E_NOMEM;
        }
        if (!r)
                r = take_text(block, CL_KERNEL_FUNCTION_NAME, &k->name);
        if (!r)
                r = take_text(block, CL_KERNEL_ATTRIBUTES, &k->attributes);
        if (!r && (!k->name || !*k->name))
                r = SP_E_PROTO;
        struct info_entry e;
        for (cl_uint i = 0; !r && i < k->arg_count && info_next(&block, &e);) {
                if (e.key == INFO_KERNEL_ARG)
                        r = parse_arg(e.value, &k->args[i++]);
        }
        if (r < 0)
                kernel_info_free(k);
        else
                *ret = k;
        return r;
}

/* Two devices' views of a kernel: CL_INVALID_KERNEL_DEFINITION if they differ. */
static bool differs(const struct kernel_info *a, const struct kernel_info *b)
{
        if (a->arg_count != b->arg_count)
                return true;
        for (cl_uint i = 0; i < a->arg_count; i++) {
                const struct kernel_arg_info *x = &a->args[i], *y = &b->args[i];
                if ((x->kind && y->kind && x->kind != y->kind) ||
                    (x->size && y->size && x->size != y->size))
                        return true;
        }
        return false;
}

static struct kernel_info *find_kernel(const struct program_build *b, const char *name)
{
        for (size_t i = 0; i < b->kernel_count; i++) {
                if (!strcmp(b->kernels[i]->name, name))
                        return b->kernels[i];
        }
        return NULL;
}

/* Add the kernel `*k`, or merge it into the one with the same name. *k is taken over. */
static int add_kernel(struct program_build *b, struct kernel_info **k)
{
        struct kernel_info *known = find_kernel(b, (*k)->name);
        if (known) {
                known->differs |= differs(known, *k);
                for (cl_uint i = 0; i < b->device_count; i++) {
                        if ((*k)->devices[i].info.size)
                                known->devices[i] = (*k)->devices[i];
                }
                kernel_info_free(steal(*k));
                return 0;
        }
        struct kernel_info **all =
                mem_realloc(b->kernels, (b->kernel_count + 1) * sizeof(struct kernel_info *));
        if (!all)
                return SP_E_NOMEM;
        b->kernels = all;
        all[b->kernel_count++] = steal(*k);
        return 0;
}

/* Index of a server's device in the program's; -1: it is none of its. */
static int find_device(const struct _cl_program *p, const struct server *s, uint64_t number)
{
        for (cl_uint i = 0; i < p->device_count; i++) {
                if (p->devices[i]->server == s && p->devices[i]->index == number)
                        return (int)i;
        }
        return -1;
}

/* One of up to three values of type size_t; 0 when it is not known. */
static size_t info_size(struct bytes block, uint32_t key, size_t at)
{
        struct bytes v;
        if (!info_find(block, key, &v) || v.size < (at + 1) * 8)
                return 0;
        return (size_t)bytes_get_u64((const uint8_t *)v.data + at * 8);
}

static void take_device(struct kernel_device *d, struct bytes info)
{
        d->info = info;
        for (size_t i = 0; i < 3; i++)
                d->required_size[i] = info_size(info, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, i);
        d->max_work_group_size = info_size(info, CL_KERNEL_WORK_GROUP_SIZE, 0);
}

/* The kernels of a reply, for those devices whose state is from it. */
static int take_kernels(const struct _cl_program *p, struct program_build *b, struct server *s,
                        struct build_reply *reply)
{
        struct bytes block = bytes_of(reply->info.data, reply->info.size);
        struct info_entry e, d;
        while (info_next(&block, &e)) {
                if (e.key != INFO_KERNEL)
                        continue;
                struct kernel_info *k = NULL;
                int r = parse_kernel(e.value, b->device_count, &k);
                if (r < 0)
                        return r;
                bool here = false;
                struct bytes rest = e.value;
                while (info_next(&rest, &d)) {
                        if (d.key != INFO_KERNEL_DEVICE)
                                continue;
                        int i = find_device(p, s, info_u64(d.value, INFO_BUILD_DEVICE, UINT64_MAX));
                        if (i < 0 || b->devices[i].reply != reply)
                                continue;
                        take_device(&k->devices[i], d.value);
                        k->arg_info = k->native_info && b->devices[i].arg_info;
                        here = true;
                }
                r = here ? add_kernel(b, &k) : 0;
                kernel_info_free(k);
                if (r < 0)
                        return r;
        }
        return 0;
}

int program_build_take_kernels(const struct _cl_program *p, struct program_build *b)
{
        for (cl_uint i = 0; i < b->device_count; i++) {
                struct build_reply *reply = b->devices[i].reply;
                bool taken = false;
                for (cl_uint j = 0; j < i && !taken; j++)
                        taken = b->devices[j].reply == reply;
                if (!reply || taken)
                        continue;
                int r = take_kernels(p, b, p->devices[i]->server, reply);
                if (r < 0)
                        return r;
        }
        return 0;
}

#include "engine/program/cached_build.h"

#include "base/log.h"
#include "base/mem.h"

/* Entries of a cached value, after one INFO_PART for each device. */
enum { CACHED_BUILD_INFO = 0x10180 };

/* The version of values and of the contents of INFO_BUILD and INFO_KERNEL. Change it with either. */
static const char format[] = "5";

int build_input_copy(const struct build_input *from, struct build_input *ret)
{
        struct build_input in = { .embedded = from->embedded, .compile = from->compile };
        in.options = mem_strdup(from->options);
        int r = in.options ? 0 : SP_E_NOMEM;
        if (from->headers)
                in.headers = content_ref(from->headers);
        memcpy(in.digest, from->digest, sizeof(in.digest));
        if (!r)
                r = buf_put(&in.constants, from->constants.data, from->constants.size);
        if (r < 0)
                build_input_fini(&in);
        else
                *ret = in;
        return r;
}

void build_input_fini(struct build_input *in)
{
        mem_free(steal(in->options));
        content_unref(steal(in->headers));
        buf_fini(&in->constants);
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Make a device's key from the properties on which the compiler's output depends. */
static int device_key(struct engine *e, unsigned device, struct cache_key *ret)
{
        static const uint32_t keys[] = {
                CL_DEVICE_NAME,           CL_DEVICE_VENDOR,     CL_DEVICE_VENDOR_ID,
                CL_DEVICE_VERSION,        CL_DRIVER_VERSION,    CL_DEVICE_OPENCL_C_VERSION,
                CL_DEVICE_TYPE,           CL_DEVICE_EXTENSIONS, CL_DEVICE_MAX_COMPUTE_UNITS,
                CL_DEVICE_LOCAL_MEM_SIZE, INFO_DEVICE_PLATFORM, CL_DEVICE_MAX_WORK_GROUP_SIZE,
        };
        struct buf info = { 0 };
        int r = e->be->device.info(e->backend, device, &info);
        struct blake2b b;
        blake2b_init(&b);
        for (size_t i = 0; !r && i < array_size(keys); i++) {
                struct bytes v = { 0 };
                (void)info_find(bytes_of(info.data, info.size), keys[i], &v);
                blake2b_field(&b, v);
        }
        blake2b_final(&b, ret->bytes);
        buf_fini(&info);
        return r;
}

int cached_build_prepare(struct engine *e)
{
        struct cache_key *keys = mem_alloc(e->device_count * sizeof(*keys));
        if (!keys)
                return SP_E_NOMEM;
        for (unsigned i = 0; i < e->device_count; i++) {
                int r = device_key(e, i, &keys[i]);
                if (r < 0) {
                        mem_free(keys);
                        return r;
                }
        }
        e->programs.device_keys = keys;
        return 0;
}

static bool has(struct bytes text, const char *word)
{
        return text.size && memmem(text.data, text.size, word, strlen(word));
}

/* Does each build give another program, because the text contains the time? An absent text does
 * not. */
static bool uses_time(const struct content *c)
{
        struct bytes text = c ? content_bytes(c) : bytes_of(NULL, 0);
        return has(text, "__DATE__") || has(text, "__TIME__") || has(text, "__TIMESTAMP__");
}

static void put_number(struct blake2b *b, uint64_t value)
{
        uint8_t number[8];
        bytes_put_u64(number, value);
        blake2b_field(b, bytes_of(number, sizeof(number)));
}

static void key_begin(const struct engine *e, const char *action, struct blake2b *b)
{
        blake2b_init(b);
        blake2b_field(b, bytes_str(format));
        blake2b_field(b, bytes_str(SPANCL_VERSION));
        blake2b_field(b, bytes_str(e->be->name));
        blake2b_field(b, bytes_str(action));
}

/* Add the devices and finish the key. */
static bool key_end(struct engine *e, const unsigned *devices, size_t device_count,
                    struct blake2b *b, struct cache_key *ret) REQUIRES(engine_held)
{
        if (!e->programs.device_keys && cached_build_prepare(e) < 0)
                return false;
        for (size_t i = 0; i < device_count; i++) {
                struct cache_key own;
                const struct cache_key *key = &own;
                if (devices[i] < e->device_count)
                        key = &e->programs.device_keys[devices[i]];
                else if (device_key(e, devices[i], &own) < 0)
                        return false;
                blake2b_field(b, bytes_of(key->bytes, BLAKE2B_SIZE));
        }
        blake2b_final(b, ret->bytes);
        return true;
}

bool cached_build_key(struct program *p, const struct build_input *in, const unsigned *devices,
                      size_t device_count, struct cache_key *ret)
{
        struct engine *e = p->object.engine;
        if (!e->programs.cache || (p->kind != PROGRAM_KIND_SOURCE && p->kind != PROGRAM_KIND_IL) ||
            uses_time(p->parts) || uses_time(in->headers))
                return false;
        struct blake2b b;
        key_begin(e, in->compile ? "compile" : "build", &b);
        put_number(&b, p->kind);
        blake2b_field(&b, bytes_of(p->digest, sizeof(p->digest)));
        blake2b_field(&b, bytes_str(in->options));
        blake2b_field(&b, bytes_of(in->digest, sizeof(in->digest)));
        blake2b_field(&b, bytes_of(in->constants.data, in->constants.size));
        return key_end(e, devices, device_count, &b, ret);
}

bool cached_build_link_key(struct engine *e, struct program *const *inputs, size_t input_count,
                           const char *options, unsigned domain, const unsigned *devices,
                           size_t device_count, struct cache_key *ret)
{
        struct blake2b b;
        if (!e->programs.cache)
                return false;
        key_begin(e, "link", &b);
        blake2b_field(&b, bytes_str(options));
        put_number(&b, input_count);
        for (size_t i = 0; i < input_count; i++) {
                struct program *p = inputs[i];
                const struct program_replica *r = engine_program_replica(p, domain);
                if (!r || (!r->named && p->kind != PROGRAM_KIND_BINARY))
                        return false;
                put_number(&b, r->named);
                blake2b_field(&b, r->named ? bytes_of(r->name.bytes, BLAKE2B_SIZE)
                                           : bytes_of(p->digest, sizeof(p->digest)));
        }
        return key_end(e, devices, device_count, &b, ret);
}

/* ---- values --------------------------------------------------------------------------------- */

/* Take a value apart: as many binaries as there are devices, none empty, and the info. */
static bool value_take(struct bytes value, size_t device_count, struct bytes *ret_binaries,
                       struct bytes *ret_info)
{
        if (info_check(value) < 0)
                return false;
        struct bytes rest = value;
        struct info_entry entry;
        for (size_t i = 0; i < device_count; i++)
                if (!info_next(&rest, &entry) || entry.key != INFO_PART || !entry.value.size)
                        return false;
        *ret_binaries = bytes_of(value.data, value.size - rest.size);
        if (!info_next(&rest, &entry) || entry.key != CACHED_BUILD_INFO || rest.size ||
            info_check(entry.value) < 0)
                return false;
        *ret_info = entry.value;
        return true;
}

/* Cached info names devices by their places in the build's device list, not by their numbers, so
 * that others of the same kind can use it. Convert between the two. */
static void renumber(struct bytes info, const unsigned *devices, size_t count, bool to_places)
{
        struct info_entry e;
        while (info_next(&info, &e)) {
                if (e.key == INFO_BUILD || e.key == INFO_KERNEL || e.key == INFO_KERNEL_DEVICE)
                        renumber(e.value, devices, count, to_places);
                if (e.key != INFO_BUILD_DEVICE || e.value.size != 8)
                        continue;
                uint64_t number = bytes_get_u64(e.value.data), other = number;
                for (size_t i = 0; i < count; i++)
                        if (number == (to_places ? devices[i] : i))
                                other = to_places ? i : devices[i];
                bytes_put_u64((void *)(uintptr_t)e.value.data, other);
        }
}

/* The program's type in the info of the first device. */
static cl_program_binary_type value_type(struct bytes info)
{
        struct bytes build, v;
        cl_program_binary_type type = CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
        if (info_find(info, INFO_BUILD, &build) && info_find(build, CL_PROGRAM_BINARY_TYPE, &v) &&
            v.size == sizeof(type))
                memcpy(&type, v.data, sizeof(type));
        return type;
}

/* Does the program have this type on all devices? */
static bool is_type(struct engine *e, struct backend_program *p, const unsigned *devices,
                    size_t device_count, cl_program_binary_type type)
{
        for (size_t i = 0; i < device_count; i++)
                if (!e->be->program.type || e->be->program.type(p, devices[i]) != type)
                        return false;
        return true;
}

static cl_int make(struct engine *e, unsigned domain, const unsigned *devices, size_t device_count,
                   const char *options, struct bytes binaries, cl_program_binary_type type,
                   struct backend_program **ret)
{
        struct backend_program *native = NULL;
        engine_lock(e);
        cl_int r = e->be->program.create(e->backend, domain, PROGRAM_KIND_BINARY, devices,
                                         device_count, binaries, &native);
        engine_unlock(e);
        if (r < 0)
                return r;
        if (type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE)
                r = e->be->program.build(native, devices, device_count, options, NULL);
        else if (!is_type(e, native, devices, device_count, type))
                r = CL_INVALID_BINARY;
        if (r < 0) {
                engine_lock(e);
                e->be->program.release(native);
                engine_unlock(e);
                return r;
        }
        *ret = native;
        return CL_SUCCESS;
}

int cached_build_binaries(const struct cached_build *s, const unsigned *devices,
                          size_t device_count, struct buf *out)
{
        struct bytes rest = s->binaries;
        struct info_entry entry;
        int r = 0;
        for (size_t i = 0; i < device_count && !r && info_next(&rest, &entry); i++) {
                r = info_put_u64(out, INFO_BUILD_DEVICE, devices[i]);
                if (!r)
                        r = info_put(out, INFO_PART, entry.value.data, entry.value.size);
        }
        return r;
}

cl_int cached_build_binary(const struct buf *binaries, unsigned device, struct buf *out)
{
        struct bytes rest = bytes_of(binaries->data, binaries->size);
        struct info_entry number, part;
        while (info_next(&rest, &number) && info_next(&rest, &part)) {
                if (bytes_get_u64(number.value.data) != device)
                        continue;
                return info_put(out, INFO_PART, part.value.data, part.value.size) < 0
                               ? CL_OUT_OF_HOST_MEMORY
                               : CL_SUCCESS;
        }
        return CL_INVALID_DEVICE;
}

bool cached_build_find(struct engine *e, const struct cache_key *key, const unsigned *devices,
                       size_t device_count, struct cached_build *ret)
{
        *ret = (struct cached_build){ 0 };
        if (cache_get(e->programs.cache, key, &ret->value) < 0) {
                cached_build_fini(ret);
                return false;
        }
        if (!value_take(bytes_of(ret->value.data, ret->value.size), device_count, &ret->binaries,
                        &ret->info)) {
                log_info("cache", "an entry is not whole and made anew");
                cache_drop(e->programs.cache, key);
                cached_build_fini(ret);
                return false;
        }
        renumber(ret->info, devices, device_count, false);
        ret->type = value_type(ret->info);
        return true;
}

void cached_build_fini(struct cached_build *s)
{
        buf_fini(&s->value);
        *s = (struct cached_build){ 0 };
}

struct backend_program *cached_build_load(struct engine *e, const struct cache_key *key,
                                          const struct cached_build *s, unsigned domain,
                                          const unsigned *devices, size_t device_count,
                                          const char *options)
{
        struct backend_program *native = NULL;
        cl_int r = make(e, domain, devices, device_count, options, s->binaries, s->type, &native);
        if (r < 0) {
                log_info("cache", "a binary is refused (%d) and made anew", r);
                cache_drop(e->programs.cache, key);
        }
        return native;
}

void cached_build_store(struct engine *e, const struct cache_key *key,
                        struct backend_program *native, const unsigned *devices,
                        size_t device_count, struct bytes info)
{
        struct buf value = { 0 };
        cl_int r = CL_SUCCESS;
        for (size_t i = 0; r == CL_SUCCESS && i < device_count; i++)
                r = e->be->program.binary(native, devices[i], &value);
        struct bytes binaries, told;
        if (r < 0)
                log_debug("cache", "no binary to keep (%d)", r);
        else if (info_put(&value, CACHED_BUILD_INFO, info.data, info.size) == 0 &&
                 value_take(bytes_of(value.data, value.size), device_count, &binaries, &told)) {
                renumber(told, devices, device_count, true);
                cache_put(e->programs.cache, key, bytes_of(value.data, value.size));
        }
        buf_fini(&value);
}

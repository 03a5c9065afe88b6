#include "backend/native/devinfo.h"

#include "backend/emit.h"
#include "backend/native/image.h"
#include "backend/native/svm.h"
#include "base/log.h"

/* The names have a prefix, because headers of Windows define UINT, ULONG and SIZE. */
enum kind { IS_UINT, IS_ULONG, IS_SIZE, IS_STR, IS_LIST, IS_NAMES, IS_DATA };

static const struct {
        cl_device_info key;
        enum kind kind;
        const char *name;
} queries[] = {
#define INFO(value, type, label) { value, IS_##type, #label },
#include "backend/native/devinfo.def"
};

static const cl_platform_info platform_queries[] = {
        CL_PLATFORM_PROFILE, CL_PLATFORM_VERSION,    CL_PLATFORM_NAME,
        CL_PLATFORM_VENDOR,  CL_PLATFORM_EXTENSIONS,
};

enum { VALUE_MAX = 1 << 20 };

/* End a text at its first zero, because the bytes behind it may be anything. Wine 8.0 filters CL_DEVICE_EXTENSIONS, but
 * keeps the size of the whole. Returns false if there is no zero. */
static bool cut_text(const void *value, size_t *size)
{
        const char *end = *size ? memchr(value, '\0', *size) : NULL;
        if (end)
                *size = (size_t)(end - (const char *)value) + 1;
        return end || !*size;
}

/* The value is pointers to the device's own texts. */
static void emit_list(struct emit *e, cl_device_info key, const struct buf *pointers, size_t size)
{
        struct buf texts = { 0 };
        for (size_t i = 0; i < size / sizeof(char *) && e->status >= 0; i++) {
                const char *text;
                memcpy(&text, pointers->data + i * sizeof(text), sizeof(text));
                if (text)
                        e->status = buf_put(&texts, text, strlen(text) + 1);
        }
        emit_data(e, key, texts.data, texts.size);
        buf_fini(&texts);
}

/* Get a value of any size, with 8 bytes of room behind it. Wine 8.0 writes to the value of
 * CL_DEVICE_EXECUTION_CAPABILITIES also where a call asks for its size alone, so this one has a size. */
static bool ask_value(struct emit *e, const struct native_device *d, cl_device_info key,
                      struct buf *scratch, size_t *ret_size)
{
        __typeof__(clGetDeviceInfo) *ask = d->platform->api.clGetDeviceInfo;
        scratch->size = 0;
        if (key == CL_DEVICE_EXECUTION_CAPABILITIES)
                *ret_size = sizeof(cl_device_exec_capabilities);
        else if (ask(d->id, key, 0, NULL, ret_size) != CL_SUCCESS || *ret_size > VALUE_MAX)
                return false;
        e->status = buf_reserve(scratch, *ret_size + 8);
        return !e->status &&
               (!*ret_size || ask(d->id, key, *ret_size, scratch->data, NULL) == CL_SUCCESS);
}

/* One query; what fails is left out. Sizes are the native side's, also where they are not what the
 * specification says (PoCL 3.1: four bytes of CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES), so that
 * applications see what they would see there. `scratch` holds the value. */
static void emit_query(struct emit *e, const struct native_device *d, size_t i, struct buf *scratch)
{
        size_t size = 0;
        if (e->status < 0 || !ask_value(e, d, queries[i].key, scratch, &size))
                return;
        if (queries[i].kind == IS_STR && !cut_text(scratch->data, &size)) {
                log_debug("native", "%s is not terminated", queries[i].name);
                return;
        }
        if (queries[i].kind == IS_LIST) {
                emit_list(e, queries[i].key, scratch, size);
                return;
        }
        if (queries[i].kind == IS_NAMES) {
                emit_name_versions(e, queries[i].key, scratch->data, size);
                return;
        }
        if (queries[i].kind == IS_SIZE && size == sizeof(size_t)) {
                size_t value;
                memcpy(&value, scratch->data, sizeof(value));
                emit_u64(e, queries[i].key, value);
                return;
        }
        emit_data(e, queries[i].key, scratch->data, size);
}

static void emit_platform(struct emit *e, const struct icd_platform *p, struct buf *scratch)
{
        size_t mark = emit_begin(e, INFO_DEVICE_PLATFORM);
        for (size_t i = 0; i < array_size(platform_queries); i++) {
                cl_platform_info key = platform_queries[i];
                size_t size = 0;
                if (e->status < 0 ||
                    p->api.clGetPlatformInfo(p->id, key, 0, NULL, &size) != CL_SUCCESS ||
                    size > VALUE_MAX)
                        continue;
                scratch->size = 0;
                e->status = buf_reserve(scratch, size + 8);
                if (e->status < 0)
                        return;
                if (p->api.clGetPlatformInfo(p->id, key, size, scratch->data, NULL) == CL_SUCCESS &&
                    cut_text(scratch->data, &size))
                        emit_data(e, key, scratch->data, size);
        }
        emit_end(e, mark);
}

static bool ask_images(const struct native_device *d, cl_bool *ret)
{
        return d->platform->api.clGetDeviceInfo(d->id, CL_DEVICE_IMAGE_SUPPORT, sizeof(*ret), ret,
                                                NULL) == CL_SUCCESS;
}

int native_device_info(struct backend *b, unsigned device, struct buf *out)
{
        if (device >= b->device_count)
                return SP_E_INVAL;
        const struct native_device *d = &b->devices[device];
        struct emit e = { .out = out };
        struct buf scratch = { 0 };
        op_enter();
        for (size_t i = 0; i < array_size(queries); i++)
                emit_query(&e, d, i, &scratch);
        emit_u64(&e, INFO_DEVICE_DOMAIN, d->domain);
        emit_u64(&e, INFO_DEVICE_FLAGS, DEVICE_FLAG_LITTLE);
        emit_u64(&e, INFO_DEVICE_SVM, native_device_svm(b, d));
        emit_u64(&e, INFO_DEVICE_ACCEPTS, b->domains[d->domain].quirks->accepts);
        emit_platform(&e, d->platform, &scratch);
        cl_bool images = CL_FALSE;
        if (ask_images(d, &images) && images)
                native_emit_formats(&e, &b->domains[d->domain]);
        op_leave();
        buf_fini(&scratch);
        return e.status;
}

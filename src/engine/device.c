#include "engine/device.h"

#include "base/mem.h"
#include "engine/state.h"
#include "engine/transfer/peer.h"

struct sub_device {
        unsigned number, root;
        size_t refs; /* the client's and the queues' */
};

bool engine_device_valid(struct engine *e, uint64_t device)
{
        return device < e->device_count || map_get(&e->sub_devices, device);
}

struct sub_device *engine_device_ref(struct engine *e, uint64_t device)
{
        return engine_device_share(device < e->device_count ? NULL
                                                            : map_get(&e->sub_devices, device));
}

struct sub_device *engine_device_share(struct sub_device *s)
{
        if (s)
                s->refs++;
        return s;
}

unsigned engine_device_root(struct engine *e, unsigned device)
{
        const struct sub_device *s =
                device < e->device_count ? NULL : map_get(&e->sub_devices, device);
        return s ? s->root : device;
}

void engine_device_unref(struct engine *e, struct sub_device *s)
{
        if (!s || --s->refs)
                return;
        e->be->device.release(e->backend, s->number);
        mem_free(s);
}

void engine_device_free_all(struct engine *e)
{
        size_t pos = 0;
        struct sub_device *s;
        while ((s = map_next(&e->sub_devices, &pos)))
                engine_device_unref(e, s);
        map_fini(&e->sub_devices);
}

/* ---- what devices are ----------------------------------------------------------------------- */

static int put_device(struct engine *e, unsigned number, struct buf *out)
{
        size_t mark;
        int r = info_begin(out, INFO_DEVICE, &mark);
        if (r < 0)
                return r;
        r = e->be->device.info(e->backend, number, out);
        if (r < 0)
                return r;
        struct bytes inside = { out->data + mark + 8, out->size - mark - 8 }, found;
        if (!info_find(inside, INFO_DEVICE_DOMAIN, &found))
                r = info_put_u64(out, INFO_DEVICE_DOMAIN, e->be->device.domain(e->backend, number));
        if (!r)
                r = info_put_u64(out, INFO_DEVICE_NUMBER, number);
        if (!r)
                info_end(out, mark);
        return r;
}

static int put_load(struct engine *e, struct buf *out)
{
        size_t mark;
        int r = info_begin(out, INFO_SERVER, &mark);
        if (!r)
                r = info_put_u64(out, INFO_SERVER_SESSIONS, atomic_load(&e->load));
        if (!r)
                info_end(out, mark);
        return r;
}

void engine_set_load(struct engine *e, uint64_t sessions)
{
        atomic_store(&e->load, sessions);
}

static void answer(struct peer *p, uint64_t request, int status, struct buf *info)
        REQUIRES(engine_held)
{
        peer_send(p, server_info, .request = request, .status = status,
                  .devices = bytes_of(info->data, status < 0 ? 0 : info->size));
        buf_fini(info);
}

int engine_describe(struct engine *e, struct buf *out)
{
        int r = 0;
        for (unsigned i = 0; i < e->device_count && !r; i++)
                r = put_device(e, i, out);
        return r;
}

int engine_handle_server_info_query(void *user, const struct wire_server_info_query *m)
{
        struct peer *p = user;
        struct engine *e = p->engine;
        struct buf info = { 0 };
        int r = engine_describe(e, &info);
        if (!r)
                r = put_load(e, &info);
        answer(p, m->request, r, &info);
        return 0;
}

/* ---- sub-devices ---------------------------------------------------------------------------- */

/* A property's name and values; the counts of CL_DEVICE_PARTITION_BY_COUNTS end with 0. */
static bool properties_valid(struct wire_u64s p)
{
        if (p.count < 2)
                return false;
        switch (wire_u64s_at(p, 0)) {
        case CL_DEVICE_PARTITION_EQUALLY:
        case CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN:
                return p.count == 2;
        case CL_DEVICE_PARTITION_BY_COUNTS:
                for (size_t i = 1; i + 1 < p.count; i++)
                        if (wire_u64s_at(p, i) == CL_DEVICE_PARTITION_BY_COUNTS_LIST_END)
                                return false;
                return wire_u64s_at(p, p.count - 1) == CL_DEVICE_PARTITION_BY_COUNTS_LIST_END;
        default:
                return false;
        }
}

static cl_int partition(struct engine *e, unsigned device, struct wire_u64s properties,
                        unsigned *ret_first, unsigned *ret_count)
{
        if (!e->be->device.partition)
                return CL_INVALID_VALUE;
        cl_device_partition_property *list = mem_alloc((properties.count + 1) * sizeof(*list));
        if (!list)
                return CL_OUT_OF_HOST_MEMORY;
        for (size_t i = 0; i < properties.count; i++)
                list[i] = (cl_device_partition_property)wire_u64s_at(properties, i);
        list[properties.count] = 0;
        cl_int status = e->be->device.partition(e->backend, device, list, ret_first, ret_count);
        mem_free(list);
        return status;
}

/* Take over new devices of the backend. On failure none stays. */
static cl_int add_devices(struct engine *e, unsigned root, unsigned first, unsigned count,
                          struct buf *info)
{
        int r = 0;
        for (unsigned i = first; i < first + count; i++) {
                struct sub_device *s = r < 0 ? NULL : mem_alloc(sizeof(*s));
                if (!s || map_put(&e->sub_devices, i, s) < 0) {
                        r = r < 0 ? r : SP_E_NOMEM;
                        mem_free(s);
                        e->be->device.release(e->backend, i);
                        continue;
                }
                *s = (struct sub_device){ i, root, 1 };
                r = put_device(e, i, info);
        }
        if (!r && info->size <= WIRE_BLOB_MAX)
                return CL_SUCCESS;
        for (unsigned i = first; i < first + count; i++)
                engine_device_unref(e, map_del(&e->sub_devices, i));
        return r == SP_E_NOMEM ? CL_OUT_OF_HOST_MEMORY : CL_OUT_OF_RESOURCES;
}

int engine_handle_device_partition(void *user, const struct wire_device_partition *m)
{
        struct peer *p = user;
        struct engine *e = p->engine;
        struct buf info = { 0 };
        unsigned first = 0, count = 0;
        if (!engine_device_valid(e, m->device) || !properties_valid(m->properties))
                return SP_E_PROTO;
        cl_int status = partition(e, (unsigned)m->device, m->properties, &first, &count);
        if (status == CL_SUCCESS)
                status = add_devices(e, engine_device_root(e, (unsigned)m->device), first, count,
                                     &info);
        answer(p, m->request, status, &info);
        return 0;
}

int engine_handle_device_release(void *user, const struct wire_device_release *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct sub_device *s =
                m->device < e->device_count ? NULL : map_del(&e->sub_devices, m->device);
        if (!s)
                return SP_E_PROTO;
        engine_device_unref(e, s);
        return 0;
}

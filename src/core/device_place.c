#include "core/device_place.h"

#include <stdio.h>
#include <string.h>

#include "base/blake2b.h"
#include "config/variables.h"
#include "os/host.h"

enum {
        PCI_BUS_NV = 0x4008, /* cl_nv_device_attribute_query */
        PCI_SLOT_NV = 0x4009,
        PCI_DOMAIN_NV = 0x400A,
        TOPOLOGY_AMD = 0x4037, /* cl_amd_device_attribute_query */
        BOARD_NAME_AMD = 0x4038,
        TOPOLOGY_SIZE = 24, /* a type, 17 unused bytes, bus, device, function */
        TOPOLOGY_PCIE = 1,
        UUID_VERSION = 8, /* RFC 9562: made in a way of one's own */
        NAME_MAX_SIZE = 512,
        HOST_IDENTITY_SIZE = 320,
};

static bool find_uint(struct bytes native, cl_device_info name, cl_uint *ret)
{
        struct bytes v;
        if (!info_find(native, name, &v) || v.size != sizeof(*ret))
                return false;
        memcpy(ret, v.data, sizeof(*ret));
        return true;
}

bool device_place_pci(struct bytes native, cl_device_pci_bus_info_khr *ret)
{
        struct bytes v;
        if (info_find(native, CL_DEVICE_PCI_BUS_INFO_KHR, &v) && v.size == sizeof(*ret)) {
                memcpy(ret, v.data, sizeof(*ret));
                return true;
        }
        if (info_find(native, TOPOLOGY_AMD, &v) && v.size == TOPOLOGY_SIZE) {
                const uint8_t *p = v.data;
                *ret = (cl_device_pci_bus_info_khr){ 0, p[21], p[22], p[23] };
                return bytes_get_u32(p) == TOPOLOGY_PCIE;
        }
        cl_uint bus, slot, domain = 0;
        if (!find_uint(native, PCI_BUS_NV, &bus) || !find_uint(native, PCI_SLOT_NV, &slot))
                return false;
        (void)!find_uint(native, PCI_DOMAIN_NV, &domain);
        *ret = (cl_device_pci_bus_info_khr){ domain, bus, slot >> 3, slot & 7 };
        return true;
}

static void make_uuid(const char *kind, const char *a, const char *b, unsigned number,
                      uint8_t ret[CL_UUID_SIZE_KHR])
{
        uint8_t out[BLAKE2B_SIZE], n[8];
        struct blake2b h;
        blake2b_init(&h);
        blake2b_field(&h, bytes_str(kind));
        blake2b_field(&h, bytes_str(a));
        blake2b_field(&h, bytes_str(b));
        bytes_put_u64(n, number);
        blake2b_update(&h, n, sizeof(n));
        blake2b_final(&h, out);
        memcpy(ret, out, CL_UUID_SIZE_KHR);
        ret[6] = (uint8_t)(ret[6] & 0x0f) | UUID_VERSION << 4;
        ret[8] = (ret[8] & 0x3f) | 0x80;
}

static bool is_name(cl_device_info key)
{
        return key == CL_DEVICE_NAME || key == CL_DEVICE_VENDOR || key == BOARD_NAME_AMD;
}

bool device_place_gives(const struct info_entry *e)
{
        const uint8_t *uuid = e->value.data;
        return is_name(e->key) ||
               (e->key == CL_DEVICE_UUID_KHR && e->value.size == CL_UUID_SIZE_KHR &&
                uuid[6] >> 4 == UUID_VERSION);
}

static const char *text_of(struct bytes all, cl_device_info name)
{
        struct bytes v;
        return info_find(all, name, &v) && v.size ? v.data : ""; /* the masks saw to its end */
}

static int put_text(struct buf *out, cl_device_info name, const char *text)
{
        return info_put(out, name, text, strlen(text) + 1);
}

static int put_uuids(const struct device_place *p, struct bytes all, struct buf *out)
{
        uint8_t uuid[CL_UUID_SIZE_KHR];
        static const uint8_t no_luid[CL_LUID_SIZE_KHR];
        const cl_uint none = 0;
        struct bytes v;
        int r = 0;
        if (!info_find(all, CL_DEVICE_UUID_KHR, &v)) {
                /* Hosts that share a home folder share a key. */
                char host[HOST_IDENTITY_SIZE] = "";
                if (p->here && !*p->identity)
                        host_identity(host, sizeof(host));
                make_uuid("device", *host ? host : p->identity, p->server, p->number, uuid);
                r = info_put(out, CL_DEVICE_UUID_KHR, uuid, sizeof(uuid));
        }
        if (!r && !info_find(all, CL_DRIVER_UUID_KHR, &v)) {
                make_uuid("driver", text_of(all, CL_DEVICE_VENDOR), text_of(all, CL_DRIVER_VERSION),
                          0, uuid);
                r = info_put(out, CL_DRIVER_UUID_KHR, uuid, sizeof(uuid));
        }
        if (!r && !info_find(all, CL_DEVICE_LUID_VALID_KHR, &v))
                r = info_put(out, CL_DEVICE_LUID_VALID_KHR, &none, sizeof(none));
        if (!r && !info_find(all, CL_DEVICE_LUID_KHR, &v))
                r = info_put(out, CL_DEVICE_LUID_KHR, no_luid, sizeof(no_luid));
        if (!r && !info_find(all, CL_DEVICE_NODE_MASK_KHR, &v))
                r = info_put(out, CL_DEVICE_NODE_MASK_KHR, &none, sizeof(none));
        return r;
}

static int put_names(const struct device_place *p, struct bytes all, struct buf *out)
{
        enum { LABEL_HOST = 1 };
        char name[NAME_MAX_SIZE], board[NAME_MAX_SIZE];
        const char *given = config_text(CONFIG_device_name),
                   *vendor = config_text(CONFIG_device_vendor);
        const char *own = text_of(all, CL_DEVICE_NAME), *native = text_of(all, BOARD_NAME_AMD);
        const char *own_vendor = text_of(all, CL_DEVICE_VENDOR);
        bool label = config_number(CONFIG_device_label) == LABEL_HOST && *p->host;
        snprintf(name, sizeof(name), "%s%s%s", label ? p->host : "", label ? ": " : "",
                 *given ? given : own);
        snprintf(board, sizeof(board), "%s (%s)", *native ? native : own, p->server);
        int r = put_text(out, CL_DEVICE_NAME, name);
        if (!r)
                r = put_text(out, CL_DEVICE_VENDOR, *vendor ? vendor : own_vendor);
        if (!r)
                r = put_text(out, BOARD_NAME_AMD, board);
        if (!r)
                r = put_text(out, DEVICE_OWN_NAME, own);
        return r ? r : put_text(out, DEVICE_OWN_VENDOR, own_vendor);
}

int device_place_put(const struct device_place *p, struct buf *mirror)
{
        struct bytes all = bytes_of(mirror->data, mirror->size);
        struct buf out = { 0 };
        struct info_entry e;
        int r = 0;
        for (struct bytes left = all; !r && info_next(&left, &e);)
                if (!is_name(e.key))
                        r = info_put(&out, e.key, e.value.data, e.value.size);
        if (!r)
                r = put_uuids(p, all, &out);
        if (!r && *text_of(all, CL_DEVICE_NAME)) /* without it the device is refused */
                r = put_names(p, all, &out);
        if (r < 0) {
                buf_fini(&out);
                return r;
        }
        buf_fini(mirror);
        *mirror = out;
        return 0;
}

/* A device's answers that tell which one it is and where: names, UUIDs, its slot. Programs that use
 * several hosts tell devices apart by them. No locks. */
#ifndef SPANCL_CORE_DEVICE_PLACE_H
#define SPANCL_CORE_DEVICE_PLACE_H

#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "base/bytes.h"
#include "proto/info.h"

struct device_place {
        const char *server;   /* its name, as the user knows it */
        const char *host;     /* the same without port and transport; "": this process */
        const char *identity; /* what its key is known by; "": it has none */
        bool here; /* by its address it is on this host, as servers of other hosts may be on theirs */
        unsigned number; /* of the device on the server */
};

/* The driver's own names, beside those that the application sees. No query reads keys from 0x10000 on. */
enum {
        DEVICE_OWN_NAME = 0x20000, /* as CL_DEVICE_NAME */
        DEVICE_OWN_VENDOR,         /* as CL_DEVICE_VENDOR */
};

/* Has the device a place on a PCI bus, by whatever query its driver tells it? */
bool device_place_pci(struct bytes native, cl_device_pci_bus_info_khr *ret);

/* Change the masked answers (device_mask): a UUID and a board name for every device, and names as
 * SPANCL_DEVICE_LABEL, SPANCL_DEVICE_NAME and SPANCL_DEVICE_VENDOR want them. Those of the driver are
 * kept, too (DEVICE_OWN_*). SP_E_NOMEM. */
SP_NODISCARD int device_place_put(const struct device_place *p, struct buf *mirror);

/* Is it an answer that device_place_put gives, which may be another one while the device stays the same? */
bool device_place_gives(const struct info_entry *e);

#endif

#include "config/pocl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "config/entries.h"
#include "os/file.h"
#include "os/process/environment.h"

enum { POCL_SERVERS_MAX = 256, POCL_DEVICES_MAX = 64 };

/* Values that PoCL takes as kinds of devices, not as addresses. */
enum { POCL_XRT = 0xA, POCL_TTA_SIMULATOR = 0xB, POCL_EMULATOR = 0xE, POCL_BITSTREAMS = 0xF };

/* The address of PoCL's first kernel of a card, and the distance to the next one. */
#define XRT_BASE   0x40000000ul
#define XRT_STRIDE 0x10000ul

/* ---- servers -------------------------------------------------------------------------------- */

/* Give the device of `s`, which names one, to an earlier entry for the same host. */
static int pocl_merge(struct server_specs *all)
{
        struct server_spec *s = &all->specs[all->count - 1];
        for (size_t i = 0; i + 1 < all->count; i++) {
                struct server_spec *to = &all->specs[i];
                if (strcmp(to->address, s->address))
                        continue;
                size_t n = strlen(to->devices) + strlen(s->devices) + 2;
                char *devices = mem_alloc(n);
                unsigned *list =
                        mem_realloc(to->device_list, (to->device_count + 1) * sizeof(*list));
                if (list)
                        to->device_list = list;
                if (!devices || !list) {
                        mem_free(devices);
                        return SP_E_NOMEM;
                }
                snprintf(devices, n, "%s,%s", to->devices, s->devices);
                mem_free(to->devices);
                to->devices = devices;
                list[to->device_count++] = s->device_list[0];
                server_spec_fini(s);
                all->count--;
                return 0;
        }
        return 0;
}

/* One "host[:port]/index[#peer-host]". */
static int pocl_add(struct server_specs *all, const char *name, const char *text, char **ret_error)
{
        int r = server_specs_add(all, text, strlen(text), name, ret_error);
        if (r < 0)
                return r;
        struct server_spec *s = &all->specs[all->count - 1];
        if (s->in_process || s->device_count != 1)
                return config_fail(
                        ret_error,
                        "%s: '%s' is not a device: it takes host[:port]/index[#peer-host]", name,
                        text);
        return pocl_merge(all);
}

int pocl_servers(struct server_spec **ret, size_t *ret_count, char **ret_error)
{
        struct server_specs all = { 0 };
        int r = 0;
        for (unsigned i = 0; i < POCL_SERVERS_MAX && !r; i++) {
                char name[48];
                snprintf(name, sizeof(name), "POCL_REMOTE%u_PARAMETERS", i);
                const char *text = environment_get(name);
                if (!text || !*text)
                        break;
                r = pocl_add(&all, name, text, ret_error);
        }
        if (r < 0) {
                config_servers_free(all.specs, all.count);
                return r;
        }
        *ret = all.specs;
        *ret_count = all.count;
        return 0;
}

/* ---- discovery ------------------------------------------------------------------------------ */

static bool is_there(const char *name)
{
        const char *text = environment_get(name);
        return text && *text;
}

const char *pocl_sources(void)
{
        static const char *const all[2][2] = { { "mdns", "mdns,dht" },
                                               { "mdns,dns", "mdns,dns,dht" } };
        const char *on = environment_get("POCL_DISCOVERY");
        if (!on || !*on || !strcmp(on, "0"))
                return "";
        return all[is_there("POCL_REMOTE_SEARCH_DOMAINS")]
                  [is_there("POCL_REMOTE_DHT_BOOTSTRAP") || is_there("POCL_REMOTE_DHT_KEY")];
}

const char *pocl_source_setting(enum config_id id)
{
        static const struct {
                enum config_id id;
                const char *name;
        } all[] = { { CONFIG_search_domains, "POCL_REMOTE_SEARCH_DOMAINS" },
                    { CONFIG_dht_bootstrap, "POCL_REMOTE_DHT_BOOTSTRAP" },
                    { CONFIG_dht_port, "POCL_REMOTE_DHT_PORT" },
                    { CONFIG_dht_key, "POCL_REMOTE_DHT_KEY" } };
        for (size_t i = 0; i < array_size(all); i++) {
                const char *text = all[i].id == id ? environment_get(all[i].name) : NULL;
                if (text)
                        return text;
        }
        return "";
}

/* ---- accelerators --------------------------------------------------------------------------- */

/* The name of a file without its folder. */
static const char *base_name(const char *file)
{
        const char *slash = strrchr(file, '/');
        return slash ? slash + 1 : file;
}

/* Write the place of the n-th accelerator as SPANCL_ALMAIF spells it, into `line`. Returns NULL, or
 * the error. */
static const char *pocl_place(char *line, size_t size, unsigned n, unsigned long address,
                              const char *file)
{
        switch (address) {
        case POCL_EMULATOR:
                snprintf(line, size, "emu:pocl%u", n);
                return NULL;
        case POCL_XRT:
                if (environment_get("POCL_ALMAIF_EXTERNALREGION"))
                        return "POCL_ALMAIF_EXTERNALREGION: buffers in the memory of an XRT card are "
                               "not supported, only in the kernel's own";
                snprintf(line, size, "xrt:0:%s:{%s_1}@0x%lx=%s.xclbin,profile=v3", base_name(file),
                         base_name(file), XRT_BASE + n * XRT_STRIDE, file);
                return NULL;
        case POCL_TTA_SIMULATOR:
                return "0xB is OpenASIP's simulator of TTA processors, which is not here; a RISC-V or "
                       "RTL simulation behind a file is SPANCL_ALMAIF=shm:PATH";
        case POCL_BITSTREAMS:
                return "0xF is a database of bitstreams, which is not here; load one of them, and "
                       "name the device by its address or SPANCL_ALMAIF=xrt:";
        }
        snprintf(line, size, "mem:0x%lx,profile=v3", address);
        return NULL;
}

/* "ADDRESS,FILE,ID,ID...", or "0xE,ID,ID...", as an entry of SPANCL_ALMAIF; FILE.img is its image, if there
 * is one. */
static int pocl_entry(struct buf *out, unsigned n, const char *name, const char *text,
                      char **ret_error)
{
        char *end, file[400] = "", line[1600], image[440];
        unsigned long address = strtoul(text, &end, 0);
        bool emulated = address == POCL_EMULATOR;
        const char *ids = end;
        if (!isdigit((unsigned char)*text) || (*end && *end != ','))
                return config_fail(ret_error, "%s: %s", name,
                                   "it takes ADDRESS,FILE,KERNEL,KERNEL...");
        if (!emulated) {
                ids = *end ? strchrnul(end + 1, ',') : end;
                size_t size = *end ? (size_t)(ids - end - 1) : 0;
                if (!size || size >= sizeof(file))
                        return config_fail(ret_error, "%s: %s", name,
                                           "it takes ADDRESS,FILE,KERNEL,KERNEL...");
                memcpy(file, end + 1, size);
        }
        const char *wrong = pocl_place(line, sizeof(line), n, address, file);
        if (!wrong && !emulated && !*ids)
                wrong = "it takes ADDRESS,FILE,KERNEL,KERNEL...";
        if (wrong)
                return config_fail(ret_error, "%s: %s", name, wrong);
        snprintf(image, sizeof(image), ",image=%s.img", file);
        int r = buf_put(out, line, strlen(line));
        if (!r && *file && file_is_readable(image + strlen(",image=")))
                r = buf_put(out, image, strlen(image));
        if (!r && *ids)
                r = buf_put(out, ",ids=", 5);
        for (ids += *ids != 0; !r && *ids; ids++)
                r = buf_put(out, *ids == ',' ? ":" : ids, 1);
        return r ? r : buf_put(out, ";", 1);
}

int pocl_accelerators(char **ret, char **ret_error)
{
        struct buf out = { 0 };
        int r = 0;
        for (unsigned i = 0; !r && i < POCL_DEVICES_MAX; i++) {
                char name[48];
                snprintf(name, sizeof(name), "POCL_ALMAIF%u_PARAMETERS", i);
                const char *text = environment_get(name);
                if (!text || !*text)
                        break;
                r = pocl_entry(&out, i, name, text, ret_error);
        }
        if (!r && out.size)
                r = buf_put(&out, "", 1);
        if (r < 0) {
                buf_fini(&out);
                return r;
        }
        *ret = (char *)out.data;
        return 0;
}

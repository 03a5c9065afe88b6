#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/config.h"
#include "base/mem.h"

enum { POCL_DEVICES_MAX = 64 };

/* Values that PoCL takes as kinds of devices, not as addresses. */
enum { POCL_XRT = 0xA, POCL_TTA_SIMULATOR = 0xB, POCL_EMULATOR = 0xE, POCL_BITSTREAMS = 0xF };

/* The address of PoCL's first kernel of a card, and the distance to the next one. */
#define XRT_BASE   0x40000000ul
#define XRT_STRIDE 0x10000ul

static int fail_text(char **ret_error, const char *name, const char *what)
{
        size_t n = strlen(name) + strlen(what) + 8;
        *ret_error = mem_alloc(n);
        if (!*ret_error)
                return SP_E_NOMEM;
        snprintf(*ret_error, n, "%s: %s", name, what);
        return SP_E_INVAL;
}

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
                if (getenv("POCL_ALMAIF_EXTERNALREGION"))
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
                return fail_text(ret_error, name, "it takes ADDRESS,FILE,KERNEL,KERNEL...");
        if (!emulated) {
                ids = *end ? strchrnul(end + 1, ',') : end;
                size_t size = *end ? (size_t)(ids - end - 1) : 0;
                if (!size || size >= sizeof(file))
                        return fail_text(ret_error, name, "it takes ADDRESS,FILE,KERNEL,KERNEL...");
                memcpy(file, end + 1, size);
        }
        const char *wrong = pocl_place(line, sizeof(line), n, address, file);
        if (!wrong && !emulated && !*ids)
                wrong = "it takes ADDRESS,FILE,KERNEL,KERNEL...";
        if (wrong)
                return fail_text(ret_error, name, wrong);
        snprintf(image, sizeof(image), ",image=%s.img", file);
        int r = buf_put(out, line, strlen(line));
        if (!r && *file && !access(image + strlen(",image="), R_OK))
                r = buf_put(out, image, strlen(image));
        if (!r && *ids)
                r = buf_put(out, ",ids=", 5);
        for (ids += *ids != 0; !r && *ids; ids++)
                r = buf_put(out, *ids == ',' ? ":" : ids, 1);
        return r ? r : buf_put(out, ";", 1);
}

int config_accelerators(char **ret, char **ret_error)
{
        struct buf out = { 0 };
        int r = 0;
        if (config_is_set(CONFIG_client_almaif)) {
                *ret = mem_strdup(config_text(CONFIG_client_almaif));
                return *ret ? 0 : SP_E_NOMEM;
        }
        for (unsigned i = 0; !r && i < POCL_DEVICES_MAX; i++) {
                char name[48];
                snprintf(name, sizeof(name), "POCL_ALMAIF%u_PARAMETERS", i);
                const char *text = getenv(name);
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

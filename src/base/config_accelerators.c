#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/config.h"
#include "base/mem.h"

enum { POCL_DEVICES_MAX = 64 };

/* What PoCL takes for addresses of other kinds of devices. */
static const struct {
        unsigned long address;
        const char *what;
} pocl_kinds[] = {
        { 0xA, "an XRT device; SPANCL_ALMAIF=xrt:CARD:KERNEL+SIZE:XCLBIN names one" },
        { 0xB, "PoCL's TTA simulator, which is not here" },
        { 0xE, "PoCL's emulator; start spancl-almaif-emu, and name it by SPANCL_ALMAIF=shm:" },
        { 0xF, "PoCL's database of bitstreams, which is not here" },
};

static int fail_text(char **ret_error, const char *name, const char *what)
{
        size_t n = strlen(name) + strlen(what) + 8;
        *ret_error = mem_alloc(n);
        if (!*ret_error)
                return SP_E_NOMEM;
        snprintf(*ret_error, n, "%s: %s", name, what);
        return SP_E_INVAL;
}

/* "ADDRESS,FILE,ID,ID..." as an entry of SPANCL_ALMAIF; FILE.img is its image, if there is one. */
static int pocl_entry(struct buf *out, const char *name, const char *text, char **ret_error)
{
        char *end;
        unsigned long address = strtoul(text, &end, 0);
        for (size_t i = 0; i < array_size(pocl_kinds); i++)
                if (address == pocl_kinds[i].address)
                        return fail_text(ret_error, name, pocl_kinds[i].what);
        const char *file = *end == ',' ? end + 1 : end, *ids = strchrnul(file, ',');
        if (!isdigit((unsigned char)*text) || *end != ',' || ids == file || ids - file > 400 ||
            !*ids)
                return fail_text(ret_error, name, "it takes ADDRESS,FILE,KERNEL,KERNEL...");
        char line[1200], image[420];
        snprintf(image, sizeof(image), "%.*s.img", (int)(ids - file), file);
        bool has_image = !access(image, R_OK);
        int n = snprintf(line, sizeof(line), "mem:0x%lx,profile=v3%s%s,ids=", address,
                         has_image ? ",image=" : "", has_image ? image : "");
        int r = buf_put(out, line, (size_t)n);
        for (ids++; !r && *ids; ids++)
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
                r = pocl_entry(&out, name, text, ret_error);
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

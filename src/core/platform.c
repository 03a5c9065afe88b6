#include "core/platform.h"

#include "base/mem.h"
#include "config/variables.h"
#include "core/handle.h"

int platform_new(struct client *c, cl_platform_id *ret)
{
        cl_platform_id p = mem_zalloc(sizeof(*p));
        if (!p)
                return SP_E_NOMEM;
        handle_init(&p->h, HANDLE_PLATFORM);
        p->client = c;
        *ret = p;
        return 0;
}

void platform_free(cl_platform_id p)
{
        if (!p)
                return;
        p->h.type = 0;
        mem_free(p);
}

const char *platform_name(void)
{
        return config_text(CONFIG_platform_name);
}

const char *platform_vendor(void)
{
        return config_text(CONFIG_platform_vendor);
}

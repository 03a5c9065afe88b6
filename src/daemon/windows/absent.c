/* Functions without a counterpart on this system. */
#include <stdio.h>

#include "daemon/allocator/allocator.h"
#include "daemon/system/powercap.h"
#include "daemon/system/sandbox_test.h"
#include "daemon/system/time_slice.h"
#include "daemon/system/zygote.h"

/* The attacks are those against Linux' sandbox. */
int sandbox_test(const struct config_options *o)
{
        (void)o;
        fprintf(stderr,
                "spancld: sandbox-test is for Linux only; docs/SECURITY.md says what confines sessions here\n");
        return 2;
}

int zygote_main(struct config_options *o)
{
        (void)o;
        return 1;
}

void time_slices_share(struct supervisor *s)
{
        (void)s;
}

void time_slices_prioritize(const struct worker *w, int nice)
{
        (void)w, (void)nice;
}

void powercap_find(const char *folder, struct powercap *ret)
{
        (void)folder;
        *ret = (struct powercap){ 0 };
}

bool powercap_read(const struct powercap *p, size_t i, uint64_t *ret_uj)
{
        (void)p, (void)i, (void)ret_uj;
        return false;
}

#include "daemon/system/powercap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/folder.h"
#include "os/text_file.h"

static void read_file(const struct powercap *p, const char *zone, const char *name, char *ret,
                      size_t size)
{
        char path[PATH_MAX + POWERCAP_ZONE + 32];
        snprintf(path, sizeof(path), "%s/%s/%s", p->folder, zone, name);
        text_file_read(AT_FDCWD, path, ret, size);
}

/* Read a number. False: the file has none, or can't be read. */
static bool read_number(const struct powercap *p, const char *zone, const char *name, uint64_t *ret)
{
        char text[32];
        read_file(p, zone, name, text, sizeof(text));
        if (*text < '0' || *text > '9')
                return false;
        *ret = strtoull(text, NULL, 10);
        return true;
}

/* Take a zone of a whole processor. Zones below it (its cores, its memory) and beside it (the whole host) would count
 * twice. */
static void take_zone(void *user, const char *zone)
{
        struct powercap *p = user;
        static const char prefix[] = "intel-rapl:", whole[] = "package";
        const char *digits = zone + sizeof(prefix) - 1;
        char name[32];
        uint64_t range, now;
        if (p->count == POWERCAP_PROCESSORS || strlen(zone) >= POWERCAP_ZONE ||
            strncmp(zone, prefix, sizeof(prefix) - 1) != 0 || !*digits ||
            digits[strspn(digits, "0123456789")])
                return;
        read_file(p, zone, "name", name, sizeof(name));
        if (strncmp(name, whole, sizeof(whole) - 1) != 0 ||
            !read_number(p, zone, "max_energy_range_uj", &range) ||
            !read_number(p, zone, "energy_uj", &now))
                return;
        p->processors[p->count].number = (unsigned)strtoul(digits, NULL, 10);
        strcpy(p->processors[p->count].zone, zone);
        p->processors[p->count++].range_uj = range;
}

void powercap_find(const char *folder, struct powercap *ret)
{
        *ret = (struct powercap){ 0 };
        snprintf(ret->folder, sizeof(ret->folder), "%s", folder);
        if (*folder)
                (void)folder_names(folder, take_zone, ret);
}

bool powercap_read(const struct powercap *p, size_t i, uint64_t *ret_uj)
{
        return read_number(p, p->processors[i].zone, "energy_uj", ret_uj);
}

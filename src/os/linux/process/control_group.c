#include "os/process/control_group.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"

/* ---- the folder ------------------------------------------------------------------------------ */

/* Is it one of the words, which have commas between them? */
static bool has_word(const char *words, const char *word)
{
        size_t n = strlen(word);
        for (const char *at = words; (at = strstr(at, word)); at += n)
                if ((at == words || at[-1] == ',') && (!at[n] || at[n] == ','))
                        return true;
        return false;
}

static FILE *open_of(const char *proc, const char *name)
{
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s/%s", proc, name);
        return n < PATH_MAX ? fopen(path, "re") : NULL;
}

/* Find the group's name in a hierarchy. Lines are "number:controllers:name"; version 2 has the number 0. */
static bool find_own(const char *proc, const char *controller, char ret[PATH_MAX])
{
        char line[PATH_MAX];
        bool found = false;
        FILE *f = open_of(proc, "cgroup");
        while (f && !found && fgets(line, sizeof(line), f)) {
                char *words = strchr(line, ':'), *name = words ? strchr(words + 1, ':') : NULL;
                line[strcspn(line, "\n")] = 0;
                if (!name || name[1] != '/')
                        continue;
                *name++ = 0;
                found = controller ? has_word(words + 1, controller)
                                   : !strncmp(line, "0:", 2) && !words[1];
                if (found)
                        snprintf(ret, PATH_MAX, "%s", name);
        }
        if (f)
                fclose(f);
        return found;
}

/* Is the line of mountinfo the mount of the hierarchy? */
static bool is_mount(const char *line, const char *controller, char root[PATH_MAX],
                     char where[PATH_MAX])
{
        char type[16], options[256];
        const char *rest = strstr(line, " - ");
        if (!rest || sscanf(rest, " - %15s %*s %255s", type, options) != 2 ||
            sscanf(line, "%*s %*s %*s %4095s %4095s", root, where) != 2)
                return false;
        return controller ? !strcmp(type, "cgroup") && has_word(options, controller)
                          : !strcmp(type, "cgroup2");
}

/* Is the group `own` the group `root` or below it? Groups outside of the process's namespace begin with "/..". */
static bool is_below(const char *own, const char *root, size_t n)
{
        return !strncmp(own, root, n) && (!n || !own[n] || own[n] == '/') && !strstr(own, "/..");
}

bool control_group_folder(const char *proc, const char *controller, char ret[CONTROL_GROUP_PATH],
                          size_t *ret_top, const char **ret_why)
{
        char own[PATH_MAX], root[PATH_MAX], where[PATH_MAX], *line = NULL;
        size_t size = 0;
        bool found = false;
        *ret_why = "there is no cgroup v2";
        FILE *f = find_own(proc, controller, own) ? open_of(proc, "mountinfo") : NULL;
        while (f && !found && getline(&line, &size, f) > 0) {
                if (!is_mount(line, controller, root, where))
                        continue;
                *ret_why = "the process's own group is not mounted here";
                size_t n = strcmp(root, "/") ? strlen(root) : 0;
                found = is_below(own, root, n);
                if (found) {
                        snprintf(ret, CONTROL_GROUP_PATH, "%s%s", where,
                                 strcmp(own + n, "/") ? own + n : "");
                        *ret_top = strlen(where);
                }
        }
        free(line);
        if (f)
                fclose(f);
        return found;
}

/* ---- the quota ------------------------------------------------------------------------------- */

/* Read a group's file, which may be anything. "": it can't be read. */
static void read_file(const char *folder, const char *name, char *ret, size_t size)
{
        char path[CONTROL_GROUP_PATH + 32];
        uint64_t unused;
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        int fd = file_open(path, false, &unused);
        int64_t n = fd < 0 ? -1 : file_read(fd, ret, size - 1);
        ret[n > 0 ? n : 0] = 0;
        if (fd >= 0)
                file_close(fd);
}

/* Take a number off the text. 0: there is none. */
static uint64_t take_number(const char **text)
{
        char *end = NULL;
        if (!isdigit((unsigned char)**text))
                return 0;
        errno = 0;
        uint64_t n = strtoull(*text, &end, 10);
        *text = end + strspn(end, " \n");
        return errno ? 0 : n;
}

/* The quota of one group. UINT_MAX: it has none. */
static unsigned cores_of(const char *folder, bool version_2)
{
        char text[2][64];
        read_file(folder, version_2 ? "cpu.max" : "cpu.cfs_quota_us", text[0], sizeof(text[0]));
        if (!version_2)
                read_file(folder, "cpu.cfs_period_us", text[1], sizeof(text[1]));
        const char *at = text[0], *other = version_2 ? at : text[1];
        uint64_t quota = take_number(&at);
        if (version_2)
                other = at;
        uint64_t period = quota ? take_number(&other) : 0;
        if (!period)
                return UINT_MAX;
        uint64_t cores = quota / period + (quota % period != 0);
        return cores < UINT_MAX ? (unsigned)cores : UINT_MAX;
}

unsigned control_group_cores(const char *proc)
{
        unsigned cores = UINT_MAX;
        for (int version = 1; version <= 2; version++) {
                char folder[CONTROL_GROUP_PATH], *end;
                const char *why;
                size_t top;
                bool more =
                        control_group_folder(proc, version == 1 ? "cpu" : NULL, folder, &top, &why);
                while (more) {
                        unsigned these = cores_of(folder, version == 2);
                        cores = these < cores ? these : cores;
                        end = strrchr(folder, '/');
                        more = end && (size_t)(end - folder) >= top;
                        if (more)
                                *end = 0;
                }
        }
        return cores;
}

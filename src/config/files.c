#include "config/files.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"
#include "os/folder.h"
#include "os/ownership.h"

__attribute__((format(printf, 3, 4))) static int fail(char reason[CONFIG_REASON_MAX], int status,
                                                      const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(reason, CONFIG_REASON_MAX, fmt, ap);
        va_end(ap);
        return status;
}

/* Check that only root and this user can change the file or folder. */
static int check(const char *path, enum ownership o, unsigned user, char reason[CONFIG_REASON_MAX])
{
        if (o == OWNERSHIP_FOREIGN)
                return fail(reason, SP_E_AUTH, "%s belongs to another user (%u)", path, user);
        if (o == OWNERSHIP_SHARED)
                return fail(reason, SP_E_AUTH, "other users can change %s (chmod go-w %s)", path,
                            path);
        return 0;
}

static int check_folder(const char *path, char reason[CONFIG_REASON_MAX])
{
        char folder[CONFIG_PATH_MAX];
        enum ownership o;
        unsigned user;
        const char *slash = strrchr(path, '/');
        snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
                 slash ? path : ".");
        if (!*folder)
                return 0; /* the root */
        if (!ownership_of_folder(folder, &o, &user))
                return fail(reason, SP_E_INVAL, "%s can't be read: %s", path, strerror(errno));
        return check(folder, o, user, reason);
}

static int read_text(int fd, const char *path, char *ret, size_t size,
                     char reason[CONFIG_REASON_MAX])
{
        size_t used = 0;
        for (int64_t n = 1; n && used < size; used += (size_t)n) {
                n = file_read(fd, ret + used, size - used);
                if (n < 0)
                        return fail(reason, SP_E_INVAL, "%s can't be read: %s", path,
                                    strerror(errno));
        }
        if (used == size)
                return fail(reason, SP_E_LIMIT, "%s is too large", path);
        if (memchr(ret, 0, used))
                return fail(reason, SP_E_INVAL, "%s is no text", path);
        ret[used] = 0;
        return (int)used;
}

int config_file_read(const char *path, char *ret, size_t size, char reason[CONFIG_REASON_MAX])
{
        enum ownership o;
        unsigned user;
        uint64_t unused;
        int fd = file_open(path, true, &unused);
        if (fd < 0) {
                int error = errno;
                if (error == ENOENT || !file_exists(path))
                        return SP_E_NOENT; /* also if this user can't enter the folder */
                return error == EINVAL ? fail(reason, SP_E_INVAL, "%s is not a file", path)
                                       : fail(reason, SP_E_INVAL, "%s can't be read: %s", path,
                                              strerror(error));
        }
        int r = ownership_of_file(fd, &o, &user)
                        ? check(path, o, user, reason)
                        : fail(reason, SP_E_INVAL, "%s can't be read: %s", path, strerror(errno));
        if (!r)
                r = check_folder(path, reason);
        if (!r)
                r = read_text(fd, path, ret, size > CONFIG_FILE_MAX ? CONFIG_FILE_MAX : size,
                              reason);
        file_close(fd);
        return r;
}

int config_file_write(const char *path, const void *data, size_t size,
                      char reason[CONFIG_REASON_MAX])
{
        char real[PATH_MAX];
        const char *target = path;
        bool good = true;
        if (file_is_link(path)) {
                good = file_real_path(path, real);
                target = good ? real : path;
        }
        if (!good || !file_replace(target, data, size))
                return fail(reason, SP_E_INVAL, "%s can't be written: %s", target, strerror(errno));
        return 0;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(a, b);
}

struct listing {
        const char *folder;
        char (*paths)[CONFIG_PATH_MAX];
        size_t count;
};

static void take_name(void *user, const char *name)
{
        struct listing *l = user;
        size_t n = strlen(name);
        if (*name == '.' || n < 6 || strcmp(name + n - 5, ".conf") != 0)
                return;
        if (l->count < CONFIG_FILES_MAX)
                snprintf(l->paths[l->count], CONFIG_PATH_MAX, "%s/%.*s", l->folder, (int)n, name);
        l->count++;
}

size_t config_folder_list(const char *folder, char ret[CONFIG_FILES_MAX][CONFIG_PATH_MAX])
{
        struct listing l = { folder, ret, 0 };
        (void)folder_names(folder, take_name, &l);
        qsort(ret, l.count < CONFIG_FILES_MAX ? l.count : CONFIG_FILES_MAX, CONFIG_PATH_MAX,
              by_name);
        return l.count;
}

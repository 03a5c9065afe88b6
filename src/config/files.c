#include "config/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((format(printf, 3, 4))) static int fail(char reason[CONFIG_REASON_MAX], int status,
                                                      const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(reason, CONFIG_REASON_MAX, fmt, ap);
        va_end(ap);
        return status;
}

/* Return true if the group is this user's alone: the primary one, with the user's name and no other member. */
static bool is_private_group(gid_t gid)
{
        char user_text[1024], group_text[4096];
        struct passwd user, *u;
        struct group group, *g;
        if (getpwuid_r(geteuid(), &user, user_text, sizeof(user_text), &u) || !u ||
            u->pw_gid != gid || getgrgid_r(gid, &group, group_text, sizeof(group_text), &g) || !g ||
            strcmp(g->gr_name, u->pw_name) != 0)
                return false;
        for (char **m = g->gr_mem; *m; m++)
                if (strcmp(*m, u->pw_name) != 0)
                        return false;
        return true;
}

/* Check that only root and this user can change the file or folder. */
static int check(const char *path, const struct stat *st, char reason[CONFIG_REASON_MAX])
{
        if (st->st_uid && st->st_uid != geteuid())
                return fail(reason, SP_E_AUTH, "%s belongs to another user (%u)", path,
                            (unsigned)st->st_uid);
        /* In a folder with the sticky bit others can't replace what is not theirs. */
        if (S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX)
                return 0;
        if (st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && !is_private_group(st->st_gid)))
                return fail(reason, SP_E_AUTH, "other users can change %s (chmod go-w %s)", path,
                            path);
        return 0;
}

static int check_folder(const char *path, char reason[CONFIG_REASON_MAX])
{
        char folder[CONFIG_PATH_MAX];
        struct stat st;
        const char *slash = strrchr(path, '/');
        snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
                 slash ? path : ".");
        if (!*folder)
                return 0; /* the root */
        if (stat(folder, &st) < 0)
                return fail(reason, SP_E_INVAL, "%s can't be read: %s", path, strerror(errno));
        return check(folder, &st, reason);
}

static int read_text(int fd, const char *path, char *ret, size_t size,
                     char reason[CONFIG_REASON_MAX])
{
        size_t used = 0;
        while (used < size) {
                ssize_t n = read(fd, ret + used, size - used);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return fail(reason, SP_E_INVAL, "%s can't be read: %s", path,
                                    strerror(errno));
                if (!n)
                        break;
                used += (size_t)n;
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
        struct stat st;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0) {
                int error = errno;
                if (error == ENOENT || stat(path, &st) < 0)
                        return SP_E_NOENT; /* also if this user can't enter the folder */
                return fail(reason, SP_E_INVAL, "%s can't be read: %s", path, strerror(error));
        }
        int r = 0;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                r = fail(reason, SP_E_INVAL, "%s is not a file", path);
        if (!r)
                r = check(path, &st, reason);
        if (!r)
                r = check_folder(path, reason);
        if (!r)
                r = read_text(fd, path, ret, size > CONFIG_FILE_MAX ? CONFIG_FILE_MAX : size,
                              reason);
        close(fd);
        return r;
}

/* Make the folders above the file, as mkdir -p does. */
static bool make_folders(const char *path)
{
        char folder[PATH_MAX];
        snprintf(folder, sizeof(folder), "%s", path);
        for (char *p = folder + 1; (p = strchr(p, '/')); *p++ = '/') {
                *p = 0;
                if (mkdir(folder, 0700) < 0 && errno != EEXIST)
                        return false;
        }
        return true;
}

static bool write_all(int fd, const char *data, size_t size)
{
        while (size) {
                ssize_t n = write(fd, data, size);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return false;
                data += n;
                size -= (size_t)n;
        }
        return fsync(fd) == 0;
}

/* Write a temporary file, and rename it. False, with errno. */
static bool replace(const char *path, const void *data, size_t size)
{
        char temp[PATH_MAX + 16];
        struct stat st;
        snprintf(temp, sizeof(temp), "%s.XXXXXX", path);
        int fd = make_folders(path) ? mkostemp(temp, O_CLOEXEC) : -1;
        if (fd < 0)
                return false;
        bool ok = stat(path, &st) < 0 || fchmod(fd, st.st_mode & 0777) == 0;
        ok = ok && write_all(fd, data, size);
        int error = errno;
        if (close(fd) < 0 && ok) {
                ok = false;
                error = errno;
        }
        if (ok && rename(temp, path) == 0)
                return true;
        if (ok)
                error = errno;
        unlink(temp);
        errno = error;
        return false;
}

int config_file_write(const char *path, const void *data, size_t size,
                      char reason[CONFIG_REASON_MAX])
{
        char target[PATH_MAX];
        struct stat st;
        bool is_link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
        if (is_link && !realpath(path, target))
                return fail(reason, SP_E_INVAL, "%s can't be written: %s", path, strerror(errno));
        if (!replace(is_link ? target : path, data, size))
                return fail(reason, SP_E_INVAL, "%s can't be written: %s", is_link ? target : path,
                            strerror(errno));
        return 0;
}

bool config_file_is_foreign(const char *path)
{
        char text[16] = "";
        struct stat st;
        int fd = open("/proc/sys/kernel/overflowuid", O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (fd >= 0)
                close(fd);
        return n > 0 && stat(path, &st) == 0 && st.st_uid == strtoul(text, NULL, 10) &&
               faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(a, b);
}

size_t config_folder_list(const char *folder, char ret[CONFIG_FILES_MAX][CONFIG_PATH_MAX])
{
        size_t count = 0;
        DIR *d = opendir(folder);
        struct dirent *e;
        while (d && (e = readdir(d))) {
                size_t n = strlen(e->d_name);
                if (*e->d_name == '.' || n < 6 || strcmp(e->d_name + n - 5, ".conf") != 0)
                        continue;
                if (count < CONFIG_FILES_MAX)
                        snprintf(ret[count], CONFIG_PATH_MAX, "%s/%s", folder, e->d_name);
                count++;
        }
        if (d)
                closedir(d);
        qsort(ret, count < CONFIG_FILES_MAX ? count : CONFIG_FILES_MAX, CONFIG_PATH_MAX, by_name);
        return count;
}

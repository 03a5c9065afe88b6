#include "daemon/system/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/system/tree.h"

#define PREFIX "spancld."

enum { TRIES = 16 };

static const char *base_folder(void)
{
        const char *base = getenv("TMPDIR");
        return base && *base == '/' ? base : "/tmp";
}

/* Open and lock the folder `path`. -1: another process holds it, or it is gone. */
static int lock_folder(const char *path)
{
        struct stat st, still;
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -1;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && lstat(path, &still) == 0 &&
            st.st_ino == still.st_ino && st.st_dev == still.st_dev && st.st_uid == geteuid())
                return fd;
        close(fd);
        return -1;
}

int scratch_make(char path[SCRATCH_PATH_MAX], int *ret_lock)
{
        /* Another spancld may remove the folder before it is locked. */
        for (int i = 0; i < TRIES; i++) {
                int n = snprintf(path, SCRATCH_PATH_MAX, "%s/" PREFIX "XXXXXX", base_folder());
                if (n < 0 || n >= SCRATCH_PATH_MAX || !mkdtemp(path))
                        break;
                *ret_lock = lock_folder(path);
                if (*ret_lock >= 0)
                        return 0;
                bool full = errno == EMFILE || errno == ENFILE;
                (void)!rmdir(path);
                path[0] = 0;
                if (full)
                        return SP_E_LIMIT;
        }
        path[0] = 0;
        return SP_E_INVAL;
}

int scratch_socket(const char *path, const char *name, struct socket_address *ret)
{
        char folder[SCRATCH_PATH_MAX], link[32];
        struct stat st;
        const char *base = base_folder(), *end = strrchr(path, '/');
        size_t n = end ? (size_t)(end - path) : 0, base_len = strlen(base);
        if (n != base_len + sizeof("/" PREFIX "XXXXXX") - 1 || n >= sizeof(folder) ||
            strcmp(end + 1, name) != 0)
                return -1;
        memcpy(folder, path, n);
        folder[n] = 0;
        if (strncmp(folder, base, base_len) != 0 ||
            strncmp(folder + base_len, "/" PREFIX, sizeof("/" PREFIX) - 1) != 0 ||
            strchr(folder + base_len + 1, '/'))
                return -1;
        int dir = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int fd = dir < 0 ? -1 : openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        bool own = fd >= 0 && fstat(dir, &st) == 0 && st.st_uid == geteuid() &&
                   fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_nlink == 1;
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        if (dir >= 0)
                close(dir);
        if (fd < 0 || (own && socket_address_of_path(link, ret)))
                return fd;
        close(fd);
        return -1;
}

void scratch_sweep(void)
{
        char path[SCRATCH_PATH_MAX];
        const char *base = base_folder();
        unsigned count = 0;
        DIR *dir = opendir(base);
        for (struct dirent *e; dir && (e = readdir(dir));) {
                int n = snprintf(path, sizeof(path), "%s/%s", base, e->d_name);
                if (strncmp(e->d_name, PREFIX, sizeof(PREFIX) - 1) != 0 ||
                    strlen(e->d_name) != sizeof(PREFIX "XXXXXX") - 1 || n < 0 ||
                    n >= (int)sizeof(path))
                        continue;
                int fd = lock_folder(path);
                if (fd < 0)
                        continue;
                tree_remove(path);
                close(fd);
                count++;
        }
        if (dir)
                closedir(dir);
        if (count)
                log_info("scratch", "%u folders that were left behind are removed", count);
}

#include "os/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

int folder_make(const char *path)
{
        char part[PATH_MAX];
        size_t n = strlen(path);
        if (n >= sizeof(part)) {
                errno = ENAMETOOLONG;
                return SP_E_LIMIT;
        }
        memcpy(part, path, n + 1);
        for (size_t i = 1; i <= n; i++) {
                if (path[i] && path[i] != '/')
                        continue;
                part[i] = 0;
                if (mkdir(part, 0700) < 0 && errno != EEXIST)
                        return SP_E_LIMIT;
                part[i] = path[i];
        }
        return 0;
}

bool folder_make_new(const char *path)
{
        return mkdir(path, 0700) == 0;
}

bool folder_make_unique(char *path)
{
        return mkdtemp(path) != NULL;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
        (void)st, (void)type, (void)at;
        (void)remove(path);
        return 0;
}

void folder_remove(const char *path)
{
        (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

bool folder_is_read_only(const char *path)
{
        struct statvfs fs;
        return statvfs(path, &fs) == 0 && fs.f_flag & ST_RDONLY;
}

bool folder_room(const char *path, uint64_t *ret_bytes, bool *ret_names)
{
        struct statvfs fs;
        if (statvfs(path, &fs) < 0)
                return false;
        *ret_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
        *ret_names = !fs.f_files || fs.f_favail;
        return true;
}

bool folder_takes_files(const char *path)
{
        return access(path, W_OK | X_OK) == 0;
}

bool folder_exists(const char *path)
{
        struct stat st;
        return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *folder_current(void)
{
        return get_current_dir_name();
}

int folder_files(const char *path, int (*each)(void *user, const struct folder_file *f), void *user)
{
        DIR *dir = opendir(path);
        if (!dir)
                return SP_E_NOENT;
        struct dirent *d;
        struct stat st;
        int r = 0;
        while (!r && (d = readdir(dir))) {
                if (fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    !S_ISREG(st.st_mode))
                        continue;
                struct folder_file f = {
                        .name = d->d_name,
                        .size = (uint64_t)st.st_size,
                        .changed_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u +
                                      (uint64_t)st.st_mtim.tv_nsec,
                };
                r = each(user, &f);
        }
        closedir(dir);
        return r;
}

int folder_names(const char *path, void (*each)(void *user, const char *name), void *user)
{
        DIR *dir = opendir(path);
        if (!dir)
                return SP_E_NOENT;
        for (struct dirent *d; (d = readdir(dir));)
                each(user, d->d_name);
        closedir(dir);
        return 0;
}

int folder_lock(const char *path, unsigned ms)
{
        enum { EACH_MS = 10 };
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (unsigned waited = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0; waited += EACH_MS) {
                if (errno != EWOULDBLOCK && errno != EINTR)
                        break;
                if (waited >= ms) {
                        close(fd);
                        errno = EWOULDBLOCK;
                        return -1;
                }
                usleep(EACH_MS * 1000);
        }
        return fd;
}

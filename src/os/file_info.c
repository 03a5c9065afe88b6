#include "os/file_info.h"

#include <sys/stat.h>

static bool take(int r, const struct stat *st, struct file_info *ret)
{
        if (r < 0)
                return false;
        *ret = (struct file_info){
                .kind = S_ISDIR(st->st_mode)    ? FILE_IS_FOLDER
                        : S_ISSOCK(st->st_mode) ? FILE_IS_SOCKET
                                                : FILE_IS_OTHER,
                .device = st->st_dev,
                .number = st->st_ino,
                .size = (uint64_t)st->st_size,
                .changed_ns =
                        (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec,
                .owner = st->st_uid,
                .group = st->st_gid,
                .mode = st->st_mode & 07777,
        };
        return true;
}

bool file_info(const char *path, bool follow, struct file_info *ret)
{
        struct stat st;
        return take(follow ? stat(path, &st) : lstat(path, &st), &st, ret);
}

bool file_info_of(int fd, struct file_info *ret)
{
        struct stat st;
        return take(fstat(fd, &st), &st, ret);
}

bool file_is_unchanged(const struct file_info *a, const struct file_info *b)
{
        return a->number == b->number && a->device == b->device && a->size == b->size &&
               a->changed_ns == b->changed_ns;
}

/* The file system's record of a file: its kind, size, time and owner. No state. */
#ifndef SPANCL_OS_FILE_INFO_H
#define SPANCL_OS_FILE_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum file_kind { FILE_IS_OTHER, FILE_IS_FOLDER, FILE_IS_SOCKET };

struct file_info {
        enum file_kind kind;
        uint64_t device, number; /* together they tell a file from all others */
        uint64_t size;
        uint64_t changed_ns;   /* by clock_wall_ns */
        unsigned owner, group; /* numbers; 0: root */
        unsigned mode;         /* permissions: the 12 low bits of POSIX's mode */
};

/* Look a file up by its path, through symbolic links if `follow`, or by its descriptor. False: errno gives the
 * reason. */
SP_NODISCARD bool file_info(const char *path, bool follow, struct file_info *ret);
SP_NODISCARD bool file_info_of(int fd, struct file_info *ret);

/* Are both the same file, and was its content not changed in between? */
bool file_is_unchanged(const struct file_info *a, const struct file_info *b);

#endif

#include "os/file_info.h"

#include <errno.h>
#include <io.h>

#include "os/process/process.h"
#include "os/windows/access.h"
#include "os/windows/descriptor.h"
#include "os/windows/wide.h"

#include <windows.h>

/* A FILETIME counts 100 ns since 1601. */
static uint64_t wall_ns(FILETIME t)
{
        const uint64_t until_1970 = UINT64_C(116444736000000000);
        uint64_t all = (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime;
        return all > until_1970 ? (all - until_1970) * 100 : 0;
}

/* Express the access of other users as a mode of POSIX. If the list can't be read, they have every right. */
static void take_access(HANDLE h, bool folder, struct file_info *ret)
{
        struct access a = { .foreign = true, .read = true, .write = true };
        (void)access_of(h, &a);
        ret->owner = process_user() + a.foreign;
        ret->mode = (folder ? 0700u : 0600u) | (a.write ? 022u : 0) |
                    (!a.read  ? 0
                     : folder ? 055u
                              : 044u);
}

static bool take(HANDLE h, struct file_info *ret)
{
        BY_HANDLE_FILE_INFORMATION i;
        if (!GetFileInformationByHandle(h, &i))
                return descriptor_fail_system() == 0;
        bool folder = i.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
        *ret = (struct file_info){
                .kind = folder ? FILE_IS_FOLDER : FILE_IS_OTHER,
                .device = i.dwVolumeSerialNumber,
                .number = (uint64_t)i.nFileIndexHigh << 32 | i.nFileIndexLow,
                .size = folder ? 0 : (uint64_t)i.nFileSizeHigh << 32 | i.nFileSizeLow,
                .changed_ns = wall_ns(i.ftLastWriteTime),
        };
        take_access(h, folder, ret);
        return true;
}

static HANDLE open_for(const wchar_t *path, DWORD rights, bool follow)
{
        return CreateFileW(path, rights, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                           NULL, OPEN_EXISTING,
                           FILE_FLAG_BACKUP_SEMANTICS | (follow ? 0 : FILE_FLAG_OPEN_REPARSE_POINT),
                           NULL);
}

bool file_info(const char *path, bool follow, struct file_info *ret)
{
        wchar_t wide[WIDE_MAX];
        if (!wide_path(path, wide))
                return false;
        HANDLE h = open_for(wide, FILE_READ_ATTRIBUTES | READ_CONTROL, follow);
        if (h == INVALID_HANDLE_VALUE)
                h = open_for(wide, FILE_READ_ATTRIBUTES, follow);
        if (h == INVALID_HANDLE_VALUE)
                return descriptor_fail_system() == 0;
        bool ok = take(h, ret);
        int error = errno;
        CloseHandle(h);
        errno = error;
        return ok;
}

bool file_info_of(int fd, struct file_info *ret)
{
        if (!descriptor_is_socket(fd))
                return take((HANDLE)_get_osfhandle(fd), ret);
        *ret = (struct file_info){ .kind = FILE_IS_SOCKET };
        return true;
}

bool file_is_unchanged(const struct file_info *a, const struct file_info *b)
{
        return a->number == b->number && a->device == b->device && a->size == b->size &&
               a->changed_ns == b->changed_ns;
}

#include "os/ownership.h"

#include <errno.h>
#include <io.h>

#include "os/windows/access.h"
#include "os/windows/descriptor.h"
#include "os/windows/wide.h"

static bool judge(HANDLE h, enum ownership *ret, unsigned *ret_user)
{
        struct access a;
        if (!access_of(h, &a))
                return false;
        *ret = a.foreign ? OWNERSHIP_FOREIGN : a.write ? OWNERSHIP_SHARED : OWNERSHIP_PRIVATE;
        *ret_user = a.owner;
        return true;
}

bool ownership_of_file(int fd, enum ownership *ret, unsigned *ret_user)
{
        HANDLE h = fd < 0 || descriptor_is_socket(fd) ? INVALID_HANDLE_VALUE
                                                      : (HANDLE)_get_osfhandle(fd);
        if (h != INVALID_HANDLE_VALUE) /* as a handle -1 means this process */
                return judge(h, ret, ret_user);
        errno = EBADF;
        return false;
}

bool ownership_of_folder(const char *path, enum ownership *ret, unsigned *ret_user)
{
        wchar_t wide[WIDE_MAX];
        if (!wide_path(path, wide))
                return false;
        HANDLE h = CreateFileW(wide, READ_CONTROL,
                               FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                               OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
        if (h == INVALID_HANDLE_VALUE)
                return descriptor_fail_system() == 0;
        bool ok = judge(h, ret, ret_user);
        int error = errno;
        CloseHandle(h);
        errno = error;
        return ok;
}

/* Windows has no user namespaces: each owner has an identifier. */
bool ownership_is_unmapped(const char *path)
{
        (void)path;
        return false;
}

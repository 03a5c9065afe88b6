#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utime.h>

#include "os/folder.h"
#include "os/random.h"
#include "os/windows/access.h"
#include "os/windows/descriptor.h"
#include "os/windows/event_set.h"
#include "os/windows/packets.h"
#include "os/windows/wide.h"

#include <windows.h>

enum { ACCESS_EXISTS = 0, ACCESS_READ = 4 };

static DWORD attributes(const char *path)
{
        wchar_t wide[WIDE_MAX];
        DWORD a = wide_path(path, wide) ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
        if (a == INVALID_FILE_ATTRIBUTES)
                (void)descriptor_fail_system();
        return a;
}

bool file_exists(const char *path)
{
        return attributes(path) != INVALID_FILE_ATTRIBUTES;
}

bool file_is_readable(const char *path)
{
        wchar_t wide[WIDE_MAX];
        return wide_path(path, wide) && _waccess(wide, ACCESS_READ) == 0;
}

bool file_is_executable(const char *path)
{
        return file_is_readable(path);
}

bool file_real_path(const char *path, char ret[PATH_MAX])
{
        wchar_t wide[WIDE_MAX], full[WIDE_MAX];
        if (!file_exists(path) || !wide_path(path, wide))
                return false;
        DWORD n = GetFullPathNameW(wide, WIDE_MAX, full, NULL);
        return n && n < WIDE_MAX && wide_path_text(full, ret, PATH_MAX);
}

/* Open a file. Other programs may open it, too, as on Linux. A new file is this user's alone. */
static int open_at(const char *path, int flags)
{
        wchar_t wide[WIDE_MAX];
        SECURITY_ATTRIBUTES *private = access_private();
        const DWORD access = flags & _O_RDWR     ? GENERIC_READ | GENERIC_WRITE
                             : flags & _O_WRONLY ? GENERIC_WRITE
                                                 : GENERIC_READ;
        const DWORD how = !(flags & _O_CREAT) ? OPEN_EXISTING
                          : flags & _O_EXCL   ? CREATE_NEW
                          : flags & _O_TRUNC  ? CREATE_ALWAYS
                                              : OPEN_ALWAYS;
        if (!private || !wide_path(path, wide))
                return -1;
        HANDLE h = CreateFileW(wide, access, FILE_SHARE_READ | FILE_SHARE_WRITE, private, how,
                               FILE_ATTRIBUTE_NORMAL, NULL);
        return descriptor_of_file(h);
}

/* Return true if the path is a link, which the caller refuses. */
static bool refuse_link(const char *path)
{
        if (!file_is_link(path))
                return false;
        errno = EINVAL;
        return true;
}

int file_open(const char *path, bool follow, uint64_t *ret_size)
{
        DWORD a = attributes(path);
        if (a == INVALID_FILE_ATTRIBUTES || (!follow && refuse_link(path)))
                return -1;
        if (a & FILE_ATTRIBUTE_DIRECTORY) {
                errno = EINVAL;
                return -1;
        }
        int fd = open_at(path, _O_RDONLY);
        struct _stat64 st;
        if (fd < 0)
                return -1;
        if (_fstat64(fd, &st) < 0 || (st.st_mode & _S_IFMT) != _S_IFREG) {
                _close(fd);
                errno = EINVAL;
                return -1;
        }
        *ret_size = (uint64_t)st.st_size;
        return fd;
}

int file_create(const char *path)
{
        return refuse_link(path) ? -1 : open_at(path, _O_WRONLY | _O_CREAT | _O_TRUNC);
}

FILE *file_create_stream(const char *path)
{
        int fd = file_create(path);
        FILE *ret = fd < 0 ? NULL : _fdopen(fd, "wb");
        if (!ret && fd >= 0)
                (void)file_close(fd);
        return ret;
}

int file_create_unique(char *path)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
        enum { RANDOM = 6, ATTEMPTS = 100 };
        size_t n = strlen(path);
        for (int i = 0; n >= RANDOM && i < ATTEMPTS; i++) {
                unsigned char bytes[RANDOM];
                if (!random_fill(bytes, sizeof(bytes)))
                        return -1;
                for (size_t k = 0; k < RANDOM; k++)
                        path[n - RANDOM + k] = letters[bytes[k] % 32];
                int fd = open_at(path, _O_RDWR | _O_CREAT | _O_EXCL);
                if (fd >= 0 || errno != EEXIST)
                        return fd;
        }
        errno = EEXIST;
        return -1;
}

int file_open_both(const char *path, bool create)
{
        return open_at(path, _O_RDWR | (create ? _O_CREAT : 0));
}

int file_open_uncached(const char *path)
{
        (void)path;
        errno = ENOSYS;
        return -1;
}

int file_open_again(int fd)
{
        (void)fd;
        errno = ENOSYS;
        return -1;
}

/* A file that the system removes with its last handle, and writes to the disk only when it lacks memory. */
int file_create_in_memory(void)
{
        wchar_t folder[MAX_PATH + 1], path[MAX_PATH + 1];
        SECURITY_ATTRIBUTES *private = access_private();
        if (!private)
                return -1;
        if (!GetTempPathW(MAX_PATH, folder) || !GetTempFileNameW(folder, L"spc", 0, path))
                return descriptor_fail_system();
        HANDLE h = CreateFileW(path, GENERIC_READ | GENERIC_WRITE,
                               FILE_SHARE_READ | FILE_SHARE_WRITE, private, CREATE_ALWAYS,
                               FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
        return descriptor_of_file(h);
}

int file_take(const char *path, bool replace)
{
        int fd = refuse_link(path) ? -1 : open_at(path, _O_RDWR | _O_CREAT);
        struct _stat64 st;
        if (fd < 0)
                return -1;
        int wrong = 0;
        if (_fstat64(fd, &st) < 0 || (st.st_mode & _S_IFMT) != _S_IFREG)
                wrong = EINVAL;
        else if (!file_lock_bytes(fd, (uint64_t)INT64_MAX - 1, 1))
                wrong = EWOULDBLOCK;
        else if (st.st_size && !replace)
                wrong = EEXIST;
        else if (st.st_size && !file_resize(fd, 0))
                wrong = errno;
        if (!wrong)
                return fd;
        _close(fd);
        errno = wrong;
        return -1;
}

bool file_seek(int fd, uint64_t at)
{
        return at <= INT64_MAX && _lseeki64(fd, (int64_t)at, SEEK_SET) >= 0;
}

bool file_resize(int fd, uint64_t size)
{
        errno_t r = _chsize_s(fd, (int64_t)size);
        if (r)
                errno = r;
        return r == 0;
}

bool file_lock_bytes(int fd, uint64_t at, uint64_t size)
{
        OVERLAPPED o = { .Offset = (DWORD)at, .OffsetHigh = (DWORD)(at >> 32) };
        if (LockFileEx((HANDLE)_get_osfhandle(fd),
                       LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, (DWORD)size,
                       (DWORD)(size >> 32), &o))
                return true;
        errno = EACCES;
        return false;
}

int file_duplicate(int fd)
{
        if (!descriptor_is_socket(fd))
                return _dup(fd);
        errno = ENOSYS;
        return -1;
}

bool file_close(int fd)
{
        if (descriptor_is_socket(fd)) {
                event_set_forget(fd);
                packets_forget(fd);
                return closesocket(descriptor_socket(fd)) == 0 || descriptor_fail() == 0;
        }
        return fd >= 0 && _close(fd) == 0;
}

int64_t file_read(int fd, void *ret, size_t size)
{
        enum { AT_ONCE = 1 << 30 };
        if (descriptor_is_socket(fd)) {
                int n = recv(descriptor_socket(fd), ret, size > AT_ONCE ? AT_ONCE : (int)size, 0);
                return n < 0 ? descriptor_fail() : n;
        }
        return _read(fd, ret, size > AT_ONCE ? AT_ONCE : (unsigned)size);
}

bool file_read_all(int fd, void *ret, size_t size)
{
        for (char *p = ret; size;) {
                int64_t n = file_read(fd, p, size);
                if (n <= 0)
                        return false;
                p += n;
                size -= (size_t)n;
        }
        return true;
}

bool file_write_all(int fd, const void *data, size_t size)
{
        enum { AT_ONCE = 1 << 30 };
        for (const char *p = data; size;) {
                unsigned part = size > AT_ONCE ? AT_ONCE : (unsigned)size;
                int n = descriptor_is_socket(fd) ? send(descriptor_socket(fd), p, (int)part, 0)
                                                 : _write(fd, p, part);
                if (n <= 0)
                        return false;
                p += n;
                size -= (size_t)n;
        }
        return true;
}

static bool set_waiting(int fd, bool waits)
{
        unsigned long at_once = !waits;
        if (descriptor_is_socket(fd))
                return ioctlsocket(descriptor_socket(fd), FIONBIO, &at_once) == 0 ||
                       descriptor_fail() == 0;
        errno = ENOSYS;
        return waits;
}

bool file_never_wait(int fd)
{
        return set_waiting(fd, false);
}

bool file_wait(int fd)
{
        return set_waiting(fd, true);
}

bool file_pipe(int ret[2])
{
        return _pipe(ret, 1 << 16, _O_BINARY | _O_NOINHERIT) == 0;
}

void file_widen_pipe(int fd, size_t size)
{
        (void)fd, (void)size;
}

bool file_put(int fd, int place)
{
        return _dup2(fd, place) == 0;
}

bool file_keep_from_programs(int fd)
{
        HANDLE h = descriptor_is_socket(fd) ? (HANDLE)descriptor_socket(fd)
                                            : (HANDLE)_get_osfhandle(fd);
        return SetHandleInformation(h, HANDLE_FLAG_INHERIT, 0);
}

bool file_sync(int fd)
{
        return _commit(fd) == 0;
}

/* Owners have no numbers on Windows. */
bool file_give(int fd, unsigned user, unsigned group)
{
        (void)fd, (void)user, (void)group;
        errno = ENOSYS;
        return false;
}

bool file_move(const char *from, const char *to, bool replace)
{
        wchar_t a[WIDE_MAX], b[WIDE_MAX];
        if (!wide_path(from, a) || !wide_path(to, b))
                return false;
        return MoveFileExW(a, b,
                           (replace ? MOVEFILE_REPLACE_EXISTING : 0) | MOVEFILE_WRITE_THROUGH) ||
               descriptor_fail_system() == 0;
}

bool file_unlink(const char *path)
{
        wchar_t wide[WIDE_MAX];
        return wide_path(path, wide) && _wunlink(wide) == 0;
}

void file_touch(int fd)
{
        (void)_futime64(fd, NULL);
}

bool file_is_terminal(int fd)
{
        return !descriptor_is_socket(fd) && _isatty(fd);
}

/* Make the folder of a file. */
static bool make_folder_of(const char *path)
{
        char folder[PATH_MAX];
        const char *slash = strrchr(path, '/');
        if (!slash)
                return true;
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
        return folder_make(folder) == 0;
}

bool file_replace(const char *path, const void *data, size_t size)
{
        char temp[PATH_MAX + 16];
        snprintf(temp, sizeof(temp), "%s.XXXXXX", path);
        int fd = make_folder_of(path) ? file_create_unique(temp) : -1;
        if (fd < 0)
                return false;
        bool ok = file_write_all(fd, data, size) && file_sync(fd);
        int error = errno;
        if (_close(fd) < 0 && ok) {
                ok = false;
                error = errno;
        }
        if (ok && file_move(temp, path, true))
                return true;
        if (ok)
                error = errno;
        (void)file_unlink(temp);
        errno = error;
        return false;
}

bool file_is_link(const char *path)
{
        DWORD a = attributes(path);
        return a != INVALID_FILE_ATTRIBUTES && a & FILE_ATTRIBUTE_REPARSE_POINT;
}

bool file_link(const char *target, const char *path)
{
        (void)target, (void)path;
        errno = ENOSYS;
        return false;
}

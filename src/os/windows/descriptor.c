#include "os/windows/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <netdb.h>

#include "os/once.h"

#undef getaddrinfo

/* The handle of a socket has at most 30 bits: the system gives small multiples of 4. */
enum { SOCKET_BIT = 1 << 30 };

static bool started;

/* The socket that has a number of the C library (descriptor_place). */
static struct placed {
        int fd;
        SOCKET socket;
} placed = { -1, INVALID_SOCKET };

static void start(void)
{
        WSADATA unused;
        started = WSAStartup(MAKEWORD(2, 2), &unused) == 0;
}

int descriptor_of_file(void *handle)
{
        if (handle == INVALID_HANDLE_VALUE)
                return descriptor_fail_system();
        int fd = _open_osfhandle((intptr_t)handle, _O_BINARY | _O_NOINHERIT);
        if (fd < 0)
                CloseHandle(handle);
        return fd;
}

bool descriptor_start(void)
{
        static struct once once = ONCE_INIT;
        once_run(&once, start);
        if (!started)
                errno = ENETDOWN;
        return started;
}

int windows_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                        struct addrinfo **ret)
{
        return descriptor_start() ? getaddrinfo(host, service, hints, ret) : EAI_FAIL;
}

const char *windows_gai_strerror(int r)
{
        return r == EAI_MEMORY    ? "out of memory"
               : r == EAI_NONAME  ? "the name is not known"
               : r == EAI_AGAIN   ? "the name server does not answer"
               : r == EAI_FAMILY  ? "there is no address of this kind"
               : r == EAI_SERVICE ? "the port is not known"
                                  : "the name can't be resolved";
}

int descriptor_error(int winsock_error)
{
        static const struct {
                int winsock, error;
        } table[] = {
                { 0, 0 },
                { WSAEWOULDBLOCK, EAGAIN },
                { WSAEINPROGRESS, EINPROGRESS },
                { WSAEALREADY, EALREADY },
                { WSAEINTR, EINTR },
                { WSAEACCES, EACCES },
                { WSAEINVAL, EINVAL },
                { WSAEMFILE, EMFILE },
                { WSAENOTSOCK, ENOTSOCK },
                { WSAEADDRINUSE, EADDRINUSE },
                { WSAEADDRNOTAVAIL, EADDRNOTAVAIL },
                { WSAEAFNOSUPPORT, EAFNOSUPPORT },
                { WSAEPROTONOSUPPORT, EPROTONOSUPPORT },
                { WSAENETDOWN, ENETDOWN },
                { WSAENETUNREACH, ENETUNREACH },
                { WSAEHOSTUNREACH, EHOSTUNREACH },
                { WSAEHOSTDOWN, EHOSTDOWN },
                { WSAECONNABORTED, ECONNABORTED },
                { WSAECONNRESET, ECONNRESET },
                { WSAECONNREFUSED, ECONNREFUSED },
                { WSAENOTCONN, ENOTCONN },
                { WSAESHUTDOWN, EPIPE },
                { WSAETIMEDOUT, ETIMEDOUT },
                { WSAENOBUFS, ENOBUFS },
                { WSAEMSGSIZE, EMSGSIZE },
        };
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
                if (table[i].winsock == winsock_error)
                        return table[i].error;
        return EIO;
}

int descriptor_fail(void)
{
        errno = descriptor_error(WSAGetLastError());
        return -1;
}

int descriptor_fail_system(void)
{
        switch (GetLastError()) {
        case ERROR_FILE_NOT_FOUND:
        case ERROR_PATH_NOT_FOUND:
        case ERROR_INVALID_NAME:
        case ERROR_BAD_NETPATH:
                errno = ENOENT;
                break;
        case ERROR_ACCESS_DENIED:
        case ERROR_SHARING_VIOLATION:
        case ERROR_LOCK_VIOLATION:
                errno = EACCES;
                break;
        case ERROR_ALREADY_EXISTS:
        case ERROR_FILE_EXISTS:
                errno = EEXIST;
                break;
        case ERROR_DIRECTORY:
                errno = ENOTDIR;
                break;
        case ERROR_NOT_ENOUGH_MEMORY:
        case ERROR_OUTOFMEMORY:
                errno = ENOMEM;
                break;
        case ERROR_DISK_FULL:
                errno = ENOSPC;
                break;
        case ERROR_INVALID_HANDLE:
                errno = EBADF;
                break;
        default:
                errno = EIO;
                break;
        }
        return -1;
}

int descriptor_of(SOCKET s, bool waits)
{
        unsigned long at_once = !waits;
        if (s == INVALID_SOCKET)
                return descriptor_fail();
        if (s >= SOCKET_BIT) {
                (void)closesocket(s);
                errno = EMFILE;
                return -1;
        }
        (void)SetHandleInformation((HANDLE)s, HANDLE_FLAG_INHERIT, 0);
        if (ioctlsocket(s, FIONBIO, &at_once) < 0) {
                int r = descriptor_fail();
                (void)closesocket(s);
                return r;
        }
        return (int)s | SOCKET_BIT;
}

bool descriptor_is_socket(int fd)
{
        return fd >= 0 && (fd & SOCKET_BIT || fd == placed.fd);
}

SOCKET descriptor_socket(int fd)
{
        return !descriptor_is_socket(fd) ? INVALID_SOCKET
               : fd == placed.fd         ? placed.socket
                                         : (SOCKET)(fd & ~SOCKET_BIT);
}

bool descriptor_place(SOCKET s, int fd)
{
        int unused = _wopen(L"NUL", _O_RDONLY | _O_NOINHERIT);
        bool ok = unused >= 0 && (unused == fd || _dup2(unused, fd) == 0);
        if (unused >= 0 && unused != fd)
                (void)_close(unused);
        int other = ok && descriptor_start() ? descriptor_of(s, false) : -1;
        if (other >= 0)
                placed = (struct placed){ fd, s };
        return other >= 0;
}

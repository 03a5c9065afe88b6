#include "os/windows/descriptor.h"

#include <errno.h>
#include <netdb.h>

#include "os/once.h"

#undef getaddrinfo

/* The handle of a socket has at most 30 bits: the system gives small multiples of 4. */
enum { SOCKET_BIT = 1 << 30 };

static bool started;

static void start(void)
{
        WSADATA unused;
        started = WSAStartup(MAKEWORD(2, 2), &unused) == 0;
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
        return fd >= 0 && fd & SOCKET_BIT;
}

SOCKET descriptor_socket(int fd)
{
        return descriptor_is_socket(fd) ? (SOCKET)(fd & ~SOCKET_BIT) : INVALID_SOCKET;
}

/* A socket of datagrams on the loopback interface. It is connected to itself, so it takes no datagrams of others. */
#include "os/wakeup.h"

#include <errno.h>
#include <string.h>

#include "os/file.h"
#include "os/windows/descriptor.h"

int wakeup_new(void)
{
        struct sockaddr_in at = { .sin_family = AF_INET };
        const int one = 1;
        int size = sizeof(at);
        if (!descriptor_start())
                return -1;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int fd = descriptor_of(socket(AF_INET, SOCK_DGRAM, 0), false);
        if (fd < 0)
                return fd;
        SOCKET s = descriptor_socket(fd);
        (void)setsockopt(s, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, (const char *)&one, sizeof(one));
        if (bind(s, (struct sockaddr *)&at, sizeof(at)) == 0 &&
            getsockname(s, (struct sockaddr *)&at, &size) == 0 &&
            connect(s, (struct sockaddr *)&at, size) == 0)
                return fd;
        int error = descriptor_error(WSAGetLastError());
        file_close(fd);
        errno = error;
        return -1;
}

void wakeup_set(int fd)
{
        (void)send(descriptor_socket(fd), "", 1, 0);
}

void wakeup_clear(int fd)
{
        char some[16];
        while (recv(descriptor_socket(fd), some, sizeof(some), 0) >= 0)
                ;
}

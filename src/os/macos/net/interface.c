/* Changes of interfaces and addresses: route(4). */
#include "os/net/interface.h"

#include <errno.h>
#include <net/if.h>
#include <net/route.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "os/net/socket_make.h"

int interface_watch(void)
{
        return socket_make(PF_ROUTE, SOCK_RAW, 0);
}

/* The system's table of routes changes more often than the addresses do. A failed call is a change, too, because
 * messages may be lost. */
bool interface_changed(int fd)
{
        char message[4096];
        bool any = false;
        for (ssize_t n; (n = recv(fd, message, sizeof(message), 0)) != 0;) {
                if (n < 0)
                        return any || (errno != EAGAIN && errno != EINTR);
                uint8_t type = n > (ssize_t)offsetof(struct rt_msghdr, rtm_type)
                                       ? (uint8_t)message[offsetof(struct rt_msghdr, rtm_type)]
                                       : 0;
                any |= type == RTM_NEWADDR || type == RTM_DELADDR || type == RTM_IFINFO;
        }
        return any;
}

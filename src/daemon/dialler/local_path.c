#include "daemon/dialler/local_path.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/linux/scratch.h"

/* Return true if a server of this process's own user listens there. */
static bool is_own(int fd)
{
        struct ucred who;
        socklen_t size = sizeof(who);
        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

int local_path_connect(const char *path, struct conn **ret)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int at = scratch_socket(path, LOCAL_PATH_NAME);
        if (at < 0)
                return SP_E_REFUSED;
        snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d", at);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        bool connected = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
        close(at);
        if (connected && is_own(fd))
                return conn_from_fd(fd, ret);
        if (fd >= 0)
                close(fd);
        return SP_E_REFUSED;
}

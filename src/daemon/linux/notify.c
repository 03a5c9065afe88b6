#include "daemon/system/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

void notify_send(const char *state)
{
        const char *path = getenv("NOTIFY_SOCKET");
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        if (!path || !*path)
                return;
        size_t n = strlen(path);
        if ((path[0] != '/' && path[0] != '@') || n >= sizeof(a.sun_path)) {
                log_warn("notify", "NOTIFY_SOCKET is not a path that can be used: %s", path);
                return;
        }
        memcpy(a.sun_path, path, n);
        if (path[0] == '@')
                a.sun_path[0] = 0;
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return;
        socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
        if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&a, len) < 0)
                log_warn("notify", "the service manager does not take notifications");
        close(fd);
}

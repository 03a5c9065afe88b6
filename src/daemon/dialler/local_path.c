#include "daemon/dialler/local_path.h"

#include "daemon/system/scratch.h"
#include "os/file.h"
#include "os/net/socket.h"
#include "os/process/process.h"

/* Return true if a server of this process's own user listens there. */
static bool is_own(int fd)
{
        unsigned user;
        return socket_other_user(fd, &user) && user == process_user();
}

int local_path_connect(const char *path, struct conn **ret)
{
        struct socket_address a;
        int at = scratch_socket(path, LOCAL_PATH_NAME, &a);
        if (at < 0)
                return SP_E_REFUSED;
        int fd = socket_new(&a);
        bool connected = fd >= 0 && socket_connect(fd, &a);
        (void)file_close(at);
        if (connected && is_own(fd))
                return conn_from_fd(fd, ret);
        if (fd >= 0)
                (void)file_close(fd);
        return SP_E_REFUSED;
}

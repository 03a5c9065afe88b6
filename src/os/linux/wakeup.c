#include "os/wakeup.h"

#include <errno.h>
#include <sys/eventfd.h>

int wakeup_new(void)
{
        return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void wakeup_set(int fd)
{
        while (eventfd_write(fd, 1) < 0 && errno == EINTR)
                ;
}

void wakeup_clear(int fd)
{
        eventfd_t v;
        while (eventfd_read(fd, &v) < 0 && errno == EINTR)
                ;
}

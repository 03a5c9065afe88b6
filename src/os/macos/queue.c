#include "os/macos/queue.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "os/file.h"

static bool add(int fd, int16_t filter, int number)
{
        struct kevent e;
        /* EV_CLEAR: taking the event ends it. */
        EV_SET(&e, (uintptr_t)number, filter, EV_ADD | EV_CLEAR, 0, 0, NULL);
        return kevent(fd, &e, 1, NULL, 0, NULL) == 0;
}

int queue_new(int16_t filter, const int *numbers, size_t count)
{
        int fd = kqueue();
        if (fd < 0)
                return -1;
        bool ok = file_keep_from_programs(fd);
        for (size_t i = 0; i < count && ok; i++)
                ok = add(fd, filter, numbers[i]);
        if (ok)
                return fd;
        int error = errno;
        close(fd);
        errno = error;
        return -1;
}

bool queue_take(int fd, struct kevent *ret)
{
        static const struct timespec now = { 0, 0 };
        int n;
        do
                n = kevent(fd, NULL, 0, ret, 1, &now);
        while (n < 0 && errno == EINTR);
        return n > 0;
}

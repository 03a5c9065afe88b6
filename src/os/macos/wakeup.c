#include "os/wakeup.h"

#include <errno.h>
#include <stddef.h>

#include "os/macos/queue.h"

enum { NUMBER = 0 };

int wakeup_new(void)
{
        static const int number = NUMBER;
        return queue_new(EVFILT_USER, &number, 1);
}

void wakeup_set(int fd)
{
        struct kevent e;
        EV_SET(&e, NUMBER, EVFILT_USER, 0, NOTE_TRIGGER, 0, NULL);
        while (kevent(fd, &e, 1, NULL, 0, NULL) < 0 && errno == EINTR)
                ;
}

void wakeup_clear(int fd)
{
        struct kevent e;
        (void)queue_take(fd, &e);
}

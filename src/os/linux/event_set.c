#include "os/event_set.h"

#include <stddef.h>
#include <sys/epoll.h>

int event_set_new(void)
{
        return epoll_create1(EPOLL_CLOEXEC);
}

static bool control(int set, int operation, int fd, unsigned events, void *source)
{
        struct epoll_event e = {
                .events = (events & EVENT_IN ? EPOLLIN : 0) | (events & EVENT_OUT ? EPOLLOUT : 0) |
                          (events & EVENT_END ? EPOLLRDHUP : 0),
                .data.ptr = source,
        };
        return epoll_ctl(set, operation, fd, &e) == 0;
}

bool event_set_add(int set, int fd, unsigned events, void *source)
{
        return control(set, EPOLL_CTL_ADD, fd, events, source);
}

bool event_set_change(int set, int fd, unsigned events, void *source)
{
        return control(set, EPOLL_CTL_MOD, fd, events, source);
}

void event_set_remove(int set, int fd)
{
        (void)control(set, EPOLL_CTL_DEL, fd, 0, NULL);
}

int event_set_wait(int set, int timeout_ms, void *ret[EVENT_SET_MAX])
{
        struct epoll_event events[EVENT_SET_MAX];
        int n = epoll_wait(set, events, EVENT_SET_MAX, timeout_ms);
        for (int i = 0; i < n; i++)
                ret[i] = events[i].data.ptr;
        return n < 0 ? 0 : n;
}

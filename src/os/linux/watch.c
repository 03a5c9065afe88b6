#include "os/watch.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

int watch_new(const char *folder)
{
        int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (watch < 0 ||
            inotify_add_watch(watch, folder,
                              IN_CLOSE_WRITE | IN_MODIFY | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                      IN_CREATE | IN_MOVE_SELF | IN_DELETE_SELF) >= 0)
                return watch;
        int error = errno;
        close(watch);
        errno = error;
        return -1;
}

bool watch_clear(int watch)
{
        char events[4096];
        bool exists = true;
        for (ssize_t n; (n = read(watch, events, sizeof(events))) > 0;) {
                struct inotify_event e;
                for (ssize_t at = 0; at < n; at += (ssize_t)sizeof(e) + e.len) {
                        memcpy(&e, events + at, sizeof(e));
                        exists &= !(e.mask & (IN_IGNORED | IN_MOVE_SELF | IN_DELETE_SELF));
                }
        }
        return exists;
}

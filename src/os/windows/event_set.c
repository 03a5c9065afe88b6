/* Sets of sockets to wait for, by WSAPoll. A set's descriptor is a socket of its own, so that no other descriptor has
 * its number. One thread adds, removes and waits. */
#include "os/event_set.h"

#include <poll.h>
#include <stdlib.h>

#include "os/file.h"
#include "os/lock.h"
#include "os/wakeup.h"
#include "os/windows/descriptor.h"
#include "os/windows/event_set.h"

enum { SETS_MAX = 8, ROOM_FIRST = 64 };

struct set {
        int fd;
        size_t count, room,
                next; /* `next`: the entry that is reported first, so that each gets a turn */
        WSAPOLLFD *polled;
        void **sources;
};

static struct lock lock = LOCK_INIT; /* guards the sets against sockets that other threads close */
static struct set *sets[SETS_MAX];

static struct set *find(int fd)
{
        for (size_t i = 0; i < SETS_MAX; i++)
                if (sets[i] && sets[i]->fd == fd)
                        return sets[i];
        return NULL;
}

static size_t place_of(const struct set *s, SOCKET socket)
{
        size_t i = 0;
        while (i < s->count && s->polled[i].fd != socket)
                i++;
        return i;
}

static void take_out(struct set *s, SOCKET socket)
{
        size_t i = place_of(s, socket);
        if (i == s->count)
                return;
        s->count--;
        s->polled[i] = s->polled[s->count];
        s->sources[i] = s->sources[s->count];
}

static void set_free(struct set *s)
{
        if (!s)
                return;
        free(s->polled);
        free(s->sources);
        free(s);
}

int event_set_new(void)
{
        struct set *s = calloc(1, sizeof(*s));
        int fd = s ? wakeup_new() : -1;
        if (fd < 0) {
                set_free(s);
                return -1;
        }
        s->fd = fd;
        lock_take(&lock);
        size_t i = 0;
        while (i < SETS_MAX && sets[i])
                i++;
        if (i < SETS_MAX)
                sets[i] = s;
        lock_release(&lock);
        if (i < SETS_MAX)
                return fd;
        set_free(s);
        (void)file_close(fd);
        errno = EMFILE;
        return -1;
}

static bool make_room(struct set *s)
{
        size_t room = s->room ? 2 * s->room : ROOM_FIRST;
        WSAPOLLFD *polled = realloc(s->polled, room * sizeof(*polled));
        if (polled)
                s->polled = polled;
        void **sources = realloc(s->sources, room * sizeof(*sources));
        if (sources)
                s->sources = sources;
        if (!polled || !sources)
                return false;
        s->room = room;
        return true;
}

/* POLLHUP, which stands for EVENT_END, is always reported. */
bool event_set_add(int set, int fd, unsigned events, void *source)
{
        const short wanted =
                (short)((events & EVENT_IN ? POLLIN : 0) | (events & EVENT_OUT ? POLLOUT : 0));
        lock_take(&lock);
        struct set *s = find(set);
        bool ok = s && descriptor_is_socket(fd);
        size_t i = ok ? place_of(s, descriptor_socket(fd)) : 0;
        if (ok && i == s->room)
                ok = make_room(s);
        if (ok) {
                s->polled[i] = (WSAPOLLFD){ .fd = descriptor_socket(fd), .events = wanted };
                s->sources[i] = source;
                s->count += i == s->count;
        }
        lock_release(&lock);
        if (!ok)
                errno = s ? ENOMEM : EBADF;
        return ok;
}

bool event_set_change(int set, int fd, unsigned events, void *source)
{
        return event_set_add(set, fd, events, source);
}

void event_set_remove(int set, int fd)
{
        lock_take(&lock);
        struct set *s = find(set);
        if (s && descriptor_is_socket(fd))
                take_out(s, descriptor_socket(fd));
        lock_release(&lock);
}

void event_set_forget(int fd)
{
        lock_take(&lock);
        for (size_t i = 0; i < SETS_MAX; i++) {
                if (sets[i] && sets[i]->fd == fd) {
                        set_free(sets[i]);
                        sets[i] = NULL;
                } else if (sets[i]) {
                        take_out(sets[i], descriptor_socket(fd));
                }
        }
        lock_release(&lock);
}

int event_set_wait(int set, int timeout_ms, void *ret[EVENT_SET_MAX])
{
        lock_take(&lock);
        struct set *s = find(set);
        lock_release(&lock);
        if (!s)
                return 0;
        if (!s->count) {
                Sleep(timeout_ms < 0 ? INFINITE : (DWORD)timeout_ms);
                return 0;
        }
        int n = 0;
        size_t count = s->count;
        if (WSAPoll(s->polled, (ULONG)count, timeout_ms) <= 0)
                return 0;
        s->next = s->next < count ? s->next : 0;
        for (size_t k = 0; k < count && n < EVENT_SET_MAX; k++) {
                size_t i = (s->next + k) % count;
                if (s->polled[i].revents)
                        ret[n++] = s->sources[i];
        }
        s->next++;
        return n;
}

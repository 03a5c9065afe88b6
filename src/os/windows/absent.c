/* Functions without a counterpart in this port: memory and descriptors that processes share, faults that a program
 * serves, notes of written pages, watched folders, sets of descriptors. Every call that can fail fails. The caller
 * then proceeds as on an old kernel of Linux. */
#include <errno.h>

#include "os/event_set.h"
#include "os/fault.h"
#include "os/passing.h"
#include "os/shared_memory.h"
#include "os/watch.h"
#include "os/writes.h"

/* Set errno. Returns -1. */
static int absent(void)
{
        errno = ENOSYS;
        return -1;
}

/* ---- shared memory, and descriptors for other processes -------------------------------------- */

int shared_memory_new(uint64_t size)
{
        (void)size;
        return SP_E_LIMIT;
}

int shared_memory_size(int fd, uint64_t *ret)
{
        (void)fd, (void)ret;
        return SP_E_INVAL;
}

void passing_refuse(int socket)
{
        (void)socket;
}

ssize_t passing_send(int socket, struct iovec *iov, size_t n, const int *fds, size_t count)
{
        (void)socket, (void)iov, (void)n, (void)fds, (void)count;
        return SP_E_LINK;
}

ssize_t passing_receive(int socket, struct iovec *iov, size_t n, int *ret_fds, size_t max)
{
        (void)socket, (void)iov, (void)n;
        for (size_t i = 0; i < max; i++)
                ret_fds[i] = -1;
        return SP_E_LINK;
}

/* ---- faults and notes of writes -------------------------------------------------------------- */

int fault_watch(uint64_t at, size_t size, void *user)
{
        (void)at, (void)size, (void)user;
        return SP_E_NOMEM;
}

bool fault_is_watched(uint64_t at, size_t size)
{
        (void)at, (void)size;
        return false;
}

void fault_forget(uint64_t at)
{
        (void)at;
}

void fault_arm(void)
{
}

struct fault *fault_next(void)
{
        return NULL;
}

void fault_end(struct fault *f, bool opened)
{
        (void)f, (void)opened;
}

int fault_begin_serving(void)
{
        absent();
        return SP_E_LIMIT;
}

void fault_not_served(void)
{
}

bool writes_can_be_noted(void)
{
        return false;
}

int writes_watch(uint64_t at, size_t size)
{
        (void)at, (void)size;
        return SP_E_UNSUPP;
}

void writes_forget(uint64_t at, size_t size)
{
        (void)at, (void)size;
}

int writes_note(uint64_t at, size_t size)
{
        (void)at, (void)size;
        return SP_E_UNSUPP;
}

int writes_take(uint64_t at, uint64_t end, struct written *ret, unsigned max, uint64_t *ret_next)
{
        (void)at, (void)end, (void)ret, (void)max, (void)ret_next;
        return SP_E_UNSUPP;
}

/* ---- watches and sets of descriptors --------------------------------------------------------- */

int watch_new(const char *folder)
{
        (void)folder;
        return absent();
}

bool watch_clear(int watch)
{
        (void)watch;
        return false;
}

int event_set_new(void)
{
        return absent();
}

bool event_set_add(int set, int fd, unsigned events, void *source)
{
        (void)set, (void)fd, (void)events, (void)source;
        return false;
}

bool event_set_change(int set, int fd, unsigned events, void *source)
{
        return event_set_add(set, fd, events, source);
}

void event_set_remove(int set, int fd)
{
        (void)set, (void)fd;
}

int event_set_wait(int set, int timeout_ms, void *ret[EVENT_SET_MAX])
{
        (void)set, (void)timeout_ms, (void)ret;
        return 0;
}

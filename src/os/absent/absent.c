/* Functions without a counterpart in the ports to Windows and macOS: memory that processes share, faults that a program
 * serves, notes of written pages, watched folders. Every call that can fail fails. The caller then proceeds as on an
 * old kernel of Linux. */
#include <errno.h>

#include "os/fault.h"
#include "os/shared_memory.h"
#include "os/watch.h"
#include "os/writes.h"

/* Set errno. Returns -1. */
static int absent(void)
{
        errno = ENOSYS;
        return -1;
}

/* ---- shared memory ---------------------------------------------------------------------------- */

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

/* ---- watches ---------------------------------------------------------------------------------- */

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

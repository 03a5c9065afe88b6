#include "daemon/allocator/allocator.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/pace.h"
#include "daemon/allocator/cuda.h"
#include "daemon/control.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/passing.h"
#include "os/poll.h"
#include "os/process/process.h"
#include "proto/wire.h"
#include "sandbox/sandbox.h"

#define LOG "allocator"

/* Callers in addition to sessions: workers that are about to end. */
enum { CALLERS_MORE = 64 };

#define EACH_NS (1000000000ull / ALLOCATOR_PER_S) /* between two requests */

/* A session's worker. */
struct caller {
        int socket;
        uint64_t bytes;  /* that it has got */
        uint64_t due_ns; /* when all its requests so far would have come at their rate */
};

struct allocator {
        struct caller *callers; /* the first `count` are in use */
        size_t count, max;
        allocator_export *export;
};

/* ---- one request ---------------------------------------------------------------------------- */

/* Return when the caller may send one more request; until then its requests wait in its socket. */
static uint64_t next_of(const struct caller *c)
{
        return pace_next_ns(c->due_ns, (ALLOCATOR_BURST - 1) * EACH_NS);
}

static int make(const struct allocator *a, struct caller *c, const struct allocation_request *r,
                int *ret_fd)
{
        if (!r->size || r->size % BACKEND_SHARED_UNIT || r->size > WIRE_STAGING_MAX)
                return SP_E_INVAL;
        if (c->bytes + r->size > ALLOCATOR_SESSION_MAX)
                return SP_E_LIMIT;
        int status = a->export(r->device, r->size, ret_fd);
        if (!status)
                c->bytes += r->size;
        return status;
}

/* Answer one request. False: the worker is gone, does not read its answers, or does not keep to the protocol. */
static bool answer(const struct allocator *a, struct caller *c)
{
        struct allocation_request r;
        struct allocation_reply reply;
        struct iovec from = { &r, sizeof(r) }, to = { &reply, sizeof(reply) };
        int none, fd = -1;
        ssize_t n = passing_receive(c->socket, &from, 1, &none, 0);
        if (n == SP_E_AGAIN)
                return true;
        if (n != sizeof(r)) {
                if (n != SP_E_LINK)
                        log_warn(LOG, "a worker sends a malformed request: it gets no more memory");
                return false;
        }
        c->due_ns = pace_after(c->due_ns, EACH_NS, clock_now_ns());
        reply.status = make(a, c, &r, &fd);
        bool ok = passing_send(c->socket, &to, 1, &fd, fd >= 0) == sizeof(reply);
        if (fd >= 0)
                (void)file_close(fd);
        return ok;
}

/* ---- the process ---------------------------------------------------------------------------- */

/* Take a worker's socket. False: the supervisor is gone. */
static bool receive_caller(struct allocator *a, int control)
{
        static struct control c; /* static because it is large */
        int r = control_receive(control, &c);
        if (r < 0)
                return r != SP_E_LINK;
        if (c.kind == CONTROL_ALLOCATOR && c.fd >= 0 && a->count < a->max) {
                a->callers[a->count++] = (struct caller){ .socket = c.fd };
                c.fd = -1;
        }
        control_drop(&c);
        return true;
}

/* Fill in the poll entries of all callers. Returns when the next request may be read. */
static uint64_t collect(const struct allocator *a, struct pollfd *fds)
{
        uint64_t now = clock_now_ns(), next_ns = UINT64_MAX;
        for (size_t i = 0; i < a->count; i++) {
                uint64_t at_ns = next_of(&a->callers[i]);
                fds[i] = (struct pollfd){ .fd = a->callers[i].socket,
                                          .events = at_ns <= now ? POLLIN : 0 };
                if (at_ns > now && at_ns < next_ns)
                        next_ns = at_ns;
        }
        return next_ns;
}

static void run(struct allocator *a, int control, struct pollfd *fds)
{
        do {
                fds[0] = (struct pollfd){ .fd = control, .events = POLLIN };
                uint64_t next_ns = collect(a, fds + 1);
                if (poll(fds, 1 + (nfds_t)a->count, clock_poll_ms(next_ns)) < 0)
                        continue;
                /* From the last one, because the last one takes the place of one that is gone. */
                for (size_t i = a->count; i--;) {
                        int events = fds[1 + i].revents;
                        bool gone = events & (POLLHUP | POLLERR);
                        if (!events || (!gone && answer(a, &a->callers[i])))
                                continue;
                        (void)file_close(a->callers[i].socket);
                        a->callers[i] = a->callers[--a->count];
                }
        } while (!fds[0].revents || receive_caller(a, control));
}

int allocator_serve(int control, size_t max, allocator_export *export)
{
        struct allocator a = { .max = max, .export = export };
        struct pollfd *fds = mem_alloc((1 + max) * sizeof(*fds));
        a.callers = mem_alloc(max * sizeof(*a.callers));
        int r = fds && a.callers ? 0 : SP_E_NOMEM;
        if (!r)
                run(&a, control, fds);
        for (size_t i = 0; i < a.count; i++)
                (void)file_close(a.callers[i].socket);
        mem_free(a.callers);
        mem_free(fds);
        return r;
}

int allocator_main(const struct config_options *o)
{
        process_name("spancld-alloc");
        process_end_with_parent();
        if (!sandbox_enter_allocator(o)) {
                log_error(LOG, "the allocator can't enter its sandbox: no device memory is shared");
                return 1;
        }
        (void)!file_keep_from_programs(CONTROL_FD);
        size_t max = config_option_number(o, CONFIG_sessions) + CALLERS_MORE;
        return allocator_serve(CONTROL_FD, max, cuda_export) < 0;
}

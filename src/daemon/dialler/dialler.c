#include "daemon/dialler/dialler.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pace.h"
#include "daemon/control.h"
#include "daemon/dialler/reach.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/poll.h"
#include "os/process/process.h"
#include "os/thread.h"
#include "os/wakeup.h"
#include "sandbox/files.h"
#include "sandbox/sandbox.h"
#include "session/hello.h"
#include "transport/tls.h"

#define LOG "dialler"

enum {
        AT_ONCE = 32, /* threads for one session; further requests wait in its socket */
        PER_S = 64,   /* requests of one session in a second */
        BURST = 512,  /* requests of one session at once: a link has several lanes */
        /* Callers in addition to sessions: workers without a session yet, or about to end. */
        CALLERS_MORE = 64,
        OURS = 2, /* the dialler's own entries, first in the poll array */
};

#define EACH_NS (1000000000ull / PER_S) /* between two requests */

/* A session's worker. */
struct caller {
        struct list link;
        int socket;
        bool gone;
        unsigned busy;   /* threads that work for it; the last one keeps it alive */
        uint64_t due_ns; /* the time at which the rate would have let all of its requests through */
};

struct dialler {
        struct lock lock; /* guards `busy` of all callers */
        struct list callers;
        size_t count, max;
        int wake_fd; /* a wake-up, set when a thread ends */
        bool local;  /* the server has a Unix socket: others may be connected to */
};

struct job {
        struct dialler *dialler;
        struct caller *caller;
        struct dial_request request;
};

/* ---- one request ---------------------------------------------------------------------------- */

static void answer(const struct job *j, const struct buf *out, int fd)
{
        if (control_send(j->caller->socket, CONTROL_DIAL, bytes_of(out->data, out->size), fd) < 0)
                log_debug(LOG, "a worker does not receive the answer to its request");
}

static void serve(const struct job *j)
{
        auto_clean(buf_fini) struct buf out = { 0 }, hello = { 0 };
        struct dial_reply reply;
        const struct dial_request *q = &j->request;
        struct conn *conn = NULL;
        int r = reach_peer(q, j->dialler->local, &conn, &hello, &reply);
        if (!r)
                r = dial_answer_put(&out, q->number, 0, NULL);
        if (!r)
                r = buf_put(&out, hello.data, hello.size);
        if (!r)
                r = conn_export(conn, &out);
        if (r < 0) {
                out.size = 0;
                if (!reply.text[0])
                        loop_explain(&q->params, r, &reply);
                r = dial_answer_put(&out, q->number, r, reply.text);
                conn = conn_close(conn);
        }
        if (!r)
                answer(j, &out, conn ? conn->fd : -1);
        if (out.data)
                explicit_bzero(out.data, out.size);
        conn_close(conn);
}

static void *serve_thread(void *arg)
{
        struct job *j = arg;
        struct dialler *d = j->dialler;
        thread_name("spancl-dial");
        serve(j);
        lock_take(&d->lock);
        j->caller->busy--;
        lock_release(&d->lock);
        mem_free(j);
        wakeup_set(d->wake_fd);
        return NULL;
}

/* ---- callers ------------------------------------------------------------------------------- */

static unsigned busy_of(struct dialler *d, const struct caller *c)
{
        lock_take(&d->lock);
        unsigned n = c->busy;
        lock_release(&d->lock);
        return n;
}

static void caller_new(struct dialler *d, int socket)
{
        struct caller *c = d->count < d->max ? mem_zalloc(sizeof(*c)) : NULL;
        if (!c) {
                log_warn(
                        LOG,
                        "a session gets no links to other servers: too many sessions, or out of memory");
                (void)file_close(socket);
                return;
        }
        c->socket = socket;
        list_append(&d->callers, &c->link);
        d->count++;
}

/* Return true if one more request is within the rate now; else *ret_ns is when it will be. */
static bool is_due(const struct caller *c, uint64_t now, uint64_t *ret_ns)
{
        *ret_ns = pace_next_ns(c->due_ns, BURST * EACH_NS);
        return *ret_ns <= now;
}

/* Receive one request and start a thread for it. False: the worker is gone, or its request is
 * malformed; then the dialler does not read its socket any more. */
static bool caller_receive(struct dialler *d, struct caller *c)
{
        static struct control asked; /* static because it is large; only the main thread uses it */
        uint64_t now = clock_now_ns();
        int r = control_receive(c->socket, &asked);
        if (!r)
                control_drop(&asked);
        if (r == SP_E_LINK || r == SP_E_AGAIN)
                return r == SP_E_AGAIN;
        struct job *j = mem_alloc(sizeof(*j));
        if (!j) {
                log_warn(LOG, "out of memory: a request is lost");
                return true;
        }
        if (!r)
                r = asked.kind == CONTROL_DIAL
                            ? dial_request_get(bytes_of(asked.data, asked.size), &j->request)
                            : SP_E_PROTO;
        if (r < 0) {
                log_warn(LOG, "a worker sends a malformed request: it gets no more links");
                mem_free(j);
                return false;
        }
        c->due_ns = pace_after(c->due_ns, EACH_NS, now);
        j->dialler = d;
        j->caller = c;
        lock_take(&d->lock);
        c->busy++;
        lock_release(&d->lock);
        if (thread_start(NULL, true, serve_thread, j) == 0)
                return true;
        log_warn(LOG, "out of threads: a request is lost");
        lock_take(&d->lock);
        c->busy--;
        lock_release(&d->lock);
        mem_free(j);
        return true;
}

/* ---- the process ---------------------------------------------------------------------------- */

/* Receive the supervisor's message. False: the supervisor is gone. */
static bool receive_descriptors(struct dialler *d)
{
        static struct control c; /* static because it is large */
        int r = control_receive(CONTROL_FD, &c);
        if (!r && c.fd >= 0 && c.kind == CONTROL_DIALLER)
                caller_new(d, c.fd);
        else if (!r)
                control_drop(&c);
        return r != SP_E_LINK;
}

/* Fill in the poll entries behind the dialler's own, and free callers that are gone. Returns the
 * number of entries. */
static nfds_t collect(struct dialler *d, struct pollfd *fds, struct caller **of, uint64_t *ret_ns)
{
        nfds_t n = OURS;
        uint64_t now = clock_now_ns(), due_ns;
        *ret_ns = UINT64_MAX;
        list_each(c, &d->callers, struct caller, link)
        {
                unsigned busy = busy_of(d, c);
                if (c->gone && !busy) {
                        list_remove(&c->link);
                        d->count--;
                        (void)file_close(c->socket);
                        mem_free(c);
                        continue;
                }
                if (c->gone)
                        continue;
                bool due = is_due(c, now, &due_ns);
                if (!due && due_ns < *ret_ns)
                        *ret_ns = due_ns;
                of[n] = c;
                fds[n++] = (struct pollfd){ .fd = c->socket,
                                            .events = due && busy < AT_ONCE ? POLLIN : 0 };
        }
        return n;
}

/* Poll and serve. Both arrays have room for OURS and the largest number of callers. */
static void run(struct dialler *d, struct pollfd *fds, struct caller **of)
{
        for (;;) {
                uint64_t again_ns;
                fds[0] = (struct pollfd){ .fd = CONTROL_FD, .events = POLLIN };
                fds[1] = (struct pollfd){ .fd = d->wake_fd, .events = POLLIN };
                nfds_t n = collect(d, fds, of, &again_ns);
                if (poll(fds, n, clock_poll_ms(again_ns)) <= 0)
                        continue;
                bool heard = false;
                if (fds[1].revents)
                        wakeup_clear(d->wake_fd);
                for (nfds_t i = OURS; i < n; i++) {
                        struct caller *c = of[i];
                        /* A worker that is gone may have left requests, but nothing waits for the
                         * answers. */
                        c->gone = fds[i].revents & (POLLHUP | POLLERR);
                        heard |= fds[i].revents & POLLIN;
                        if (!c->gone && fds[i].revents & POLLIN)
                                c->gone = !caller_receive(d, c);
                }
                if (fds[0].revents && !receive_descriptors(d))
                        return;
                if (heard && files_outdated()) {
                        log_info(LOG,
                                 "a file of the name resolver has changed: the dialler restarts");
                        return;
                }
        }
}

int dialler_main(const struct config_options *o, bool local)
{
        static struct dialler d = { .lock = LOCK_INIT };
        char text[KEYS_TEXT_MAX];
        process_name("spancld-dialler");
        process_end_with_parent();
        tls_for_others = true;
        (void)tls_crypto(text); /* the module is loaded before the sandbox is entered */
        if (!sandbox_enter_dialler(o)) {
                log_error(
                        LOG,
                        "the dialler can't enter its sandbox: sessions get no links to other servers");
                return 1;
        }
        d.local = local;
        list_init(&d.callers);
        d.wake_fd = wakeup_new();
        if (d.wake_fd < 0)
                return 1;
        (void)!file_keep_from_programs(CONTROL_FD);
        d.max = config_option_number(o, CONFIG_sessions) + CALLERS_MORE;
        struct pollfd *fds = mem_alloc((OURS + d.max) * sizeof(*fds));
        struct caller **of = mem_alloc((OURS + d.max) * sizeof(struct caller *));
        if (!fds || !of)
                return 1;
        run(&d, fds, of);
        process_exit(0); /* other threads may still run */
}

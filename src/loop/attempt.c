#include "loop/attempt.h"

#include "base/mem.h"
#include "core/link/io.h"
#include "loop/server_loop.h"
#include "os/clock.h"
#include "transport/other_end.h"

enum {
        TRY_FIRST_MS = 1000, /* the first try to reach a server again, doubled each time */
        INSIST_MS = 500,     /* a call that waits for a new session gives up after so many */
        RETRY_REFUSED_MS =
                10000, /* the longest pause if the server answers, but does not want us */
};

int attempt_dial(struct server_loop *local, const struct dial_params *p, struct conn **ret,
                 struct dial_reply *reply)
{
        return local ? server_loop_connect(local, p, ret, reply) : loop_connect(p, ret, reply);
}

void attempt_free(struct attempt *a)
{
        if (a->conn)
                conn_reset(a->conn); /* the server has attached it */
        conn_close(a->conn);
        condition_fini(&a->given_up);
        lock_fini(&a->lock);
        buf_fini(&a->early);
        hello_devices_fini(&a->devices);
        mem_free(a->address);
        mem_free(a->refusal);
        mem_free(a);
}

bool attempt_may_work_later(int status)
{
        return status == SP_E_LINK || status == SP_E_REFUSED || status == SP_E_TIMEOUT ||
               status == SP_E_HOST || status == SP_E_UNREACH;
}

/* True: the time has come; false: nobody wants it any more. */
static bool pause_until(struct attempt *a, uint64_t until)
{
        lock_take(&a->lock);
        while (!a->abandoned && !a->hurried && clock_now_ns() < until)
                (void)condition_wait_until(&a->given_up, &a->lock, until);
        bool abandoned = a->abandoned;
        a->hurried = false;
        lock_release(&a->lock);
        return !abandoned;
}

/* A try has failed: let the call that waits for the session give up. Not at once: the server may just end the
 * session before this one. */
static void refuse(struct attempt *a, const struct dial_reply *reply)
{
        lock_take(&a->lock);
        if (!a->refusal && !a->abandoned) {
                a->refusal = mem_strdup(reply->text);
                client_io_loop.wake(a->loop);
        }
        lock_release(&a->lock);
}

static int make(struct attempt *a, struct conn **ret, struct dial_reply *reply)
{
        unsigned pause_ms = RETRY_FIRST_MS;
        unsigned limit_ms = (unsigned)a->dial.timeout_ms;
        unsigned try_ms = limit_ms < TRY_FIRST_MS || a->awaited ? limit_ms : TRY_FIRST_MS;
        uint64_t insist_until = clock_now_ns() + INSIST_MS * 1000000ull;
        if (!pause_until(a, a->begin_ns))
                return SP_E_GONE;
        for (;;) {
                if (a->fresh) {
                        client_io_loop.random(a->loop, a->dial.session_id,
                                              sizeof(a->dial.session_id));
                        client_io_loop.random(a->loop, a->dial.key, sizeof(a->dial.key));
                }
                /* Not long at first: a way that is not there any more does not answer. */
                if (a->until_ns)
                        a->dial.timeout_ms = (int)dial_pause(&try_ms, limit_ms);
                int r = attempt_dial(a->local, &a->dial, ret, reply);
                a->dial.early.size = 0;
                bool later = attempt_may_work_later(r);
                if (r == 0 || (!later && !a->fresh) || clock_now_ns() >= a->until_ns)
                        return r;
                if (a->awaited && clock_now_ns() >= insist_until)
                        refuse(a, reply);
                unsigned ms = dial_pause(&pause_ms, later ? RETRY_MAX_MS : RETRY_REFUSED_MS);
                if (!pause_until(a, clock_now_ns() + ms * 1000000ull))
                        return r;
                a->dial.generation += !a->fresh;
        }
}

static void *run(void *arg)
{
        struct attempt *a = arg;
        struct conn *conn = NULL;
        struct dial_reply reply;
        int status = make(a, &conn, &reply);
        lock_take(&a->lock);
        a->finished = true;
        a->status = status;
        a->conn = conn;
        a->reply = reply;
        bool abandoned = a->abandoned;
        if (!abandoned) { /* else the link is gone, and the loop may be */
                atomic_store(a->attached, true);
                client_io_loop.wake(a->loop);
        }
        lock_release(&a->lock);
        if (abandoned)
                attempt_free(a);
        return NULL;
}

int attempt_begin(struct attempt *a)
{
        return thread_start(NULL, true, run, a);
}

void attempt_abandon(struct attempt *a)
{
        lock_take(&a->lock);
        bool finished = a->finished;
        a->abandoned = true;
        condition_signal(&a->given_up);
        lock_release(&a->lock);
        if (finished)
                attempt_free(a);
}

void attempt_hurry(struct attempt *a)
{
        lock_take(&a->lock);
        a->hurried = true;
        condition_signal(&a->given_up);
        lock_release(&a->lock);
}

const char *attempt_refusal(struct attempt *a)
{
        lock_take(&a->lock);
        const char *refusal = a->refusal;
        lock_release(&a->lock);
        return refusal;
}

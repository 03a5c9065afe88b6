#include "daemon/worker/dialling.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "base/log.h"
#include "daemon/control.h"
#include "daemon/dialler/dial_message.h"
#include "os/clock.h"
#include "os/condition.h"
#include "os/file.h"
#include "os/lock.h"

#define LOG "dialling"

enum { ANSWER_S = 60 }; /* an attempt takes 10 s, and may wait for others of the session */

/* A thread that waits for an answer. The lock guards it while it is listed. */
struct asking {
        struct list link;
        uint64_t number;
        bool answered;
        struct conn *conn;
        struct buf hello; /* the server's answer */
        int status;
        char text[sizeof(((struct dial_reply *)NULL)->text)];
};

static struct {
        struct lock lock;
        struct condition changed;
        bool begun;      /* `changed` is made */
        struct list all; /* the waiting threads */
        uint64_t number; /* the number of the last request */
        int socket;
} asked = { .lock = LOCK_INIT, .all = { &asked.all, &asked.all }, .socket = -1 };

static int ask(struct asking *a, const struct dial_params *p) REQUIRES(asked.lock)
{
        auto_clean(buf_fini) struct buf b = { 0 };
        a->number = ++asked.number;
        int r = dial_request_put(&b, a->number, p);
        return r < 0 ? r : control_send(asked.socket, CONTROL_DIAL, bytes_of(b.data, b.size), -1);
}

int dialling_connect(void *user, const struct dial_params *p, struct conn **ret,
                     struct dial_reply *reply)
{
        struct asking a = { .status = SP_E_LINK };
        (void)user;
        *reply = (struct dial_reply){ 0 };
        uint64_t until_ns = clock_now_ns() + ANSWER_S * 1000000000ull;
        lock_take(&asked.lock);
        list_append(&asked.all, &a.link);
        int r = asked.socket < 0 ? SP_E_LINK : ask(&a, p);
        while (!r && !a.answered)
                if (!condition_wait_until(&asked.changed, &asked.lock, until_ns))
                        break;
        list_remove(&a.link);
        lock_release(&asked.lock);
        if (a.conn) {
                r = loop_settle(p, bytes_of(a.hello.data, a.hello.size), a.conn, ret, reply);
        } else {
                r = r < 0 ? r : a.status;
                snprintf(reply->text, sizeof(reply->text), "%s",
                         *a.text ? a.text : "the server's dialler does not answer");
        }
        buf_fini(&a.hello);
        return r;
}

int dialling_socket(void)
{
        return asked.socket; /* only the main thread changes it */
}

void dialling_begin(int socket)
{
        lock_take(&asked.lock);
        if (!asked.begun)
                condition_init(&asked.changed);
        asked.begun = true;
        if (asked.socket >= 0)
                (void)file_close(asked.socket);
        asked.socket = socket;
        list_each(a, &asked.all, struct asking, link)
        {
                if (a->answered)
                        continue;
                a->answered = true;
                snprintf(a->text, sizeof(a->text), "the server's dialler has ended");
        }
        condition_broadcast(&asked.changed);
        lock_release(&asked.lock);
}

/* Store the answer for the thread that waits for it. */
static void take(struct asking *a, const struct dial_answer *m, int *fd) REQUIRES(asked.lock)
{
        a->answered = true;
        a->status = m->status;
        snprintf(a->text, sizeof(a->text), "%.*s", (int)m->text.size, (const char *)m->text.data);
        bytes_tame(a->text, sizeof(a->text));
        if (m->status < 0)
                return;
        a->status = *fd < 0 ? SP_E_LINK : buf_put(&a->hello, m->hello.data, m->hello.size);
        if (a->status < 0)
                return;
        a->status = conn_import(*fd, m->state, &a->conn);
        *fd = -1;
}

void dialling_receive(void)
{
        static struct control c; /* static because it is large; only the main thread uses it */
        struct dial_answer m;
        int r = control_receive(asked.socket, &c);
        if (r == SP_E_LINK)
                dialling_begin(-1);
        if (r < 0)
                return;
        if (c.kind != CONTROL_DIAL || dial_answer_get(bytes_of(c.data, c.size), &m) < 0) {
                log_warn(LOG, "the dialler sent a message that this version does not know");
                m = (struct dial_answer){ 0 };
        }
        lock_take(&asked.lock);
        list_each(a, &asked.all, struct asking, link)
        {
                if (!a->answered && a->number == m.number)
                        take(a, &m, &c.fd);
        }
        condition_broadcast(&asked.changed);
        lock_release(&asked.lock);
        control_drop(&c);
        explicit_bzero(&c, sizeof(c));
}

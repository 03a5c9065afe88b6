/* src/loop/carrier: the thread of one bulk lane sleeps on no work, whenever that comes. */
#include "support/check.h"

#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "loop/carrier.h"
#include "session/session.h"

enum { TOTAL = 1 << 20 };

/* A lane whose other side takes all and sends nothing. */
struct lane {
        struct conn conn;
        pthread_mutex_t lock; /* the session's */
        pthread_cond_t changed;
        struct session *session;
        struct link link;
        struct carrier *carriers[SESSION_LANES];
        struct session_bulk bulk[2];
        unsigned started; /* transfers */
        size_t sent;
        bool full;        /* takes nothing for now */
        bool in_receiver; /* the second transfer comes while the carrier receives */
};

static uint8_t data[TOTAL];

static struct lane *lane_of(struct conn *c)
{
        return container_of(c, struct lane, conn);
}

static const void *bulk_at(struct session_bulk *b, uint64_t offset, size_t *ret_len)
{
        *ret_len = (size_t)(b->total - offset);
        return data + offset;
}

static void bulk_done(struct session_bulk *b, int status)
{
        (void)b, (void)status;
}

/* As an owner of the session does it, on any thread. Lock held. */
static void start_transfer(struct lane *l)
{
        struct session_bulk *b = &l->bulk[l->started++];
        *b = (struct session_bulk){
                .transfer = l->started, .total = TOTAL, .at = bulk_at, .done = bulk_done
        };
        assert_int_equal(session_bulk_send(l->session, b, TOTAL), 0);
        carriers_rouse(l->carriers, l->session);
}

static ssize_t lane_sendv(struct conn *c, const struct iovec *iov, int n)
{
        struct lane *l = lane_of(c);
        size_t size = 0;
        for (int i = 0; i < n; i++)
                size += iov[i].iov_len;
        pthread_mutex_lock(&l->lock);
        bool full = l->full;
        l->sent += full ? 0 : size;
        pthread_cond_signal(&l->changed);
        pthread_mutex_unlock(&l->lock);
        return full ? SP_E_AGAIN : (ssize_t)size;
}

static ssize_t lane_recvv(struct conn *c, const struct iovec *iov, int n)
{
        struct lane *l = lane_of(c);
        (void)iov, (void)n;
        pthread_mutex_lock(&l->lock);
        if (l->in_receiver && l->started == 1)
                start_transfer(l);
        pthread_mutex_unlock(&l->lock);
        return SP_E_AGAIN;
}

static void lane_close(struct conn *c)
{
        close(c->fd);
        close(c->room_fd);
}

static const struct transport_ops ops = {
        .name = "test", .sendv = lane_sendv, .recvv = lane_recvv, .close = lane_close
};

static void lock(void *user)
{
        pthread_mutex_lock(user);
}

static void unlock(void *user)
{
        pthread_mutex_unlock(user);
}

static void moved(void *user, struct link *link, int status)
{
        (void)user, (void)link, (void)status;
}

static struct link_lock link_lock = { lock, unlock, NULL };

static void lane_init(struct lane *l)
{
        static const struct session_ops none;
        *l = (struct lane){ .lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER };
        l->conn = (struct conn){ .ops = &ops,
                                 .fd = eventfd(0, EFD_CLOEXEC),
                                 .room_fd = eventfd(0, EFD_CLOEXEC),
                                 .room_events = POLLIN };
        link_lock.user = &l->lock;
        assert_int_equal(session_new(&(struct session_params){ .ops = &none }, &l->session), 0);
        assert_int_equal(link_up(&l->link, l->session, 1, &l->conn, 0), 0);
}

static void lane_start(struct lane *l)
{
        const struct carrier_params p = { .link = &l->link, .lock = &link_lock, .moved = moved };
        assert_int_equal(carrier_start(&p, &l->carriers[1]), 0);
}

/* Lock held. */
static void wait_sent(struct lane *l, size_t payload)
{
        while (l->sent < payload)
                pthread_cond_wait(&l->changed, &l->lock);
}

static void lane_fini(struct lane *l)
{
        carrier_tell_stop(l->carriers[1]);
        pthread_mutex_unlock(&l->lock);
        carrier_free(l->carriers[1]);
        link_down(&l->link);
        session_free(l->session);
}

TEST(what_comes_before_it_starts_or_while_it_sleeps_is_sent)
{
        struct lane l;
        lane_init(&l);
        pthread_mutex_lock(&l.lock);
        start_transfer(&l);
        lane_start(&l);
        wait_sent(&l, TOTAL);
        start_transfer(&l);
        wait_sent(&l, 2 * TOTAL);
        lane_fini(&l);
}

TEST(what_comes_while_it_receives_is_sent)
{
        struct lane l;
        lane_init(&l);
        pthread_mutex_lock(&l.lock);
        l.in_receiver = true;
        start_transfer(&l);
        lane_start(&l);
        wait_sent(&l, 2 * TOTAL);
        lane_fini(&l);
}

TEST(a_full_connection_is_tried_again_when_it_has_room)
{
        struct lane l;
        lane_init(&l);
        pthread_mutex_lock(&l.lock);
        l.full = true;
        start_transfer(&l);
        lane_start(&l);
        while (!l.link.blocked) {
                pthread_mutex_unlock(&l.lock);
                sched_yield();
                pthread_mutex_lock(&l.lock);
        }
        /* As a blocked one it is not tried for what is new either. */
        start_transfer(&l);
        l.full = false;
        assert_int_equal(eventfd_write(l.conn.room_fd, 1), 0);
        wait_sent(&l, 2 * TOTAL);
        lane_fini(&l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_comes_before_it_starts_or_while_it_sleeps_is_sent),
                cmocka_unit_test(what_comes_while_it_receives_is_sent),
                cmocka_unit_test(a_full_connection_is_tried_again_when_it_has_room),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* src/loop/lane thread: the thread of one bulk lane sleeps on no work, whenever that comes. */
#include "support/check.h"
#include "transport/shm.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "loop/lane_thread.h"
#include "loop/spin.h"
#include "session/session.h"

enum { TOTAL = 1 << 20 };

/* A lane whose other side takes all and sends nothing. */
struct lane {
        struct conn conn;
        pthread_mutex_t lock; /* the session's */
        pthread_cond_t changed;
        struct session *session;
        struct link link;
        struct lane_thread *lane_threads[SESSION_LANES];
        struct session_bulk bulk[4];
        unsigned started; /* transfers */
        size_t sent;
        bool full;                /* takes nothing for now */
        bool in_receiver;         /* the second transfer comes while the lane thread receives */
        atomic_bool slow, copies; /* takes long for a call; is in one */
        struct link_lock link_lock;
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
        lane_threads_rouse(l->lane_threads, l->session);
}

static ssize_t lane_sendv(struct conn *c, const struct iovec *iov, int n)
{
        struct lane *l = lane_of(c);
        size_t size = 0;
        for (int i = 0; i < n; i++)
                size += iov[i].iov_len;
        atomic_store(&l->copies, true);
        if (atomic_load(&l->slow)) {
                nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
                atomic_store(&l->copies, false);
                return SP_E_AGAIN;
        }
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

static void lane_init(struct lane *l)
{
        static const struct session_ops none;
        *l = (struct lane){ .lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER };
        l->conn = (struct conn){ .ops = &ops,
                                 .fd = eventfd(0, EFD_CLOEXEC),
                                 .room_fd = eventfd(0, EFD_CLOEXEC),
                                 .room_events = POLLIN };
        l->link_lock = (struct link_lock){ lock, unlock, &l->lock };
        assert_int_equal(session_new(&(struct session_params){ .ops = &none }, &l->session), 0);
        assert_int_equal(link_up(&l->link, l->session, 1, &l->conn, 0), 0);
}

static void lane_start(struct lane *l, uint64_t spin_ns)
{
        const struct lane_thread_params p = {
                .link = &l->link, .lock = &l->link_lock, .spin_ns = spin_ns, .moved = moved
        };
        assert_int_equal(lane_thread_start(&p, &l->lane_threads[1]), 0);
}

/* Lock held. */
static void wait_sent(struct lane *l, size_t payload)
{
        while (l->sent < payload)
                pthread_cond_wait(&l->changed, &l->lock);
}

static void lane_fini(struct lane *l)
{
        lane_thread_request_stop(l->lane_threads[1]);
        pthread_mutex_unlock(&l->lock);
        lane_thread_free(l->lane_threads[1]);
        link_down(&l->link);
        session_free(l->session);
}

TEST(messages_before_its_start_and_during_its_sleep_are_sent)
{
        struct lane l;
        lane_init(&l);
        pthread_mutex_lock(&l.lock);
        start_transfer(&l);
        lane_start(&l, 0);
        wait_sent(&l, TOTAL);
        start_transfer(&l);
        wait_sent(&l, 2 * TOTAL);
        lane_fini(&l);
}

TEST(messages_that_come_while_it_receives_are_sent)
{
        struct lane l;
        lane_init(&l);
        pthread_mutex_lock(&l.lock);
        l.in_receiver = true;
        start_transfer(&l);
        lane_start(&l, 0);
        wait_sent(&l, 2 * TOTAL);
        lane_fini(&l);
}

TEST(memory_of_a_halted_link_is_left_alone)
{
        struct lane l;
        lane_init(&l);
        pthread_mutex_lock(&l.lock);
        atomic_store(&l.slow, true);
        start_transfer(&l);
        lane_start(&l, 0);
        while (!atomic_load(&l.copies)) {
                pthread_mutex_unlock(&l.lock);
                sched_yield();
                pthread_mutex_lock(&l.lock);
        }
        link_halt(&l.link);
        assert_false(atomic_load(&l.copies));
        assert_false(link_can_send(&l.link));
        lane_fini(&l);
}

TEST(a_full_connection_is_tried_again_when_it_has_room)
{
        struct lane l;
        lane_init(&l);
        pthread_mutex_lock(&l.lock);
        l.full = true;
        start_transfer(&l);
        lane_start(&l, 0);
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

/* ---- shared memory --------------------------------------------------------------------------- */

/* One of two that send to each other. */
struct side {
        struct lane lane;
        uint8_t got[TOTAL];
        uint64_t below; /* of the transfer that comes */
};

static int side_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                      void **ret)
{
        struct side *s = user;
        (void)transfer, (void)inlined, (void)len;
        *ret = s->got + offset;
        return 0;
}

static int side_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                        uint64_t *ret_below)
{
        struct side *s = user;
        (void)transfer;
        s->below = *ret_below = offset + len;
        pthread_cond_signal(&s->lane.changed);
        return s->below == TOTAL;
}

static void side_init(struct side *s, struct conn *conn, uint64_t spin_ns)
{
        static const struct session_ops session_ops = { .bulk_place = side_place,
                                                        .bulk_arrived = side_arrived };
        const struct session_params p = { .ops = &session_ops, .user = s };
        struct lane *l = &s->lane;
        *s = (struct side){ .lane = { .lock = PTHREAD_MUTEX_INITIALIZER,
                                      .changed = PTHREAD_COND_INITIALIZER } };
        assert_int_equal(session_new(&p, &l->session), 0);
        assert_int_equal(link_up(&l->link, l->session, 1, conn, 0), 0);
        l->link_lock = (struct link_lock){ lock, unlock, &l->lock };
        lane_start(l, spin_ns);
}

static void side_fini(struct side *s)
{
        pthread_mutex_lock(&s->lane.lock);
        lane_fini(&s->lane);
}

static void sides_init(struct side sides[2], uint64_t spin_ns)
{
        int fds[2];
        struct conn *conns[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                         0);
        for (int i = 0; i < 2; i++)
                assert_int_equal(conn_from_fd(fds[i], &conns[i]), 0);
        assert_int_equal(shm_offer(&conns[0], 64 << 10, 0), 0);
        assert_int_equal(shm_accept(&conns[1]), 0);
        for (int i = 0; i < 2; i++) {
                assert_true(lane_thread_takes(conns[i]));
                side_init(&sides[i], conns[i], spin_ns);
        }
}

/* Sleeping or looking, whatever it does when they come. */
TEST(in_shared_memory_it_sends_and_receives_too)
{
        static struct side sides[2];
        spin_cores = 4;
        for (size_t i = 0; i < TOTAL; i++)
                data[i] = (uint8_t)(i * 7 + i / 251);
        for (uint64_t spin_ns = 0; spin_ns <= 1000000; spin_ns += 500000) {
                sides_init(sides, spin_ns);
                for (int round = 0; round < 4; round++) {
                        for (int i = 0; i < 2; i++) {
                                struct lane *l = &sides[i].lane;
                                pthread_mutex_lock(&l->lock);
                                sides[i].below = 0;
                                memset(sides[i].got, 0, TOTAL);
                                pthread_mutex_unlock(&l->lock);
                        }
                        for (int i = 0; i < 2 - round % 2; i++) {
                                struct lane *l = &sides[i].lane;
                                pthread_mutex_lock(&l->lock);
                                start_transfer(l);
                                pthread_mutex_unlock(&l->lock);
                        }
                        for (int i = round % 2; i < 2; i++) {
                                struct lane *l = &sides[i].lane;
                                pthread_mutex_lock(&l->lock);
                                while (sides[i].below < TOTAL)
                                        pthread_cond_wait(&l->changed, &l->lock);
                                assert_memory_equal(sides[i].got, data, TOTAL);
                                pthread_mutex_unlock(&l->lock);
                        }
                }
                for (int i = 0; i < 2; i++)
                        side_fini(&sides[i]);
        }
}

TEST(closing_a_link_is_left_to_a_polling_lane_thread)
{
        static struct side sides[2];
        spin_cores = 4;
        sides_init(sides, UINT64_MAX / 2);
        struct lane *l = &sides[0].lane;
        pthread_mutex_lock(&l->lock);
        while (!link_busy(&l->link)) {
                pthread_mutex_unlock(&l->lock);
                sched_yield();
                pthread_mutex_lock(&l->lock);
        }
        link_down(&l->link);
        assert_non_null(l->link.conn);
        lane_thread_rouse(l->lane_threads[1]);
        while (l->link.conn) {
                pthread_mutex_unlock(&l->lock);
                sched_yield();
                pthread_mutex_lock(&l->lock);
        }
        pthread_mutex_unlock(&l->lock);
        for (int i = 0; i < 2; i++)
                side_fini(&sides[i]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(messages_before_its_start_and_during_its_sleep_are_sent),
                cmocka_unit_test(messages_that_come_while_it_receives_are_sent),
                cmocka_unit_test(memory_of_a_halted_link_is_left_alone),
                cmocka_unit_test(a_full_connection_is_tried_again_when_it_has_room),
                cmocka_unit_test(in_shared_memory_it_sends_and_receives_too),
                cmocka_unit_test(closing_a_link_is_left_to_a_polling_lane_thread),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

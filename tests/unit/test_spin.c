/* src/loop/spin: what it finds, and when it gives up. Its clock is the real one; nothing is said about
 * how long anything takes. */
#include "support/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "loop/spin.h"

static struct pollfd reader(int fds[2])
{
        assert_int_equal(pipe(fds), 0);
        return (struct pollfd){ .fd = fds[0], .events = POLLIN };
}

TEST(data_present_is_found_without_sleeping)
{
        int fds[2];
        struct pollfd p = reader(fds);
        struct spin s;
        spin_init(&s, 1000000, 8);
        assert_int_equal(write(fds[1], "x", 1), 1);
        assert_int_equal(spin_poll(&s, &(struct spin_on){ .fds = &p, .count = 1 }), 1);
        assert_int_equal(p.revents, POLLIN);
        assert_true(s.now_ns == 1000000);
        close(fds[0]);
        close(fds[1]);
}

static enum spin_also found(void *count)
{
        return ++*(int *)count == 30 ? SPIN_FOUND : *(int *)count > 3 ? SPIN_SOON : SPIN_NOTHING;
}

TEST(it_looks_at_other_things_in_turn)
{
        int fds[2], looks = 0;
        struct pollfd p = reader(fds);
        struct spin s;
        spin_init(&s, 60000000000, 8);
        s.also = found;
        s.arg = &looks;
        assert_true(spin_poll(&s, &(struct spin_on){ .fds = &p, .count = 1 }) < 0);
        assert_int_equal(looks, 30);
        close(fds[0]);
        close(fds[1]);
}

TEST(it_never_spins_with_too_few_cores_or_when_told_not_to)
{
        int fds[2];
        struct pollfd p = reader(fds);
        struct spin s;
        assert_int_equal(write(fds[1], "x", 1), 1);
        spin_init(&s, 1000000, 1);
        assert_int_equal(spin_poll(&s, &(struct spin_on){ .fds = &p, .count = 1 }), 0);
        spin_slept(&s);
        assert_int_equal(spin_poll(&s, &(struct spin_on){ .fds = &p, .count = 1 }), 0);
        spin_init(&s, 0, 64);
        assert_int_equal(spin_poll(&s, &(struct spin_on){ .fds = &p, .count = 1 }), 0);
        spin_slept(&s);
        assert_int_equal(spin_poll(&s, &(struct spin_on){ .fds = &p, .count = 1 }), 0);
        close(fds[0]);
        close(fds[1]);
}

/* Poll until something is found. A thread that did not run for long gives up; then it tries once
 * more. */
static int poll_yielding(struct spin *s, const struct spin_on *on)
{
        int r = 0;
        for (int tries = 0; !r && tries < 1000; tries++) {
                s->backoff = 0;
                s->now_ns = s->max_ns;
                *(int *)s->arg = 0;
                r = spin_poll(s, on);
        }
        return r;
}

TEST(with_two_cores_it_yields_unless_others_want_them)
{
        int fds[2], looks = 0;
        struct pollfd p = reader(fds);
        struct spin_on on = { .fds = &p, .count = 1 };
        struct spin s;
        spin_init(&s, UINT64_MAX / 4, 2);
        s.also = found;
        s.arg = &looks;
        assert_true(poll_yielding(&s, &on) < 0);
        assert_int_equal(looks, 30);

        looks = 0;
        spin_share(&s, true);
        s.backoff = 0;
        assert_int_equal(spin_poll(&s, &on), 0);
        spin_share(&s, false);
        for (s.backoff = 2; s.backoff;)
                assert_int_equal(spin_poll(&s, &on), 0);
        spin_init(&s, 1000, 2);
        for (int tries = 0; tries < 1000 && !s.gave_up; tries++) {
                s.backoff = 0;
                assert_int_equal(spin_poll(&s, &on), 0);
        }
        assert_true(s.gave_up);
        s.backoff = 0;
        s.max_ns = UINT64_MAX / 4; /* so long that this wait was short, however long it took */
        spin_slept(&s);
        assert_true(s.backoff > 0); /* for it might as well have slept */

        s.also = found;
        s.arg = &looks;
        s.backoff = 0;
        s.now_ns = 0; /* waits were long */
        assert_int_equal(spin_poll(&s, &on), 0);
        assert_int_equal(looks, 0);

        spin_slept(&s); /* this one was not */
        assert_true(s.now_ns == s.max_ns && !s.long_budget);
        assert_int_equal(write(fds[1], "x", 1), 1);
        assert_int_equal(spin_poll(&s, &on), 1);
        spin_never_yield(&s);
        assert_int_equal(spin_poll(&s, &on), 0);
        close(fds[0]);
        close(fds[1]);
}

static void *write_later(void *fd)
{
        struct timespec ms = { 0, 3000000 };
        nanosleep(&ms, NULL);
        (void)!write(*(int *)fd, "x", 1);
        return fd;
}

static int sleep_for_a_write(struct spin *s, const struct spin_on *on, int fd)
{
        pthread_t thread;
        char byte;
        s->now_ns = 0;
        assert_int_equal(spin_poll(s, on), 0);
        assert_int_equal(pthread_create(&thread, NULL, write_later, &fd), 0);
        int r = spin_sleep(s, on, UINT64_MAX);
        pthread_join(thread, NULL);
        assert_int_equal(read(on->fds[0].fd, &byte, 1), 1);
        return r;
}

TEST(it_expects_a_third_wait_as_long_as_two)
{
        int fds[2];
        struct pollfd p = reader(fds);
        struct spin_on on = { .fds = &p, .count = 1 };
        struct spin s;
        spin_init(&s, 1000, 8);
        for (int tries = 0; tries < 1000 && !s.expect.wait_ns; tries++)
                assert_int_equal(sleep_for_a_write(&s, &on, fds[1]), 1);
        assert_true(s.expect.wait_ns >= 3000000);

        /* Too early, too late or never, the event is found. */
        const uint64_t expected[] = { 1500000, 3000000, 100000000, 3000000000 };
        for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
                s.expect.wait_ns = expected[i];
                s.backoff = 0;
                assert_int_equal(sleep_for_a_write(&s, &on, fds[1]), 1);
        }

        /* If it comes while it is expected, the next wait spins. */
        s.now_ns = 0;
        for (int tries = 0; tries < 1000 && s.now_ns != s.max_ns; tries++) {
                s.backoff = 0;
                assert_int_equal(sleep_for_a_write(&s, &on, fds[1]), 1);
        }
        assert_true(s.now_ns == s.max_ns);

        /* If it does not, nothing is expected. */
        s.backoff = 0;
        s.expect.wait_ns = 2000000;
        assert_int_equal(spin_poll(&s, &on), 0);
        assert_int_equal(spin_sleep(&s, &on, s.began_ns + 4000000), 0);
        assert_true(!s.expect.wait_ns || s.expect.wait_ns != 2000000);
        s.expect.wait_ns = 2000000;
        assert_int_equal(spin_poll(&s, &on), 0);
        assert_int_equal(spin_sleep(&s, &on, 0), 0);

        s.expect.wait_ns = 5000000;
        s.expect.last_ns = 90000000; /* the waits differ */
        assert_int_equal(sleep_for_a_write(&s, &on, fds[1]), 1);
        assert_true(s.expect.wait_ns == 0 || s.expect.wait_ns > 80000000);
        spin_init(&s, 1000, 2); /* somebody else needs the core */
        for (int i = 0; i < 4; i++)
                assert_int_equal(sleep_for_a_write(&s, &on, fds[1]), 1);
        assert_true(s.expect.wait_ns == 0);
        close(fds[0]);
        close(fds[1]);
}

static atomic_bool parted;

static void *yield_to_others(void *unused)
{
        while (!atomic_load(&parted))
                sched_yield();
        return unused;
}

static cpu_set_t one_of(const cpu_set_t *all)
{
        cpu_set_t one;
        CPU_ZERO(&one);
        for (unsigned i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
                if (CPU_ISSET(i, all))
                        CPU_SET(i, &one);
        return one;
}

/* So that the system puts it on the other core. */
TEST(it_sleeps_once_where_both_sides_yield_to_each_other)
{
        int fds[2], looks = 0;
        struct pollfd p = reader(fds);
        struct spin_on on = { .fds = &p, .count = 1 };
        struct spin s;
        cpu_set_t old, one;
        pthread_t other;
        assert_int_equal(sched_getaffinity(0, sizeof(old), &old), 0);
        one = one_of(&old);
        assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
        assert_int_equal(pthread_create(&other, NULL, yield_to_others, NULL), 0);
        spin_init(&s, UINT64_MAX / 4, 2);
        s.also = found;
        s.arg = &looks;
        for (int tries = 0; tries < 1000 && s.backoff != 1; tries++)
                assert_true(poll_yielding(&s, &on) < 0);
        assert_int_equal(s.backoff, 1);
        atomic_store(&parted, true);
        pthread_join(other, NULL);
        assert_int_equal(sched_setaffinity(0, sizeof(old), &old), 0);
        looks = 0;
        assert_int_equal(spin_poll(&s, &on), 0);
        assert_int_equal(looks, 0);
        close(fds[0]);
        close(fds[1]);
}

TEST(long_waits_make_it_stop_and_a_short_one_begin_again)
{
        int fds[2];
        struct pollfd p = reader(fds);
        struct spin s;
        spin_init(&s, 1000, 8);
        for (int i = 0; i < 20; i++) {
                assert_int_equal(spin_poll(&s, &(struct spin_on){ .fds = &p, .count = 1 }), 0);
                s.began_ns = 1; /* long ago */
                spin_slept(&s);
        }
        assert_true(s.now_ns == 0);
        assert_int_equal(spin_poll(&s, &(struct spin_on){ .fds = &p, .count = 1 }), 0);
        s.max_ns = UINT64_MAX / 4; /* so long that this wait was short, however long it took */
        spin_slept(&s);
        assert_true(s.now_ns == s.max_ns);
        close(fds[0]);
        close(fds[1]);
}

/* Poll until something is found. A thread that is preempted gives up; then it tries once more. */
static int poll_patiently(struct spin *s, const struct spin_on *on, int first_look)
{
        int r = 0;
        for (int tries = 0; !r && tries < 1000; tries++) {
                s->now_ns = 0;
                s->long_budget = true;
                *(int *)s->arg = first_look;
                r = spin_poll(s, on);
        }
        return r;
}

/* While commands run, and as long as they don't take too long. */
TEST(a_due_event_is_waited_for_with_the_long_budget)
{
        int fds[2], looks = 0;
        struct pollfd p = reader(fds);
        struct spin_on on = { .fds = &p, .count = 1 }, due = { .fds = &p, .count = 1, .due = true };
        struct spin s;
        spin_init(&s, UINT64_MAX / 4, 8);
        s.also = found;
        s.arg = &looks;
        s.now_ns = 0;
        assert_int_equal(spin_poll(&s, &due), 0);
        assert_int_equal(looks, 0);
        spin_slept(&s);
        assert_true(s.long_budget);
        s.now_ns = 0;
        assert_int_equal(spin_poll(&s, &on), 0); /* nobody waits, and nothing runs */
        assert_true(poll_patiently(&s, &due, 0) < 0);
        assert_int_equal(looks, 30);
        assert_true(poll_patiently(&s, &on, 10) < 0); /* something runs */
        s.max_ns = 1000;
        s.began_ns = 1; /* long ago */
        spin_slept(&s);
        assert_false(s.long_budget);
        close(fds[0]);
        close(fds[1]);
}

TEST(it_asks_the_system_on_how_many_cores_it_may_run)
{
        cpu_set_t old, one;
        struct spin s;
        assert_int_equal(sched_getaffinity(0, sizeof(old), &old), 0);
        one = one_of(&old);
        assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
        spin_init(&s, 1000, 0);
        assert_int_equal(sched_setaffinity(0, sizeof(old), &old), 0);
        assert_true(s.max_ns == 0);
}

/* A busy host takes the core away, and then it gives up. Only root may ask for this. */
static int run_before_others(void **state)
{
        (void)state;
        (void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(data_present_is_found_without_sleeping),
                cmocka_unit_test(it_looks_at_other_things_in_turn),
                cmocka_unit_test(it_never_spins_with_too_few_cores_or_when_told_not_to),
                cmocka_unit_test(with_two_cores_it_yields_unless_others_want_them),
                cmocka_unit_test(it_expects_a_third_wait_as_long_as_two),
                cmocka_unit_test(it_sleeps_once_where_both_sides_yield_to_each_other),
                cmocka_unit_test(long_waits_make_it_stop_and_a_short_one_begin_again),
                cmocka_unit_test(a_due_event_is_waited_for_with_the_long_budget),
                cmocka_unit_test(it_asks_the_system_on_how_many_cores_it_may_run),
        };
        return cmocka_run_group_tests(tests, run_before_others, NULL);
}

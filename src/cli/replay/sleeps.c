#include "cli/replay/sleeps.h"

#include <stdlib.h>

#include "os/clock.h"
#include "os/condition.h"
#include "os/thread.h"

enum { ROUNDS_MAX = 40 };

/* Two threads that answer each other. */
struct pair {
        struct lock lock;
        struct condition asked, answered;
        bool question, answer, ends;
};

static void *answer_all(void *user)
{
        struct pair *p = user;
        lock_take(&p->lock);
        while (!p->ends) {
                if (p->question) {
                        p->question = false;
                        p->answer = true;
                        condition_signal(&p->answered);
                }
                condition_wait(&p->asked, &p->lock);
        }
        lock_release(&p->lock);
        return NULL;
}

/* Ask after a sleep. Returns how long the answer took. */
static uint64_t ask(struct pair *p, uint64_t sleep_ns)
{
        if (sleep_ns)
                (void)thread_sleep(sleep_ns);
        uint64_t begin = clock_now_ns();
        lock_take(&p->lock);
        p->question = true;
        p->answer = false;
        condition_signal(&p->asked);
        while (!p->answer)
                condition_wait(&p->answered, &p->lock);
        lock_release(&p->lock);
        return clock_now_ns() - begin;
}

static int by_length(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
        return (x > y) - (x < y);
}

/* The median. */
static uint64_t answer_ns(struct pair *p, uint64_t sleep_ns, unsigned rounds)
{
        uint64_t took[ROUNDS_MAX];
        for (unsigned i = 0; i < rounds; i++)
                took[i] = ask(p, sleep_ns);
        qsort(took, rounds, sizeof(*took), by_length);
        return took[rounds / 2];
}

void sleeps_measure(struct replay_sleep ret[REPLAY_SLEEPS])
{
        static const struct {
                uint64_t ns;
                unsigned rounds;
        } sleeps[REPLAY_SLEEPS] = { { 1000000, 40 }, { 10000000, 15 }, { 50000000, 5 } };
        struct pair p = { .question = false };
        thread_id other;
        for (unsigned i = 0; i < REPLAY_SLEEPS; i++)
                ret[i] = (struct replay_sleep){ sleeps[i].ns, 0 };
        lock_init(&p.lock);
        condition_init(&p.asked);
        condition_init(&p.answered);
        if (thread_start(&other, false, answer_all, &p) == 0) {
                uint64_t at_once = answer_ns(&p, 0, ROUNDS_MAX);
                for (unsigned i = 0; i < REPLAY_SLEEPS; i++) {
                        uint64_t ns = answer_ns(&p, sleeps[i].ns, sleeps[i].rounds);
                        ret[i].cost_ns = ns > at_once ? ns - at_once : 0;
                }
                lock_take(&p.lock);
                p.ends = true;
                condition_signal(&p.asked);
                lock_release(&p.lock);
                thread_join(other);
        }
        condition_fini(&p.answered);
        condition_fini(&p.asked);
        lock_fini(&p.lock);
}

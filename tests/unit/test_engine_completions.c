/* The order in which completions are reported, by backends that report late, out of order, at
 * once or from other threads. */
#include "support/check.h"

#include <stdlib.h>

#include "support/random.h"
#include "support/world.h"

/* ---- order -------------------------------------------------------------------------------------- */

/* The reference backend, but a read while nothing is in flight is complete when it is submitted. */
static struct backend *prompt;
static unsigned prompt_ones;

static int prompt_open(const struct backend_params *params, struct backend **ret)
{
        int r = backend_reference.open(params, ret);
        prompt = *ret;
        return r;
}

static cl_int prompt_submit(struct backend_queue *q, const struct backend_command *c,
                            struct backend_event **ret)
{
        if (!c->now)
                return backend_reference.submit(q, c, ret);
        struct backend_command unreported = *c;
        unreported.cookie = NULL;
        cl_int r = backend_reference.submit(q, &unreported, ret);
        if (r < 0)
                return r;
        assert_int_equal(backend_reference_step(prompt, 2), 1);
        r = backend_reference.event.status(*ret);
        backend_reference.event.release(steal(*ret));
        prompt_ones++;
        return r;
}

/* `bytes`: buffers' bytes can be had. */
static void reads_at_once(bool bytes)
{
        struct backend_ops ops = backend_reference;
        ops.open = prompt_open;
        ops.submit = prompt_submit;
        struct world *w = calloc(1, sizeof(*w));
        w->count = 1;
        backend_reference_manual = true;
        backend_reference_bytes = bytes;
        assert_int_equal(node_init_on(&w->nodes[0], &ops, true, NULL), 0);
        make_objects(w, 0, 64 << 10);
        launch(w, 0, QUEUE(1), EVENT(7), BUFFER(2), 1);
        struct data *sent = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(1), 64 << 10, 1);
        struct data *behind = read_buffer(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 100);
        prompt_ones = 0;
        world_run(w);
        assert_int_equal(prompt_ones, 0); /* the write was in flight */
        assert_int_equal(behind->arrived, 100);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(3), BUFFER(1), 100);
        launch(w, 0, QUEUE(2), EVENT(4), BUFFER(2), 1);
        pump(w);
        assert_int_equal(prompt_ones, 1);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        assert_int_equal(got->arrived, 100);
        assert_memory_equal(got->bytes, sent->bytes, 100);
        got = read_buffer(w, 0, QUEUE(1), EVENT(5), BUFFER(1), 100);
        pump(w);
        assert_int_equal(prompt_ones, 1); /* the launch is in flight */
        world_run(w);
        assert_memory_equal(got->bytes, sent->bytes, 100);
        got = read_buffer(w, 0, QUEUE(1), EVENT(6), BUFFER(1), 64 << 10);
        world_run(w);
        assert_int_equal(prompt_ones, bytes ? 2 : 1); /* else it is too large */
        expect_same(sent, got);
        release_objects(w, 0);
        world_free(w);
        backend_reference_bytes = false;
}

TEST(a_small_read_may_be_complete_at_once)
{
        reads_at_once(false);
}

TEST(a_read_of_bytes_that_can_be_had_may_be_complete_at_once)
{
        reads_at_once(true);
}

/* ---- data --------------------------------------------------------------------------------------- */

/* The reference backend, but completions are reported when the test says, in any order. */
static struct {
        void (*complete)(void *user, void *cookie, cl_int status, const struct backend_times *t);
        void *user;
        struct {
                void *cookie;
                cl_int status;
        } ends[256];
        size_t count;
} late;

static void late_complete(void *user, void *cookie, cl_int status, const struct backend_times *t)
{
        (void)user, (void)t;
        assert_true(late.count < array_size(late.ends));
        late.ends[late.count].cookie = cookie;
        late.ends[late.count++].status = status;
}

static void late_tell(size_t i)
{
        static const struct backend_times none;
        void *cookie = late.ends[i].cookie;
        cl_int status = late.ends[i].status;
        late.ends[i] = late.ends[--late.count];
        late.complete(late.user, cookie, status, &none);
}

static int late_open(const struct backend_params *params, struct backend **ret)
{
        struct backend_params p = *params;
        late.complete = p.complete;
        late.user = p.user;
        late.count = 0;
        p.complete = late_complete;
        return backend_reference.open(&p, ret);
}

static struct world *late_world(void)
{
        static struct backend_ops ops;
        ops = backend_reference;
        ops.open = late_open;
        struct world *w = calloc(1, sizeof(*w));
        w->count = 1;
        backend_reference_manual = true;
        assert_int_equal(node_init_on(&w->nodes[0], &ops, true, NULL), 0);
        make_objects(w, 0, 64);
        return w;
}

static void late_world_free(struct world *w)
{
        world_run(w);
        for (; late.count; world_run(w))
                late_tell(late.count - 1);
        release_objects(w, 0);
        world_free(w);
}

/* Do all of it, in any order: some commands, then some of their completions. */
static void run_late(struct world *w, struct rng *rng)
{
        for (size_t ran = 1; ran || late.count; pump(w)) {
                ran = step(w, 0, 1 + rng_below(rng, 8));
                for (size_t n = rng_below(rng, 3) + !ran; n && late.count; n--)
                        late_tell(rng_below(rng, late.count));
        }
}

static void expect_order(const struct world *w, const uint64_t *events, unsigned count)
{
        assert_int_equal(w->nodes[0].done_count, count);
        for (unsigned i = 0; i < count; i++)
                assert_int_equal(w->nodes[0].order[i], events[i]);
}

TEST(an_end_is_told_after_those_it_came_after_whoever_is_heard_of_first)
{
        struct world *w = late_world();
        launch(w, 0, QUEUE(2), EVENT(1), BUFFER(1), 1);
        send(w, 0, marker, .event = EVENT(2), .queue = QUEUE(2),
             .flags = COMMAND_NOTIFY | COMMAND_BARRIER);
        launch(w, 0, QUEUE(2), EVENT(3), BUFFER(2), 1);
        launch_after(w, 0, QUEUE(1), EVENT(4), BUFFER(2), 1, (struct wire_u64s)WAITS(EVENT(3)));
        send(w, 0, marker, .event = EVENT(5), .queue = QUEUE(2), .flags = COMMAND_NOTIFY,
             .waits = WAITS(EVENT(4)));
        world_run(w);
        assert_int_equal(late.count, 5);
        while (late.count)
                late_tell(late.count - 1);
        pump(w);
        expect_order(w, (const uint64_t[]){ EVENT(1), EVENT(2), EVENT(3), EVENT(4), EVENT(5) }, 5);
        late_world_free(w);
}

TEST(the_end_of_what_is_behind_all_is_not_that_of_what_comes_after_it)
{
        struct world *w = world_new(1);
        make_objects(w, 0, 64);
        send(w, 0, marker, .event = EVENT(1), .queue = QUEUE(2),
             .flags = COMMAND_NOTIFY | COMMAND_BARRIER);
        send(w, 0, buffer_fill, .event = EVENT(2), .queue = QUEUE(2), .buffer = BUFFER(2),
             .size = 64, .pattern = bytes_of("", 1));
        /* Its completion is also that of the one before. */
        launch_after(w, 0, QUEUE(2), EVENT(3), BUFFER(2), 1, (struct wire_u64s)WAITS(EVENT(2)));
        pump(w);
        while (status_of(w, 0, EVENT(1)) == PENDING) {
                assert_int_equal(step(w, 0, 1), 1);
                pump(w);
        }
        send(w, 0, event_watch, .event = EVENT(2));
        pump(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), PENDING);
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        release_objects(w, 0);
        world_free(w);
}

enum { GRAPH = 40 };

/* Commands of all kinds in both queues; `after[i][k]`: i comes after k. */
static void make_graph(struct world *w, struct rng *rng, bool after[GRAPH][GRAPH])
{
        unsigned queue_of[GRAPH], barrier = GRAPH; /* GRAPH: none */
        for (unsigned i = 0; i < GRAPH; i++) {
                uint64_t waits[2], wait_count = i ? rng_below(rng, 3) : 0, kind = rng_below(rng, 6);
                unsigned q = queue_of[i] = rng_below(rng, 4) ? 2 : 1;
                for (unsigned k = 0; k < wait_count; k++) {
                        uint64_t other = rng_below(rng, i);
                        waits[k] = EVENT(1 + other);
                        after[i][other] = true;
                }
                const struct wire_u64s list = { waits, wait_count };
                const uint64_t notify = rng_below(rng, 3) ? COMMAND_NOTIFY : 0;
                if (q == 2 && barrier < i)
                        after[i][barrier] = true;
                if (kind < 4) {
                        send(w, 0, buffer_fill, .event = EVENT(1 + i), .queue = QUEUE(q),
                             .flags = notify, .buffer = BUFFER(q), .size = 64,
                             .pattern = bytes_of("", 1), .waits = list);
                        continue;
                }
                send(w, 0, marker, .event = EVENT(1 + i), .queue = QUEUE(q),
                     .flags = notify | (kind == 4 ? COMMAND_BARRIER : 0), .waits = list);
                for (unsigned k = 0; !wait_count && k < i; k++)
                        after[i][k] |= queue_of[k] == q;
                if (q == 2 && kind == 4)
                        barrier = i;
        }
        for (unsigned k = 0; k < GRAPH; k++) /* what comes after what comes after */
                for (unsigned i = 0; i < GRAPH; i++)
                        for (unsigned j = 0; after[i][k] && j < GRAPH; j++)
                                after[i][j] |= after[k][j];
}

TEST(ends_in_any_order_are_told_in_order)
{
        for (uint64_t seed = 1; seed <= 200; seed++) {
                struct rng rng = { seed };
                bool after[GRAPH][GRAPH] = { 0 };
                backend_reference_seed = seed;
                struct world *w = late_world();
                const struct node *n = &w->nodes[0];
                make_graph(w, &rng, after);
                send(w, 0, marker, .event = EVENT(50), .queue = QUEUE(1), .flags = COMMAND_NOTIFY);
                send(w, 0, marker, .event = EVENT(51), .queue = QUEUE(2), .flags = COMMAND_NOTIFY);
                pump(w);
                run_late(w, &rng);
                assert_int_equal(status_of(w, 0, EVENT(50)), CL_SUCCESS);
                assert_int_equal(status_of(w, 0, EVENT(51)), CL_SUCCESS);
                for (unsigned a = 0; a < n->done_count; a++)
                        for (unsigned b = a + 1; b < n->done_count; b++) {
                                uint64_t first = n->order[a] - EVENT(1),
                                         then = n->order[b] - EVENT(1);
                                if (first < GRAPH && then < GRAPH && after[first][then])
                                        fail_msg("seed %d: %d is told before %d", (int)seed,
                                                 (int)first, (int)then);
                        }
                late_world_free(w);
        }
        backend_reference_seed = 0;
}

TEST(a_failure_is_reported_before_commands_behind_a_barrier)
{
        for (uint64_t seed = 1; seed <= 200; seed++) {
                struct rng rng = { seed };
                bool fails[GRAPH] = { 0 }, behind_all[GRAPH] = { 0 };
                backend_reference_seed = seed;
                struct world *w = late_world();
                const struct node *n = &w->nodes[0];
                send(w, 0, buffer_create, .buffer = BUFFER(3), .flags = CL_MEM_READ_WRITE,
                     .size = 32); /* too small for 16 numbers */
                for (unsigned i = 0; i < GRAPH; i++) {
                        uint64_t kind = rng_below(&rng, 8),
                                 other = EVENT(1 + rng_below(&rng, i + 1));
                        fails[i] = kind < 2;
                        behind_all[i] = kind >= 6;
                        if (behind_all[i])
                                send(w, 0, marker, .event = EVENT(1 + i), .queue = QUEUE(2),
                                     .flags = COMMAND_NOTIFY | (kind == 6 ? COMMAND_BARRIER : 0));
                        else if (kind < 4) /* nobody looks, unless it fails */
                                launch_unnoticed(w, QUEUE(2), EVENT(1 + i),
                                                 BUFFER(fails[i] ? 3 : 1));
                        else
                                send(w, 0, buffer_fill, .event = EVENT(1 + i), .queue = QUEUE(2),
                                     .buffer = BUFFER(2), .size = 64, .pattern = bytes_of("", 1),
                                     .waits = { &other, other != EVENT(1 + i) });
                        if (!rng_below(&rng, 4))
                                pump(w);
                        if (!rng_below(&rng, 8))
                                step(w, 0, rng_below(&rng, 8));
                }
                send(w, 0, marker, .event = EVENT(50), .queue = QUEUE(2), .flags = COMMAND_NOTIFY);
                pump(w);
                run_late(w, &rng);
                assert_int_equal(status_of(w, 0, EVENT(50)), CL_SUCCESS);
                assert_int_equal(counts(w, 0).commands_running, 0);
                size_t at[GRAPH];
                for (unsigned i = 0; i < GRAPH; i++) {
                        at[i] = 0;
                        while (at[i] < n->done_count && n->order[at[i]] != EVENT(1 + i))
                                at[i]++;
                        if (fails[i])
                                assert_int_equal(status_of(w, 0, EVENT(1 + i)),
                                                 CL_OUT_OF_RESOURCES);
                        for (unsigned k = 0; behind_all[i] && k < i; k++)
                                if (fails[k] && at[k] > at[i])
                                        fail_msg("seed %d: %d is told before %d", (int)seed, (int)i,
                                                 (int)k);
                }
                send(w, 0, release, .object = BUFFER(3));
                late_world_free(w);
        }
        backend_reference_seed = 0;
}

/* ---- threads ------------------------------------------------------------------------------------ */

TEST(completions_on_other_threads)
{
        struct world *w = calloc(1, sizeof(*w));
        struct node *n = &w->nodes[0];
        w->count = 1;
        backend_reference_manual = false;
        assert_int_equal(node_init(n, false, NULL), 0);
        make_objects(w, 0, 3 * MIB);
        struct data *sent = write_buffer(w, 0, QUEUE(1), EVENT(1), BUFFER(2), 3 * MIB, 1);
        fill_zero(w, 0, QUEUE(1), EVENT(2), BUFFER(1), 64);
        await(w, &n->answers, 1); /* the kernels are built */
        uint64_t next = 10;
        for (int i = 0; i < 300; i++) {
                launch(w, 0, QUEUE(1), EVENT(next++), BUFFER(1), 1);
                if (i % 7 == 0) {
                        uint64_t marker = EVENT(next++);
                        send(w, 0, marker, .event = marker, .queue = QUEUE(3),
                             .waits = WAITS(marker - 1));
                }
                if (i % 3 == 0)
                        pump(w);
        }
        struct data *numbers = read_buffer(w, 0, QUEUE(1), EVENT(5), BUFFER(1), 64);
        struct data *got = read_buffer(w, 0, QUEUE(1), EVENT(6), BUFFER(2), 3 * MIB);
        await(w, &n->done_count, 303);
        for (int i = 0; i < 1000 && got->arrived < got->size; i++)
                pump(w);
        assert_int_equal(number(numbers, 7), 300);
        expect_same(sent, got);
        /* And in the middle of it: */
        for (int i = 0; i < 50; i++)
                launch(w, 0, QUEUE(1), EVENT(next++), BUFFER(1), 1);
        pump(w);
        world_free(w);
        backend_reference_manual = true;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_small_read_may_be_complete_at_once),
                cmocka_unit_test(a_read_of_bytes_that_can_be_had_may_be_complete_at_once),
                cmocka_unit_test(
                        an_end_is_told_after_those_it_came_after_whoever_is_heard_of_first),
                cmocka_unit_test(the_end_of_what_is_behind_all_is_not_that_of_what_comes_after_it),
                cmocka_unit_test(ends_in_any_order_are_told_in_order),
                cmocka_unit_test(a_failure_is_reported_before_commands_behind_a_barrier),
                cmocka_unit_test(completions_on_other_threads),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

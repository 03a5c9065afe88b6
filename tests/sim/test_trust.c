/* A server that breaks its promises: it sends a completion twice or too early, or an answer to
 * another server's request. */
#include "support/check.h"

#include <string.h>

#include "base/log.h"
#include "core/link/server.h"
#include "support/setup.h"

/* Sends on the session of server `i` with the client. */
#define says(s, i, name, ...)                                                                 \
        do {                                                                                  \
                struct engine *engine = sim_engine((s)->sim, i);                              \
                engine_lock(engine);                                                          \
                assert_int_equal(session_send(engine_session(engine), name, __VA_ARGS__), 0); \
                engine_unlock(engine);                                                        \
        } while (0)

static uint32_t got[ITEMS];

static size_t arrived(void)
{
        size_t n = 0;
        for (size_t i = 0; i < ITEMS; i++)
                n += got[i] == 0;
        return n;
}

static cl_event begin_read(struct setup *s, const struct sim_params *params)
{
        cl_event e;
        setup_begin(s, params);
        memset(got, 255, sizeof(got));
        assert_int_equal(clEnqueueReadBuffer(s->queues[0], s->buffer, CL_FALSE, 0, sizeof(got), got,
                                             0, NULL, &e),
                         CL_SUCCESS);
        assert_int_equal(clFlush(s->queues[0]), CL_SUCCESS);
        return e;
}

TEST(a_server_has_one_word_on_an_event)
{
        for (uint64_t seed = 1; seed <= 100; seed++) {
                struct setup s;
                cl_event e = begin_read(&s, &(struct sim_params){ .seed = seed, .servers = 1 });
                for (int i = 0; i < 3; i++)
                        says(&s, 0, event_done, .event = e->id, .status = CL_COMPLETE);
                while (command_status(e) > CL_COMPLETE)
                        sim_run(s.sim, 1000);
                assert_int_equal(command_status(e), CL_COMPLETE);
                assert_int_equal(arrived(), ITEMS);
                assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
                setup_end(&s);
        }
}

TEST(memory_of_a_read_that_has_failed_is_the_applications_again)
{
        unsigned in_the_midst = 0;
        for (uint64_t seed = 1; seed <= 100; seed++) {
                static uint32_t then[ITEMS];
                struct setup s;
                cl_event e = begin_read(&s, &(struct sim_params){ .seed = seed,
                                                                  .servers = 1,
                                                                  .room = 4000,
                                                                  .delay_ns = 100000,
                                                                  .forgiving = true });
                while (!arrived())
                        sim_run(s.sim, 1000);
                in_the_midst += arrived() < ITEMS;
                says(&s, 0, event_done, .event = e->id, .status = CL_OUT_OF_RESOURCES);
                while (command_status(e) > CL_COMPLETE)
                        sim_run(s.sim, 1000);
                memcpy(then, got, sizeof(got));
                sim_run(s.sim, 1000000000);
                assert_memory_equal(then, got, sizeof(got));
                assert_int_equal(clReleaseEvent(e), CL_SUCCESS);
                setup_end(&s);
        }
        assert_true(in_the_midst > 50);
}

TEST(a_server_answers_what_it_was_asked)
{
        struct setup s;
        struct request r = { 0 };
        setup_begin(&s, &(struct sim_params){ .seed = 3, .servers = 2 });
        struct client *c = sim_client(s.sim);
        client_lock(c);
        assert_int_equal(request_begin(c, c->servers[0], &r), 0);
        client_unlock(c);
        says(&s, 1, released, .request = r.id);
        setup_check(&s, 2, 0);
        assert_false(r.done);
        says(&s, 0, released, .request = r.id);
        setup_check(&s, 0, 0);
        assert_true(r.done);
        setup_end(&s);
}

static int quiet(void **state)
{
        log_threshold = LOG_NONE; /* sessions end with errors */
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_server_has_one_word_on_an_event),
                cmocka_unit_test(memory_of_a_read_that_has_failed_is_the_applications_again),
                cmocka_unit_test(a_server_answers_what_it_was_asked),
        };
        return cmocka_run_group_tests(tests, quiet, NULL);
}

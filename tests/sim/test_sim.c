/* The client core and real engines in virtual time (support/sim.h): random programs against an oracle.
 *
 *   sim_sim --seeds FIRST LAST [--verbose] [--check-each] [--damage] [--no-memory] [--cuts]
 *     [--restarts] [--altered] [--slow] [--ahead] [--prefetch] [--steps]
 *   sim_sim --soak HOURS [SEED] */
#include "support/check.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/memory/placement.h"
#include "support/program.h"
#include "support/sim.h"

struct options {
        bool verbose, check_each, damage, no_memory, cuts, restarts, altered, slow, ahead, prefetch,
                steps;
};

enum { LOSSES = 15 }; /* a client gives up after one more in a row */

/* Until all devices are (not) available. */
static void wait_for_devices(struct sim *sim, cl_bool wanted)
{
        cl_device_id devices[16];
        cl_uint count;
        cl_bool available;
        assert_int_equal(
                clGetDeviceIDs(sim_platform(sim), CL_DEVICE_TYPE_CUSTOM, 16, devices, &count),
                CL_SUCCESS);
        for (cl_uint i = 0; i < count;) {
                assert_int_equal(clGetDeviceInfo(devices[i], CL_DEVICE_AVAILABLE, sizeof(available),
                                                 &available, NULL),
                                 CL_SUCCESS);
                if (available == wanted)
                        i++;
                else
                        sim_run(sim, 1000000);
        }
}

static void random_program(uint64_t seed, struct options o)
{
        struct rng rng = { ~seed };
        placement_chain_bytes = seed % 2 ? 1 : 1 << 20;
        struct sim *sim = sim_new(&(struct sim_params){
                .seed = seed,
                .servers = (unsigned)rng_range(&rng, 1, 3),
                .one_way = rng_chance(&rng, 20) ? 1u << rng_below(&rng, 3) : 0,
                /* None, any, or all of the ways between servers. */
                .blocked = rng_chance(&rng, 70) ? 0 : rng_u64(&rng) | -rng_below(&rng, 2),
                .verbose = o.verbose,
                .forgiving = o.no_memory,
                .reconnect_ns = o.cuts || o.restarts || o.altered ? UINT64_MAX / 2 : 0,
                .wait_ns = o.cuts || o.altered || (o.restarts && rng_chance(&rng, 50)) ? UINT64_MAX
                                                                                       : 0,
                .cut_chance = o.cuts ? (unsigned)rng_range(&rng, 1, 100) : 0,
                .cuts = o.cuts ? 200 : 0,
                .answer_ns = o.altered ? 1000000000 : 0,
                .alter_chance = o.altered ? (unsigned)rng_range(&rng, 1, 100) : 0,
                .alterations = o.altered ? (o.slow ? LOSSES : 100) : 0,
                .delay_ns = o.slow ? rng_range(&rng, 100000, 5000000) : 0,
                .room = o.slow ? rng_range(&rng, 1, 200) : 0,
                .finish_ahead = o.ahead,
                .prefetch = o.prefetch,
        });
        program_run(sim,
                    &(struct program_params){
                            .seed = rng_u64(&rng),
                            .verbose = o.verbose,
                            .check_each = o.check_each,
                            .broken = o.no_memory,
                            .no_memory = o.no_memory,
                            .restart = o.restarts,
                            .ahead = o.ahead,
                            .steps = o.prefetch || o.steps,
                            .break_after =
                                    o.damage || o.restarts ? (unsigned)rng_range(&rng, 1, 60) : 0,
                    });
        if (o.restarts) { /* whatever was left of the first, a second one computes */
                wait_for_devices(sim, CL_TRUE);
                program_run(sim, &(struct program_params){ .seed = rng_u64(&rng),
                                                           .verbose = o.verbose });
        }
        sim_free(sim);
}

/* ---- one session for long -------------------------------------------------------------------- */

/* Bytes of this process, client and servers; 0 where sanitizers have an allocator of their own. */
static size_t memory_in_use(void)
{
        struct mallinfo2 m = mallinfo2();
        return m.uordblks + m.hblkhd;
}

static void cut_something(struct sim *sim, struct rng *rng)
{
        unsigned i = (unsigned)rng_below(rng, sim_servers(sim));
        unsigned k = (unsigned)rng_below(rng, sim_servers(sim));
        if (i != k)
                sim_cut_peers(sim, i, k);
        else if (rng_chance(rng, 30))
                sim_half_open(sim, i);
        else
                sim_cut_client(sim, i);
}

/* The memory that the servers keep for transfers, of which nothing is under way; there is a bound for each domain. */
static size_t staging_of_all(struct sim *sim)
{
        size_t all = 0;
        for (unsigned i = 0; i < sim_servers(sim); i++) {
                struct engine_counts n;
                engine_lock(sim_engine(sim, i));
                engine_get_counts(sim_engine(sim, i), &n);
                engine_unlock(sim_engine(sim, i));
                assert_int_equal(n.staging, n.staging_free);
                all += n.staging;
        }
        return all;
}

/* One session with three servers for so many hours of their time: program after program, of each of which
 * up to three cuts may hit the middle, and between two of them one more every few seconds. The memory in use when
 * all is quiet, but staging memory, may not grow: from the second hour on not by a quarter (buffers that were filled
 * more than ever before stay as large). */
static int soak(unsigned long hours, uint64_t seed)
{
        const uint64_t second = 1000000000, hour = 3600 * second;
        struct rng rng = { seed };
        struct sim *sim = sim_new(&(struct sim_params){ .seed = seed,
                                                        .servers = 3,
                                                        .reconnect_ns = UINT64_MAX / 2,
                                                        .wait_ns = UINT64_MAX });
        uint64_t begin = sim_now(sim);
        size_t programs = 0, bound = SIZE_MAX;
        int failed = 0;
        for (unsigned long h = 1; h <= hours; h++) {
                size_t most = 0, staging = 0;
                while (sim_now(sim) - begin < h * hour) {
                        sim_cut_often(sim, (unsigned)rng_range(&rng, 1, 100),
                                      (unsigned)rng_below(&rng, 4));
                        program_run(sim, &(struct program_params){ .seed = rng_u64(&rng) });
                        sim_cut_often(sim, 0, 0);
                        sim_run(sim, rng_below(&rng, 3 * second));
                        cut_something(sim, &rng);
                        sim_run(sim, 1 + rng_below(&rng, 3 * second));
                        sim_forget(sim);
                        staging = staging_of_all(sim);
                        size_t now = memory_in_use() - staging;
                        most = now > most ? now : most;
                        programs++;
                }
                if (h == 2)
                        bound = most + most / 4;
                failed |= most > bound;
                printf("hour %lu: %zu programs and cuts between them, at most %zu bytes in use and %zu "
                       "of staging\n",
                       h, programs, most, staging);
                (void)fflush(stdout);
        }
        sim_free(sim);
        printf("memory %s\n", failed ? "grows" : "does not grow");
        return failed;
}

TEST(random_programs_survive_lost_servers_and_links)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE; /* each loss is an error there */
        for (uint64_t seed = 1; seed <= 200; seed++)
                random_program(seed, (struct options){ .damage = true });
        log_threshold = before;
}

TEST(random_programs_survive_without_memory)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 200; seed++)
                random_program(seed, (struct options){ .no_memory = true });
        log_threshold = before;
}

TEST(random_programs_compute_what_the_oracle_says)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_ERROR; /* servers that can't reach each other are a warning */
        for (uint64_t seed = 1; seed <= 300; seed++)
                random_program(seed, (struct options){ 0 });
        log_threshold = before;
}

TEST(random_programs_do_not_notice_that_links_are_cut)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_ERROR; /* each cut is a warning */
        for (uint64_t seed = 1; seed <= 300; seed++)
                random_program(seed, (struct options){ .cuts = true });
        log_threshold = before;
}

TEST(random_programs_do_not_notice_that_bytes_are_altered)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 300; seed++)
                random_program(seed, (struct options){ .altered = true });
        log_threshold = before;
}

/* Waits that return early (SPANCL_FINISH=optimistic): the programs rely on them, and see every byte and status that
 * they would see. */
TEST(random_programs_do_not_notice_that_waits_are_ahead)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 300; seed++)
                random_program(seed, (struct options){ .ahead = true, .cuts = seed % 2 });
        for (uint64_t seed = 1; seed <= 100; seed++)
                random_program(seed, (struct options){ .ahead = true,
                                                       .damage = seed % 2,
                                                       .no_memory = !(seed % 2) });
        log_threshold = before;
}

/* Small reads ahead (SPANCL_PREFETCH=1), also with waits that return early. */
TEST(random_programs_do_not_notice_that_reads_are_ahead)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 100; seed++)
                random_program(seed, (struct options){ .prefetch = true,
                                                       .ahead = seed % 3 == 0,
                                                       .cuts = seed % 2 });
        for (uint64_t seed = 1; seed <= 50; seed++)
                random_program(seed, (struct options){ .prefetch = true,
                                                       .ahead = seed % 3 == 0,
                                                       .damage = seed % 2,
                                                       .no_memory = !(seed % 2) });
        log_threshold = before;
}

/* Bytes take far longer than the clocks' limit, and come all the time: that is no silence. */
TEST(random_programs_do_not_notice_that_connections_are_slow)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 60; seed++)
                random_program(seed, (struct options){ .altered = true, .slow = true });
        log_threshold = before;
}

TEST(random_programs_compute_on_servers_that_were_started_anew)
{
        enum log_level before = log_threshold;
        log_threshold = LOG_NONE;
        for (uint64_t seed = 1; seed <= 200; seed++)
                random_program(seed, (struct options){ .restarts = true });
        log_threshold = before;
}

int main(int argc, char **argv)
{
        if (argc >= 3 && !strcmp(argv[1], "--soak")) {
                log_threshold = LOG_NONE;
                return soak(strtoul(argv[2], NULL, 0), argc > 3 ? strtoull(argv[3], NULL, 0) : 1);
        }
        if (argc >= 4 && !strcmp(argv[1], "--seeds")) {
                uint64_t first = strtoull(argv[2], NULL, 0), last = strtoull(argv[3], NULL, 0);
                struct options o = { 0 };
                for (int i = 4; i < argc; i++) {
                        o.verbose |= !strcmp(argv[i], "--verbose");
                        o.check_each |= !strcmp(argv[i], "--check-each");
                        o.damage |= !strcmp(argv[i], "--damage");
                        o.cuts |= !strcmp(argv[i], "--cuts");
                        o.altered |= !strcmp(argv[i], "--altered");
                        o.slow |= !strcmp(argv[i], "--slow");
                        o.ahead |= !strcmp(argv[i], "--ahead");
                        o.prefetch |= !strcmp(argv[i], "--prefetch");
                        o.steps |= !strcmp(argv[i], "--steps");
                        o.restarts |= !strcmp(argv[i], "--restarts");
                        o.no_memory |= !strcmp(argv[i], "--no-memory");
                }
                if (!o.verbose)
                        log_threshold = LOG_NONE;
                for (uint64_t seed = first; seed <= last; seed++)
                        random_program(seed, o);
                printf("%" PRIu64 " seeds passed\n", last - first + 1);
                return 0;
        }
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(random_programs_compute_what_the_oracle_says),
                cmocka_unit_test(random_programs_survive_lost_servers_and_links),
                cmocka_unit_test(random_programs_survive_without_memory),
                cmocka_unit_test(random_programs_do_not_notice_that_links_are_cut),
                cmocka_unit_test(random_programs_do_not_notice_that_bytes_are_altered),
                cmocka_unit_test(random_programs_do_not_notice_that_connections_are_slow),
                cmocka_unit_test(random_programs_do_not_notice_that_waits_are_ahead),
                cmocka_unit_test(random_programs_do_not_notice_that_reads_are_ahead),
                cmocka_unit_test(random_programs_compute_on_servers_that_were_started_anew),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

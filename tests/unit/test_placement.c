/* Placement against models that know every byte. */
#include "support/check.h"

#include <string.h>

#include "base/mem.h"
#include "core/memory/placement.h"
#include "support/random.h"

enum { BYTES = 96 };

static struct range random_range(struct rng *rng)
{
        uint64_t a = rng_below(rng, BYTES + 1), b = rng_below(rng, BYTES + 1);
        return a < b ? (struct range){ a, b } : (struct range){ b, a };
}

enum { PLACES = 4, HOST = PLACES - 1 };

static uint32_t server_of(int place)
{
        return place == HOST ? PLACEMENT_HOST : (uint32_t)place / 2;
}

static uint32_t domain_of(int place)
{
        return place == HOST ? 0 : (uint32_t)place % 2;
}

/* Bytes carry the number of the write that made them; every replica remembers what it holds. */
struct model {
        unsigned truth[BYTES];
        unsigned held[PLACES][BYTES];
        bool current[PLACES][BYTES];
};

static void model_write(struct model *m, int place, struct range r, unsigned version)
{
        for (uint64_t i = r.begin; i < r.end; i++) {
                m->truth[i] = version;
                for (int p = 0; p < PLACES; p++)
                        m->current[p][i] = p == place;
                m->held[place][i] = version;
        }
}

static int place_of(const struct replica *at)
{
        return at->server == PLACEMENT_HOST ? HOST : (int)(at->server * 2 + at->domain);
}

/* Bring everything stale, as a command would. */
static void model_use(struct placement *p, struct model *m, int place, struct range r,
                      uint64_t event)
{
        struct range part;
        const struct replica *from;
        while (placement_stale(p, server_of(place), domain_of(place), r, &part, &from)) {
                int source = place_of(from);
                assert_true(part.begin >= r.begin && part.end <= r.end && part.begin < part.end);
                assert_int_not_equal(source, place);
                for (uint64_t i = part.begin; i < part.end; i++) {
                        assert_true(m->current[source][i]);
                        assert_false(m->current[place][i]);
                        m->held[place][i] = m->held[source][i];
                        m->current[place][i] = true;
                }
                assert_int_equal(placement_copy(p, server_of(place), domain_of(place), part, event),
                                 0);
        }
        for (uint64_t i = r.begin; i < r.end; i++)
                if (m->truth[i])
                        assert_int_equal(m->held[place][i], m->truth[i]);
}

TEST(every_use_sees_the_last_write_wherever_it_was)
{
        for (uint64_t seed = 1; seed < 60; seed++) {
                struct rng rng = { seed };
                struct placement p = { 0 };
                struct model m = { 0 };
                for (unsigned step = 1; step < 120; step++) {
                        int place = (int)rng_below(&rng, PLACES);
                        struct range r = random_range(&rng);
                        if (r.begin == r.end)
                                continue;
                        if (place != HOST)
                                model_use(&p, &m, place, r, step);
                        if (rng_below(&rng, 2)) {
                                assert_int_equal(placement_write(&p, server_of(place),
                                                                 domain_of(place), r, step, 0),
                                                 0);
                                model_write(&m, place, r, step);
                        }
                }
                placement_fini(&p);
        }
}

TEST(the_same_server_is_preferred_and_the_host_is_last)
{
        struct placement p = { 0 };
        struct range all = { 0, 10 }, part;
        const struct replica *from;
        assert_int_equal(placement_write(&p, PLACEMENT_HOST, 0, all, 0, 0), 0);
        assert_int_equal(placement_stale(&p, 0, 0, all, &part, &from), 1);
        assert_true(from->server == PLACEMENT_HOST);
        assert_int_equal(placement_copy(&p, 1, 0, all, 1), 0);
        assert_int_equal(placement_stale(&p, 0, 0, all, &part, &from), 1);
        assert_int_equal(from->server, 1);
        assert_int_equal(placement_copy(&p, 0, 1, all, 2), 0);
        assert_int_equal(placement_stale(&p, 0, 0, all, &part, &from), 1);
        assert_int_equal(from->server, 0);
        /* A server that can't be asked is the last choice. It is chosen only if no other place
         * has the bytes. */
        p.avoid.words[0] = 1;
        assert_int_equal(placement_stale(&p, 0, 0, all, &part, &from), 1);
        assert_int_equal(from->server, 1);
        p.avoid.words[0] = 3;
        assert_int_equal(placement_stale(&p, 0, 0, all, &part, &from), 1);
        assert_true(from->server == PLACEMENT_HOST);
        p.avoid.words[0] = 2;
        assert_int_equal(placement_stale(&p, 3, 0, (struct range){ 0, 5 }, &part, &from), 1);
        assert_int_equal(from->server, 0);
        p.avoid.words[0] = 0;
        /* Lost data are not brought from the dead. */
        placement_forget_server(&p, 0);
        assert_int_equal(placement_stale(&p, 0, 0, all, &part, &from), 1);
        assert_int_equal(from->server, 1);
        assert_int_equal(placement_drop(&p, PLACEMENT_HOST, 0, all), 0);
        placement_forget_server(&p, 1);
        assert_int_equal(placement_stale(&p, 0, 0, all, &part, &from), 0);
        placement_fini(&p);
}

TEST(large_ones_go_down_a_chain)
{
        struct placement p = { 0 };
        struct range all = { 0, placement_chain_bytes }, part;
        const struct replica *from;
        assert_int_equal(placement_write(&p, 0, 0, all, 1, 0), 0);
        assert_int_equal(replica_arrival(placement_find(&p, 0, 0), all), 0);
        for (unsigned i = 1; i < 8; i++) {
                assert_int_equal(placement_stale(&p, i, 0, all, &part, &from), 1);
                assert_int_equal(from->server, i - 1);
                assert_int_equal(placement_copy(&p, i, 0, part, 100 + i), 0);
                placement_sends(&p, i - 1, 0, 1);
                assert_int_equal(replica_arrival(placement_find(&p, i, 0), part), 100 + i);
        }
        /* The first server that has them sends small ones. */
        struct range small = { 0, 100 };
        assert_int_equal(placement_stale(&p, 8, 0, small, &part, &from), 1);
        assert_int_equal(from->server, 0);
        /* Bytes that were written there since are not those that arrived. */
        assert_int_equal(placement_write(&p, 3, 0, small, 200, 0), 0);
        assert_int_equal(replica_arrival(placement_find(&p, 3, 0), small), 0);
        placement_fini(&p);
}

/* The shares are all of `part`, one after the other; how much comes from each server. */
static unsigned share(const struct placement *p, uint32_t server, struct range part,
                      const uint32_t *rates, uint64_t from_server[4])
{
        struct share shares[PLACEMENT_SHARES_MAX];
        struct range stale;
        const struct replica *from;
        assert_int_equal(placement_stale(p, server, 0, part, &stale, &from), 1);
        unsigned n = placement_share(p, server, stale, from, rates, shares);
        uint64_t at = stale.begin;
        memset(from_server, 0, 4 * sizeof(*from_server));
        for (unsigned i = 0; i < n; i++) {
                assert_int_equal(shares[i].part.begin, at);
                assert_true(shares[i].part.end > at);
                at = shares[i].part.end;
                from_server[shares[i].server] += at - shares[i].part.begin;
        }
        assert_int_equal(at, stale.end);
        return n;
}

TEST(large_ones_come_from_all_that_have_nothing_else_to_send)
{
        enum { TO = 3 };
        struct placement p = { 0 };
        uint32_t rates[4] = { 0 };
        uint64_t got[4];
        struct range all = { 0, 12 * placement_chain_bytes };
        struct range some = { 0, 2 * placement_chain_bytes - 1 };
        assert_int_equal(placement_write(&p, 0, 0, all, 1, 0), 0);
        for (unsigned i = 1; i < TO; i++) {
                assert_int_equal(placement_copy(&p, i, 0, all, 10 + i), 0);
                placement_sends(&p, 0, 0, 1);
        }
        /* The first two are still sending, the last one's bytes are still arriving: it sends them on. */
        assert_int_equal(share(&p, TO, all, rates, got), 1);
        for (unsigned i = 1; i < TO; i++) {
                placement_sends(&p, 0, 0, -1);
                placement_arrived(&p, i, 0, 10 + i);
        }
        assert_int_equal(share(&p, TO, all, rates, got), 3);
        for (unsigned i = 0; i < TO; i++)
                assert_int_equal(got[i], all.end / 3);
        assert_int_equal(share(&p, TO, some, rates, got), 1);
        /* As fast as they are known to be; too slow ones not at all. */
        rates[1] = 3000, rates[2] = 1000;
        assert_int_equal(share(&p, TO, all, rates, got), 3);
        assert_in_range(got[0] / 4096, got[1] / 4096 - 1, got[1] / 4096 + 1);
        assert_in_range(got[1], 2 * got[2], 3 * got[2]);
        rates[2] = 100;
        assert_int_equal(share(&p, TO, all, rates, got), 2);
        assert_int_equal(got[2], 0);
        rates[2] = 3000;
        /* A server that has something else to send is left alone. A second replica on a server
         * sends nothing. */
        placement_sends(&p, 0, 0, 1);
        assert_int_equal(placement_copy(&p, 1, 1, all, 20), 0);
        placement_arrived(&p, 1, 1, 20);
        assert_int_equal(share(&p, TO, all, rates, got), 2);
        assert_int_equal(got[0], 0);
        /* The same server is faster than all others. */
        assert_int_equal(placement_copy(&p, TO, 1, all, 30), 0);
        assert_int_equal(share(&p, TO, all, rates, got), 1);
        assert_int_equal(got[TO], all.end);
        placement_fini(&p);
}

TEST(data_that_arrives_in_parts_is_forwarded_in_parts)
{
        struct placement p = { 0 };
        const uint32_t rates[4] = { 0 };
        uint64_t got[4], half = 2 * placement_chain_bytes;
        struct range all = { 0, 2 * half };
        assert_int_equal(placement_write(&p, 0, 0, all, 1, 0), 0);
        placement_sends(&p, 0, 0, 1);
        assert_int_equal(placement_copy(&p, 1, 0, (struct range){ 0, half }, 11), 0);
        assert_int_equal(placement_copy(&p, 1, 0, (struct range){ half, 2 * half }, 12), 0);
        assert_int_equal(share(&p, 2, all, rates, got), 2);
        assert_int_equal(got[1], 2 * half);
        struct range within = { 1, 2 * half - 1 };
        assert_int_equal(share(&p, 2, within, rates, got), 2);
        placement_arrived(&p, 1, 0, 12);
        assert_int_equal(share(&p, 2, all, rates, got), 2);
        placement_arrived(&p, 1, 0, 11);
        placement_sends(&p, 0, 0, -1);
        assert_int_equal(share(&p, 2, all, rates, got), 2);
        assert_int_equal(got[0], half);
        placement_fini(&p);
}

TEST(a_fresh_buffer_needs_no_transfer)
{
        struct placement p = { 0 };
        struct range part;
        const struct replica *from;
        assert_int_equal(placement_stale(&p, 0, 0, (struct range){ 0, 100 }, &part, &from), 0);
        placement_fini(&p);
}

TEST(writers_are_all_there_until_a_later_one_follows_them)
{
        struct placement p = { 0 };
        struct range left = { 0, 50 }, right = { 50, 100 }, all = { 0, 100 };
        assert_int_equal(placement_write(&p, 0, 0, left, 1, 7), 0);
        assert_int_equal(placement_write(&p, 0, 0, right, 2, 8), 0);
        struct replica *at = placement_find(&p, 0, 0);
        assert_int_equal(at->writer_count, 2);
        /* The same in-order queue: the later comes after the earlier. */
        assert_int_equal(placement_write(&p, 0, 0, left, 3, 7), 0);
        assert_int_equal(at->writer_count, 2);
        /* Another queue does not follow the first. */
        assert_int_equal(placement_write(&p, 0, 0, all, 4, 8), 0);
        assert_int_equal(at->writer_count, 2);
        assert_int_equal(at->writers[0].event, 3);
        assert_int_equal(at->writers[1].event, 4);
        /* Out of order nothing follows anything. */
        assert_int_equal(placement_write(&p, 0, 0, all, 5, 0), 0);
        assert_int_equal(placement_write(&p, 0, 0, all, 6, 0), 0);
        assert_int_equal(at->writer_count, 4);
        /* A write that waits for others stands for those that wrote no more. */
        placement_follow(&p, 0, 0, right, 7, true, (uint64_t[]){ 6, 3 }, 2);
        assert_int_equal(at->writer_count, 4);
        placement_follow(&p, 0, 0, all, 7, true, (uint64_t[]){ 6, 3, 77 }, 3);
        assert_int_equal(at->writer_count, 2);
        assert_int_equal(at->writers[0].event, 4);
        assert_int_equal(at->writers[1].event, 5);
        /* One marker for many. */
        assert_int_equal(placement_copy(&p, 0, 0, left, 6), 0);
        assert_int_equal(placement_copy(&p, 0, 0, (struct range){ 60, 80 }, 7), 0);
        replica_collapse(at, false, 9);
        assert_int_equal(at->writer_count, 3);
        assert_int_equal(at->writers[2].event, 9);
        assert_int_equal(at->writers[2].range.end, 100);
        assert_false(at->writers[2].awaited);
        replica_collapse(at, true, 10);
        assert_int_equal(at->writer_count, 2);
        assert_int_equal(at->writers[1].event, 10);
        assert_int_equal(at->writers[1].range.end, 80);
        assert_true(at->writers[1].arrival && at->writers[1].awaited);
        placement_fini(&p);
}

static size_t all_users_wait_for(const struct placement *p, uint64_t event)
{
        const struct replica *at = placement_find(p, 0, 0);
        size_t found = 0;
        for (size_t i = 0; i < at->writer_count; i++)
                found += at->writers[i].event == event && at->writers[i].awaited;
        return found;
}

TEST(every_user_waits_for_an_arrival_until_a_command_overwrites_all_of_it)
{
        struct placement p = { 0 };
        struct range all = { 0, 100 }, most = { 0, 99 };
        enum { QUEUE = 7, ARRIVAL = 1, LATER = 4, BLOCKING = 5 };
        assert_int_equal(placement_copy(&p, 0, 0, all, ARRIVAL), 0);
        struct writer *w = &placement_find(&p, 0, 0)->writers[0];
        writer_see(w, QUEUE);
        writer_see(w, QUEUE + 1);
        assert_true(writer_is_seen(w, QUEUE) && writer_is_seen(w, QUEUE + 1));
        assert_false(writer_is_seen(w, 0) || writer_is_seen(w, QUEUE + 2));
        /* Two kernels that perhaps only read: the second need not come after the first. */
        placement_follow(&p, 0, 0, all, 2, false, (uint64_t[]){ ARRIVAL }, 1);
        assert_int_equal(placement_may_write(&p, 0, 0, all, 2, QUEUE), 0);
        assert_int_equal(all_users_wait_for(&p, ARRIVAL), 1);
        /* One that waits for the first need not name the arrival. */
        w = &placement_find(&p, 0, 0)->writers[0];
        assert_true(writer_is_among(w, (uint64_t[]){ 2 }, 1));
        assert_false(writer_is_among(w, (uint64_t[]){ 3 }, 1));
        /* A migration from there waits for the kernel, and the kernel for the arrival. */
        assert_int_equal(replica_waits(placement_find(&p, 0, 0), all, WRITERS_ARRIVALS).count, 1);
        assert_int_equal(replica_waits(placement_find(&p, 0, 0), all, WRITERS_ARRIVING).count, 0);
        assert_int_equal(replica_waits(placement_find(&p, 0, 0), all, WRITERS_OTHER).count, 1);
        assert_int_equal(placement_write(&p, 0, 0, most, 3, QUEUE), 0);
        assert_int_equal(all_users_wait_for(&p, ARRIVAL), 1);
        assert_int_equal(placement_write(&p, 0, 0, all, LATER, QUEUE), 0);
        assert_int_equal(all_users_wait_for(&p, ARRIVAL), 0);
        /* The same for a blocking write. */
        assert_int_equal(placement_write(&p, 0, 0, all, BLOCKING, QUEUE), 0);
        placement_await(&p, 0, 0, BLOCKING);
        assert_int_equal(placement_may_write(&p, 0, 0, all, 6, QUEUE), 0);
        assert_int_equal(all_users_wait_for(&p, BLOCKING), 1);
        placement_follow(&p, 0, 0, all, 8, true, (uint64_t[]){ BLOCKING }, 1);
        assert_int_equal(all_users_wait_for(&p, BLOCKING), 0);
        placement_fini(&p);
}

TEST(data_nobody_else_has_stays_when_some_did_not_arrive)
{
        struct placement p = { 0 };
        struct range all = { 0, 100 }, left = { 0, 20 }, right = { 80, 100 }, mid = { 30, 60 };
        struct range part;
        const struct replica *from;
        assert_int_equal(placement_write(&p, 0, 0, all, 1, 0), 0);
        assert_int_equal(placement_copy(&p, 1, 0, left, 2), 0);
        assert_int_equal(placement_copy(&p, 1, 0, right, 3), 0);
        assert_int_equal(placement_write(&p, 1, 0, mid, 4, 0), 0);
        replica_collapse(placement_find(&p, 1, 0), true, 5);
        assert_true(placement_arrival_failed(&p, 1, 5));
        assert_int_equal(placement_stale(&p, 1, 0, left, &part, &from), 1);
        assert_int_equal(placement_stale(&p, 1, 0, right, &part, &from), 1);
        assert_int_equal(placement_stale(&p, 1, 0, mid, &part, &from), 0);
        assert_int_equal(placement_stale(&p, 0, 0, mid, &part, &from), 1);
        placement_fini(&p);
}

TEST(bytes_that_did_not_arrive_are_not_current)
{
        struct placement p = { 0 };
        struct range all = { 0, 100 }, half = { 0, 50 }, part;
        const struct replica *from;
        assert_int_equal(placement_write(&p, 0, 0, all, 1, 0), 0);
        assert_int_equal(placement_copy(&p, 1, 0, half, 2), 0);
        assert_false(placement_arrival_failed(&p, 1, 1));
        assert_true(placement_arrival_failed(&p, 1, 2));
        assert_false(placement_arrival_failed(&p, 1, 2));
        assert_int_equal(placement_stale(&p, 1, 0, half, &part, &from), 1);
        assert_int_equal(part.end, 50);
        assert_int_equal(from->server, 0);
        placement_fini(&p);
}

TEST(bytes_written_behind_an_arrival_stay_when_it_fails)
{
        struct placement p = { 0 };
        struct range all = { 0, 100 }, part;
        const struct replica *from;
        enum { QUEUE = 7, ARRIVAL = 2, KERNEL = 3 };
        assert_int_equal(placement_write(&p, 0, 0, all, 1, 0), 0);
        assert_int_equal(placement_copy(&p, 1, 0, all, ARRIVAL), 0);
        assert_true(placement_arrives_after(&p, 1, 0, (struct range){ 99, 100 }, 1));
        assert_false(placement_arrives_after(&p, 1, 0, all, ARRIVAL));
        assert_false(placement_arrives_after(&p, 1, 0, (struct range){ 100, 200 }, 1));
        assert_false(placement_arrives_after(&p, 2, 0, all, 1));
        assert_int_equal(placement_may_write(&p, 1, 0, all, KERNEL, QUEUE), 0);
        assert_true(placement_arrival_failed(&p, 1, ARRIVAL));
        /* Another server gets the kernel's bytes, not those that it had itself before. */
        assert_int_equal(placement_stale(&p, 0, 0, all, &part, &from), 1);
        assert_int_equal(from->server, 1);
        assert_int_equal(placement_stale(&p, 1, 0, all, &part, &from), 0);
        placement_fini(&p);
}

TEST(the_view_is_current_once_it_has_come_and_until_somebody_writes)
{
        struct placement p = { 0 };
        struct range all = { 0, 100 }, half = { 0, 50 }, part;
        const struct replica *from;
        assert_false(placement_view_has(&p, half));
        assert_int_equal(placement_write(&p, 0, 0, all, 1, 0), 0);
        assert_int_equal(placement_copy(&p, PLACEMENT_VIEW, 0, all, 2), 0);
        assert_false(placement_view_has(&p, half));
        placement_view_right(&p, half); /* not while bytes are on their way there */
        placement_view_arrived(&p, 2);
        assert_true(placement_view_has(&p, all));
        assert_int_equal(placement_write(&p, 0, 0, half, 3, 0), 0);
        assert_false(placement_view_has(&p, all));
        assert_true(placement_view_has(&p, (struct range){ 50, 100 }));
        placement_view_right(&p, half);
        assert_true(placement_view_has(&p, all));
        /* Written while it is on its way; and what does not come at all. */
        assert_int_equal(placement_copy(&p, PLACEMENT_VIEW, 0, half, 4), 0);
        assert_int_equal(placement_write(&p, 0, 0, half, 5, 0), 0);
        placement_view_arrived(&p, 4);
        assert_false(placement_view_has(&p, half));
        assert_int_equal(placement_copy(&p, PLACEMENT_VIEW, 0, half, 6), 0);
        assert_true(placement_arrival_failed(&p, PLACEMENT_VIEW, 6));
        assert_false(placement_view_has(&p, half));
        /* Nothing is brought from it. */
        const struct range large = { 0, 2 * placement_chain_bytes };
        const uint32_t rates[4] = { 0 };
        struct share shares[PLACEMENT_SHARES_MAX];
        assert_int_equal(placement_write(&p, 0, 0, large, 7, 0), 0);
        assert_int_equal(placement_copy(&p, PLACEMENT_VIEW, 0, large, 8), 0);
        placement_view_arrived(&p, 8);
        assert_int_equal(placement_stale(&p, 1, 0, large, &part, &from), 1);
        assert_int_equal(placement_share(&p, 1, part, from, rates, shares), 1);
        assert_int_equal(shares[0].server, 0);
        placement_forget_server(&p, 0);
        assert_int_equal(placement_stale(&p, 0, 0, all, &part, &from), 0);
        placement_fini(&p);
}

TEST(a_command_comes_after_what_it_waits_for_and_its_own_queue)
{
        struct placement p = { 0 };
        struct range left = { 0, 50 }, right = { 50, 100 }, all = { 0, 100 };
        assert_true(placement_comes_after(&p, 0, 0, all, 0, NULL, 0));
        assert_int_equal(placement_write(&p, 0, 0, left, 1, 7), 0);
        assert_int_equal(placement_write(&p, 0, 0, right, 2, 0), 0);
        assert_int_equal(placement_copy(&p, 0, 0, right, 3), 0);
        assert_true(placement_comes_after(&p, 0, 0, left, 7, NULL, 0));
        assert_false(placement_comes_after(&p, 0, 0, left, 8, NULL, 0));
        assert_false(placement_comes_after(&p, 0, 0, right, 7, NULL, 0));
        assert_true(placement_comes_after(&p, 0, 0, right, 0, (uint64_t[]){ 9, 2 }, 2));
        assert_false(placement_comes_after(&p, 0, 0, all, 0, (uint64_t[]){ 9, 2 }, 2));
        assert_true(placement_comes_after(&p, 0, 0, all, 7, (uint64_t[]){ 9, 2 }, 2));
        placement_fini(&p);
}

TEST(nothing_is_claimed_when_memory_runs_out)
{
        struct range parts[] = { { 0, 10 }, { 20, 30 }, { 40, 50 }, { 60, 70 }, { 80, 90 } };
        for (unsigned long fail = 1; fail < 12; fail++) {
                struct placement p = { 0 };
                mem_fail_at(fail);
                for (unsigned i = 0; i < 5; i++) {
                        if (placement_write(&p, 0, i % 2, parts[i], i + 1, 0) == 0)
                                continue;
                        const struct replica *at = placement_find(&p, 0, i % 2);
                        assert_true(!at || !range_set_has(&at->current, parts[i]));
                }
                mem_fail_at(0);
                placement_fini(&p);
        }
}

TEST(after_a_reservation_writes_need_no_memory)
{
        enum { COUNT = 40 };
        const struct range all = { 0, 20 * COUNT };
        struct placement p = { 0 };
        assert_int_equal(placement_write(&p, 0, 0, all, 1, 0), 0);
        assert_int_equal(placement_write(&p, PLACEMENT_HOST, 0, (struct range){ 900, 901 }, 0, 0),
                         0);
        mem_fail_at(1);
        assert_int_equal(placement_reserve(&p, COUNT), SP_E_NOMEM);
        mem_fail_at(0);
        assert_int_equal(placement_reserve(&p, COUNT), 0);
        mem_fail_at(1);
        for (uint64_t i = 0; i < COUNT; i++) {
                struct range part = { 20 * i + 5, 20 * i + 10 };
                assert_int_equal(placement_write(&p, PLACEMENT_HOST, 0, part, 0, 0), 0);
                assert_false(range_set_has(&placement_find(&p, 0, 0)->current, part));
        }
        mem_fail_at(0);
        placement_fini(&p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(after_a_reservation_writes_need_no_memory),
                cmocka_unit_test(every_use_sees_the_last_write_wherever_it_was),
                cmocka_unit_test(the_same_server_is_preferred_and_the_host_is_last),
                cmocka_unit_test(large_ones_go_down_a_chain),
                cmocka_unit_test(large_ones_come_from_all_that_have_nothing_else_to_send),
                cmocka_unit_test(data_that_arrives_in_parts_is_forwarded_in_parts),
                cmocka_unit_test(a_fresh_buffer_needs_no_transfer),
                cmocka_unit_test(writers_are_all_there_until_a_later_one_follows_them),
                cmocka_unit_test(
                        every_user_waits_for_an_arrival_until_a_command_overwrites_all_of_it),
                cmocka_unit_test(data_nobody_else_has_stays_when_some_did_not_arrive),
                cmocka_unit_test(bytes_that_did_not_arrive_are_not_current),
                cmocka_unit_test(bytes_written_behind_an_arrival_stay_when_it_fails),
                cmocka_unit_test(the_view_is_current_once_it_has_come_and_until_somebody_writes),
                cmocka_unit_test(a_command_comes_after_what_it_waits_for_and_its_own_queue),
                cmocka_unit_test(nothing_is_claimed_when_memory_runs_out),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Descriptions of devices, which a server gives to clients without a session: the supervisor's record of them, and a
 * spancld that runs. */
#include "support/check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/control.h"
#include "daemon/supervisor/describing.h"
#include "daemon/supervisor/health.h"
#include "daemon/supervisor/pending.h"
#include "daemon/supervisor/supervising.h"
#include "daemon/supervisor/workers.h"
#include "os/clock.h"
#include "os/net/socket.h"
#include "os/random.h"
#include "proto/info.h"
#include "session/hello.h"
#include "support/daemon.h"

/* ---- the record --------------------------------------------------------------------------------- */

static struct supervisor supervisor;
static const struct config_options no_options;

/* A worker with this device filter and this owner's caches sends `size` bytes that begin with `first`, and is ready.
 * It says that they are `told` bytes. A size that 8 divides makes valid info blocks. */
static void learn_part(const char *owner, const char *filter, uint8_t first, size_t size,
                       size_t told)
{
        static struct control c;
        struct worker w = { 0 };
        snprintf(w.grant.owner, sizeof(w.grant.owner), "%s", owner);
        snprintf(w.devices.filter, sizeof(w.devices.filter), "%s", filter);
        memset(c.data, 0, sizeof(c.data));
        c.data[0] = first;
        for (size_t at = 0; at < size; at += c.size) {
                c.size = size - at < WIRE_DESCRIPTION_PART ? size - at : WIRE_DESCRIPTION_PART;
                describing_receive(&w, &c);
                c.data[0] = 0;
        }
        describing_learn(&supervisor, &w, told);
        describing_drop_parts(&w);
}

static void learn_of(const char *owner, const char *filter, uint8_t first, size_t size)
{
        learn_part(owner, filter, first, size, size);
}

static void learn(const char *filter, uint8_t first, size_t size)
{
        learn_of("", filter, first, size);
}

static struct description *find_of(const char *owner, const char *filter)
{
        struct gate_grant grant = { 0 };
        snprintf(grant.owner, sizeof(grant.owner), "%s", owner);
        snprintf(grant.devices, sizeof(grant.devices), "%s", filter);
        return describing_find(&supervisor, &grant);
}

static struct description *find(const char *filter)
{
        return find_of("", filter);
}

TEST(a_client_gets_the_devices_of_its_own_filter_alone)
{
        supervisor = (struct supervisor){ .options = &no_options };
        assert_null(find(""));
        learn("", 1, 96);
        assert_non_null(find(""));
        assert_null(find("0"));
        learn("0", 2, 96);
        assert_ptr_not_equal(find("0"), find(""));
        struct description *before = find("");
        learn("", 3, 96); /* takes the place of the one before */
        assert_ptr_not_equal(find(""), before);
        assert_non_null(find("0"));
        describing_fini(&supervisor);
        assert_null(find("0"));
        assert_int_equal(supervisor.descriptions.bytes, 0);
}

TEST(a_thousand_clients_with_filters_of_their_own_all_stay_described)
{
        enum { CLIENTS = 1000, SIZE = 40000 };
        struct description *shown[4];
        supervisor = (struct supervisor){ .options = &no_options };
        for (unsigned round = 0; round < 2; round++)
                for (unsigned i = 0; i < CLIENTS; i++) {
                        char owner[16], filter[32];
                        snprintf(owner, sizeof(owner), "%u", i);
                        snprintf(filter, sizeof(filter), "%u,!%u", i % 4, i);
                        if (round)
                                assert_ptr_equal(find_of(owner, filter), shown[i % 4]);
                        else
                                learn_of(owner, filter, (uint8_t)(i % 4), SIZE);
                        shown[i % 4] = find_of(owner, filter);
                        assert_non_null(shown[i % 4]);
                }
        /* The same devices are there once. */
        assert_true(supervisor.descriptions.bytes < 4 * SIZE + CLIENTS * 256);
        describing_fini(&supervisor);
        assert_int_equal(supervisor.descriptions.bytes, 0);
}

TEST(descriptions_have_a_bound_and_the_one_that_nobody_asks_for_goes_first)
{
        char filter[16];
        supervisor = (struct supervisor){ .options = &no_options };
        for (unsigned i = 0; i < 50; i++) {
                snprintf(filter, sizeof(filter), "%u", i);
                learn(filter, (uint8_t)i, WIRE_DESCRIPTION_MAX);
                assert_true(supervisor.descriptions.bytes <= DESCRIPTIONS_BYTES_MAX);
                assert_non_null(find(filter)); /* a client that has waited for it gets it */
                assert_non_null(find("0"));
        }
        assert_null(find("1"));
        assert_non_null(find("48"));
        /* Filters that are as long as they can be. */
        for (unsigned i = 0; i < 5000; i++) {
                char text[HEALTH_FILTER_MAX];
                struct worker w = { 0 };
                static struct control c = { .size = 96 };
                snprintf(text, sizeof(text), "%0*u", HEALTH_FILTER_MAX - 1, i);
                strcpy(w.devices.filter, text);
                describing_receive(&w, &c);
                describing_learn(&supervisor, &w, c.size);
                assert_true(supervisor.descriptions.bytes <= DESCRIPTIONS_BYTES_MAX);
        }
        describing_fini(&supervisor);
        assert_int_equal(supervisor.descriptions.bytes, 0);
}

TEST(a_client_gets_no_devices_that_another_clients_worker_has_described)
{
        supervisor = (struct supervisor){ .options = &no_options };
        learn_of("a", "0", 1, 96);
        assert_null(find("0"));
        assert_null(find_of("b", "0"));
        struct description *own = find_of("a", "0");
        assert_non_null(own);
        learn_of("b", "0", 2, 96);
        assert_ptr_equal(find_of("a", "0"), own);
        assert_ptr_not_equal(find_of("b", "0"), own);
        /* That of a worker without a client's caches is for all, and the others are not needed. */
        learn("0", 3, 96);
        struct description *all = find("0");
        assert_non_null(all);
        learn_of("a", "0", 4, 96);
        assert_ptr_equal(find_of("a", "0"), all);
        assert_ptr_equal(find_of("b", "0"), all);
        for (unsigned i = 0; i < 32; i++) {
                char owner[16];
                snprintf(owner, sizeof(owner), "%u", i);
                learn_of(owner, "0", 5, 96);
        }
        assert_ptr_equal(find("0"), all);
        describing_fini(&supervisor);
}

TEST(a_description_that_is_not_valid_ends_the_one_before)
{
        supervisor = (struct supervisor){ .options = &no_options };
        enum log_level before = log_threshold;
        log_threshold = LOG_ERROR;
        learn("", 1, 96);
        learn("0", 1, 96);
        learn("", 1, 100);
        assert_null(find(""));
        assert_non_null(find("0"));
        learn_of("a", "0", 1, 100);
        assert_non_null(find("0"));
        learn("", 1, 96);
        assert_non_null(find(""));
        log_threshold = before;
        describing_fini(&supervisor);
}

TEST(a_description_that_did_not_come_whole_is_none)
{
        supervisor = (struct supervisor){ .options = &no_options };
        learn_part("", "", 1, 96, 104);
        assert_null(find(""));
        learn_part("", "", 1, 96, 0);
        assert_null(find(""));
        learn("", 1, 96);
        struct description *whole = find("");
        learn_part("", "", 1, WIRE_DESCRIPTION_PART, 2 * WIRE_DESCRIPTION_PART);
        assert_ptr_equal(find(""), whole);
        describing_fini(&supervisor);
}

TEST(a_description_that_is_too_large_or_empty_is_none)
{
        supervisor = (struct supervisor){ .options = &no_options };
        learn("", 1, WIRE_DESCRIPTION_MAX + 1);
        assert_null(find(""));
        learn("", 1, 0);
        assert_null(find(""));
        learn("", 1, WIRE_DESCRIPTION_MAX);
        assert_non_null(find(""));
        describing_fini(&supervisor);
}

/* Take what is there, and return the number of bytes. */
static size_t receive(int fd, struct buf *b)
{
        uint8_t some[4096];
        ssize_t n = recv(fd, some, sizeof(some), MSG_DONTWAIT);
        if (n > 0)
                assert_int_equal(buf_put(b, some, (size_t)n), 0);
        return n > 0 ? (size_t)n : 0;
}

TEST(a_slow_client_gets_all_parts_of_one_description)
{
        int pair[2], small = 1, r;
        struct pending v = { 0 };
        struct buf got = { 0 };
        struct hello_devices d = { 0 };
        supervisor = (struct supervisor){ .options = &no_options };
        list_init(&supervisor.workers);
        learn("", 0, WIRE_DESCRIPTION_MAX);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
                         0);
        assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
        assert_int_equal(conn_from_fd(pair[0], &v.conn), 0);
        unsigned waits = 0;
        r = describing_begin(&supervisor, &v, find(""));
        learn("", 1, 16); /* a new one: it is not for this client */
        while (!r) {
                waits++;
                (void)receive(pair[1], &got);
                r = describing_go_on(&v);
        }
        assert_int_equal(r, 1);
        assert_true(waits > 10);
        while (receive(pair[1], &got))
                ;
        size_t at = 0, count = 0;
        r = 0;
        while (at < got.size) {
                int size = hello_size(bytes_of(got.data + at, got.size - at));
                assert_true(size > 0 && (size_t)size <= got.size - at);
                uint8_t *one = mem_dup(got.data + at, (size_t)size);
                struct wire_hello_reply reply;
                if (!count++) {
                        assert_int_equal(hello_get_reply(bytes_of(one, (size_t)size), &reply), 0);
                        assert_int_equal(reply.features, FEATURE_DESCRIPTION);
                } else {
                        r = hello_take_devices(&d, bytes_of(one, (size_t)size));
                        assert_true(r >= 0);
                }
                mem_free(one);
                at += (size_t)size;
        }
        assert_int_equal(r, 1);
        assert_int_equal(d.info.size, WIRE_DESCRIPTION_MAX);
        hello_devices_fini(&d);
        describing_end(&v);
        conn_close(v.conn);
        close(pair[1]);
        buf_fini(&got);
        describing_fini(&supervisor);
}

/* ---- connections that are sent it ---------------------------------------------------------------- */

/* A supervisor that listens at two addresses and has no loop. */
struct door {
        struct listening tcp, local;
        char folder[32], local_address[64];
};

static void door_open(struct door *d)
{
        struct supervisor *s = &supervisor;
        int small = 1;
        *s = (struct supervisor){ .options = &no_options, .gate.options = &no_options };
        pending_init(s);
        list_init(&s->workers);
        s->events.set = event_set_new();
        assert_true(s->events.set >= 0);
        learn("", 0, WIRE_DESCRIPTION_MAX); /* more than a socket takes */
        strcpy(d->folder, "/tmp/spancl-door-XXXXXX");
        assert_non_null(mkdtemp(d->folder));
        snprintf(d->local_address, sizeof(d->local_address), "unix:%s/s", d->folder);
        d->tcp.tls_only = d->local.tls_only = false;
        assert_int_equal(
                transport_of("tcp:127.0.0.1:0")->listen("tcp:127.0.0.1:0", &d->tcp.listener), 0);
        assert_int_equal(
                setsockopt(d->tcp.listener->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)),
                0); /* of its connections, too */
        assert_int_equal(
                transport_of(d->local_address)->listen(d->local_address, &d->local.listener), 0);
}

static void door_close(struct door *d)
{
        struct supervisor *s = &supervisor;
        pending_drop_all(s);
        pending_bury(s);
        assert_int_equal(s->arrivals.silent.count + s->arrivals.served.count, 0);
        d->tcp.listener = listener_close(d->tcp.listener);
        d->local.listener = listener_close(d->local.listener);
        assert_int_equal(rmdir(d->folder), 0);
        describing_fini(s);
        spare_give(&s->spare);
        close(s->events.set);
}

static struct conn *call(const char *address)
{
        struct conn *c;
        assert_int_equal(transport_of(address)->connect(address, 10000, &c), 0);
        return c;
}

/* Ask for the list at this address, and let the supervisor read that. */
static struct conn *ask_for_list(const struct listening *at, const char *address)
{
        struct hello_devices none = { 0 };
        struct dial_params p = { .name = "unit test", .devices = &none };
        struct wire_hello hello = dial_hello(&p);
        struct buf b = { 0 };
        hello.features = FEATURE_DESCRIPTION;
        assert_int_equal(hello_put(&b, &hello), 0);
        struct conn *c = call(address);
        assert_int_equal(write(c->fd, b.data, b.size), b.size);
        buf_fini(&b);
        do { /* until it has arrived */
                pending_accept(&supervisor, at);
                list_each(v, &supervisor.arrivals.silent.all, struct pending, link)
                {
                        pending_event(&supervisor, v);
                }
        } while (!list_empty(&supervisor.arrivals.silent.all));
        pending_bury(&supervisor);
        return c;
}

/* Take what the supervisor sends to this client until it closes the connection. Returns the number of bytes. */
static size_t take_all(struct conn *c)
{
        static uint8_t some[65536];
        size_t all = 0;
        for (ssize_t n; (n = recv(c->fd, some, sizeof(some), MSG_DONTWAIT)) != 0;) {
                if (n > 0) {
                        all += (size_t)n;
                        continue;
                }
                if (errno != EAGAIN)
                        break;
                list_each(v, &supervisor.arrivals.served.all, struct pending, link)
                {
                        pending_event(&supervisor, v);
                }
                pending_bury(&supervisor);
        }
        conn_close(c);
        return all;
}

TEST(strangers_displace_no_client_that_is_sent_its_list)
{
        enum { STRANGERS = 1100 };
        struct door d;
        struct rlimit files;
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
        files.rlim_cur = files.rlim_max;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
        if (files.rlim_cur < STRANGERS + 100)
                skip();
        door_open(&d);
        struct conn *client = ask_for_list(&d.tcp, d.tcp.listener->address);
        assert_int_equal(supervisor.arrivals.served.count, 1);
        enum log_level before = log_threshold;
        log_threshold = LOG_ERROR;
        for (unsigned i = 0; i < STRANGERS; i++) {
                conn_close(call(d.tcp.listener->address)); /* it stays at the server's side */
                while (supervisor.arrivals.silent.count <= i &&
                       supervisor.arrivals.silent.count < 1024)
                        pending_accept(&supervisor, &d.tcp);
                pending_accept(&supervisor, &d.tcp);
                pending_bury(&supervisor);
        }
        log_threshold = before;
        assert_int_equal(supervisor.arrivals.silent.count, 1024);
        assert_int_equal(supervisor.arrivals.served.count, 1);
        assert_true(take_all(client) > WIRE_DESCRIPTION_MAX);
        door_close(&d);
}

TEST(a_client_that_takes_no_lists_displaces_its_own_and_no_others)
{
        enum { LISTS = 100 };
        struct door d;
        struct conn *greedy[LISTS];
        door_open(&d);
        struct conn *client = ask_for_list(&d.tcp, d.tcp.listener->address);
        for (unsigned i = 0; i < LISTS; i++) {
                greedy[i] = ask_for_list(&d.local, d.local_address);
                assert_true(supervisor.arrivals.served.count <= 65);
        }
        assert_int_equal(supervisor.arrivals.served.count, 65);
        assert_true(take_all(client) > WIRE_DESCRIPTION_MAX);
        assert_true(take_all(greedy[0]) < WIRE_DESCRIPTION_MAX);
        assert_true(take_all(greedy[LISTS - 1]) > WIRE_DESCRIPTION_MAX);
        for (unsigned i = 1; i < LISTS - 1; i++)
                conn_close(greedy[i]);
        door_close(&d);
}

/* ---- workers that are to describe devices ------------------------------------------------------- */

/* Count the workers that the zygote was to fork. */
static unsigned count_forks(int zygote)
{
        static struct control c;
        unsigned n = 0;
        while (control_receive(zygote, &c) == 0) {
                n += c.kind == CONTROL_FORK;
                control_drop(&c);
        }
        return n;
}

TEST(a_worker_that_warms_for_a_listing_client_keeps_no_other_client_waiting)
{
        int zygote[2];
        struct pending lister = { .lists = true, .grant.devices = "0" }, other = { 0 };
        supervisor = (struct supervisor){ .options = &no_options,
                                          .dialler = helper_of("dialler", SOURCE_HELPER_LOG),
                                          .streams = helper_of("media-io", SOURCE_HELPER_LOG),
                                          .cgroups = { .home = -1, .base = -1 } };
        struct supervisor *s = &supervisor;
        list_init(&s->workers);
        pending_init(s);
        s->events.set = event_set_new();
        assert_true(s->events.set >= 0);
        assert_true(socket_pair_packets(zygote));
        s->spawner.zygote = zygote[0];
        list_append(&s->arrivals.waiting.all, &lister.link);
        s->arrivals.waiting.count = 1;
        workers_provide(s);
        /* The second one: a worker without a client is always wanted. */
        assert_int_equal(count_forks(zygote[1]), 2);
        list_append(&s->arrivals.waiting.all, &other.link);
        s->arrivals.waiting.count = 2;
        assert_non_null(workers_find_free(s, &lister.grant, WORKER_WARMING));
        assert_non_null(workers_find_free(s, &other.grant, WORKER_WARMING));
        workers_provide_at(s, UINT64_MAX);
        workers_provide(s);
        assert_int_equal(count_forks(zygote[1]), 0);
        list_each(w, &s->workers, struct worker, link)
        {
                list_remove(&w->link);
                assert_int_equal(rmdir(w->scratch), 0);
                close(w->scratch_lock);
                close(w->control);
                close(w->log.fd);
                mem_free(w);
        }
        close(s->events.set);
        close(zygote[0]);
        close(zygote[1]);
}

/* ---- a server that runs ------------------------------------------------------------------------- */

static struct dial_params params_of(const struct daemon *d, struct hello_devices *ret)
{
        struct dial_params p = { .address = d->address, .name = "unit test", .devices = ret };
        assert_true(random_fill(p.session_id, sizeof(p.session_id)));
        assert_true(random_fill(p.key, sizeof(p.key)));
        return p;
}

static unsigned count_devices(const struct hello_devices *d)
{
        struct info_entry e;
        unsigned n = 0;
        for (struct bytes b = bytes_of(d->info.data, d->info.size); info_next(&b, &e);)
                n += e.key == INFO_DEVICE;
        return n;
}

/* List the devices, and expect no session. Returns the number of sessions that the server tells. */
static unsigned expect_description(const struct daemon *d)
{
        struct hello_devices devices = { 0 };
        struct dial_params p = params_of(d, &devices);
        struct dial_reply reply;
        struct conn *conn = (struct conn *)&p;
        int r = loop_connect(&p, &conn, &reply);
        if (r < 0)
                fprintf(stderr, "%s\n", reply.text);
        assert_int_equal(r, 0);
        assert_null(conn);
        assert_true(reply.features & FEATURE_DESCRIPTION);
        assert_int_equal(count_devices(&devices), 2);
        unsigned sessions = (unsigned)devices.sessions;
        hello_devices_fini(&devices);
        return sessions;
}

TEST(a_full_server_lists_its_devices_and_takes_no_worker_for_it)
{
        struct daemon d;
        struct probe p, q;
        daemon_start(&d, (char *[]){ (char[]){ "--sessions" }, (char[]){ "1" }, NULL });
        pid_t warm = daemon_warm_worker(&d);
        assert_int_equal(expect_description(&d), 0);
        assert_int_equal(daemon_warm_worker(&d), warm);
        assert_false(daemon_logged(&d, "takes a new session"));
        daemon_join(&d, &p);
        for (unsigned i = 0; i < 200; i++)
                assert_int_equal(expect_description(&d), 1);
        probe_init(&q, d.address);
        assert_int_equal(probe_attach(&q, 0), SP_E_LIMIT);
        probe_fini(&q);
        assert_int_equal(probe_ping(&p), 0);
        probe_fini(&p);
        daemon_stop(&d);
}

TEST(the_devices_are_listed_as_soon_as_a_worker_has_described_them)
{
        struct daemon d;
        daemon_start(&d, NULL);
        assert_int_equal(expect_description(&d), 0); /* perhaps before there is a worker */
        daemon_assert_serves(&d);
        daemon_stop(&d);
}

TEST(a_client_that_knows_no_descriptions_gets_a_session)
{
        struct daemon d;
        daemon_start(&d, NULL);
        daemon_warm_worker(&d);
        daemon_assert_serves(&d);
        assert_false(daemon_logged(&d, "lists the devices"));
        daemon_stop(&d);
}

TEST(clients_that_do_not_read_their_list_keep_nobody_out)
{
        enum { CLIENTS = 300 };
        struct daemon d;
        int sockets[CLIENTS];
        daemon_start(&d, NULL);
        daemon_warm_worker(&d);
        for (unsigned i = 0; i < CLIENTS; i++) {
                struct hello_devices none = { 0 };
                struct dial_params p = params_of(&d, &none);
                struct wire_hello hello = dial_hello(&p);
                struct buf b = { 0 };
                struct conn *conn;
                hello.features = FEATURE_DESCRIPTION;
                assert_int_equal(hello_put(&b, &hello), 0);
                assert_int_equal(transport_of(d.address)->connect(d.address, 10000, &conn), 0);
                assert_int_equal(write(conn->fd, b.data, b.size), b.size);
                sockets[i] = dup(conn->fd);
                conn_close(conn);
                buf_fini(&b);
        }
        daemon_assert_serves(&d);
        (void)expect_description(&d); /* that session may be about to end */
        for (unsigned i = 0; i < CLIENTS; i++)
                close(sockets[i]);
        daemon_stop(&d);
}

int main(void)
{
        signal(SIGPIPE, SIG_IGN);
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_client_gets_the_devices_of_its_own_filter_alone),
                cmocka_unit_test(a_thousand_clients_with_filters_of_their_own_all_stay_described),
                cmocka_unit_test(
                        descriptions_have_a_bound_and_the_one_that_nobody_asks_for_goes_first),
                cmocka_unit_test(
                        a_client_gets_no_devices_that_another_clients_worker_has_described),
                cmocka_unit_test(a_description_that_is_not_valid_ends_the_one_before),
                cmocka_unit_test(a_description_that_did_not_come_whole_is_none),
                cmocka_unit_test(a_description_that_is_too_large_or_empty_is_none),
                cmocka_unit_test(a_slow_client_gets_all_parts_of_one_description),
                cmocka_unit_test(strangers_displace_no_client_that_is_sent_its_list),
                cmocka_unit_test(a_client_that_takes_no_lists_displaces_its_own_and_no_others),
                cmocka_unit_test(
                        a_worker_that_warms_for_a_listing_client_keeps_no_other_client_waiting),
                cmocka_unit_test(a_full_server_lists_its_devices_and_takes_no_worker_for_it),
                cmocka_unit_test(the_devices_are_listed_as_soon_as_a_worker_has_described_them),
                cmocka_unit_test(a_client_that_knows_no_descriptions_gets_a_session),
                cmocka_unit_test(clients_that_do_not_read_their_list_keep_nobody_out),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

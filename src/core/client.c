#include "core/client.h"

#include "base/log.h"
#include "base/mem.h"
#include "config/device_filter.h"
#include "config/faults.h"
#include "config/files.h"
#include "config/servers.h"
#include "config/variables.h"
#include "core/command/ahead.h"
#include "core/command/upload.h"
#include "core/device.h"
#include "core/device_place.h"
#include "core/link/availability.h"
#include "core/link/disconnected.h"
#include "core/link/found.h"
#include "core/link/found_sources.h"
#include "core/link/idle.h"
#include "core/link/io.h"
#include "core/link/server.h"
#include "core/memory/migration.h"
#include "core/memory/storage.h"
#include "core/platform.h"
#include "core/profile/profile.h"
#include "core/progress.h"
#include "core/recorder.h"
#include "core/stats.h"
#include "core/tracing.h"
#include "os/at_exit.h"
#include "os/net/socket.h"
#include "os/vm.h"
#include "trace/trace.h"

enum { PUMPS_OF_ALL = 64 }; /* so often the receiver looks at all servers without polling */

/* ---- the lock, ids, time -------------------------------------------------------------------- */

void client_lock(struct client *c) LOCK_UNCHECKED
{
        lock_take(&c->lock);
}

void client_unlock(struct client *c) LOCK_UNCHECKED
{
        lock_release(&c->lock);
}

struct handle *client_object(struct client *c, const void *address)
{
        return map_get(&c->objects.all, (uintptr_t)address);
}

uint64_t client_new_id(struct client *c, enum object_type type)
{
        return object_id(type, ++c->next_id);
}

uint64_t client_now_ns(struct client *c)
{
        return c->io->now_ns(c->io_user);
}

struct list *client_contexts(struct client *c)
{
        return &c->contexts;
}

cl_platform_id client_platform(struct client *c)
{
        return c->platform;
}

/* ---- waiting -------------------------------------------------------------------------------- */

void client_changed(struct client *c)
{
        if (!c->wait.waiters)
                return;
        condition_broadcast(&c->wait.changed);
        if (c->wait.sleeping)
                c->io->wake(c->io_user);
}

void client_flush(struct client *c)
{
        for (unsigned i = 0; i < c->server_count; i++)
                server_send(c->servers[i]);
}

/* Is something due from the server? */
static bool is_awaited(const struct server *s)
{
        return s->used || s->state != SERVER_UP || s->lost_status;
}

/* `all`: also from servers that no context uses. With many of them that costs as many system calls. */
static bool client_receive(struct client *c, bool all) REQUIRES(client_held)
{
        bool got = false;
        servers_refuse(c);
        for (unsigned i = 0; i < c->server_count; i++)
                if (all || is_awaited(c->servers[i]))
                        got |= server_receive(c->servers[i]);
        return got;
}

void client_pump(struct client *c, bool progress_thread, bool (*done)(void *arg), void *arg,
                 uint64_t deadline_ns)
{
        struct io_link *links[CLIENT_SERVERS_MAX];
        size_t count = 0;
        c->wait.pumping = true;
        c->wait.progress_pumping = progress_thread;
        uint64_t now = client_now_ns(c);
        servers_tick(c, now);
        client_flush(c);
        servers_check_silence(c, now);
        /* The waiter may have waited only for the sending. Poll finds what the other servers have sent. */
        bool all = c->requests.count || ++c->wait.pumps % PUMPS_OF_ALL == 0;
        if (!client_receive(c, all) && !(done && done(arg))) {
                for (unsigned i = 0; i < c->server_count; i++)
                        if (c->servers[i]->state != SERVER_LOST && c->servers[i]->link)
                                links[count++] = c->servers[i]->link;
                uint64_t at = servers_deadline(c);
                if (at < deadline_ns)
                        deadline_ns = at;
                c->wait.sleeping = true;
                c->io->wait(c->io_user, links, count, !progress_thread, deadline_ns, &c->lock);
                c->wait.sleeping = false;
                client_receive(c, true);
        }
        c->wait.pumping = c->wait.progress_pumping = false;
        if (progress_thread ? c->wait.waiters : c->wait.waiters > 1)
                condition_broadcast(&c->wait.changed);
}

bool client_poll(struct client *c)
{
        client_flush(c);
        if (c->wait.pumping)
                return false; /* the receiver does it */
        c->wait.pumping = true;
        bool received = client_receive(c, true);
        c->wait.pumping = false;
        if (c->wait.waiters)
                condition_broadcast(&c->wait.changed);
        return received;
}

/* Sleep while another thread receives. */
static void wait_for_receiver(struct client *c, uint64_t deadline_ns) REQUIRES(client_held)
{
        client_flush(c);
        if (c->wait.progress_pumping && c->wait.sleeping)
                c->io->wake(c->io_user);
        client_sleep(c, &c->wait.changed, deadline_ns);
}

bool client_wait_until(struct client *c, bool (*done)(void *arg), void *arg, uint64_t deadline_ns)
{
        TRACE_SPAN(wait, c->wait.waiters);
        c->wait.waiters++;
        bool r, waits = false;
        uint64_t begin = 0;
        while (!(r = done(arg))) {
                if (!waits && profile_is_on())
                        begin = client_now_ns(c);
                c->wait.count += !waits;
                waits = true;
                if (deadline_ns != UINT64_MAX && client_now_ns(c) >= deadline_ns)
                        break;
                if (c->wait.pumping)
                        wait_for_receiver(c, deadline_ns);
                else
                        client_pump(c, false, done, arg, deadline_ns);
        }
        c->wait.waiters--;
        if (c->wait.waiters && !c->wait.pumping)
                condition_broadcast(&c->wait.changed);
        if (!c->wait.waiters)
                progress_relieve(c);
        if (profile_is_on())
                profile_waited(c, begin);
        return r;
}

void client_wait(struct client *c, bool (*done)(void *arg), void *arg)
{
        client_wait_until(c, done, arg, UINT64_MAX);
}

/* ---- servers and devices -------------------------------------------------------------------- */

static int read_config(struct client *c) REQUIRES(client_held)
{
        if (c->specs.list || c->specs.misconfigured)
                return c->specs.list ? 0 : SP_E_INVAL; /* client_new's, or read before */
        char *error = NULL;
        int r = config_servers(&c->specs.own, &c->specs.own_count, &error);
        if (r < 0) {
                log_error("client", "%s; SpanCL has no devices", error ? error : status_text(r));
                mem_free(error);
                c->specs.misconfigured = true;
                return r;
        }
        c->specs.list = c->specs.own;
        c->specs.count = c->specs.own_count;
        found_choose_sources(c);
        return 0;
}

int client_add_devices(struct client *c, struct server *s)
{
        size_t n = c->devices.all_count + s->device_count;
        cl_device_id *all = mem_realloc(c->devices.all, n * sizeof(*all));
        if (all)
                c->devices.all = all;
        cl_device_id *list = mem_realloc(c->devices.list, n * sizeof(*list));
        if (list)
                c->devices.list = list;
        if (!all || !list)
                return n ? SP_E_NOMEM : 0;
        for (cl_uint k = 0; k < s->device_count; k++)
                all[c->devices.all_count++] = s->devices[k];
        return 0;
}

static int read_filter(struct client *c) REQUIRES(client_held)
{
        const char *text = c->devices.filter_text;
        char *error = NULL, place[CONFIG_PATH_MAX + 64];
        config_place(CONFIG_client_devices, place, sizeof(place));
        int r = device_filter_parse(text ? text : "", place, &c->devices.filter, &error);
        if (r < 0)
                log_error("client", "%s; SpanCL has no devices", error ? error : status_text(r));
        mem_free(error);
        return r;
}

static uint64_t latency(cl_device_id d)
{
        return d->server->spec->in_process ? 0 : d->server->clock.rtt_ns;
}

/* Does `a` stand in front of `b`, which came before it? */
static bool is_better(const struct client *c, cl_device_id a, cl_device_id b) REQUIRES(client_held)
{
        switch (c->devices.filter.order) {
        case DEVICE_ORDER_LATENCY:
                return latency(a) < latency(b);
        case DEVICE_ORDER_LOAD:
                return a->server->load < b->server->load;
        case DEVICE_ORDER_MEMORY:
                return device_number(a, CL_DEVICE_GLOBAL_MEM_SIZE) >
                       device_number(b, CL_DEVICE_GLOBAL_MEM_SIZE);
        default:
                return false;
        }
}

/* Once, before the program sees any device. */
static void order_devices(struct client *c) REQUIRES(client_held)
{
        cl_device_id *all = c->devices.all;
        for (cl_uint i = 1; i < c->devices.all_count; i++) {
                cl_device_id d = all[i];
                cl_uint k = i;
                for (; k && is_better(c, d, all[k - 1]); k--)
                        all[k] = all[k - 1];
                all[k] = d;
        }
}

static bool filter_takes(const struct client *c, cl_device_id d) REQUIRES(client_held)
{
        return device_filter_takes(&c->devices.filter,
                                   &(struct device_traits){
                                           .type = d->type,
                                           .vendor = device_own_text(d, DEVICE_OWN_VENDOR),
                                           .name = device_own_text(d, DEVICE_OWN_NAME),
                                           .memory = device_number(d, CL_DEVICE_GLOBAL_MEM_SIZE),
                                   });
}

/* Devices of servers that are gone are not shown. The filter limits the number of devices, but takes none away that
 * the program has seen. */
static void choose_devices(struct client *c) REQUIRES(client_held)
{
        cl_uint shown = 0;
        c->devices.count = 0;
        for (cl_uint i = 0; i < c->devices.all_count; i++)
                shown += c->devices.all[i]->listed && found_shows(c->devices.all[i]->server);
        for (cl_uint i = 0; i < c->devices.all_count; i++) {
                cl_device_id d = c->devices.all[i];
                if (!found_shows(d->server))
                        continue;
                if (!d->listed && shown < c->devices.filter.count_max && filter_takes(c, d)) {
                        d->listed = true;
                        shown++;
                }
                if (d->listed)
                        c->devices.list[c->devices.count++] = d;
        }
}

void client_show_devices(struct client *c, struct server *s)
{
        if (!c->connected)
                return; /* the first query of devices does it, in their order */
        choose_devices(c);
        for (cl_uint i = 0; i < s->device_count; i++)
                if (s->devices[i]->listed)
                        device_joined(s->devices[i]);
}

static bool connect_finished(void *arg) REQUIRES(client_held)
{
        struct client *c = arg;
        return c->connected;
}

void client_devices(struct client *c, cl_device_id const **ret, cl_uint *ret_count)
{
        /* The lock is released while it waits for answers: others wait until it has finished. */
        if (!c->connected && c->connecting)
                client_wait(c, connect_finished, c);
        if (!c->connected && !c->closing) {
                c->connecting = true;
                if (read_filter(c) == 0 && read_config(c) == 0)
                        servers_connect(c);
                for (unsigned i = 0; i < c->server_count; i++)
                        if (client_add_devices(c, c->servers[i]) < 0)
                                log_error("client", "out of memory");
                found_begin(c);
                order_devices(c);
                c->connected = true;
                client_changed(c);
                servers_unused(c);
        }
        if (!list_empty(&c->found.all)) { /* their servers come and go while nobody waits */
                client_poll(c);
                found_tidy(c);
        }
        choose_devices(c);
        *ret = c->devices.list;
        *ret_count = c->devices.count;
}

bool client_has_platform(struct client *c)
{
        const cl_device_id *devices;
        cl_uint count;
        client_lock(c);
        bool named = read_config(c) < 0 || (found_are_searched(c) && !c->found.automatic);
        for (size_t i = 0; i < c->specs.count && !named; i++)
                named = !c->specs.list[i].implied;
        if (!named)
                client_devices(c, &devices, &count);
        client_unlock(c);
        return named || count;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void init_locks(struct client *c) LOCK_UNCHECKED
{
        lock_init(&c->lock);
        condition_init(&c->wait.changed);
        condition_init(&c->progress.cond);
        lock_init(&c->transfers.uploads.lock);
        condition_init(&c->transfers.uploads.unread);
        condition_init(&c->transfers.uploads.work);
}

int client_new(const struct client_params *params, struct client **ret) LOCK_UNCHECKED
{
        struct client *c = mem_zalloc(sizeof(*c));
        if (!c)
                return SP_E_NOMEM;
        c->io = params->io;
        c->io_user = params->io_user;
        c->specs.list = params->specs;
        c->specs.count = params->spec_count;
        c->found.sources = params->sources ? mem_strdup(params->sources) : NULL;
        c->found.wait_ns = params->sources_ns;
        c->found.wait_implied = params->sources_ns_implied;
        c->devices.filter_text = params->devices ? mem_strdup(params->devices) : NULL;
        c->disconnected.reconnect_ns = params->reconnect_ns;
        c->disconnected.wait_ns = params->wait_ns;
        c->disconnected.watchers_fail = params->watchers_fail;
        c->svm.managed = params->managed_svm && vm_can_map_twice();
        if (params->managed_svm && !c->svm.managed)
                log_warn("client",
                         "SPANCL_SVM=managed: this system can't serve it, so it is coarse");
        c->svm.writes = params->svm_writes;
        c->events.ahead = params->finish_ahead;
        c->events.ahead_limit_ns = params->finish_ahead_ns;
        c->events.prefetch = params->prefetch;
        c->disconnected.answer_ns = params->answer_ns;
        c->sessions.idle_ns = params->idle_ns;
        list_init(&c->contexts);
        list_init(&c->progress.deferred);
        list_init(&c->events.followers);
        list_init(&c->transfers.host_copies);
        list_init(&c->transfers.outgoing);
        list_init(&c->transfers.uploads.all);
        c->transfers.uploads.mode = params->uploads;
        list_init(&c->sessions.retired);
        list_init(&c->found.all);
        init_locks(c);
        int r = params->devices && !c->devices.filter_text ? SP_E_NOMEM
                                                           : platform_new(c, &c->platform);
        if (r < 0) {
                mem_free(c->devices.filter_text);
                mem_free(c->found.sources);
                mem_free(c);
                return r;
        }
        *ret = c;
        return 0;
}

/* Free everything; nothing is sent any more. */
static void destroy(struct client *c, bool after_fork) LOCK_UNCHECKED
{
        if (!after_fork)
                client_lock(c);
        for (unsigned i = 0; i < c->server_count; i++)
                server_free(c->servers[i], after_fork);
        list_each(s, &c->sessions.retired, struct server, sessions.retired)
                server_free(s, after_fork);
        if (!after_fork)
                client_unlock(c);
        map_fini(&c->requests);
        map_fini(&c->events.pending);
        map_fini(&c->transfers.incoming);
        migrations_fini(c);
        map_fini(&c->queues);
        buf_fini(&c->args);
        map_fini(&c->objects.all);
        storage_fini(c);
        found_fini(c);
        mem_free(c->devices.filter_text);
        mem_free(c->devices.all);
        mem_free(c->devices.list);
        platform_free(c->platform);
        if (c->specs.own)
                config_servers_free(c->specs.own, c->specs.own_count);
        if (!after_fork) {
                condition_fini(&c->transfers.uploads.work);
                condition_fini(&c->transfers.uploads.unread);
                lock_fini(&c->transfers.uploads.lock);
                condition_fini(&c->progress.cond);
                condition_fini(&c->wait.changed);
                lock_fini(&c->lock);
        }
        mem_free(c);
}

struct client *client_free(struct client *c)
{
        if (!c)
                return NULL;
        found_end(c);
        client_lock(c);
        c->closing = true;
        uploads_stop(c);
        progress_stop(c);
        servers_close(c, false);
        client_unlock(c);
        destroy(c, false);
        return NULL;
}

/* ---- the process's client ------------------------------------------------------------------- */

static struct lock global_lock = LOCK_INIT;
static struct client *global;
static struct client *abandoned; /* of before a fork */
static bool exiting;
/* This thread holds global_lock and starts the client's tracers. LTTng's library forks a child meanwhile, which makes
 * a file. */
static _Thread_local bool starting_tracers;

static void fork_prepare(void) LOCK_UNCHECKED
{
        if (starting_tracers)
                return;
        lock_take(&global_lock);
        if (global)
                lock_take(&global->lock);
}

static void fork_parent(void) LOCK_UNCHECKED
{
        if (starting_tracers)
                return;
        if (global)
                lock_release(&global->lock);
        lock_release(&global_lock);
}

/* The parent goes on using its connections; the child closes its descriptors and starts anew. Its
 * objects from before the fork are of no use, as with other implementations; they are left alone, since
 * the application still holds them. */
static void fork_child(void) LOCK_UNCHECKED
{
        if (starting_tracers) /* this child never returns from LTTng's library */
                return;
        trace_stop(); /* the file is the parent's */
        profile_stop();
        recorder_forget();
        if (global) {
                progress_forget(global);
                uploads_forget(global);
                found_abandon(global);
                for (unsigned i = 0; i < global->server_count; i++)
                        server_abandon(global->servers[i]);
                socket_close_new(); /* those that a thread is connecting: no server has them yet */
                init_locks(global);
                global->wait.waiters = 0;
                global->wait.pumping = global->wait.progress_pumping = global->wait.sleeping =
                        false;
                global->abandoned_next = abandoned;
                abandoned = global;
                global = NULL;
        }
        lock_init(&global_lock);
}

static void log_fault(void *user, const char *text)
{
        (void)user;
        log_warn("config", "%s", text);
}

struct client *client_get(void)
{
        static bool prepared;
        lock_take(&global_lock);
        if (!global && !exiting) {
                if (!prepared) {
                        thread_at_fork(fork_prepare, fork_parent, fork_child);
                        log_threshold = (enum log_level)config_number(CONFIG_client_log);
                        config_faults(log_fault, NULL);
                        starting_tracers = true;
                        tracing_start();
                        starting_tracers = false;
                        profile_start();
                        prepared = true;
                }
                uint64_t on_loss = config_number(CONFIG_on_loss);
                struct client_params params = {
                        .io = &client_io_loop,
                        .reconnect_ns = config_number(CONFIG_reconnect) * 1000000000,
                        .answer_ns = config_number(CONFIG_client_answer_timeout) * 1000000,
                        /* Timeline and ledger have what the sessions that are there at the end know. */
                        .idle_ns = trace_is_recording() || profile_is_on()
                                           ? 0
                                           : config_number(CONFIG_client_idle) * 1000000,
                        .wait_ns = on_loss == CONFIG_WAIT_AUTO ? UINT64_MAX : on_loss,
                        .watchers_fail = on_loss == CONFIG_WAIT_AUTO,
                        .managed_svm = config_number(CONFIG_svm) != 0,
                        .svm_writes = (enum svm_writes)config_number(CONFIG_usm_writes),
                        .uploads = (unsigned)config_number(CONFIG_client_upload_cache),
                        .finish_ahead = config_number(CONFIG_finish) != 0,
                        .finish_ahead_ns = config_number(CONFIG_finish_ahead) * 1000000,
                        .prefetch = config_number(CONFIG_prefetch) != 0,
                        .devices = config_text(CONFIG_client_devices),
                        .sources = config_sources(),
                        .sources_ns = config_number(CONFIG_discovery_wait) * 1000000,
                        .sources_ns_implied = !config_is_set(CONFIG_discovery_wait),
                };
                if (client_io_loop_new(&params.io_user) < 0 || client_new(&params, &global) < 0) {
                        client_io_loop_free(params.io_user);
                        global = NULL;
                }
        }
        struct client *c = global;
        lock_release(&global_lock);
        return c;
}

/* At exit (the library is never unloaded): figures, and a goodbye to the servers. Nothing is freed: the
 * application may still hold objects, and other libraries' destructors may still release them. */
AT_EXIT(client_exit)
{
        lock_take(&global_lock);
        exiting = true;
        struct client *c = global;
        lock_release(&global_lock);
        if (!c)
                return;
        found_end(c);
        client_lock(c);
        ahead_settle_all(c);
        c->closing = true;
        profile_write(c);
        stats_write(c);
        tracing_write(c);
        uploads_stop(c);
        progress_stop(c);
        /* Warnings of in-process servers that the others have gone are of no interest now. */
        log_threshold = LOG_ERROR;
        servers_close(c, true);
        client_unlock(c);
}

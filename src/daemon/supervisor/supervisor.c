#include "daemon/supervisor/supervisor.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/supervisor/accounts.h"
#include "daemon/supervisor/advertising.h"
#include "daemon/supervisor/describing.h"
#include "daemon/supervisor/energy.h"
#include "daemon/supervisor/exporting.h"
#include "daemon/supervisor/introduce.h"
#include "daemon/supervisor/metering.h"
#include "daemon/supervisor/pending.h"
#include "daemon/supervisor/reserving.h"
#include "daemon/supervisor/sensing.h"
#include "daemon/supervisor/watching.h"
#include "daemon/supervisor/workers.h"
#include "daemon/system/notify.h"
#include "daemon/system/orphans.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/random.h"
#include "os/signals.h"
#include "os/terminal.h"

enum { FILES = 8192 }; /* descriptors that it wants */

/* Has the last session ended, while spancld drains? */
static bool is_drained(const struct supervisor *s)
{
        return s->end.draining && !workers_count(s, WORKER_BUSY);
}

/* Drain for the time of --grace. Not SIGINT: its sender waits at a terminal. */
static void end_with_grace(struct supervisor *s)
{
        enum { TO_STOP_S = 15 }; /* behind that, as TimeoutStopSec of the unit */
        uint64_t grace_s = config_option_number(s->options, CONFIG_grace);
        char longer[64];
        if (!grace_s || s->end.grace_ns || s->end.stopping) {
                s->end.stopping = true;
                return;
        }
        s->end.grace_ns = clock_now_ns() + grace_s * 1000000000;
        snprintf(longer, sizeof(longer), "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
                 (grace_s + TO_STOP_S) * 1000000);
        notify_send(longer);
        pending_drain(s);
}

static void on_signal(struct supervisor *s)
{
        int number;
        while ((number = signals_next(s->events.signals))) {
                if (number == SIGCHLD)
                        s->unreaped = true;
                else if (number == SIGUSR1)
                        pending_drain(s);
                else if (number == SIGTERM)
                        end_with_grace(s);
                else
                        s->end.stopping = true;
        }
}

static uint64_t next_deadline(const struct supervisor *s)
{
        uint64_t d = pending_deadline(s);
        uint64_t w = workers_deadline(s);
        d = w < d ? w : d;
        d = s->arrivals.accept_ns < d ? s->arrivals.accept_ns : d;
        d = s->trim_ns < d ? s->trim_ns : d;
        d = s->end.grace_ns && s->end.grace_ns < d ? s->end.grace_ns : d;
        d = s->clients.due_ns && s->clients.due_ns < d ? s->clients.due_ns : d;
        d = s->starts.next_ns < d ? s->starts.next_ns : d;
        d = accounts_deadline(s) < d ? accounts_deadline(s) : d;
        d = health_deadline(s) < d ? health_deadline(s) : d;
        d = energy_deadline(s) < d ? energy_deadline(s) : d;
        d = reserving_deadline(s) < d ? reserving_deadline(s) : d;
        d = meter_deadline(s) < d ? meter_deadline(s) : d;
        d = helper_deadline(&s->exporter.process) < d ? helper_deadline(&s->exporter.process) : d;
        d = advertiser_deadline(s) < d ? advertiser_deadline(s) : d;
        d = helper_deadline(&s->streams) < d ? helper_deadline(&s->streams) : d;
        d = helper_deadline(&s->allocator) < d ? helper_deadline(&s->allocator) : d;
        return helper_deadline(&s->dialler) < d ? helper_deadline(&s->dialler) : d;
}

static void expire(struct supervisor *s)
{
        uint64_t now = clock_now_ns();
        if (s->end.grace_ns && s->end.grace_ns <= now) {
                log_warn(LOG, "the time of --grace is over: the sessions end");
                s->end.stopping = true;
        }
        pending_expire(s, now);
        workers_expire(s, now);
        workers_trim(s, now);
        clients_expire(s, now);
        reserving_expire(s, now);
        accounts_check(s, now);
        if (s->arrivals.accept_ns <= now && pending_resume(s) < 0)
                pending_pause(s);
}

static void run_events(struct supervisor *s, int timeout_ms)
{
        void *events[EVENT_SET_MAX];
        int n = event_set_wait(s->events.set, s->unreaped ? 0 : timeout_ms, events);
        bool signalled = false;
        for (int i = 0; i < n; i++) {
                struct source *source = events[i];
                switch (source->kind) {
                case SOURCE_LISTENER:
                        pending_accept(s,
                                       container_of(source, struct listener_source, source)->where);
                        break;
                case SOURCE_PENDING:
                        pending_event(s, container_of(source, struct pending, source));
                        break;
                case SOURCE_WORKER:
                        worker_read(s, container_of(source, struct worker, source));
                        break;
                case SOURCE_WORKER_LOG:
                        worker_read_log(s, container_of(source, struct worker, log_source));
                        break;
                case SOURCE_CALLS: {
                        struct worker *w = container_of(source, struct worker, calls_source);
                        (void)refusals_answer(&w->refusals, w->pid);
                        break;
                }
                case SOURCE_ZYGOTE:
                        if (s->spawner.zygote >= 0)
                                spawner_receive(&s->spawner);
                        break;
                case SOURCE_ZYGOTE_LOG:
                        if (!child_log_read(&s->spawner.log, SPAWN_ZYGOTE, clock_now_ns()))
                                supervisor_unwatch(s, s->spawner.log.fd);
                        break;
                case SOURCE_HELPER_LOG:
                        helper_read_log(s, container_of(source, struct helper, log_source));
                        break;
                case SOURCE_METER:
                        meter_read(s);
                        break;
                case SOURCE_EXPORTER:
                        exporter_read(s);
                        break;
                case SOURCE_SENSORS:
                        sensors_read(s);
                        break;
                case SOURCE_CLIENTS:
                        clients_changed(s);
                        break;
                case SOURCE_SIGNALS:
                        signalled = true;
                        break;
                }
        }
        pending_bury(s);
        if (signalled) /* last: it frees workers, which earlier events may name */
                on_signal(s);
        if (s->unreaped)
                s->unreaped = workers_reap(s);
        workers_forget_unborn(s);
}

static int report_ready(struct supervisor *s)
{
        if (s->options->values[CONFIG_ready_fd]) {
                int fd = (int)config_option_number(s->options, CONFIG_ready_fd);
                char text[32];
                int n = snprintf(text, sizeof(text), "ready %u\n", s->listeners.port);
                bool ok = file_write_all(fd, text, (size_t)n);
                (void)file_close(fd);
                if (!ok) {
                        log_error(LOG, "--ready-fd %d: it can't be written to", fd);
                        return SP_E_INVAL;
                }
        }
        notify_send("READY=1");
        return 0;
}

static int prepare(struct supervisor *s)
{
        static const int signals[] = { SIGTERM, SIGINT, SIGUSR1, SIGCHLD };
        log_never_waits = true;
        terminal_never_pause();
        s->events.signals = signals_watch(signals, array_size(signals));
        signals_ignore_pipe();
        process_files_raise(FILES); /* for many connections */
        orphans_adopt();
        if (s->options->values[CONFIG_ready_fd]) {
                int fd = (int)config_option_number(s->options, CONFIG_ready_fd);
                if (!file_keep_from_programs(fd)) {
                        log_error(LOG, "--ready-fd %d: no such descriptor", fd);
                        return SP_E_INVAL;
                }
        }
        s->events.set = event_set_new();
        s->events.signal_source.kind = SOURCE_SIGNALS;
        if (s->events.set < 0 || s->events.signals < 0 ||
            supervisor_watch(s, s->events.signals, &s->events.signal_source) < 0)
                return SP_E_LIMIT;
        gate_init(&s->gate, s->options);
        if (reserving_init(s) < 0)
                return SP_E_NOMEM;
        reserving_refresh(s);
        s->starts.limit_s = (unsigned)config_option_number(s->options, CONFIG_start_time);
        s->arrivals.rate_per_s = (unsigned)config_option_number(s->options, CONFIG_connection_rate);
        if (!random_fill(&s->arrivals.rate.seed, sizeof(s->arrivals.rate.seed)))
                return SP_E_LIMIT;
        int r = listeners_open(s->options, &s->gate, &s->listeners);
        if (r < 0)
                return r;
        r = exporter_open(s);
        if (r < 0)
                return r;
        (void)spare_fill(&s->spare); /* or with the first connection */
        s->events.listeners = mem_zalloc(s->listeners.count * sizeof(*s->events.listeners));
        return s->events.listeners ? pending_resume(s) : SP_E_NOMEM;
}

int supervisor_main(const struct config_options *o, int argc, char **argv)
{
        static struct supervisor s; /* static because it is large */
        s = (struct supervisor){
                .options = o,
                .spawner = { .zygote = -1, .log.fd = -1 },
                .dialler = helper_of("dialler", SOURCE_HELPER_LOG),
                .streams = helper_of("media-io", SOURCE_HELPER_LOG),
                .allocator = helper_of("allocator", SOURCE_HELPER_LOG),
                .meter.process = helper_of("meter", SOURCE_METER),
                .sensors.process = helper_of("sensors", SOURCE_SENSORS),
                .exporter.process = helper_of("exporter", SOURCE_EXPORTER),
                .advertisers = { { .process = helper_of("advertise-mdns", SOURCE_HELPER_LOG) },
                                 { .process = helper_of("advertise-dht", SOURCE_HELPER_LOG) } },
                .clients.watch = -1,
                .events.set = -1,
                .events.signals = -1,
                .arrivals.accept_ns = UINT64_MAX,
                .trim_ns = UINT64_MAX,
                .cgroups = { .home = -1, .base = -1 },
                .counts.since_ns = clock_now_ns(),
        };
        pending_init(&s);
        list_init(&s.workers);
        list_init(&s.accounts.all);
        list_init(&s.energy.sessions);
        s.meter.process.shares_log = true;
        s.exporter.process.again_ns = UINT64_MAX;
        s.streams.again_ns = streams_wanted(&s) ? 0 : UINT64_MAX;
        s.allocator.again_ns = allocator_wanted() ? 0 : UINT64_MAX;
        cgroups_init(&s.cgroups, o);
        int r = prepare(&s);
        if (!r)
                r = report_ready(&s);
        janitor_init(&s.janitor, o);
        if (!r)
                spawner_init(&s.spawner, o, argc, argv);
        s.events.zygote.kind = SOURCE_ZYGOTE;
        s.events.zygote_log.kind = SOURCE_ZYGOTE_LOG;
        if (s.spawner.zygote >= 0 &&
            (supervisor_watch(&s, s.spawner.zygote, &s.events.zygote) < 0 ||
             supervisor_watch(&s, s.spawner.log.fd, &s.events.zygote_log) < 0))
                spawner_fini(&s.spawner);
        if (!r)
                log_info(LOG, "spancld %s is ready", SPANCL_VERSION);
        while (!r && !s.end.stopping && !is_drained(&s)) {
                expire(&s);
                dialler_provide(&s);
                streams_provide(&s);
                allocator_provide(&s);
                health_provide(&s);
                workers_provide(&s);
                meter_provide(&s);
                energy_provide(&s);
                exporter_provide(&s);
                advertiser_provide(&s);
                clients_watch(&s);
                pending_bury(&s);
                run_events(&s, clock_poll_ms(next_deadline(&s)));
        }
        if (is_drained(&s))
                log_info(LOG, "spancld is drained");
        if (s.end.stopping || s.end.draining)
                notify_send("STOPPING=1");
        s.end.stopping = true;
        advertiser_withdraw(&s); /* first: nobody new should come */
        /* The service manager keeps its sockets open, so closing does not unwatch them. */
        pending_pause(&s);
        listeners_close(&s.listeners);
        pending_drop_all(&s);
        pending_refuse_waiting(&s, NULL, SP_E_GONE, "the server is being shut down");
        pending_bury(&s);
        workers_stop(&s, run_events);
        accounts_fini(&s);
        energy_fini(&s);
        describing_fini(&s);
        helper_stop(&s, &s.meter.process);
        helper_stop(&s, &s.sensors.process);
        helper_stop(&s, &s.dialler);
        helper_stop(&s, &s.streams);
        helper_stop(&s, &s.allocator);
        exporter_stop(&s);
        advertiser_stop(&s);
        janitor_fini(&s.janitor); /* before the spawner, which collects every child */
        spawner_fini(&s.spawner);
        cgroups_fini(&s.cgroups);
        mem_free(s.events.listeners);
        clients_unwatch(&s);
        gate_fini(&s.gate);
        reserving_fini(&s);
        spare_give(&s.spare);
        if (s.events.set >= 0)
                (void)file_close(s.events.set);
        if (s.events.signals >= 0)
                (void)file_close(s.events.signals);
        return r < 0 ? 1 : 0;
}

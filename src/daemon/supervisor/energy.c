#include "daemon/supervisor/energy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/supervisor/energy_counter.h"
#include "daemon/supervisor/sensing.h"
#include "daemon/supervisor/workers.h"
#include "os/clock.h"

enum {
        SAMPLE_MS = 500,   /* between samples */
        ANSWER_MS = 100,   /* for the workers' answers */
        READING_MS = 2000, /* for the sensors' readings */
        LATE_MS = 3000,    /* for the answers of workers that are busy, also with other queries */
        LINE_MS = 4000,    /* for the last readings of a session */
        WORD_SIZE = sizeof(uint64_t),
        CPU = 0, /* the meter of all processors; behind it those of other devices */
};

/* A device that a session has used. */
struct energy_use {
        unsigned number;              /* for --devices */
        uint64_t busy_ns, settled_ns; /* as its worker tells; up to the last sample */
        uint64_t share_ns;            /* in the sample at hand */
        uint64_t energy_uj;
};

/* A session; it may outlive its worker. */
struct energy_session {
        struct list link; /* supervisor's energy.sessions */
        struct energy_use uses[HEALTH_DEVICES];
        size_t use_count;
        uint64_t since_ns; /* of the last sample */
        uint64_t asked;    /* the number of the sample that it has yet to answer; 0: none */
        bool late;         /* it has not answered for long: no sample waits for it until it does */
        /* The first sample with all of its device time; 0: it has not ended. */
        uint64_t last_sample;
        uint64_t write_by_ns; /* its worker has ended, and the line waits at most until then */
        char *head, *tail;    /* of its audit line, which waits; NULL: it does not */
};

/* ---- counters ------------------------------------------------------------------------------- */

/* Return the meter of the device with this number; NULL: it has none. */
static struct energy_meter *meter_of(struct supervisor *s, unsigned number)
{
        for (size_t i = 0; i < s->health.count; i++)
                if (s->health.devices[i].number == number)
                        return s->health.devices[i].meter
                                       ? &s->energy.meters[s->health.devices[i].meter - 1]
                                       : NULL;
        return NULL;
}

static bool has_meter(const struct supervisor *s, unsigned number)
{
        bool has = false;
        for (size_t i = 0; i < s->health.count; i++)
                has |= s->health.devices[i].number == number && s->health.devices[i].meter;
        return has;
}

static bool any_meter(const struct supervisor *s)
{
        bool any = false;
        for (size_t i = 0; i < s->health.count; i++)
                any |= s->health.devices[i].meter != 0;
        return any;
}

/* Find the meters of the devices. All CPU devices share one. */
static void find_meters(struct supervisor *s)
{
        for (size_t i = 0; i < s->health.count; i++) {
                struct health_device *d = &s->health.devices[i];
                int line = sensors_find(s, d);
                unsigned meter = d->is_cpu ? CPU : ENERGY_METERS;
                if (line >= 0 && line < HEALTH_DEVICES)
                        meter = CPU + 1 + (unsigned)line;
                d->meter = meter < ENERGY_METERS && s->energy.meters[meter].known ? meter + 1 : 0;
        }
}

/* Count the time since the last reading, once for the processors of a meter. */
static void pass_time(struct energy_meter *m, uint64_t now_ns)
{
        if (m->known && now_ns > m->at_ns)
                m->sample_ns += now_ns - m->at_ns;
        m->known = true;
        m->at_ns = now_ns;
}

static void take(struct energy_meter *m, struct energy_counter *c, uint64_t value_uj,
                 uint64_t range_uj, uint64_t now_ns)
{
        uint64_t more = energy_counter_take(c, value_uj, range_uj, now_ns);
        pass_time(m, now_ns);
        m->sample_uj += more;
        m->total_uj += more;
}

static void take_processor(struct supervisor *s, const char *figures, uint64_t now_ns)
{
        char *end;
        unsigned long number = strtoul(figures, &end, 10);
        end += *end == ' ';
        if (*end < '0' || *end > '9') /* it could not be read */
                return;
        uint64_t value = strtoull(end, &end, 10);
        uint64_t range = strtoull(end, &end, 10);
        if (number < POWERCAP_PROCESSORS)
                take(&s->energy.meters[CPU], &s->energy.processors[number], value, range, now_ns);
}

/* ---- samples -------------------------------------------------------------------------------- */

static void free_session(struct energy_session *e)
{
        list_remove(&e->link);
        mem_free(e->head);
        mem_free(e->tail);
        mem_free(e);
}

/* Write the session's audit line. */
static void write_line(const struct supervisor *s, const struct energy_session *e, const char *head,
                       const char *tail)
{
        enum { ONE = 40 };
        char joules[320] = "";
        size_t n = 0, known = 0;
        uint64_t sum = 0;
        for (size_t i = 0; e && i < e->use_count; i++)
                sum += e->uses[i].energy_uj;
        for (size_t i = 0; e && i < e->use_count && n < sizeof(joules) - ONE; i++) {
                if (!has_meter(s, e->uses[i].number))
                        continue;
                if (!known++)
                        n = (size_t)snprintf(joules, sizeof(joules),
                                             " energy_joules=%.3f energy_by_device=\"",
                                             (double)sum / 1e6);
                n += (size_t)snprintf(joules + n, sizeof(joules) - n, "%s%u=%.3f",
                                      known > 1 ? " " : "", e->uses[i].number,
                                      (double)e->uses[i].energy_uj / 1e6);
        }
        log_info("audit", "%s%s%s%s", head, joules, known ? "\"" : "", tail);
}

/* Write the lines whose sessions are settled, or which have waited too long. */
static void write_lines(struct supervisor *s, uint64_t now_ns)
{
        list_each(e, &s->energy.sessions, struct energy_session, link)
        {
                if (!e->head || (e->last_sample > s->energy.settled && e->write_by_ns > now_ns))
                        continue;
                write_line(s, e, e->head, e->tail);
                free_session(e);
        }
}

/* Divide the energy since the last sample. */
static void settle(struct supervisor *s, uint64_t now_ns)
{
        list_each(e, &s->energy.sessions, struct energy_session, link)
        {
                uint64_t most = now_ns - e->since_ns;
                for (size_t i = 0; i < e->use_count; i++) {
                        struct energy_use *u = &e->uses[i];
                        struct energy_meter *m = meter_of(s, u->number);
                        uint64_t ns = u->busy_ns - u->settled_ns;
                        u->share_ns = ns < most ? ns : most;
                        u->settled_ns = u->busy_ns;
                        if (m)
                                m->busy_ns += u->share_ns;
                }
                e->since_ns = now_ns;
        }
        list_each(e, &s->energy.sessions, struct energy_session, link)
        {
                for (size_t i = 0; i < e->use_count; i++) {
                        struct energy_use *u = &e->uses[i];
                        const struct energy_meter *m = meter_of(s, u->number);
                        if (m)
                                u->energy_uj += energy_share(m->sample_uj, u->share_ns, m->busy_ns,
                                                             m->sample_ns);
                }
        }
        for (size_t i = 0; i < ENERGY_METERS; i++) {
                struct energy_meter *m = &s->energy.meters[i];
                m->sample_uj = m->sample_ns = m->busy_ns = 0;
        }
        s->energy.settled = s->energy.sample;
}

void energy_read(struct supervisor *s)
{
        uint64_t now = clock_now_ns(), value;
        const char *line;
        unsigned index = 0;
        for (const char *at = s->sensors.text; (line = sensors_line(&at));) {
                if (!strncmp(line, "cpu ", 4))
                        take_processor(s, line + 4, now);
                else if (index < HEALTH_DEVICES) {
                        if (sensors_energy(line, &value))
                                take(&s->energy.meters[CPU + 1 + index], &s->energy.counters[index],
                                     value, 0, now);
                        index++;
                }
        }
        find_meters(s);
        if (s->energy.phase != ENERGY_READING)
                return;
        s->energy.phase = ENERGY_IDLE;
        settle(s, now);
        write_lines(s, now);
        list_each(e, &s->energy.sessions, struct energy_session, link)
        {
                if (e->last_sample > s->energy.sample)
                        s->energy.next_ns = now;
        }
}

void energy_sensors_gone(struct supervisor *s)
{
        for (size_t i = 0; i < POWERCAP_PROCESSORS; i++)
                s->energy.processors[i].read = false;
        for (size_t i = 0; i < HEALTH_DEVICES; i++)
                s->energy.counters[i].read = false;
        if (s->energy.phase == ENERGY_READING)
                s->energy.phase = ENERGY_IDLE;
}

/* Ask a worker, and tell it what its session has used; not again before it has answered. */
static void ask(struct supervisor *s, const struct worker *w)
{
        struct energy_session *e = w->use.energy;
        if (e->asked)
                return;
        uint8_t data[(1 + 2 * HEALTH_DEVICES) * WORD_SIZE];
        size_t n = WORD_SIZE;
        bytes_put_u64(data, s->energy.sample);
        for (size_t i = 0; i < s->health.count; i++) {
                unsigned number = s->health.devices[i].number;
                uint64_t energy = 0;
                if (!s->health.devices[i].meter)
                        continue;
                for (size_t k = 0; k < e->use_count; k++)
                        if (e->uses[k].number == number)
                                energy = e->uses[k].energy_uj;
                bytes_put_u64(data + n, number);
                bytes_put_u64(data + n + WORD_SIZE, energy);
                n += 2 * WORD_SIZE;
        }
        if (control_send(w->control, CONTROL_USE, bytes_of(data, n), -1) == 0)
                e->asked = s->energy.sample;
}

static bool is_asked(const struct worker *w)
{
        return w->state == WORKER_BUSY && w->use.energy && !w->gone && !w->use.energy->last_sample;
}

static void begin_sample(struct supervisor *s, uint64_t now_ns)
{
        s->energy.sample++;
        list_each(w, &s->workers, struct worker, link)
        {
                if (is_asked(w))
                        ask(s, w);
        }
        s->energy.phase = ENERGY_ASKING;
        s->energy.due_ns = now_ns + ANSWER_MS * MS;
        s->energy.next_ns = now_ns + SAMPLE_MS * MS;
}

/* A busy host holds workers up. The energy is then divided later, when their device time is known. */
static bool has_answers(const struct supervisor *s, uint64_t now_ns)
{
        bool all = true;
        list_each(w, &s->workers, struct worker, link)
        {
                struct energy_session *e = w->use.energy;
                if (!is_asked(w) || !e->asked || e->late)
                        continue;
                e->late = now_ns - e->since_ns > LATE_MS * MS;
                all &= e->late;
        }
        return all;
}

void energy_provide(struct supervisor *s)
{
        uint64_t now = clock_now_ns();
        if (list_empty(&s->energy.sessions))
                s->energy.phase = ENERGY_IDLE;
        write_lines(s, now);
        if (list_empty(&s->energy.sessions) || s->sensors.none || s->end.stopping)
                return;
        if (s->energy.phase == ENERGY_IDLE && s->energy.next_ns <= now)
                begin_sample(s, now);
        if (s->energy.phase == ENERGY_ASKING) {
                bool answered = has_answers(s, now);
                if (answered || s->energy.due_ns <= now) {
                        bool asked = sensors_ask_now(s); /* also if in vain: counters wrap */
                        s->energy.phase = answered && asked ? ENERGY_READING : ENERGY_IDLE;
                        s->energy.due_ns = now + READING_MS * MS;
                }
        }
        if (s->energy.phase == ENERGY_READING && s->energy.due_ns <= now)
                s->energy.phase = ENERGY_IDLE;
}

uint64_t energy_deadline(const struct supervisor *s)
{
        uint64_t next = UINT64_MAX;
        if (s->end.stopping || list_empty(&s->energy.sessions))
                return next;
        if (!s->sensors.none)
                next = s->energy.phase == ENERGY_IDLE ? s->energy.next_ns : s->energy.due_ns;
        list_each(e, &s->energy.sessions, struct energy_session, link)
        {
                if (e->head && e->write_by_ns < next)
                        next = e->write_by_ns;
        }
        return next;
}

/* ---- sessions ------------------------------------------------------------------------------- */

void energy_begin(struct supervisor *s, struct worker *w)
{
        uint64_t now = clock_now_ns();
        w->use.energy = mem_zalloc(sizeof(*w->use.energy));
        if (!w->use.energy) /* its energy is not counted */
                return;
        w->use.energy->since_ns = now;
        list_append(&s->energy.sessions, &w->use.energy->link);
        s->energy.next_ns = now;
}

/* Find the device in the session, or add it. NULL: this server does not have it. */
static struct energy_use *use_of(const struct supervisor *s, struct energy_session *e,
                                 uint64_t number)
{
        bool exists = false;
        for (size_t i = 0; i < e->use_count; i++)
                if (e->uses[i].number == number)
                        return &e->uses[i];
        for (size_t i = 0; i < s->health.count; i++)
                exists |= s->health.devices[i].number == number;
        if (!exists || e->use_count == HEALTH_DEVICES)
                return NULL;
        struct energy_use *u = &e->uses[e->use_count++];
        u->number = (unsigned)number;
        return u;
}

void energy_receive(struct supervisor *s, struct worker *w, const struct control *c)
{
        struct energy_session *e = w->use.energy;
        if (!e || c->size < WORD_SIZE || e->last_sample)
                return;
        for (size_t at = WORD_SIZE; at + 2 * WORD_SIZE <= c->size; at += 2 * WORD_SIZE) {
                struct energy_use *u = use_of(s, e, bytes_get_u64(c->data + at));
                uint64_t busy = bytes_get_u64(c->data + at + WORD_SIZE);
                if (u && busy > u->busy_ns)
                        u->busy_ns = busy;
        }
        if (bytes_get_u64(c->data) == e->asked) {
                e->asked = 0;
                e->late = false;
        }
        if (bytes_get_u64(c->data))
                return;
        e->last_sample = s->energy.sample + 1;
        if (s->energy.phase == ENERGY_IDLE)
                s->energy.next_ns = clock_now_ns();
}

void energy_end(struct supervisor *s, struct worker *w, const char *head, const char *tail)
{
        struct energy_session *e = w->use.energy;
        bool waits = e && e->last_sample > s->energy.settled && !s->sensors.none &&
                     !s->end.stopping && any_meter(s);
        w->use.energy = NULL;
        if (waits) {
                e->head = mem_strdup(head);
                e->tail = mem_strdup(tail);
                e->write_by_ns = clock_now_ns() + LINE_MS * MS;
                if (e->head && e->tail)
                        return;
        }
        write_line(s, e, head, tail);
        if (e)
                free_session(e);
}

void energy_drop(struct worker *w)
{
        if (w->use.energy)
                free_session(w->use.energy);
        w->use.energy = NULL;
}

void energy_fini(struct supervisor *s)
{
        write_lines(s, UINT64_MAX);
        list_each(e, &s->energy.sessions, struct energy_session, link)
        {
                free_session(e);
        }
}

/* ---- reports -------------------------------------------------------------------------------- */

int energy_put_device(const struct supervisor *s, const struct health_device *d, struct buf *b)
{
        return d->meter ? info_put_u64(b, INFO_SENSOR_ENERGY,
                                       s->energy.meters[d->meter - 1].total_uj)
                        : 0;
}

static int put_use(const struct supervisor *s, const struct energy_use *u, struct buf *b)
{
        const char *name = health_name(s, u->number);
        size_t mark;
        int r = info_begin(b, INFO_ENERGY, &mark);
        if (!r)
                r = info_put_u64(b, INFO_ENERGY_DEVICE, u->number);
        if (!r)
                r = info_put(b, INFO_ENERGY_NAME, name, strlen(name));
        if (!r)
                r = info_put_u64(b, INFO_ENERGY_UJ, u->energy_uj);
        if (!r)
                info_end(b, mark);
        return r;
}

int energy_put_session(const struct supervisor *s, const struct worker *w, struct buf *b)
{
        const struct energy_session *e = w->use.energy;
        int r = 0;
        enum { MOST = 24 }; /* they fit into a message together with the session's origin */
        for (size_t i = 0, n = 0; e && i < e->use_count && n < MOST && !r; i++)
                if (has_meter(s, e->uses[i].number)) {
                        r = put_use(s, &e->uses[i], b);
                        n++;
                }
        return r;
}

#include "cli/snapshot.h"

#include <string.h>

#include "base/mem.h"
#include "proto/info.h"

void snapshot_fini(struct snapshot *s)
{
        for (size_t i = 0; i < s->count; i++) {
                mem_free(s->sessions[i].uses);
                mem_free(s->sessions[i].links);
        }
        for (size_t i = 0; i < s->client_count; i++)
                mem_free(s->clients[i].shares);
        mem_free(s->clients);
        mem_free(s->sessions);
        mem_free(s->devices);
        mem_free(s->notices);
        mem_free(s->reservations);
        *s = (struct snapshot){ 0 };
}

/* ---- messages ------------------------------------------------------------------------------- */

static void copy(char *ret, size_t size, struct bytes text)
{
        size_t n = text.data ? strnlen(text.data, text.size) : 0;
        n = n < size ? n : size - 1;
        if (n)
                memcpy(ret, text.data, n);
        ret[n] = 0;
}

static void copy_of(struct bytes block, uint32_t key, char ret[SNAPSHOT_NAME])
{
        struct bytes text = { 0 };
        (void)info_find(block, key, &text);
        copy(ret, SNAPSHOT_NAME, text);
}

/* Make room for one more element of `size` bytes, and return it, zeroed. NULL: there are too many. */
static void *append(void *array, size_t *count, size_t max, size_t size)
{
        char **all = array, *more = *count < max ? mem_realloc(*all, (*count + 1) * size) : NULL;
        if (!more)
                return NULL;
        *all = more;
        memset(more + *count * size, 0, size);
        return more + (*count)++ * size;
}

static void take_server(struct snapshot *s, struct bytes server)
{
        struct info_entry e;
        s->up_ns = info_u64(server, INFO_SERVER_UP_NS, 0);
        s->sessions_max = info_u64(server, INFO_SERVER_SESSIONS_MAX, 0);
        s->begun = info_u64(server, INFO_SERVER_SESSIONS_BEGUN, 0);
        s->lost = info_u64(server, INFO_SERVER_SESSIONS_LOST, 0);
        s->draining = info_u64(server, INFO_SERVER_DRAINING, 0) != 0;
        s->refused = 0;
        while (info_next(&server, &e))
                if (e.key == INFO_SERVER_REFUSED && !info_check(e.value))
                        s->refused += info_u64(e.value, INFO_SERVER_COUNT, 0);
}

static void take_device(struct snapshot *s, struct bytes device)
{
        struct snapshot_device *d =
                append(&s->devices, &s->device_count, SNAPSHOT_DEVICES, sizeof(*d));
        if (!d)
                return;
        *d = (struct snapshot_device){
                .number = info_u64(device, INFO_HEALTH_DEVICE, 0),
                .state = info_u64(device, INFO_HEALTH_STATE, 0),
                .failures = info_u64(device, INFO_HEALTH_FAILURES, 0),
                .busy_percent = info_u64(device, INFO_SENSOR_BUSY, SNAPSHOT_UNKNOWN),
                .memory_used = info_u64(device, INFO_SENSOR_MEMORY_USED, SNAPSHOT_UNKNOWN),
                .memory_total = info_u64(device, INFO_SENSOR_MEMORY_TOTAL, SNAPSHOT_UNKNOWN),
                .temperature_c = info_u64(device, INFO_SENSOR_TEMPERATURE, SNAPSHOT_UNKNOWN),
                .power_mw = info_u64(device, INFO_SENSOR_POWER, SNAPSHOT_UNKNOWN),
                .energy_uj = info_u64(device, INFO_SENSOR_ENERGY, SNAPSHOT_UNKNOWN),
        };
        copy_of(device, INFO_HEALTH_NAME, d->name);
}

static void take_notice(struct snapshot *s, struct bytes text)
{
        struct snapshot_notice *n =
                append(&s->notices, &s->notice_count, SNAPSHOT_NOTICES, sizeof(*n));
        if (n)
                copy(n->text, sizeof(n->text), text);
}

static void take_reservation(struct snapshot *s, struct bytes reserved)
{
        struct snapshot_reservation *r =
                append(&s->reservations, &s->reservation_count, SNAPSHOT_DEVICES, sizeof(*r));
        if (!r)
                return;
        *r = (struct snapshot_reservation){
                .number = info_u64(reserved, INFO_RESERVED_DEVICE, 0),
                .until_s = info_u64(reserved, INFO_RESERVED_UNTIL, SNAPSHOT_UNKNOWN),
        };
        copy_of(reserved, INFO_RESERVED_NAME, r->name);
        copy_of(reserved, INFO_RESERVED_CLIENT, r->client);
}

static void take_share(struct snapshot_client *of, struct bytes share)
{
        struct snapshot_share *s =
                append(&of->shares, &of->share_count, SNAPSHOT_SHARES, sizeof(*s));
        if (!s)
                return;
        *s = (struct snapshot_share){
                .number = info_u64(share, INFO_SHARE_DEVICE, SNAPSHOT_UNKNOWN),
                .memory = info_u64(share, INFO_SHARE_MEMORY, SNAPSHOT_UNKNOWN),
                .memory_max = info_u64(share, INFO_SHARE_MEMORY_MAX, SNAPSHOT_UNKNOWN),
                .time_ns = info_u64(share, INFO_SHARE_TIME_NS, SNAPSHOT_UNKNOWN),
                .time_max_ns = info_u64(share, INFO_SHARE_TIME_MAX_NS, SNAPSHOT_UNKNOWN),
                .window_ns = info_u64(share, INFO_SHARE_WINDOW_NS, SNAPSHOT_UNKNOWN),
                .window_left_ns = info_u64(share, INFO_SHARE_WINDOW_LEFT_NS, SNAPSHOT_UNKNOWN),
                .paused = info_u64(share, INFO_SHARE_PAUSED, 0) != 0,
        };
        copy_of(share, INFO_SHARE_NAME, s->name);
}

static void take_client(struct snapshot *s, struct bytes account)
{
        struct snapshot_client *c =
                append(&s->clients, &s->client_count, SNAPSHOT_CLIENTS, sizeof(*c));
        struct info_entry e;
        if (!c)
                return;
        c->sessions = info_u64(account, INFO_ACCOUNT_SESSIONS, 0);
        c->sessions_max = info_u64(account, INFO_ACCOUNT_SESSIONS_MAX, SNAPSHOT_UNKNOWN);
        copy_of(account, INFO_ACCOUNT_CLIENT, c->name);
        while (info_next(&account, &e))
                if (e.key == INFO_ACCOUNT_SHARE && !info_check(e.value))
                        take_share(c, e.value);
}

static struct snapshot_session *session_of(struct snapshot *s, const struct wire_session_stats *m)
{
        for (size_t i = s->count; i-- > 0;)
                if (s->sessions[i].process == m->process)
                        return &s->sessions[i];
        struct snapshot_session *new =
                append(&s->sessions, &s->count, SNAPSHOT_SESSIONS, sizeof(*new));
        if (!new)
                return NULL;
        new->process = m->process;
        copy(new->program, sizeof(new->program), m->name);
        return new;
}

/* Find the device in the session, or add it. NULL: there are too many. */
static struct snapshot_use *use_of(struct snapshot_session *of, uint64_t number)
{
        for (size_t i = 0; i < of->use_count; i++)
                if (of->uses[i].number == number)
                        return &of->uses[i];
        struct snapshot_use *u = append(&of->uses, &of->use_count, SNAPSHOT_USES, sizeof(*u));
        if (u)
                *u = (struct snapshot_use){ .number = number, .energy_uj = SNAPSHOT_UNKNOWN };
        return u;
}

static void take_use(struct snapshot_session *of, struct bytes use)
{
        struct snapshot_use *u = use_of(of, info_u64(use, INFO_USE_DEVICE, 0));
        if (!u)
                return;
        u->busy_ns = info_u64(use, INFO_USE_BUSY_NS, 0);
        copy_of(use, INFO_USE_NAME, u->name);
}

static void take_energy(struct snapshot_session *of, struct bytes energy)
{
        struct snapshot_use *u = use_of(of, info_u64(energy, INFO_ENERGY_DEVICE, 0));
        if (!u)
                return;
        u->energy_uj = info_u64(energy, INFO_ENERGY_UJ, SNAPSHOT_UNKNOWN);
        if (!*u->name)
                copy_of(energy, INFO_ENERGY_NAME, u->name);
}

static void take_session(struct snapshot_session *to, struct bytes session)
{
        struct info_entry e;
        to->memory = info_u64(session, INFO_SESSION_MEMORY, 0);
        to->memory_peak = info_u64(session, INFO_SESSION_PEAK, 0);
        to->programs = info_u64(session, INFO_SESSION_PROGRAMS, 0);
        to->commands = info_u64(session, INFO_SESSION_COMMANDS, 0);
        to->round_trip_ns = info_u64(session, INFO_SESSION_ROUND_TRIP, 0);
        while (info_next(&session, &e))
                if (e.key == INFO_USE && !info_check(e.value))
                        take_use(to, e.value);
}

static void take_origin(struct snapshot_session *to, struct bytes origin)
{
        struct info_entry e;
        copy_of(origin, INFO_ORIGIN_CLIENT, to->client);
        copy_of(origin, INFO_ORIGIN_USER, to->user);
        copy_of(origin, INFO_ORIGIN_HOST, to->host);
        copy_of(origin, INFO_ORIGIN_FROM, to->from);
        to->age_ns = info_u64(origin, INFO_ORIGIN_AGE_NS, 0);
        while (info_next(&origin, &e))
                if (e.key == INFO_ENERGY && !info_check(e.value))
                        take_energy(to, e.value);
}

static void take_link(struct snapshot *s, struct snapshot_session *of, struct bytes link)
{
        struct snapshot_link *l = append(&of->links, &of->link_count, SNAPSHOT_LINKS, sizeof(*l));
        if (!l)
                return;
        l->peer = info_u64(link, INFO_LINK_PEER, 0);
        l->relayed = info_u64(link, INFO_LINK_RELAYED, 0) != 0;
        l->messages[0] = info_u64(link, INFO_LINK_MESSAGES_SENT, 0);
        l->messages[1] = info_u64(link, INFO_LINK_MESSAGES_RECEIVED, 0);
        l->bytes[0] = info_u64(link, INFO_LINK_BYTES_SENT, 0);
        l->bytes[1] = info_u64(link, INFO_LINK_BYTES_RECEIVED, 0);
        l->bulk[0] = info_u64(link, INFO_LINK_BULK_SENT, 0);
        l->bulk[1] = info_u64(link, INFO_LINK_BULK_RECEIVED, 0);
        l->fabric[0] = info_u64(link, INFO_LINK_FABRIC_SENT, 0);
        l->fabric[1] = info_u64(link, INFO_LINK_FABRIC_RECEIVED, 0);
        copy_of(link, INFO_LINK_NAME, l->name);
}

void snapshot_take(struct snapshot *s, const struct wire_session_stats *m)
{
        struct bytes left = m->links;
        struct info_entry e;
        while (info_next(&left, &e)) {
                bool of_session =
                        e.key == INFO_SESSION || e.key == INFO_LINK || e.key == INFO_ORIGIN;
                bool is_block = of_session || e.key == INFO_SERVER || e.key == INFO_HEALTH ||
                                e.key == INFO_RESERVED || e.key == INFO_ACCOUNT;
                struct snapshot_session *to = NULL;
                if (e.key == INFO_OUT_OF_SERVICE || e.key == INFO_RESERVED)
                        take_notice(s, m->name);
                if (!is_block || info_check(e.value) < 0)
                        continue;
                if (of_session) {
                        to = session_of(s, m);
                        if (!to)
                                continue;
                }
                if (e.key == INFO_SERVER)
                        take_server(s, e.value);
                else if (e.key == INFO_HEALTH)
                        take_device(s, e.value);
                else if (e.key == INFO_RESERVED)
                        take_reservation(s, e.value);
                else if (e.key == INFO_ACCOUNT)
                        take_client(s, e.value);
                else if (e.key == INFO_SESSION)
                        take_session(to, e.value);
                else if (e.key == INFO_ORIGIN)
                        take_origin(to, e.value);
                else
                        take_link(s, to, e.value);
        }
}

bool snapshot_is_limited(const struct snapshot_share *s)
{
        return s->memory_max != SNAPSHOT_UNKNOWN || s->time_max_ns != SNAPSHOT_UNKNOWN;
}

/* ---- figures -------------------------------------------------------------------------------- */

/* Find the same session in an earlier snapshot of the same server. NULL: it is new, or there is none. */
static const struct snapshot_session *snapshot_before(const struct snapshot *old,
                                                      const struct snapshot_session *s)
{
        for (size_t i = 0; old && i < old->count; i++)
                if (old->sessions[i].process == s->process)
                        return old->sessions[i].age_ns <= s->age_ns ? &old->sessions[i] : NULL;
        return NULL;
}

/* Bytes of all links of the session together, `way` 0: sent, 1: received. */
static uint64_t snapshot_bytes(const struct snapshot_session *s, int way)
{
        uint64_t sum = 0;
        for (size_t i = 0; i < s->link_count; i++)
                sum += s->links[i].bytes[way] + s->links[i].bulk[way];
        return sum;
}

/* The time between a figure of `before` and that of `s`; without `before`, the age of the session. */
static double between_ns(const struct snapshot *old, const struct snapshot *now,
                         const struct snapshot_session *before, const struct snapshot_session *s)
{
        return before ? (double)(now->taken_ns - old->taken_ns) : (double)s->age_ns;
}

double snapshot_busy(const struct snapshot *old, const struct snapshot *now,
                     const struct snapshot_session *s, const struct snapshot_use *u)
{
        const struct snapshot_session *before = snapshot_before(old, s);
        double ns = between_ns(old, now, before, s);
        uint64_t busy = u->busy_ns;
        for (size_t i = 0; before && i < before->use_count; i++)
                if (before->uses[i].number == u->number && before->uses[i].busy_ns <= busy)
                        busy -= before->uses[i].busy_ns;
        double percent = ns > 0 ? (double)busy / ns * 100 : -1;
        return percent > 100 ? 100 : percent;
}

double snapshot_rate(const struct snapshot *old, const struct snapshot *now,
                     const struct snapshot_session *s, int way)
{
        const struct snapshot_session *before = snapshot_before(old, s);
        double ns = between_ns(old, now, before, s);
        uint64_t bytes = snapshot_bytes(s, way), had = before ? snapshot_bytes(before, way) : 0;
        return ns > 0 && bytes >= had ? (double)(bytes - had) * 1e9 / ns : -1;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void put_known(struct json_writer *w, const char *name, uint64_t value)
{
        if (value == SNAPSHOT_UNKNOWN)
                json_put_null(w, name);
        else
                json_put_u64(w, name, value);
}

static void put_joules(struct json_writer *w, const char *name, uint64_t uj)
{
        if (uj == SNAPSHOT_UNKNOWN)
                json_put_null(w, name);
        else
                json_put_real(w, name, (double)uj / 1e6, 3);
}

static void put_figure(struct json_writer *w, const char *name, double value)
{
        if (value < 0)
                json_put_null(w, name);
        else
                json_put_real(w, name, value, 1);
}

static void put_device(struct json_writer *w, const struct snapshot_device *d)
{
        static const char *const states[] = { "in_service", "kept_out", "out_of_service" };
        json_begin(w, NULL, '{');
        json_put_u64(w, "number", d->number);
        json_put_text(w, "name", d->name);
        json_put_text(w, "state", d->state < array_size(states) ? states[d->state] : "unknown");
        json_put_u64(w, "failures", d->failures);
        put_known(w, "busy_percent", d->busy_percent);
        put_known(w, "memory_used_bytes", d->memory_used);
        put_known(w, "memory_total_bytes", d->memory_total);
        put_known(w, "temperature_celsius", d->temperature_c);
        put_known(w, "power_mw", d->power_mw);
        put_joules(w, "energy_joules", d->energy_uj);
        json_end(w, '}');
}

static void put_link(struct json_writer *w, const struct snapshot_link *l)
{
        static const char *const names[2][4] = {
                { "messages_sent", "message_bytes_sent", "bulk_bytes_sent", "fabric_bytes_sent" },
                { "messages_received", "message_bytes_received", "bulk_bytes_received",
                  "fabric_bytes_received" },
        };
        json_begin(w, NULL, '{');
        json_put_text(w, "peer", l->peer ? "server" : "client");
        json_put_text(w, "name", l->name);
        json_put_bool(w, "relayed", l->relayed);
        for (int i = 0; i < 2; i++) {
                json_put_u64(w, names[i][0], l->messages[i]);
                json_put_u64(w, names[i][1], l->bytes[i]);
                json_put_u64(w, names[i][2], l->bulk[i]);
                json_put_u64(w, names[i][3], l->fabric[i]);
        }
        json_end(w, '}');
}

static void put_session(struct json_writer *w, const struct snapshot *old,
                        const struct snapshot *now, const struct snapshot_session *s)
{
        json_begin(w, NULL, '{');
        json_put_u64(w, "worker", s->process);
        json_put_text(w, "program", s->program);
        json_put_text(w, "client", s->client);
        json_put_text(w, "user", s->user);
        json_put_text(w, "host", s->host);
        json_put_text(w, "from", s->from);
        json_put_u64(w, "age_ns", s->age_ns);
        json_put_u64(w, "memory_bytes", s->memory);
        json_put_u64(w, "memory_peak_bytes", s->memory_peak);
        json_put_u64(w, "programs", s->programs);
        json_put_u64(w, "commands", s->commands);
        put_known(w, "round_trip_ns", s->round_trip_ns ? s->round_trip_ns : SNAPSHOT_UNKNOWN);
        put_figure(w, "sent_bytes_per_s", snapshot_rate(old, now, s, 0));
        put_figure(w, "received_bytes_per_s", snapshot_rate(old, now, s, 1));
        json_begin(w, "devices", '[');
        for (size_t i = 0; i < s->use_count; i++) {
                json_begin(w, NULL, '{');
                json_put_u64(w, "number", s->uses[i].number);
                json_put_text(w, "name", s->uses[i].name);
                json_put_u64(w, "busy_ns", s->uses[i].busy_ns);
                put_figure(w, "busy_percent", snapshot_busy(old, now, s, &s->uses[i]));
                put_joules(w, "energy_joules", s->uses[i].energy_uj);
                json_end(w, '}');
        }
        json_end(w, ']');
        json_begin(w, "links", '[');
        for (size_t i = 0; i < s->link_count; i++)
                put_link(w, &s->links[i]);
        json_end(w, ']');
        json_end(w, '}');
}

static void put_share(struct json_writer *w, const struct snapshot_share *s)
{
        json_begin(w, NULL, '{');
        put_known(w, "number", s->number);
        json_put_text(w, "name", s->number == SNAPSHOT_UNKNOWN ? NULL : s->name);
        put_known(w, "memory_bytes", s->memory);
        put_known(w, "memory_max_bytes", s->memory_max);
        put_known(w, "time_ns", s->time_ns);
        put_known(w, "time_max_ns", s->time_max_ns);
        put_known(w, "window_ns", s->window_ns);
        put_known(w, "window_left_ns", s->window_left_ns);
        json_put_bool(w, "paused", s->paused);
        json_end(w, '}');
}

static void put_client(struct json_writer *w, const struct snapshot_client *c)
{
        json_begin(w, NULL, '{');
        json_put_text(w, "client", c->name);
        json_put_u64(w, "sessions", c->sessions);
        put_known(w, "sessions_max", c->sessions_max);
        json_begin(w, "devices", '[');
        for (size_t i = 0; i < c->share_count; i++)
                put_share(w, &c->shares[i]);
        json_end(w, ']');
        json_end(w, '}');
}

void snapshot_json_notices(struct json_writer *w, const struct snapshot *s)
{
        json_begin(w, "notices", '[');
        for (size_t i = 0; i < s->notice_count; i++)
                json_put_text(w, NULL, s->notices[i].text);
        json_end(w, ']');
        json_begin(w, "reservations", '[');
        for (size_t i = 0; i < s->reservation_count; i++) {
                const struct snapshot_reservation *r = &s->reservations[i];
                json_begin(w, NULL, '{');
                json_put_u64(w, "device", r->number);
                json_put_text(w, "name", r->name);
                json_put_text(w, "client", r->client);
                put_known(w, "until", r->until_s);
                json_end(w, '}');
        }
        json_end(w, ']');
}

void snapshot_json(struct json_writer *w, const struct snapshot *old, const struct snapshot *now)
{
        json_put_u64(w, "up_ns", now->up_ns);
        json_put_bool(w, "draining", now->draining);
        json_put_u64(w, "sessions_max", now->sessions_max);
        json_put_u64(w, "sessions_begun", now->begun);
        json_put_u64(w, "sessions_lost", now->lost);
        json_put_u64(w, "connections_refused", now->refused);
        json_begin(w, "devices", '[');
        for (size_t i = 0; i < now->device_count; i++)
                put_device(w, &now->devices[i]);
        json_end(w, ']');
        snapshot_json_notices(w, now);
        json_begin(w, "clients", '[');
        for (size_t i = 0; i < now->client_count; i++)
                put_client(w, &now->clients[i]);
        json_end(w, ']');
        json_begin(w, "sessions", '[');
        for (size_t i = 0; i < now->count; i++)
                put_session(w, old, now, &now->sessions[i]);
        json_end(w, ']');
}

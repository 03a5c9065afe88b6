#include "daemon/clients.h"

#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/mem.h"
#include "daemon/client_limits.h"
#include "daemon/reservation.h"
#include "daemon/supervisor/gate.h"
#include "os/clock.h"
#include "os/file.h"
#include "transport/nano_key.h"

enum {
        PREFIX_MIN = 8,
        AGE_MAX = 32,
        RESERVATIONS_MAX = 64, /* more than a setting has room for */
};

#define RESERVE "reserve"

struct clients {
        const struct config_options *options;
        char folder[KEYS_PATH_MAX];
        char *list; /* the text; NULL: there is none */
        int lock;   /* -1: none */
        char text[KEYS_TEXT_MAX];
};

/* Copy a text for a terminal: a client may have chosen it. */
static const char *tamed(const char *text, char ret[KEYS_NAME_MAX + 1])
{
        snprintf(ret, KEYS_NAME_MAX + 1, "%s", text);
        return bytes_tame(ret, KEYS_NAME_MAX + 1);
}

static void free_text(char **text)
{
        mem_free(*text);
}

static int complain(struct clients *c, int status)
{
        fprintf(stderr, "spancld: %s\n", c->text);
        return status;
}

/* ---- finding -------------------------------------------------------------------------------- */

static bool is_prefix(const char *what, const struct keys_entry *e)
{
        char hex[KEYS_HEX + 1];
        size_t n = strlen(what);
        keys_hex(e->fingerprint, hex);
        return n >= PREFIX_MIN && n <= KEYS_HEX && !strncasecmp(what, hex, n);
}

/* Find a client by its name, its fingerprint, or the beginning of that. SP_E_NOENT, SP_E_INVAL: none, or several. */
static int find(struct clients *c, const char *what, struct keys_entry *ret)
{
        struct keys_entry e;
        unsigned bad = 0, count = 0;
        char name[KEYS_NAME_MAX + 1];
        for (const char *p = c->list ? c->list : ""; keys_next(&p, &e, &bad);) {
                if (strcmp(what, e.name) != 0 && !is_prefix(what, &e))
                        continue;
                *ret = e;
                count++;
        }
        if (count == 1)
                return 0;
        if (count)
                snprintf(c->text, sizeof(c->text),
                         "%s stands for %u clients: name one by more of its fingerprint",
                         tamed(what, name), count);
        else
                snprintf(c->text, sizeof(c->text), "%s has no client %s", c->folder,
                         tamed(what, name));
        return count ? SP_E_INVAL : SP_E_NOENT;
}

/* ---- reservations --------------------------------------------------------------------------- */

struct reservations {
        struct reservation list[RESERVATIONS_MAX];
        size_t count;
};

static uint64_t now_s(void)
{
        return clock_wall_ns() / 1000000000;
}

static void drop_reservation(struct reservations *all, unsigned device)
{
        size_t kept = 0;
        for (size_t i = 0; i < all->count; i++)
                if (all->list[i].device != device)
                        all->list[kept++] = all->list[i];
        all->count = kept;
}

/* Get those of a client that are not over. */
static void reservations_of(const struct keys_entry *e, struct reservations *ret)
{
        const char *left = e->settings;
        struct keys_setting s;
        struct reservation r;
        ret->count = 0;
        while (keys_setting(&left, &s)) {
                char text[KEYS_SETTINGS_MAX + 1];
                const char *p = text;
                if (s.key.size != 7 || memcmp(s.key.data, RESERVE, 7) != 0)
                        continue;
                snprintf(text, sizeof(text), "%.*s", (int)s.value.size, (const char *)s.value.data);
                while (ret->count < RESERVATIONS_MAX && reservation_next(&p, 0, &r) > 0)
                        if (!reservation_is_over(&r, now_s()))
                                ret->list[ret->count++] = r;
        }
}

/* ---- list ----------------------------------------------------------------------------------- */

static const char *age(uint64_t seen_s, char ret[AGE_MAX])
{
        static const struct {
                uint64_t seconds;
                const char *unit;
        } units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
        uint64_t now = clock_wall_ns() / 1000000000, s = now > seen_s ? now - seen_s : 0;
        size_t i = 0;
        if (!seen_s)
                return "never";
        while (i + 1 < array_size(units) && s < units[i].seconds)
                i++;
        snprintf(ret, AGE_MAX, "%llu %s ago", (unsigned long long)(s / units[i].seconds),
                 units[i].unit);
        return ret;
}

static void put_limit(struct json_writer *w, const char *name, uint64_t limit)
{
        if (limit)
                json_put_u64(w, name, limit);
        else
                json_put_null(w, name);
}

/* Put the limits of memory and time, of all devices together or of one. */
static void put_share(struct json_writer *w, uint64_t memory_bytes, const struct client_time *time)
{
        put_limit(w, "memory_max_bytes", memory_bytes);
        put_limit(w, "time_max_s", time->time_s);
        put_limit(w, "window_s", time->time_s ? time->window_s : 0);
}

/* Put the limits that hold for the client: those of the options, and of its line. */
static void put_limits(struct json_writer *w, const struct config_options *o,
                       const struct keys_entry *e)
{
        static const char *const priorities[] = {
                [PRIORITY_LOW] = "low", [PRIORITY_NORMAL] = "normal", [PRIORITY_HIGH] = "high"
        };
        struct client_limits l = client_limits_of(o);
        client_limits_apply(&l, e->settings);
        json_begin(w, "limits", '{');
        put_limit(w, "sessions_max", l.sessions);
        put_limit(w, "builds_max", l.builds);
        put_limit(w, "cache_max_bytes", l.cache_bytes);
        json_put_text(w, "priority", priorities[l.priority]);
        put_share(w, l.memory_bytes, &l.time);
        json_begin(w, "devices", '[');
        for (size_t i = 0; i < l.device_count; i++) {
                json_begin(w, NULL, '{');
                json_put_u64(w, "number", l.devices[i].number);
                put_share(w, l.devices[i].memory_bytes, &l.devices[i].time);
                json_end(w, '}');
        }
        json_end(w, ']');
        json_end(w, '}');
}

static void put_json(struct json_writer *w, const struct config_options *o,
                     const struct keys_entry *e, const char *hex, uint64_t seen_s)
{
        const char *left = e->settings;
        struct keys_setting s;
        json_begin(w, NULL, '{');
        json_put_text(w, "name", e->name);
        json_put_text(w, "fingerprint", hex);
        json_put_text(w, "user", e->user);
        json_put_text(w, "host", e->host);
        if (seen_s)
                json_put_u64(w, "last_seen", seen_s);
        else
                json_put_null(w, "last_seen");
        json_put_text(w, "devices", e->devices);
        json_put_bool(w, "own", e->own);
        json_begin(w, "settings", '{');
        while (keys_setting(&left, &s))
                json_put_named(w, s.key, s.value);
        json_end(w, '}');
        put_limits(w, o, e);
        json_begin(w, "reservations", '[');
        struct reservations all;
        reservations_of(e, &all);
        for (size_t i = 0; i < all.count; i++) {
                json_begin(w, NULL, '{');
                json_put_u64(w, "device", all.list[i].device);
                if (all.list[i].until_s)
                        json_put_u64(w, "until", all.list[i].until_s);
                else
                        json_put_null(w, "until");
                json_end(w, '}');
        }
        json_end(w, ']');
        json_end(w, '}');
        json_line(w);
}

static void put_row(const struct keys_entry *e, const char *hex, uint64_t seen_s)
{
        char name[KEYS_NAME_MAX + 1], user[KEYS_NAME_MAX + 1], host[KEYS_NAME_MAX + 1],
                devices[KEYS_NAME_MAX + 1], ago[AGE_MAX], limits[KEYS_SETTINGS_MAX + 1];
        snprintf(limits, sizeof(limits), "%s", e->settings);
        printf("%-24s %-12s %-16s %-12s %.16s%s%s%s%s%s\n", tamed(e->name, name),
               *e->user ? tamed(e->user, user) : "-", *e->host ? tamed(e->host, host) : "-",
               age(seen_s, ago), hex, *e->devices ? " devices=" : "", tamed(e->devices, devices),
               e->own ? " own" : "", *limits ? " " : "", bytes_tame(limits, sizeof(limits)));
}

static int list(struct clients *c, int argc, char **argv)
{
        bool json = argc && !strcmp(argv[0], "--json");
        struct json_writer w = { .to = stdout };
        struct keys_entry e;
        unsigned bad = 0, count = 0;
        if (argc != json)
                return 2;
        for (const char *p = c->list ? c->list : ""; keys_next(&p, &e, &bad); count++) {
                char hex[KEYS_HEX + 1];
                keys_hex(e.fingerprint, hex);
                uint64_t seen_s = keys_seen(c->folder, hex);
                if (!json && !count)
                        printf("%-24s %-12s %-16s %-12s %s\n", "NAME", "USER", "HOST", "LAST SEEN",
                               "FINGERPRINT, LIMITS");
                if (json)
                        put_json(&w, c->options, &e, hex, seen_s);
                else
                        put_row(&e, hex, seen_s);
        }
        if (!count)
                fprintf(stderr, "spancld: %s has no clients\n", c->folder);
        if (bad)
                fprintf(stderr, "spancld: %u lines of %s/" KEYS_CLIENTS " are not valid\n", bad,
                        c->folder);
        return fflush(stdout) || ferror(stdout) ? 1 : 0;
}

/* ---- changes -------------------------------------------------------------------------------- */

static int drop(struct clients *c, int argc, char **argv)
{
        struct keys_entry e;
        if (argc != 1)
                return 2;
        if (find(c, argv[0], &e) < 0 ||
            keys_drop(c->folder, KEYS_CLIENTS, e.fingerprint, c->text) < 0)
                return complain(c, 1);
        char hex[KEYS_HEX + 1], name[KEYS_NAME_MAX + 1];
        keys_hex(e.fingerprint, hex);
        keys_unsee(c->folder, hex);
        (void)!keys_drop(c->folder, NANO_KEYS, e.fingerprint, c->text); /* if it is a nano client */
        printf("%s is no client any more. A spancld that runs ends its sessions.\n",
               tamed(e.name, name));
        return 0;
}

/* Write the entry of a client anew. */
static int put(struct clients *c, const struct keys_entry *e)
{
        return keys_put(c->folder, KEYS_CLIENTS, e, false, c->text) < 0 ? complain(c, 1) : 0;
}

static int name_anew(struct clients *c, int argc, char **argv)
{
        struct keys_entry e;
        if (argc != 2)
                return 2;
        if (find(c, argv[0], &e) < 0)
                return complain(c, 1);
        if (!keys_is_name(argv[1]) || keys_knows(c->list, argv[1])) {
                snprintf(c->text, sizeof(c->text),
                         keys_is_name(argv[1]) ? "another client has this name"
                                               : "a name has no blanks, and at most %d bytes",
                         KEYS_NAME_MAX);
                return complain(c, 1);
        }
        strcpy(e.name, argv[1]);
        return put(c, &e);
}

/* Copy the settings but for this key. */
static void without(const char *from, struct bytes key, char ret[KEYS_SETTINGS_MAX + 1])
{
        struct keys_setting s;
        size_t n = 0;
        ret[0] = 0;
        while (keys_setting(&from, &s)) {
                if (s.key.size == key.size && !memcmp(s.key.data, key.data, key.size))
                        continue;
                n += (size_t)snprintf(ret + n, KEYS_SETTINGS_MAX + 1 - n, "%s%.*s=%.*s",
                                      n ? " " : "", (int)s.key.size, (const char *)s.key.data,
                                      (int)s.value.size, (const char *)s.value.data);
        }
}

/* Give a setting this value; "" removes it. SP_E_LIMIT: there are too many. */
static int put_setting(struct clients *c, struct keys_entry *e, struct bytes key, const char *value)
{
        char rest[KEYS_SETTINGS_MAX + 1];
        int size;
        without(e->settings, key, rest);
        if (*value)
                size = snprintf(e->settings, sizeof(e->settings), "%s%s%.*s=%s", rest,
                                *rest ? " " : "", (int)key.size, (const char *)key.data, value);
        else
                size = snprintf(e->settings, sizeof(e->settings), "%s", rest);
        snprintf(c->text, sizeof(c->text), "these are too many settings");
        return (size_t)size < sizeof(e->settings) ? 0 : SP_E_LIMIT;
}

/* Take "KEY=VALUE", or "KEY=", which removes the setting. */
static int set(struct clients *c, struct keys_entry *e, const char *word)
{
        size_t n = strcspn(word, "=");
        const char *value = word[n] ? word + n + 1 : NULL;
        bool devices = n == 7 && !strncmp(word, "devices", n);
        auto_clean(free_text) char *error = NULL;
        struct client_limits limits = { 0 };
        if (!value || (*value && !keys_is_name(value)) ||
            (!devices && *value &&
             !client_limits_set(&limits, bytes_of(word, n), bytes_str(value)))) {
                snprintf(
                        c->text, sizeof(c->text),
                        "'%.64s' is no limit: limits are devices=FILTER, sessions=N, memory=[DEVICE=]MIB,..., "
                        "time=[DEVICE=]SECONDS[/WINDOW],..., builds=N, cache=MIB, "
                        "priority=low|normal|high and reserve=DEVICE[:UNTIL],...; without a value "
                        "one is removed",
                        word);
                return SP_E_INVAL;
        }
        if (devices) {
                int r = *value ? config_check(CONFIG_devices, value, &error) : 0;
                if (r < 0)
                        snprintf(c->text, sizeof(c->text), "%s", error ? error : status_text(r));
                strcpy(e->devices, value);
                return r;
        }
        return put_setting(c, e, bytes_of(word, n), value);
}

static int limit(struct clients *c, int argc, char **argv)
{
        struct keys_entry e;
        if (!argc)
                return 2;
        int r = find(c, argv[0], &e);
        for (int i = 1; i < argc && !r; i++)
                r = set(c, &e, argv[i]);
        if (r < 0)
                return complain(c, 1);
        if (argc > 1)
                return put(c, &e);
        char devices[KEYS_NAME_MAX + 1], all[KEYS_SETTINGS_MAX + 1];
        snprintf(all, sizeof(all), "%s", e.settings);
        printf("devices=%s%s%s\n", tamed(e.devices, devices), *all ? " " : "",
               bytes_tame(all, sizeof(all)));
        return 0;
}

/* Write the reservations of a client. */
static int put_reservations(struct clients *c, struct keys_entry *e, const struct reservations *all)
{
        char text[KEYS_NAME_MAX + 1];
        size_t n = 0;
        *text = 0;
        for (size_t i = 0; i < all->count; i++) {
                char one[RESERVATION_DATE + 16];
                (void)reservation_put(&all->list[i], one, sizeof(one));
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? "," : "", one);
                if (n >= sizeof(text)) {
                        snprintf(c->text, sizeof(c->text), "these are too many reservations");
                        return complain(c, 1);
                }
        }
        if (put_setting(c, e, bytes_str(RESERVE), text) < 0)
                return complain(c, 1);
        return put(c, e);
}

/* Take "DEVICE[:UNTIL]" and perhaps more of them. */
static int take_reservation(struct clients *c, const char *word, struct reservations *all)
{
        struct reservation one;
        const char *p = word;
        int r;
        while ((r = reservation_next(&p, now_s(), &one)) > 0) {
                if (reservation_is_over(&one, now_s())) {
                        snprintf(c->text, sizeof(c->text), "%.64s: this date is over", word);
                        return SP_E_INVAL;
                }
                drop_reservation(all, one.device);
                if (all->count < RESERVATIONS_MAX)
                        all->list[all->count++] = one;
        }
        if (r < 0 || !*word)
                snprintf(
                        c->text, sizeof(c->text),
                        "'%.64s' is no reservation: DEVICE is a number of --devices, and UNTIL a date "
                        "such as 2026-11-27T18:00Z, or a duration such as 90min, 8h and 3d",
                        word);
        return *word ? r : SP_E_INVAL;
}

static bool has_device(const struct reservations *all, unsigned device)
{
        for (size_t i = 0; i < all->count; i++)
                if (all->list[i].device == device)
                        return true;
        return false;
}

static void print_reserved(const struct reservation *r, const char *also, const char *client)
{
        char name[KEYS_NAME_MAX + 1], end[RESERVATION_DATE];
        printf("device %u is %sreserved for %s%s\n", r->device, also, tamed(client, name),
               reservation_end(r, end));
}

/* Print the reservations of a client, those of others for the same devices, and the effect. */
static void report_reserved(const struct clients *c, const struct keys_entry *e,
                            const struct reservations *all)
{
        struct keys_entry other;
        struct reservations theirs;
        unsigned bad = 0;
        for (size_t i = 0; i < all->count; i++)
                print_reserved(&all->list[i], "", e->name);
        for (const char *p = c->list; keys_next(&p, &other, &bad);) {
                if (!memcmp(other.fingerprint, e->fingerprint, sizeof(e->fingerprint)))
                        continue;
                reservations_of(&other, &theirs);
                for (size_t i = 0; i < theirs.count; i++)
                        if (has_device(all, theirs.list[i].device))
                                print_reserved(&theirs.list[i], "also ", other.name);
        }
        printf("New sessions of other clients do not get it. Sessions that they have now go on.\n");
}

static int reserve(struct clients *c, int argc, char **argv)
{
        struct keys_entry e;
        struct reservations all;
        if (argc < 2)
                return 2;
        int r = find(c, argv[0], &e);
        if (!r)
                reservations_of(&e, &all);
        for (int i = 1; i < argc && !r; i++)
                r = take_reservation(c, argv[i], &all);
        if (r < 0)
                return complain(c, 1);
        r = put_reservations(c, &e, &all);
        if (!r)
                report_reserved(c, &e, &all);
        return r;
}

static int release(struct clients *c, int argc, char **argv)
{
        struct keys_entry e;
        struct reservations all;
        uint64_t device;
        if (!argc)
                return 2;
        int r = find(c, argv[0], &e);
        if (!r)
                reservations_of(&e, &all);
        if (argc == 1)
                all.count = 0;
        for (int i = 1; i < argc && !r; i++) {
                size_t before = all.count;
                if (config_parse_number(argv[i], &device) && device <= RESERVATION_DEVICE_MAX)
                        drop_reservation(&all, (unsigned)device);
                if (all.count == before) {
                        snprintf(c->text, sizeof(c->text),
                                 "%.64s is no device that is reserved for it", argv[i]);
                        r = SP_E_NOENT;
                }
        }
        return r < 0 ? complain(c, 1) : put_reservations(c, &e, &all);
}

/* ---- the command ---------------------------------------------------------------------------- */

static const struct verb {
        const char *name, *arguments;
        bool changes;
        int (*run)(struct clients *c, int argc,
                   char **argv); /* the exit status; 2: wrong arguments */
} verbs[] = {
        { "list", "[--json]", false, list },
        { "remove", "CLIENT", true, drop },
        { "rename", "CLIENT NAME", true, name_anew },
        { "limits", "CLIENT [KEY=VALUE...]", true, limit },
        { "reserve", "CLIENT DEVICE[:UNTIL]...", true, reserve },
        { "release", "CLIENT [DEVICE...]", true, release },
};

/* Read the list, and lock it for a change. */
static int read_list(struct clients *c, bool change)
{
        int r = gate_folder(c->options, c->folder);
        if (r < 0)
                snprintf(c->text, sizeof(c->text), "there is no folder for keys: use --keys");
        if (!r && change)
                c->lock = r = keys_lock(c->folder, c->text);
        if (r >= 0)
                r = keys_read(c->folder, KEYS_CLIENTS, &c->list, c->text);
        return r == SP_E_NOENT && *c->folder && !change ? 0 : r;
}

int clients_main(const struct config_options *o, int argc, char **argv)
{
        struct clients c = { .options = o, .lock = -1 };
        bool implied = !argc || argv[0][0] == '-';
        const char *name = implied ? "list" : argv[0];
        const struct verb *v = NULL;
        int r = 2;
        for (size_t i = 0; i < array_size(verbs); i++)
                if (!strcmp(name, verbs[i].name))
                        v = &verbs[i];
        if (v && read_list(&c, v->changes) < 0)
                r = complain(&c, 1);
        else if (v)
                r = v->run(&c, argc - !implied, argv + !implied);
        for (size_t i = 0; r == 2 && i < array_size(verbs); i++)
                fprintf(stderr, "%s spancld clients %s %s [--keys DIR]\n",
                        i ? "      " : "Usage:", verbs[i].name, verbs[i].arguments);
        mem_free(c.list);
        if (c.lock >= 0)
                (void)file_close(c.lock);
        return r;
}

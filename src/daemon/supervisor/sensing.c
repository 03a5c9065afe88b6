#include "daemon/supervisor/sensing.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/control.h"
#include "daemon/supervisor/energy.h"
#include "os/clock.h"
#include "proto/info.h"

enum { EACH_MS = 400, AGAIN_MS = 10000, FRESH_MS = 30000 };

static void gone(struct supervisor *s)
{
        helper_gone(s, &s->sensors.process, AGAIN_MS);
        energy_sensors_gone(s);
}

bool sensors_ask_now(struct supervisor *s)
{
        static char word[] = "--sensors";
        struct helper *h = &s->sensors.process;
        uint64_t now = clock_now_ns();
        if (s->end.stopping || s->sensors.none || (!h->pid && now < h->again_ns))
                return false;
        int r = h->pid ? 0 : helper_start(s, h, (char *[]){ word, NULL });
        if (!r)
                r = control_send(h->control, CONTROL_SENSE, bytes_str(""), -1);
        if (r < 0 && r != SP_E_AGAIN)
                gone(s);
        return !r;
}

void sensors_ask(struct supervisor *s)
{
        uint64_t now = clock_now_ns();
        if (now < s->sensors.next_ns)
                return;
        s->sensors.next_ns = now + EACH_MS * MS;
        (void)sensors_ask_now(s);
}

void sensors_read(struct supervisor *s)
{
        static struct control c; /* static because it is large */
        int r;
        while (s->sensors.process.control >= 0 &&
               !(r = control_receive(s->sensors.process.control, &c))) {
                control_drop(&c);
                if (c.kind != CONTROL_SENSED)
                        continue;
                s->sensors.none = !c.size;
                s->sensors.told_ns = clock_now_ns();
                memcpy(s->sensors.text, c.data, c.size + 1);
                energy_read(s);
        }
        if (s->sensors.process.control >= 0 && r == SP_E_LINK)
                gone(s); /* it ends by itself when it is not asked */
}

bool sensors_ended(struct supervisor *s, pid_t pid)
{
        bool ended = helper_ended(s, &s->sensors.process, pid, AGAIN_MS);
        if (ended)
                energy_sensors_gone(s);
        return ended;
}

/* Read the next figure of a line. SP_E_NOENT: it is not known. */
static int figure(const char **p, uint64_t *ret)
{
        bool known = **p >= '0' && **p <= '9';
        *ret = known ? strtoull(*p, NULL, 10) : 0;
        *p += strcspn(*p, " \n");
        *p += **p == ' ';
        return known ? 0 : SP_E_NOENT;
}

const char *sensors_line(const char **at)
{
        const char *line = *at;
        if (!*line)
                return NULL;
        *at += strcspn(line, "\n");
        *at += **at == '\n';
        return line;
}

static bool is_processor(const char *line)
{
        return !strncmp(line, "cpu ", 4);
}

/* Append the figures of a line, but for its energy. Returns an error, or finds the name behind them. */
static int put_line(const char *line, struct buf *b, uint64_t *ret_energy, bool *ret_known,
                    const char **ret_name)
{
        int r = 0;
        for (uint32_t key = INFO_SENSOR_BUSY; key <= INFO_SENSOR_POWER && !r; key++) {
                uint64_t value;
                if (figure(&line, &value) == 0 && b)
                        r = info_put_u64(b, key, value);
        }
        *ret_known = figure(&line, ret_energy) == 0;
        *ret_name = line;
        return r;
}

bool sensors_energy(const char *line, uint64_t *ret_uj)
{
        const char *name;
        bool known;
        (void)!put_line(line, NULL, ret_uj, &known, &name);
        return known;
}

static bool has_name(const char *line, const struct health_device *d)
{
        const char *name;
        uint64_t energy;
        bool known;
        (void)!put_line(line, NULL, &energy, &known, &name);
        size_t n = strcspn(name, "\n"), m = strlen(d->name);
        /* The record has the first bytes of a long name. */
        return n == m ? !memcmp(name, d->name, n)
                      : n > m && m + 1 == sizeof(d->name) && !memcmp(name, d->name, m);
}

/* Find the device's line. Drivers number devices of one name in one order in all of their interfaces. */
static const char *find(const struct supervisor *s, const struct health_device *d, int *ret_index)
{
        size_t skip = 0;
        const char *line;
        int index = 0;
        for (const struct health_device *e = s->health.devices; e < d; e++)
                skip += !strcmp(e->name, d->name);
        for (const char *at = s->sensors.text; (line = sensors_line(&at));) {
                if (is_processor(line))
                        continue;
                if (has_name(line, d) && !skip--) {
                        *ret_index = index;
                        return line;
                }
                index++;
        }
        return NULL;
}

int sensors_find(const struct supervisor *s, const struct health_device *d)
{
        int index;
        return find(s, d, &index) ? index : -1;
}

int sensors_put(const struct supervisor *s, const struct health_device *d, struct buf *b)
{
        const char *line, *name;
        uint64_t energy;
        bool known;
        int index;
        if (!s->sensors.told_ns || clock_now_ns() - s->sensors.told_ns > FRESH_MS * MS)
                return 0;
        line = find(s, d, &index);
        return line ? put_line(line, b, &energy, &known, &name) : 0;
}

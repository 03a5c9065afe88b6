#include "daemon/supervisor/sensing.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/control.h"
#include "os/clock.h"
#include "proto/info.h"

enum { EACH_MS = 400, AGAIN_MS = 10000, FRESH_MS = 30000 };

static void gone(struct supervisor *s)
{
        helper_gone(s, &s->sensors.process, AGAIN_MS);
}

void sensors_ask(struct supervisor *s)
{
        static char word[] = "--sensors";
        struct helper *h = &s->sensors.process;
        uint64_t now = clock_now_ns();
        if (s->stopping || s->sensors.none || now < s->sensors.next_ns)
                return;
        s->sensors.next_ns = now + EACH_MS * MS;
        if (!h->pid && now < h->again_ns)
                return;
        int r = h->pid ? 0 : helper_start(s, h, (char *[]){ word, NULL });
        if (!r)
                r = control_send(h->control, CONTROL_SENSE, bytes_str(""), -1);
        if (r < 0 && r != SP_E_AGAIN)
                gone(s);
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
        }
        if (s->sensors.process.control >= 0 && r == SP_E_LINK)
                gone(s); /* it ends by itself when it is not asked */
}

bool sensors_ended(struct supervisor *s, pid_t pid)
{
        return helper_ended(s, &s->sensors.process, pid, AGAIN_MS);
}

/* Read the next figure of a line. SP_E_NOENT: it is not known. */
static int figure(char **p, uint64_t *ret)
{
        bool known = **p >= '0' && **p <= '9';
        *ret = known ? strtoull(*p, p, 10) : 0;
        *p += strcspn(*p, " \n");
        *p += **p == ' ';
        return known ? 0 : SP_E_NOENT;
}

/* Append the figures of a line, and find the name behind them. */
static int put_line(char *line, struct buf *b, char **ret_name)
{
        int r = 0;
        for (uint32_t key = INFO_SENSOR_BUSY; key <= INFO_SENSOR_POWER && !r; key++) {
                uint64_t value;
                if (figure(&line, &value) == 0 && b)
                        r = info_put_u64(b, key, value);
        }
        *ret_name = line;
        return r;
}

static bool has_name(const char *name, const struct health_device *d)
{
        size_t n = strcspn(name, "\n"), m = strlen(d->name);
        /* The record has the first bytes of a long name. */
        return n == m ? !memcmp(name, d->name, n)
                      : n > m && m + 1 == sizeof(d->name) && !memcmp(name, d->name, m);
}

/* Drivers number devices of one name in one order in all of their interfaces. */
int sensors_put(const struct supervisor *s, const struct health_device *d, struct buf *b)
{
        char text[CONTROL_MAX + 1], *name;
        size_t skip = 0;
        if (!s->sensors.told_ns || clock_now_ns() - s->sensors.told_ns > FRESH_MS * MS)
                return 0;
        strcpy(text, s->sensors.text);
        for (const struct health_device *e = s->health.devices; e < d; e++)
                skip += !strcmp(e->name, d->name);
        for (char *line = text; *line; line = name + strcspn(name, "\n") + 1) {
                (void)!put_line(line, NULL, &name);
                if (has_name(name, d) && !skip--)
                        return put_line(line, b, &name);
                if (!name[strcspn(name, "\n")])
                        break;
        }
        return 0;
}

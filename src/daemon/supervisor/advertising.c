#include "daemon/supervisor/advertising.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/installed.h"
#include "base/log.h"
#include "daemon/supervisor/workers.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/net/socket.h"
#include "os/random.h"
#include "proto/wire.h"
#include "transport/address.h"

#define PROGRAM "advertise-mdns"

enum {
        AGAIN_MS = 5000, /* after the program's end */
        TELL_MS = 2000,  /* between changes: each is a packet to the whole network */
        ADDRESSES_MAX = 1024,
};

static bool is_wanted(const struct supervisor *s)
{
        return !s->stopping && !s->draining && config_option_number(s->options, CONFIG_advertise);
}

/* Return true if the listener has an address of IP, beyond loopback or not as wanted. */
static bool has_address(const struct listening *l, bool loopback, struct address *ret)
{
        return address_parse(l->listener->address, ret) == 0 && ret->ops->caps & TRANSPORT_PEERS &&
               address_is_reached(ret) != loopback;
}

/* Write the addresses with the first port that other hosts reach, or with the first port of loopback. Returns the
 * port; 0: there is none. */
static unsigned find_addresses(const struct supervisor *s, char ret[ADDRESSES_MAX])
{
        unsigned port = 0;
        size_t n = 0;
        for (int loopback = 0; loopback < 2 && !port; loopback++) {
                for (size_t i = 0; i < s->listeners.count; i++) {
                        const struct listening *l = &s->listeners.all[i];
                        struct address at;
                        if (!has_address(l, loopback, &at) || (port && at.port != port) ||
                            n + sizeof(at.host) + 2 > ADDRESSES_MAX)
                                continue;
                        port = at.port;
                        bool both = !strcmp(at.host, "::") && socket_takes_both(l->listener->fd);
                        n += (size_t)sprintf(ret + n, "%s%s", n ? "," : "", both ? "*" : at.host);
                }
        }
        return port;
}

/* Write the whole record. False: the program does not read now. */
static bool tell(struct supervisor *s)
{
        struct advertiser *a = &s->advertiser;
        char where[ADDRESSES_MAX], line[ADDRESSES_MAX + 256];
        const char *key = s->gate.identity;
        unsigned load = (unsigned)workers_count(s, WORKER_BUSY);
        unsigned port = find_addresses(s, where);
        int n = snprintf(line, sizeof(line), "%u %s id=%s v=%u%s%s load=%u\n", port, where, a->id,
                         WIRE_VERSION, *key ? " key=" : "", key, load);
        a->tell_ns = clock_now_ns() + TELL_MS * MS;
        if (!file_write_all(a->process.control, line, (size_t)n))
                return false;
        a->load = load;
        a->keyed = *key;
        return true;
}

static bool is_told(const struct supervisor *s)
{
        return s->advertiser.load == workers_count(s, WORKER_BUSY) &&
               s->advertiser.keyed == (*s->gate.identity != 0);
}

static int start(struct supervisor *s)
{
        static char name[] = PROGRAM;
        struct advertiser *a = &s->advertiser;
        uint8_t random[16];
        char path[PATH_MAX], level[8];
        if (!installed_find(PROGRAM, path)) {
                log_error(LOG, "--advertise: libexec/spancl/" PROGRAM
                               " is not installed (package spancl-discovery)");
                return SP_E_NOENT;
        }
        if (!random_fill(random, sizeof(random)))
                return SP_E_LIMIT;
        for (size_t i = 0; i < sizeof(random); i++)
                sprintf(a->id + 2 * i, "%02x", random[i]);
        strcpy(level, log_level_name(log_threshold));
        int r = helper_run(s, &a->process, path, (char *[]){ name, level, NULL });
        return !r && !tell(s) ? SP_E_LIMIT : r;
}

void advertiser_provide(struct supervisor *s)
{
        struct helper *h = &s->advertiser.process;
        char where[ADDRESSES_MAX];
        uint64_t now = clock_now_ns();
        if (!is_wanted(s))
                return;
        if (h->pid) {
                if (now >= s->advertiser.tell_ns && !is_told(s))
                        (void)tell(s);
                return;
        }
        if (now < h->again_ns)
                return;
        gate_keys_if_any(&s->gate);
        if (!find_addresses(s, where)) {
                log_warn(LOG, "--advertise: the server listens on no address of a network");
                h->again_ns = UINT64_MAX;
                return;
        }
        int r = start(s);
        if (r == 0)
                return;
        if (r != SP_E_NOENT)
                log_error(LOG, "--advertise: " PROGRAM " can't be started: %s", status_text(r));
        helper_gone(s, h, AGAIN_MS);
        if (r == SP_E_NOENT)
                h->again_ns = UINT64_MAX;
}

uint64_t advertiser_deadline(const struct supervisor *s)
{
        if (!is_wanted(s))
                return UINT64_MAX;
        if (!s->advertiser.process.pid)
                return s->advertiser.process.again_ns;
        return is_told(s) ? UINT64_MAX : s->advertiser.tell_ns;
}

bool advertiser_ended(struct supervisor *s, pid_t pid)
{
        if (!helper_ended(s, &s->advertiser.process, pid, AGAIN_MS))
                return false;
        if (!s->stopping)
                log_error(LOG, PROGRAM " has ended; it is started again");
        return true;
}

void advertiser_withdraw(struct supervisor *s)
{
        if (!s->advertiser.process.pid)
                return;
        advertiser_stop(s);
        log_info(LOG, "--advertise: the record is withdrawn");
}

void advertiser_stop(struct supervisor *s)
{
        /* The record goes with the program's connection to the system's bus. */
        helper_stop(s, &s->advertiser.process);
}

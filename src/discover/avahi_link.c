#include "discover/avahi_link.h"

#include <avahi-common/error.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "os/clock.h"

enum { AGAIN_NS = 1000000000 };

struct end {
        int fd;
        bool (*readable)(int fd);
        bool over;
};

static void log_absent(struct avahi_link *l, const char *why)
{
        if (!l->reported)
                fprintf(stderr, "avahi-daemon is not there (%s); the program waits for it\n", why);
        l->reported = true;
        l->absent();
}

static void on_state(AvahiClient *client, AvahiClientState state, void *user)
{
        struct avahi_link *l = user;
        if (state == AVAHI_CLIENT_FAILURE) {
                l->broken = true;
        } else if (state == AVAHI_CLIENT_CONNECTING) {
                log_absent(l, "no service of that name on the system's D-Bus");
        } else {
                if (l->reported)
                        fprintf(stderr, "avahi-daemon is there\n");
                l->reported = false;
                l->state(client, state);
        }
}

static void on_end(AvahiWatch *watch, int fd, AvahiWatchEvent event, void *user)
{
        struct end *end = user;
        (void)watch;
        if (!end->readable || !end->readable(fd))
                end->over = true;
        (void)event;
}

bool avahi_link_init(struct avahi_link *l)
{
        l->due_ns = UINT64_MAX;
        l->poll = avahi_simple_poll_new();
        return l->poll != NULL;
}

static void renew(struct avahi_link *l)
{
        int error = 0;
        if (l->client && l->broken) {
                l->lost();
                avahi_client_free(l->client);
                l->client = NULL;
                l->again_ns = 0;
        }
        if (l->client || clock_now_ns() < l->again_ns)
                return;
        l->broken = false;
        l->client = avahi_client_new(avahi_simple_poll_get(l->poll), AVAHI_CLIENT_NO_FAIL, on_state,
                                     l, &error);
        l->again_ns = clock_now_ns() + AGAIN_NS;
        if (!l->client)
                log_absent(l, avahi_strerror(error));
}

void avahi_link_run(struct avahi_link *l, int fd, bool (*readable)(int fd))
{
        const AvahiPoll *api = avahi_simple_poll_get(l->poll);
        struct end end = { fd, readable, false };
        AvahiWatchEvent events = readable ? AVAHI_WATCH_IN : AVAHI_WATCH_HUP | AVAHI_WATCH_ERR;
        if (!api->watch_new(api, fd, events, on_end, &end))
                return;
        while (!end.over) {
                renew(l);
                uint64_t due = l->client ? UINT64_MAX : l->again_ns;
                due = l->due_ns < due ? l->due_ns : due;
                if (avahi_simple_poll_iterate(l->poll, clock_poll_ms(due)) && errno != EINTR)
                        return;
                if (l->due_ns <= clock_now_ns())
                        l->expire();
        }
}

struct ip avahi_link_ip(const AvahiAddress *a)
{
        struct ip ip = { .size = a->proto == AVAHI_PROTO_INET ? IP_V4 : IP_V6 };
        memcpy(ip.bytes, &a->data, ip.size);
        return ip;
}

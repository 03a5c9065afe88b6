/* advertise-mdns: publishes a server by multicast DNS, through avahi-daemon. The supervisor of spancld starts it,
 * and writes a line to its standard input for each change (daemon/supervisor/advertising.h):
 *   PORT ADDRESS[,ADDRESS...] NAME=VALUE...
 * The argument is the log level. The program ends with its standard input. */
#include <avahi-client/publish.h>
#include <avahi-common/alternative.h>
#include <avahi-common/error.h>
#include <avahi-common/malloc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "discover/avahi_link.h"
#include "discover/line.h"
#include "os/file.h"
#include "os/host.h"
#include "os/net/interface.h"
#include "os/process/rights.h"
#include "os/thread.h"

#define LOG  "advertise"
#define TYPE "_spancl._tcp"

enum {
        INPUT_MAX = 4096,
        NAMES_MAX = 16,
        PLACES_MAX = 16,
        DNS_NAME_MAX = 256,
        LEAVE_LIFE_S = 10,
        LEAVE_NS =
                400000000 /* avahi-daemon sends a new record after a random time of up to 250 ms */
};

static struct avahi_link avahi;
static AvahiEntryGroup *group; /* NULL: none */
static bool running;           /* avahi-daemon has its host name */
static char name[FOUND_NAME_MAX + 1];
static unsigned renamed;

/* The record of the last line. */
static struct {
        uint16_t port; /* 0: no line has come */
        char where[INPUT_MAX];
        AvahiStringList *txt;
        char host[32]; /* the host name for addresses that are not all of the host's */
} wanted;

/* The text of the addresses that are published; "": none. */
static char published[INPUT_MAX + 8];

static void fail(const char *what, int error)
{
        log_error(LOG, "%s: %s", what, avahi_strerror(error));
        avahi.broken = true;
}

/* Choose another name, because another service has this one. False: there were too many. */
static bool rename_service(void)
{
        char *next = avahi_alternative_service_name(name);
        bool good = next && ++renamed < NAMES_MAX && strlen(next) < sizeof(name);
        if (good) {
                log_info(LOG, "another server has the name %s", name);
                strcpy(name, next);
        } else
                log_error(LOG, "the server is not published: others have its name %s", name);
        avahi_free(next);
        return good;
}

/* Find the interface that has the address; AVAHI_IF_UNSPEC: none. */
static AvahiIfIndex interface_of(const AvahiAddress *address)
{
        const struct ip ip = avahi_link_ip(address);
        unsigned number = interface_with(&ip);
        return number ? (AvahiIfIndex)number : AVAHI_IF_UNSPEC;
}

/* The places at which the service is published already. */
static struct {
        AvahiIfIndex interface;
        AvahiProtocol protocol;
} places[PLACES_MAX];
static size_t place_count;

static int add_service(AvahiIfIndex interface, AvahiProtocol protocol, const char *host)
{
        for (size_t i = 0; i < place_count; i++) {
                if (places[i].interface == interface && places[i].protocol == protocol)
                        return 0;
        }
        if (place_count == PLACES_MAX)
                return AVAHI_ERR_TOO_MANY_ENTRIES;
        places[place_count].interface = interface;
        places[place_count++].protocol = protocol;
        return avahi_entry_group_add_service_strlst(group, interface, protocol, 0, name, TYPE, NULL,
                                                    host, wanted.port, wanted.txt);
}

/* Add one address: a number, or "*", "0.0.0.0" and "::" for all of the host's. */
static int add_address(const char *text)
{
        AvahiAddress address;
        AvahiIfIndex interface;
        if (!strcmp(text, "*"))
                return add_service(AVAHI_IF_UNSPEC, AVAHI_PROTO_UNSPEC, NULL);
        if (!strcmp(text, "0.0.0.0"))
                return add_service(AVAHI_IF_UNSPEC, AVAHI_PROTO_INET, NULL);
        if (!strcmp(text, "::"))
                return add_service(AVAHI_IF_UNSPEC, AVAHI_PROTO_INET6, NULL);
        if (!avahi_address_parse(text, AVAHI_PROTO_UNSPEC, &address))
                return AVAHI_ERR_INVALID_ADDRESS;
        interface = interface_of(&address);
        int r = avahi_entry_group_add_address(group, interface, AVAHI_PROTO_UNSPEC,
                                              AVAHI_PUBLISH_NO_REVERSE, wanted.host, &address);
        return r ? r : add_service(interface, address.proto, wanted.host);
}

static int add_all(void)
{
        char copy[INPUT_MAX], *rest;
        strcpy(copy, wanted.where);
        place_count = 0;
        int r = avahi_entry_group_reset(group);
        for (const char *a = strtok_r(copy, ",", &rest); a && !r; a = strtok_r(NULL, ",", &rest))
                r = add_address(a);
        return r ? r : avahi_entry_group_commit(group);
}

static int update_all(void)
{
        int r = 0;
        for (size_t i = 0; i < place_count && !r; i++)
                r = avahi_entry_group_update_service_txt_strlst(group, places[i].interface,
                                                                places[i].protocol, 0, name, TYPE,
                                                                NULL, wanted.txt);
        return r;
}

static void publish(void);

static void on_group(AvahiEntryGroup *g, AvahiEntryGroupState state, void *user)
{
        (void)user;
        group = g; /* this may be a callback of avahi_entry_group_new */
        switch (state) {
        case AVAHI_ENTRY_GROUP_ESTABLISHED:
                log_info(LOG, "published as %s by multicast DNS", name);
                break;
        case AVAHI_ENTRY_GROUP_COLLISION:
                *published = 0;
                if (rename_service())
                        publish();
                break;
        case AVAHI_ENTRY_GROUP_FAILURE:
                fail("the server can't be published",
                     avahi_client_errno(avahi_entry_group_get_client(g)));
                break;
        case AVAHI_ENTRY_GROUP_UNCOMMITED:
        case AVAHI_ENTRY_GROUP_REGISTERING:
                break;
        }
}

/* Publish the record, or its changes. */
static void publish(void)
{
        char now[sizeof(published)];
        int r;
        if (!running || !wanted.port)
                return;
        if (!group && !avahi_entry_group_new(avahi.client, on_group, NULL)) {
                fail("the server can't be published", avahi_client_errno(avahi.client));
                return;
        }
        snprintf(now, sizeof(now), "%u %s", wanted.port, wanted.where);
        if (!strcmp(now, published))
                r = update_all();
        else
                do {
                        r = add_all();
                } while (r == AVAHI_ERR_COLLISION && rename_service());
        if (r == AVAHI_ERR_COLLISION)
                return;
        if (r < 0)
                fail("the server can't be published", r);
        else
                strcpy(published, now);
}

static void on_state(AvahiClient *client, AvahiClientState state)
{
        avahi.client = client; /* this may be a callback of avahi_client_new */
        running = state == AVAHI_CLIENT_S_RUNNING;
        *published = 0;
        if (running)
                publish();
        else if (group)
                (void)avahi_entry_group_reset(group); /* the host has no name now */
}

static void on_lost(void)
{
        group = NULL; /* it is freed with the client */
        running = false;
        *published = 0;
}

static void nothing(void)
{
}

static void on_leaving(AvahiEntryGroup *g, AvahiEntryGroupState state, void *user)
{
        (void)g, (void)state, (void)user;
}

/* Write the service's name in the form of DNS. */
static size_t put_instance(uint8_t ret[DNS_NAME_MAX])
{
        static const char kind[] = "\x07_spancl\x04_tcp\x05local"; /* and the final 0 */
        size_t n = strlen(name);
        ret[0] = (uint8_t)n;
        memcpy(ret + 1, name, n);
        memcpy(ret + 1 + n, kind, sizeof(kind));
        return 1 + n + sizeof(kind);
}

/* Publish that the server ends (SERVICE_LEAVES). After an error, avahi-daemon just withdraws the record. */
static void take_leave(void)
{
        uint8_t instance[DNS_NAME_MAX];
        size_t size = put_instance(instance);
        AvahiEntryGroup *g = running && *published && !avahi.broken
                                     ? avahi_entry_group_new(avahi.client, on_leaving, NULL)
                                     : NULL;
        int r = g ? 0 : AVAHI_ERR_BAD_STATE;
        for (size_t i = 0; i < place_count && !r; i++)
                r = avahi_entry_group_add_record(g, places[i].interface, places[i].protocol, 0,
                                                 SERVICE_LEAVES ".local", AVAHI_DNS_CLASS_IN,
                                                 AVAHI_DNS_TYPE_PTR, LEAVE_LIFE_S, instance, size);
        if (!r && avahi_entry_group_commit(g) == 0)
                (void)thread_sleep(LEAVE_NS);
}

/* Parse a line of the supervisor. */
static void take(char *line)
{
        char *rest, *port = strtok_r(line, " ", &rest), *where = strtok_r(NULL, " ", &rest);
        if (!port || !where)
                return;
        avahi_string_list_free(wanted.txt);
        wanted.txt = NULL;
        for (const char *txt; (txt = strtok_r(NULL, " ", &rest));) {
                wanted.txt = avahi_string_list_add(wanted.txt, txt);
                if (!strncmp(txt, "id=", 3))
                        snprintf(wanted.host, sizeof(wanted.host), "spancl-%.8s.local", txt + 3);
        }
        wanted.port = (uint16_t)atoi(port);
        snprintf(wanted.where, sizeof(wanted.where), "%s", where);
        publish();
}

/* Read what the supervisor has written. False: it is gone. */
static bool read_input(int fd)
{
        static char text[INPUT_MAX];
        static size_t size;
        int64_t n = file_read(fd, text + size, sizeof(text) - 1 - size);
        if (n < 0)
                return errno == EAGAIN;
        size += (size_t)n;
        text[size] = 0;
        for (char *end; (end = strchr(text, '\n'));) {
                *end = 0;
                take(text);
                size -= (size_t)(end + 1 - text);
                memmove(text, end + 1, size + 1);
        }
        return n > 0 && size < sizeof(text) - 1;
}

int main(int argc, char **argv)
{
        int level = argc == 2 ? log_level_parse(argv[1]) : LOG_WARN;
        log_threshold = level < 0 ? LOG_WARN : (enum log_level)level;
        rights_drop();
        host_short_name(name, sizeof(name), "spancld");
        avahi.state = on_state;
        avahi.lost = on_lost;
        avahi.absent = nothing;
        avahi.expire = nothing;
        if (!avahi_link_init(&avahi))
                return 1;
        avahi_link_run(&avahi, FILE_STDIN, read_input);
        take_leave();
        if (avahi.client)
                avahi_client_free(avahi.client);
        return 0;
}

#include "core/link/remote_info.h"

#include <spancl/servers.h>

#include "core/device.h"
#include "core/link/idle.h"
#include "session/session.h"
#include "transport/address.h"

bool remote_info_has(cl_device_info name)
{
        switch (name) {
        case REMOTE_TRAFFIC_STATS_POCL:
        case REMOTE_SERVER_IP_POCL:
        case REMOTE_SERVER_PORT_POCL:
        case CL_DEVICE_SERVER_NAME_SPANCL:
        case CL_DEVICE_SERVER_KEY_SPANCL:
        case CL_DEVICE_SERVER_ROUND_TRIP_SPANCL:
                return true;
        default:
                return false;
        }
}

/* The address of IP that the connection has reached, or the configured one while there is none. False: the server
 * is not reached by IP. */
static bool find_address(const struct server *s, struct address *ret) REQUIRES(client_held)
{
        const struct client *c = s->client;
        const char *reached =
                s->link && c->io->reached ? c->io->reached(c->io_user, s->link) : NULL;
        return address_parse(reached ? reached : s->spec->address, ret) == 0 &&
               ret->ops->caps & TRANSPORT_PEERS;
}

/* Seconds and nanoseconds of the real time; bytes that were asked for and bytes that came; bytes that were to be
 * sent and bytes that were. A receiver of SpanCL's does not ask for bytes before they come. */
static int put_traffic(const struct server *s, uint64_t wall_ns, struct buf *out)
{
        cl_ulong counters[6] = { wall_ns / 1000000000, wall_ns % 1000000000 };
        if (s->session) {
                const struct session_stats *t = session_get_stats(s->session);
                counters[2] = counters[3] = t->bytes_received + t->bulk_received;
                counters[5] = t->bytes_sent + t->bulk_sent;
                counters[4] = counters[5] + session_unsent(s->session);
        }
        return buf_put(out, counters, sizeof(counters));
}

int remote_info_put(cl_device_id d, cl_device_info name, uint64_t wall_ns, struct buf *out)
{
        if (name == REMOTE_SERVER_IP_POCL) /* a connection knows it */
                devices_begin_use(d->client, &d, 1);
        struct server *s = device_present(d)->server;
        struct address at;
        const char *text;
        if (s->spec->in_process)
                return SP_E_NOENT;
        switch (name) {
        case REMOTE_TRAFFIC_STATS_POCL:
                return put_traffic(s, wall_ns, out);
        case REMOTE_SERVER_IP_POCL:
                if (!find_address(s, &at))
                        return SP_E_NOENT;
                text = at.host;
                break;
        case REMOTE_SERVER_PORT_POCL:
                if (!find_address(s, &at))
                        return SP_E_NOENT;
                return buf_put(out, &(cl_uint){ at.port }, sizeof(cl_uint));
        case CL_DEVICE_SERVER_NAME_SPANCL:
                text = server_name(s);
                break;
        case CL_DEVICE_SERVER_KEY_SPANCL:
                text = s->identity;
                break;
        case CL_DEVICE_SERVER_ROUND_TRIP_SPANCL:
                return buf_put(out, &(cl_ulong){ s->clock.rtt_ns }, sizeof(cl_ulong));
        default:
                return SP_E_NOENT;
        }
        return buf_put(out, text, strlen(text) + 1);
}

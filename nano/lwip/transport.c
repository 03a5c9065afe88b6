#include "lwip/transport.h"

#include <string.h>

#include "lwip/sys.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"

enum { CONNECT_MS = 5000 };

static void close_lane(struct lwip_lane *l)
{
        if (l->pcb) {
                tcp_arg(l->pcb, NULL);
                tcp_abort(l->pcb);
        }
        if (l->come)
                pbuf_free(l->come);
        *l = (struct lwip_lane){ .transport = l->transport };
}

/* lwIP has freed the connection. */
static void on_error(void *arg, err_t error)
{
        struct lwip_lane *l = arg;
        (void)error;
        if (!l)
                return;
        l->pcb = NULL;
        l->ended = true;
}

static err_t on_connected(void *arg, struct tcp_pcb *pcb, err_t error)
{
        struct lwip_lane *l = arg;
        (void)pcb;
        (void)error;
        l->connected = true;
        return ERR_OK;
}

static err_t on_received(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t error)
{
        struct lwip_lane *l = arg;
        (void)pcb;
        (void)error;
        if (!p)
                l->ended = true;
        else if (l->come)
                pbuf_cat(l->come, p);
        else
                l->come = p;
        return ERR_OK;
}

static uint64_t now_ms(void)
{
        static uint32_t last, turns;
        const uint32_t now = sys_now();
        turns += now < last;
        last = now;
        return (uint64_t)turns << 32 | now;
}

static uint64_t lanes_wait(void *user, unsigned timeout_ms)
{
        struct lwip_transport *t = user;
        const uint64_t until = now_ms() + timeout_ms;
        for (;;) {
                const bool some = t->poll();
                sys_check_timeouts();
                if (some || now_ms() >= until)
                        return now_ms();
                if (t->sleep)
                        t->sleep();
        }
}

static int lane_open(void *user, unsigned lane)
{
        struct lwip_transport *t = user;
        struct lwip_lane *l = &t->lanes[lane];
        close_lane(l);
        if (!lane)
                close_lane(&t->lanes[1]);
        l->transport = t;
        l->pcb = tcp_new();
        if (!l->pcb)
                return -1;
        tcp_arg(l->pcb, l);
        tcp_err(l->pcb, on_error);
        tcp_recv(l->pcb, on_received);
        tcp_nagle_disable(l->pcb);
        const uint64_t until = now_ms() + CONNECT_MS;
        if (tcp_connect(l->pcb, &t->host, t->port, on_connected) != ERR_OK)
                l->ended = true;
        while (!l->connected && !l->ended && now_ms() < until)
                (void)lanes_wait(t, (unsigned)(until - now_ms()));
        if (l->connected && !l->ended)
                return 0;
        close_lane(l);
        return -1;
}

static int lane_send(void *user, unsigned lane, const void *data, size_t size)
{
        struct lwip_lane *l = &((struct lwip_transport *)user)->lanes[lane];
        if (!l->pcb || l->ended)
                return -1;
        const size_t room = tcp_sndbuf(l->pcb), some = size < room ? size : room;
        if (!some || tcp_write(l->pcb, data, (u16_t)some, TCP_WRITE_FLAG_COPY) != ERR_OK) {
                tcp_output(l->pcb);
                return 0;
        }
        tcp_output(l->pcb);
        return (int)some;
}

static int lane_receive(void *user, unsigned lane, void *data, size_t size)
{
        struct lwip_lane *l = &((struct lwip_transport *)user)->lanes[lane];
        if (!l->come)
                return !l->pcb || l->ended ? -1 : 0;
        const size_t some = size < l->come->len ? size : l->come->len;
        memcpy(data, l->come->payload, some);
        l->come = pbuf_free_header(l->come, (u16_t)some);
        if (l->pcb)
                tcp_recved(l->pcb, (u16_t)some);
        return (int)some;
}

struct spancl_nano_transport lwip_transport(struct lwip_transport *t)
{
        return (struct spancl_nano_transport){ lane_open, lane_send, lane_receive, lanes_wait, t };
}

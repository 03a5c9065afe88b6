#include "daemon/worker/watchdog.h"

#include "base/log.h"
#include "daemon/control.h"
#include "daemon/system/lifetime.h"
#include "daemon/worker/worker.h"
#include "loop/server_loop.h"
#include "os/clock.h"

#define LOG "worker"

enum {
        /* A loop that is only slow first ends an overlong session itself, with a reason. */
        GRACE_S = 10,
        LOOK_S = 1, /* between checks; a quarter of the limit if that is more */
};

static const uint64_t second = 1000000000;

void watchdog_init(struct watchdog *w, const struct config_options *o, struct server_loop *l)
{
        uint64_t limit = config_option_number(o, CONFIG_session_run_time);
        *w = (struct watchdog){ .loop = l,
                                .limit_ns = limit ? (limit + GRACE_S) * second : 0,
                                .check_ns = clock_now_ns() };
}

int watchdog_poll_ms(const struct watchdog *w)
{
        return w->limit_ns ? clock_poll_ms(w->check_ns) : -1;
}

static void give_up(void)
{
        log_error(LOG, "a call of a driver does not return: the session's process is ended");
        (void)!control_send(CONTROL_FD, CONTROL_STUCK, bytes_str(""), -1);
        lifetime_give_up(WORKER_UNCLEAN);
}

void watchdog_check(struct watchdog *w)
{
        uint64_t now = clock_now_ns();
        if (!w->limit_ns || now < w->check_ns)
                return;
        uint64_t pause = w->limit_ns / 4 < LOOK_S * second ? LOOK_S * second : w->limit_ns / 4;
        w->check_ns = now + pause;
        if (server_loop_is_alive(w->loop))
                w->silent_ns = 0;
        else if (!w->silent_ns)
                w->silent_ns = now;
        else if (now - w->silent_ns >= w->limit_ns)
                give_up();
}

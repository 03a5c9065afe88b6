#include "core/recorder.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "config/variables.h"
#include "core/state.h"
#include "core/tracing.h"
#include "os/clock.h"
#include "os/poll.h"
#include "os/process/process.h"
#include "os/signals.h"
#include "os/thread.h"
#include "os/wakeup.h"
#include "trace/timeline.h"

#define PAUSE_NS  1000000000ull /* between two files */
#define FINISH_NS 5000000000ull /* how long the exit waits for a file */

static bool on;
static int wake_fd = -1;
static pid_t process;
static atomic_bool signalled;
static char reason
        [160]; /* of the next file; "": there is none. Guarded by the client's lock, as are the two below. */
static char writing[160];
static unsigned written;

/* At SIGUSR2: the thread does the work. In a child of fork() that has not come to recorder_forget yet, the signal does
 * what it does without a handler. */
static void on_signal(int number)
{
        if (process_self() != process)
                signals_die(number);
        atomic_store(&signalled, true);
        wakeup_set(wake_fd);
}

void recorder_trigger(const char *what, const char *subject)
{
        if (!on || *reason || written >= TIMELINE_FILES)
                return;
        snprintf(reason, sizeof(reason), "%s%s%s", what, subject ? " " : "",
                 subject ? subject : "");
        wakeup_set(wake_fd);
}

/* Take the reason for the next file into `writing`. False: there is none. */
static bool take_reason(void)
{
        if (atomic_exchange(&signalled, false) && !*reason)
                snprintf(reason, sizeof(reason), "SIGUSR2");
        memcpy(writing, reason, sizeof(writing));
        *reason = 0;
        return *writing && written < TIMELINE_FILES;
}

static void write_file(struct client *c) REQUIRES(client_held)
{
        written++;
        tracing_dump(c, writing, written);
        *writing = 0;
        client_changed(c);
}

static void *run(void *arg)
{
        (void)arg;
        thread_name("spancl-recorder");
        for (uint64_t free_ns = 0;;) {
                struct pollfd fd = { .fd = wake_fd, .events = POLLIN };
                if (poll_until(&fd, 1, UINT64_MAX) <= 0)
                        continue;
                wakeup_clear(wake_fd);
                while (clock_now_ns() < free_ns)
                        (void)poll_until(NULL, 0, free_ns);
                struct client *c = client_get();
                if (!c)
                        continue;
                client_lock(c);
                if (!c->closing && take_reason())
                        write_file(c);
                client_unlock(c);
                free_ns = clock_now_ns() + PAUSE_NS;
        }
        return NULL;
}

void recorder_start(void)
{
        if (!config_number(CONFIG_trace_ring) || !*config_text(CONFIG_trace))
                return;
        process = process_self();
        wake_fd = wakeup_new();
        on = wake_fd >= 0 && thread_start(NULL, true, run, NULL) == 0;
        if (!on)
                log_error("client", "SPANCL_TRACE_RING: can't start the flight recorder");
        else if (!signals_catch_free(SIGUSR2, on_signal))
                log_info("client", "SIGUSR2 is the program's: it writes no timeline");
}

bool recorder_is_on(void)
{
        return on;
}

static bool is_idle(void *arg)
{
        (void)arg;
        return !*writing;
}

void recorder_finish(struct client *c)
{
        if (!on)
                return;
        client_wait_until(c, is_idle, NULL, client_now_ns(c) + FINISH_NS);
        on = false;
        if (!*writing && take_reason())
                write_file(c);
}

void recorder_forget(void)
{
        if (on)
                signals_release(SIGUSR2, on_signal);
        on = false;
}

#include "daemon/worker/checkup.h"

#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "base/mem.h"
#include "daemon/control.h"
#include "os/clock.h"
#include "os/condition.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/passing.h"
#include "os/process/process.h"

enum { SIZE = 4096, HALF = SIZE / 2, TEXT_MAX = 200 };

/* The command in flight. */
struct command {
        struct lock lock;
        struct condition changed;
        bool done;
        cl_int status;
};

bool checkup_is_wanted(void)
{
        uint8_t kind = 0;
        return passing_peek(CONTROL_FD, &kind, sizeof(kind)) > 0 && kind == CONTROL_CHECK;
}

static void on_complete(void *user, void *cookie, cl_int status, const struct backend_times *t)
{
        struct command *c = cookie;
        (void)user;
        (void)t;
        lock_take(&c->lock);
        c->done = true;
        c->status = status;
        condition_signal(&c->changed);
        lock_release(&c->lock);
}

/* Run a command and wait until it completes. It may never complete; the supervisor has a
 * time-out. */
static cl_int run(const struct backend_ops *ops, struct backend_queue *q, struct backend_command c)
{
        struct command wait = { .lock = LOCK_INIT };
        struct backend_event *e = NULL;
        condition_init(&wait.changed);
        c.cookie = &wait;
        cl_int r = ops->submit(q, &c, &e);
        if (r < 0)
                return r;
        ops->queue.flush(q);
        lock_take(&wait.lock);
        while (!wait.done)
                condition_wait(&wait.changed, &wait.lock);
        lock_release(&wait.lock);
        if (e)
                ops->event.release(e);
        return wait.status;
}

static bool failed(const char *what, cl_int r, char why[TEXT_MAX])
{
        if (r < 0)
                snprintf(why, TEXT_MAX, "%s fails with OpenCL's error %d", what, (int)r);
        return r < 0;
}

/* Write a buffer, fill half of it and read it. Returns true if the bytes are right. */
static bool check(const struct backend_ops *ops, struct backend *b, unsigned device,
                  char why[TEXT_MAX])
{
        uint8_t given[SIZE], taken[SIZE] = { 0 };
        uint32_t salt = (uint32_t)clock_now_ns(); /* else the bytes may be an earlier check's */
        struct backend_queue *q = NULL;
        struct backend_buffer *m = NULL;
        for (size_t i = 0; i < SIZE; i++)
                given[i] = (uint8_t)(i * 7 + (i >> 8) + salt);
        salt ^= 0x5ca1ab1e;
        struct backend_command write = { .op = BACKEND_WRITE, .size = SIZE, .host = given };
        struct backend_command fill = { .op = BACKEND_FILL,
                                        .offset_bytes = HALF,
                                        .size = HALF,
                                        .pattern = &salt,
                                        .pattern_size = sizeof(salt) };
        struct backend_command read = { .op = BACKEND_READ, .size = SIZE, .host = taken };
        if (failed("making a queue", ops->queue.create(b, device, 0, &q), why) ||
            failed("making a buffer",
                   ops->buffer.create(b, ops->device.domain(b, device), CL_MEM_READ_WRITE, SIZE,
                                      &m),
                   why))
                return false;
        write.buffer = fill.buffer = read.buffer = m;
        if (failed("a write", run(ops, q, write), why) ||
            failed("a fill", run(ops, q, fill), why) || failed("a read", run(ops, q, read), why))
                return false;
        for (size_t i = HALF; i < SIZE; i += sizeof(salt))
                memcpy(given + i, &salt, sizeof(salt));
        if (!memcmp(given, taken, SIZE))
                return true;
        snprintf(why, TEXT_MAX, "it gives back other bytes than were written");
        return false;
}

int checkup_run(const struct config_options *o, const char *scratch_dir)
{
        const struct backend_ops *ops = backend_find(config_option_text(o, CONFIG_backend));
        struct config_options mine = *o;
        mine.values[CONFIG_almaif] = ""; /* accelerators have no labels, so they are not checked */
        mine.values[CONFIG_contexts] = "device";
        mine.values[CONFIG_clear_memory] = "off";
        const struct backend_params params = {
                .options = &mine,
                .scratch_dir = scratch_dir,
                .complete = on_complete,
        };
        struct backend *b = NULL;
        char why[TEXT_MAX] = "";
        process_name("spancld-check");
        (void)!file_put(FILE_STDERR, FILE_STDOUT); /* drivers print, too */
        int r = ops ? ops->open(&params, &b) : SP_E_UNSUPP;
        if (r == SP_E_NODEV)
                process_exit(
                        control_send(CONTROL_FD, CONTROL_FAILED,
                                     bytes_str("its driver does not offer it, or makes no context"),
                                     -1) < 0);
        if (r < 0)
                snprintf(why, sizeof(why), "its driver can't be opened: %s", status_text(r));
        else if (control_send(CONTROL_FD, CONTROL_READY, bytes_str(""), -1) < 0)
                process_exit(1);
        for (unsigned i = 0; b && i < ops->device.count(b) && check(ops, b, i, why); i++)
                ;
        process_exit(control_send(CONTROL_FD, CONTROL_HEALTH, bytes_str(why), -1) < 0);
}

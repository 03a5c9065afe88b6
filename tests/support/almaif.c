#include "support/almaif.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"

static const struct backend_ops *const ops = &backend_almaif;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static struct backend *polled;

static void on_complete(void *user, void *cookie, cl_int status, const struct backend_times *t)
{
        struct report *r = cookie;
        pthread_mutex_lock(&lock);
        r->times++;
        r->status = status;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
}

void wait_polling(struct backend *b)
{
        if (polled)
                ops->poll(polled, true);
        polled = b;
}

/* The lock is held, but while it polls. */
static void wait_a_moment(void)
{
        if (!polled) {
                pthread_cond_wait(&changed, &lock);
                return;
        }
        pthread_mutex_unlock(&lock);
        ops->poll(polled, false);
        sched_yield();
        pthread_mutex_lock(&lock);
}

cl_int wait_for(struct report *r)
{
        pthread_mutex_lock(&lock);
        while (!r->times)
                wait_a_moment();
        cl_int status = r->status;
        assert_int_equal(r->times, 1);
        pthread_mutex_unlock(&lock);
        return status;
}

int open_text(const char *text, struct backend **ret)
{
        struct config_options options = { .values = { [CONFIG_almaif] = text } };
        struct backend_params params = { .options = &options, .complete = on_complete };
        return ops->open(&params, ret);
}

struct backend *open_at(const char *text)
{
        struct backend *b;
        assert_int_equal(open_text(text, &b), 0);
        return b;
}

struct backend_queue *queue_of(struct backend *b, unsigned device,
                               cl_command_queue_properties props)
{
        struct backend_queue *q;
        assert_int_equal(ops->queue.create(b, device, props, &q), CL_SUCCESS);
        return q;
}

struct backend_buffer *buffer_of(struct backend *b, size_t size)
{
        struct backend_buffer *m;
        assert_int_equal(ops->buffer.create(b, 0, 0, size, &m), CL_SUCCESS);
        return m;
}

struct backend_program *program_of(struct backend *b, const char *names)
{
        struct backend_program *p;
        struct buf parts = { 0 };
        unsigned device = 0;
        assert_int_equal(info_put(&parts, INFO_PART, names, strlen(names)), 0);
        assert_int_equal(
                ops->program.create(b, 0, 3, &device, 1, bytes_of(parts.data, parts.size), &p),
                CL_SUCCESS);
        buf_fini(&parts);
        return p;
}

void set_buffer(struct backend_kernel *k, unsigned i, struct backend_buffer *m)
{
        struct arg a = { .index = i, .kind = ARG_BUFFER, .size = 8, .object = 1 };
        assert_int_equal(ops->kernel.set_arg(k, &a, m, NULL), CL_SUCCESS);
}

void set_u32(struct backend_kernel *k, unsigned i, uint32_t v)
{
        struct arg a = { .index = i, .kind = ARG_VALUE, .size = 4, .value = &v };
        assert_int_equal(ops->kernel.set_arg(k, &a, NULL, NULL), CL_SUCCESS);
}

/* Submit; the event is dropped unless asked for. */
void submit(struct backend_queue *q, struct backend_command c, struct report *r,
            struct backend_event **ret)
{
        struct backend_event *e;
        c.cookie = r;
        if (r)
                *r = (struct report){ 0 };
        assert_int_equal(ops->submit(q, &c, &e), CL_SUCCESS);
        if (ret)
                *ret = e;
        else
                ops->event.release(e);
}

cl_int run(struct backend_queue *q, struct backend_command c)
{
        struct report r;
        submit(q, c, &r, NULL);
        return wait_for(&r);
}

struct backend_command launch_of(struct backend_kernel *k, const size_t *items)
{
        return (struct backend_command){
                .op = BACKEND_KERNEL, .kernel = k, .dims = 1, .global = items
        };
}

struct backend_command transfer(enum backend_op op, struct backend_buffer *m, void *p, size_t size)
{
        return (struct backend_command){ .op = op, .buffer = m, .host = p, .size = size };
}

const size_t whole[1] = { COUNT };

void fixture_open_at(struct fixture *f, const char *text)
{
        f->b = open_at(text);
        f->q = queue_of(f->b, 0, 0);
        f->p = program_of(f->b, "spancl.inc.i32;spancl.noop");
        assert_int_equal(ops->kernel.create(f->p, "spancl.inc.i32", &f->inc), CL_SUCCESS);
        f->m = buffer_of(f->b, BYTES);
        for (int i = 0; i < COUNT; i++)
                f->data[i] = i;
        assert_int_equal(run(f->q, transfer(BACKEND_WRITE, f->m, f->data, BYTES)), CL_SUCCESS);
        set_buffer(f->inc, 0, f->m);
        set_u32(f->inc, 1, 1);
}

void fixture_open(struct fixture *f, const char *const *options, const char *settings)
{
        char text[TEXT_SIZE];
        *f = (struct fixture){ 0 };
        accelerator_start(&f->a, NULL, options);
        snprintf(text, sizeof(text), "shm:%s%s", f->a.path, settings);
        fixture_open_at(f, text);
}

void fixture_close(struct fixture *f)
{
        ops->kernel.release(f->inc);
        ops->program.release(f->p);
        ops->buffer.release(f->m);
        ops->queue.release(f->q);
        ops->close(f->b);
        accelerator_stop(&f->a);
}

void expect_added(struct fixture *f, int by)
{
        assert_int_equal(run(f->q, transfer(BACKEND_READ, f->m, f->data, BYTES)), CL_SUCCESS);
        for (int i = 0; i < COUNT; i++)
                assert_int_equal(f->data[i], i + by);
}

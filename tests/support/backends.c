#include "support/backends.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend/native/native.h"
#include "base/mem.h"

/* ---- fixture ------------------------------------------------------------------------------------ */

static struct accelerator accelerators[2];
char backend_places[2][ACCELERATOR_PATH_SIZE + 8];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
_Thread_local bool in_backend;
atomic_uint reports_all, reports_inside;

static void on_complete(void *user, void *cookie, cl_int status, const struct backend_times *t)
{
        struct report *r = cookie;
        atomic_fetch_add(&reports_all, 1);
        if (in_backend)
                atomic_fetch_add(&reports_inside, 1);
        pthread_mutex_lock(&lock);
        *r = (struct report){ true, status, *t };
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
}

struct report report_wait(struct report *r)
{
        pthread_mutex_lock(&lock);
        while (!r->done)
                pthread_cond_wait(&changed, &lock);
        struct report copy = *r;
        pthread_mutex_unlock(&lock);
        return copy;
}

bool report_done(struct report *r)
{
        pthread_mutex_lock(&lock);
        bool done = r->done;
        pthread_mutex_unlock(&lock);
        return done;
}

const char *backends_clear = "off";

const struct backend_ops *const backend_parts[BACKEND_PARTS_MAX] = { &backend_reference,
                                                                     &backend_almaif };

int open_backend(const struct backend_ops *ops, const char *devices, unsigned place,
                 struct backend **ret)
{
        struct config_options options = { .values = { [CONFIG_devices] = devices,
                                                      [CONFIG_almaif] = backend_places[place],
                                                      [CONFIG_clear_memory] = backends_clear,
                                                      [CONFIG_driver_calls] = "thread" } };
        struct backend_params params = { .options = &options,
                                         .parts = backend_parts,
                                         .complete = on_complete };
        return ops->open(&params, ret);
}

struct backend_queue *fixture_queue(struct fixture *f, cl_command_queue_properties props)
{
        struct backend_queue *q;
        assert_int_equal(f->ops->queue.create(f->b, 0, props, &q), CL_SUCCESS);
        return q;
}

static int set_up(void **state, const struct backend_ops *ops)
{
        static struct fixture f;
        f = (struct fixture){ .ops = ops,
                              .native = ops == &backend_native || ops == &backend_threaded };
        atomic_store(&reports_inside, 0);
        if (open_backend(ops, NULL, 0, &f.b) == 0)
                f.queue = fixture_queue(&f, 0);
        *state = &f;
        return 0;
}

int set_up_reference(void **state)
{
        return set_up(state, &backend_reference);
}

int set_up_native(void **state)
{
        return set_up(state, &backend_native);
}

int set_up_threaded(void **state)
{
        return set_up(state, &backend_threaded);
}

static int set_up_emulated(void **state, const struct backend_ops *ops)
{
        static const char *const options[] = { "--data", "4194304", NULL };
        for (unsigned i = 0; i < array_size(backend_places); i++) {
                accelerator_start(&accelerators[i], NULL, options);
                snprintf(backend_places[i], sizeof(backend_places[i]), "shm:%s",
                         accelerators[i].path);
        }
        return set_up(state, ops);
}

int set_up_almaif(void **state)
{
        return set_up_emulated(state, &backend_almaif);
}

int set_up_composite(void **state)
{
        return set_up_emulated(state, &backend_composite);
}

int tear_down(void **state)
{
        struct fixture *f = *state;
        if (f->b) {
                f->ops->queue.release(f->queue);
                f->ops->close(f->b);
        }
        for (unsigned i = 0; i < array_size(backend_places); i++)
                accelerator_stop(&accelerators[i]);
        return atomic_load(&reports_inside) ? -1 : 0;
}

struct fixture *fixture(void **state)
{
        struct fixture *f = *state;
        if (!f->b)
                skip();
        return f;
}

/* ---- shorthands --------------------------------------------------------------------------------- */

cl_int try_submit(struct fixture *f, struct backend_queue *q, struct backend_command c,
                  struct backend_event **ret)
{
        in_backend = true;
        cl_int r = f->ops->submit(q, &c, ret);
        in_backend = false;
        return r;
}

struct backend_event *fixture_submit(struct fixture *f, struct backend_queue *q,
                                     struct backend_command c)
{
        struct backend_event *e;
        assert_int_equal(try_submit(f, q, c, &e), CL_SUCCESS);
        return e;
}

cl_int run_on(struct fixture *f, struct backend_queue *q, struct backend_command c)
{
        struct report r = { 0 };
        c.cookie = &r;
        struct backend_event *e = fixture_submit(f, q, c);
        f->ops->queue.flush(q);
        cl_int status = report_wait(&r).status;
        f->ops->event.release(e);
        return status;
}

void execute(struct fixture *f, struct backend_command c)
{
        assert_int_equal(run_on(f, f->queue, c), CL_SUCCESS);
}

struct backend_buffer *fixture_buffer(struct fixture *f, size_t size)
{
        struct backend_buffer *m;
        assert_int_equal(f->ops->buffer.create(f->b, 0, CL_MEM_READ_WRITE, size, &m), CL_SUCCESS);
        return m;
}

struct backend_command write_of(struct backend_buffer *m, size_t at, void *p, size_t size)
{
        return (struct backend_command){
                .op = BACKEND_WRITE, .buffer = m, .offset_bytes = at, .host = p, .size = size
        };
}

struct backend_command read_of(struct backend_buffer *m, size_t at, void *p, size_t size)
{
        return (struct backend_command){
                .op = BACKEND_READ, .buffer = m, .offset_bytes = at, .host = p, .size = size
        };
}

void fill_counting(uint8_t *p, size_t size)
{
        for (size_t i = 0; i < size; i++)
                p[i] = (uint8_t)(i * 7 + i / 251);
}

const char inc_source[] =
        "typedef struct { int a; float b[4]; char c; } item;\n"
        "typedef struct { char x[3]; } three;\n"
        "__kernel void inc(__global int *data, int by) { data[get_global_id(0)] += by; }\n"
        "__kernel void spin(__global int *data, int by) {\n"
        "  int v = data[0]; for (int i = 0; i < by; i++) v = v * 1664525 + 1013904223;\n"
        "  data[0] = v; }\n"
        "__kernel __attribute__((reqd_work_group_size(4, 2, 1)))\n"
        "void every(__global const float4 *a, __constant int *b, __local short *c, uint3 d, char e,\n"
        "         double f, item g, __global item *h, size_t_like i, three j, ulong16 k) { c[0] = e; }\n";

struct built build_with(struct fixture *f, unsigned kind, const void *part, size_t size,
                        const char *options)
{
        struct built x = { 0 };
        struct buf parts = { 0 };
        unsigned device = 0;
        assert_int_equal(info_put(&parts, INFO_PART, part, size), 0);
        assert_int_equal(f->ops->program.create(f->b, 0, kind, &device, 1,
                                                bytes_of(parts.data, parts.size), &x.program),
                         CL_SUCCESS);
        buf_fini(&parts);
        x.status = f->ops->program.build(x.program, &device, 1, options, &x.info);
        assert_int_equal(info_check(bytes_of(x.info.data, x.info.size)), 0);
        return x;
}

struct built build(struct fixture *f)
{
        static const char names[] = "spancl.inc.i32;spancl.noop";
        struct built x =
                f->native ? build_with(f, 0, inc_source, strlen(inc_source), "-Dsize_t_like=ulong")
                          : build_with(f, 3, names, strlen(names), "");
        assert_int_equal(x.status, CL_SUCCESS);
        return x;
}

void unbuild(struct fixture *f, struct built *x)
{
        f->ops->program.release(x->program);
        buf_fini(&x->info);
}

const char *inc_name(struct fixture *f)
{
        return f->native ? "inc" : "spancl.inc.i32";
}

struct backend_kernel *kernel_of(struct fixture *f, struct built *x, const char *name)
{
        struct backend_kernel *k;
        assert_int_equal(f->ops->kernel.create(x->program, name, &k), CL_SUCCESS);
        return k;
}

cl_int fixture_set_buffer(struct fixture *f, struct backend_kernel *k, unsigned i,
                          struct backend_buffer *m)
{
        struct arg a = { .index = i, .kind = ARG_BUFFER, .size = 8, .object = 1 };
        return f->ops->kernel.set_arg(k, &a, m, NULL);
}

cl_int set_value(struct fixture *f, struct backend_kernel *k, unsigned i, const void *value,
                 size_t size)
{
        struct arg a = { .index = i, .kind = ARG_VALUE, .size = size, .value = value };
        return f->ops->kernel.set_arg(k, &a, NULL, NULL);
}

void set_inc(struct fixture *f, struct backend_kernel *k, struct backend_buffer *m, int by)
{
        assert_int_equal(fixture_set_buffer(f, k, 0, m), CL_SUCCESS);
        assert_int_equal(set_value(f, k, 1, &by, sizeof(by)), CL_SUCCESS);
}

static const size_t whole[1] = { COUNT };

struct backend_command launch_all(struct backend_kernel *k)
{
        return (struct backend_command){
                .op = BACKEND_KERNEL, .kernel = k, .dims = 1, .global = whole
        };
}

struct bytes block_of(const struct buf *b)
{
        return bytes_of(b->data, b->size);
}

const char *text_in(struct bytes block, uint32_t key)
{
        struct bytes v;
        if (!info_find(block, key, &v) || !v.size)
                return "(none)";
        assert_int_equal(((const char *)v.data)[v.size - 1], 0);
        return v.data;
}

cl_uint uint_in(struct bytes block, uint32_t key)
{
        struct bytes v;
        assert_true(info_find(block, key, &v));
        assert_int_equal(v.size, 4);
        return bytes_get_u32(v.data);
}

struct bytes kernel_info(const struct built *x, const char *name)
{
        struct bytes all = block_of(&x->info);
        struct info_entry e;
        while (info_next(&all, &e))
                if (e.key == INFO_KERNEL &&
                    !strcmp(text_in(e.value, CL_KERNEL_FUNCTION_NAME), name))
                        return e.value;
        fail_msg("no kernel %s", name);
        return bytes_of(NULL, 0);
}

struct bytes arg_info(struct bytes kernel, unsigned index)
{
        struct info_entry e;
        while (info_next(&kernel, &e))
                if (e.key == INFO_KERNEL_ARG && !index--)
                        return e.value;
        fail_msg("no such argument");
        return bytes_of(NULL, 0);
}

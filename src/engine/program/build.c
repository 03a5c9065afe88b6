#include "engine/program/build.h"

#include <stdatomic.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/command/command.h"
#include "engine/program/include.h"
#include "engine/program/part.h"
#include "engine/query.h"
#include "os/clock.h"

enum {
        STORES_MAX = 256,     /* builds that wait to be put into the cache */
        QUIET_MS = 300,       /* nothing has to happen for so long before one is */
        STORES_END_MS = 3000, /* how long they may take when the session has ended */
};

/* A build to be put into the cache, with the program and the devices that it is for. */
struct store {
        struct list link;
        struct program *program; /* held */
        struct part part;
        bool alone; /* no kernel may run while the binary is made */
};

void engine_builder_init(struct builder *b)
{
        list_init(&b->jobs);
        list_init(&b->working);
        list_init(&b->stores);
        condition_init(&b->wake);
        condition_init(&b->unshared);
        condition_init(&b->turn);
}

void engine_builder_fini(struct builder *b)
{
        condition_fini(&b->wake);
        condition_fini(&b->unshared);
        condition_fini(&b->turn);
}

/* This thread stops reading the program. */
static void program_unshare(struct program *p) REQUIRES(engine_held)
{
        p->shared--;
        condition_broadcast(&p->object.engine->programs.builder.unshared);
        engine_object_unref(&p->object);
}

static struct build *build_free(struct build *b) REQUIRES(engine_held)
{
        if (!b)
                return NULL;
        for (size_t i = 0; i < b->part_count; i++)
                engine_part_fini(&b->parts[i]);
        mem_free(b->parts);
        for (size_t i = 0; i < b->input_count; i++)
                program_unshare(b->inputs[i]);
        mem_free(b->inputs);
        if (b->program) {
                if (!b->announced)
                        b->program->building = false;
                engine_object_unref(&b->program->object);
        }
        build_input_fini(&b->in);
        buf_fini(&b->info);
        mem_free(b);
        return NULL;
}

/* ---- telling early -------------------------------------------------------------------------- */

static void notify(struct build *b) REQUIRES(engine_held)
{
        peer_send(engine_client(b->engine), program_built, .request = b->request,
                  .status = b->status, .info = bytes_of(b->info.data, b->info.size));
}

/* The cache had everything that the build gives, so answer the client now. Only launches wait until
 * the native programs are made of it (program.loading). If they can't be made so, they are made
 * from the build's input, so that has to be here. Lock not held. */
static void announce_early(struct build *b)
{
        const struct engine_params *params = &b->engine->params;
        /* The client's own process may end at once, and the implementation with it. */
        bool all = !params->single_threaded && !params->in_process && engine_part_input(b);
        for (size_t i = 0; i < b->part_count && all; i++)
                all = b->parts[i].found;
        if (!all)
                return;
        engine_part_merge(b);
        engine_lock(b->engine);
        bool kept = b->status == CL_SUCCESS && !b->overdue;
        for (size_t i = 0; i < b->part_count && kept; i++) {
                const struct part *p = &b->parts[i];
                struct program_replica *r = engine_program_replica(b->program, p->domain);
                /* A query of the binaries need not wait either. */
                buf_fini(&r->binaries);
                kept = !cached_build_binaries(&p->cached, p->devices, p->device_count,
                                              &r->binaries);
                r->name = p->key;
                r->named = true;
        }
        if (kept) {
                b->announced = true;
                b->program->building = false;
                b->program->loading = true;
                notify(b);
                engine_settle(b->engine);
        }
        engine_unlock(b->engine);
}

/* Let the launches and kernel queries go on that waited for the native programs. */
static void program_loaded(struct build *b) REQUIRES(engine_held)
{
        struct program *p = b->program;
        for (size_t i = 0; i < b->part_count; i++)
                if (b->parts[i].status < 0)
                        log_error("cache",
                                  "a program of the cache can't be made here (%d): its "
                                  "kernels fail",
                                  b->parts[i].status);
        p->loading = false;
        condition_broadcast(&b->engine->programs.builder.unshared);
        engine_query_resume(p);
        engine_command_poke_launches(p);
        engine_run(b->engine);
}

/* The threads that make a build's parts: the build's own, and one more for each further part. */
struct crew {
        struct build *build;
        atomic_size_t next;
};

static void *crew_main(void *arg)
{
        struct crew *c = arg;
        struct build *b = c->build;
        for (size_t i; (i = atomic_fetch_add(&c->next, 1)) < b->part_count;)
                engine_part_run(b, &b->parts[i]);
        return NULL;
}

/* Run the build. Lock not held; in single-threaded engines it is held. */
static void build_run(struct build *b)
{
        struct crew crew = { .build = b };
        thread_id others[BUILD_CREW_MAX - 1];
        size_t count = 0;
        for (size_t i = 0; i < b->part_count; i++)
                engine_part_find(b, &b->parts[i]);
        announce_early(b);
        while (!b->engine->params.single_threaded && count + 1 < b->part_count &&
               count < array_size(others) && !thread_start(&others[count], false, crew_main, &crew))
                count++;
        crew_main(&crew);
        while (count)
                thread_join(others[--count]);
        if (!b->announced)
                engine_part_merge(b);
}

/* ---- keeping -------------------------------------------------------------------------------- */

static void store_free(struct store *s) REQUIRES(engine_held)
{
        engine_object_unref(&s->program->object);
        engine_part_fini(&s->part);
        mem_free(s);
}

static bool is_dear(const struct engine *e, unsigned domain)
{
        return e->be->program.binary_is_dear && e->be->program.binary_is_dear(e->backend, domain);
}

/* Does one of the kernels in `info` require a work-group size? */
static bool requires_size(struct bytes info)
{
        uint64_t size[3];
        struct info_entry kernel, device;
        struct bytes v;
        while (info_next(&info, &kernel)) {
                while (kernel.key == INFO_KERNEL && info_next(&kernel.value, &device))
                        if (device.key == INFO_KERNEL_DEVICE &&
                            info_find(device.value, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, &v) &&
                            v.size == sizeof(size)) {
                                memcpy(size, v.data, sizeof(size));
                                if (size[0])
                                        return true;
                        }
        }
        return false;
}

/* Will the same entry be put there for another domain's device of the same kind? */
static bool is_stored(const struct builder *b, const struct cache_key *key)
{
        list_each(s, &b->stores, struct store, link)
        {
                if (!memcmp(&s->part.key, key, sizeof(*key)))
                        return true;
        }
        return false;
}

/* Queue the parts just built for the cache. They are put there when there is nothing else to do:
 * some implementations need as long to make a binary as to build it. */
static void stores_add(struct build *b) REQUIRES(engine_held)
{
        struct builder *builder = &b->engine->programs.builder;
        for (size_t i = 0; i < b->part_count; i++) {
                struct part *p = &b->parts[i];
                if (!p->keyed || p->loaded || p->status != CL_SUCCESS ||
                    builder->store_count >= STORES_MAX || is_stored(builder, &p->key))
                        continue;
                struct store *s = mem_zalloc(sizeof(*s));
                if (!s)
                        return;
                s->program = b->program;
                engine_object_ref(&s->program->object);
                s->part = *p;
                s->alone = is_dear(b->engine, p->domain) &&
                           requires_size(bytes_of(p->info.data, p->info.size));
                *p = (struct part){ 0 };
                list_append(&builder->stores, &s->link);
                builder->store_count++;
        }
}

/* Drop the program's waiting stores, as it is about to be built anew. */
static void stores_drop(struct program *p) REQUIRES(engine_held)
{
        struct builder *b = &p->object.engine->programs.builder;
        list_each(s, &b->stores, struct store, link)
        {
                if (s->program != p)
                        continue;
                list_remove(&s->link);
                b->store_count--;
                store_free(s);
        }
}

static void stores_take(struct builder *b, struct store *s)
{
        list_remove(&s->link);
        b->store_count--;
}

/* The first store that may be made while a launch may begin at any time; else NULL. */
static struct store *stores_first(const struct builder *b)
{
        list_each(s, &b->stores, struct store, link)
        {
                if (!s->alone)
                        return s;
        }
        return NULL;
}

/* Lock not held; the program is shared or the engine is at its end. */
static void store_run(struct engine *e, struct store *s)
{
        struct part *p = &s->part;
        cached_build_store(e, &p->key, engine_program_replica(s->program, p->domain)->native,
                           p->devices, p->device_count, bytes_of(p->info.data, p->info.size));
}

/* The lock is released meanwhile. */
static void store_one(struct engine *e, struct store *s) REQUIRES(engine_held)
{
        struct program *p = s->program;
        stores_take(&e->programs.builder, s);
        p->shared++;
        engine_object_ref(&p->object);
        engine_unlock(e);
        store_run(e, s);
        engine_lock(e);
        program_unshare(p);
        store_free(s);
}

/* Wait for a job. If something waits for the cache, wait for a quiet time instead and store it. */
static void builder_rest(struct engine *e) REQUIRES(engine_held)
{
        struct builder *b = &e->programs.builder;
        bool quiet = false;
        uint64_t seen = e->activity, until_ns = clock_now_ns() + QUIET_MS * 1000000ull;
        bool watch = stores_first(b) && !b->watched;
        b->idle++;
        if (watch) {
                b->watched = true;
                quiet = !engine_sleep(e, &b->wake, until_ns);
                b->watched = false;
        } else {
                engine_sleep(e, &b->wake, UINT64_MAX);
        }
        b->idle--;
        struct store *s = stores_first(b);
        if (s && quiet && !b->stop && seen == e->activity && !e->commands.running &&
            !e->commands.held && list_empty(&b->jobs))
                store_one(e, s);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void build_done(struct build *b) REQUIRES(engine_held)
{
        list_remove(&b->link);
        if (b->announced)
                program_loaded(b);
        else if (!b->overdue)
                notify(b);
        if (b->overdue)
                b->engine->programs.builder.overdue--;
        if (b->program && !b->overdue)
                stores_add(b);
        build_free(b);
}

/* ---- limits --------------------------------------------------------------------------------- */

/* The answer of an overdue build: nothing stops the compiler, but its result is not needed any
 * more. */
static cl_int overdue_answer(const struct build *b, struct buf *info)
{
        static const char log[] = "This server's limit of how long a build may take was met "
                                  "(--session-build-time).";
        for (size_t i = 0; i < b->part_count; i++)
                for (size_t k = 0; k < b->parts[i].device_count; k++) {
                        size_t mark;
                        int r = info_begin(info, INFO_BUILD, &mark);
                        if (!r)
                                r = info_put_u64(info, INFO_BUILD_DEVICE, b->parts[i].devices[k]);
                        if (!r)
                                r = info_put(info, CL_PROGRAM_BUILD_LOG, log, sizeof(log));
                        if (r < 0)
                                return CL_OUT_OF_HOST_MEMORY;
                        info_end(info, mark);
                }
        return b->is_link      ? CL_LINK_PROGRAM_FAILURE
               : b->in.compile ? CL_COMPILE_PROGRAM_FAILURE
                               : CL_BUILD_PROGRAM_FAILURE;
}

static void answer_overdue(struct build *b) REQUIRES(engine_held)
{
        struct buf info = { 0 };
        cl_int status = overdue_answer(b, &info);
        peer_send(engine_client(b->engine), program_built, .request = b->request, .status = status,
                  .info = bytes_of(info.data, status == CL_OUT_OF_HOST_MEMORY ? 0 : info.size));
        buf_fini(&info);
}

/* Fail the waiting builds if no thread will be free again. */
static void fail_queued(struct builder *b) REQUIRES(engine_held)
{
        while (!list_empty(&b->jobs)) {
                struct build *job = list_entry(b->jobs.next, struct build, link);
                list_remove(&job->link);
                b->job_count--;
                answer_overdue(job);
                build_free(job);
        }
}

uint64_t engine_builder_deadline(struct engine *e)
{
        uint64_t max_ns = e->params.limits.max[LIMIT_BUILD_NS];
        struct builder *b = &e->programs.builder;
        if (!max_ns || (list_empty(&b->working) && list_empty(&b->jobs)))
                return UINT64_MAX;
        /* A waiting job begins later than now. */
        uint64_t began = list_empty(&b->working)
                                 ? e->params.ops->now_ns(e->params.user)
                                 : list_entry(b->working.next, struct build, link)->began_ns;
        return began + max_ns;
}

void engine_builder_expire(struct engine *e, uint64_t now_ns)
{
        uint64_t max_ns = e->params.limits.max[LIMIT_BUILD_NS];
        struct builder *b = &e->programs.builder;
        while (max_ns && !list_empty(&b->working)) {
                struct build *job = list_entry(b->working.next, struct build, link);
                if (now_ns - job->began_ns < max_ns)
                        break;
                (void)engine_limit_exceeded(e, LIMIT_BUILD_NS, now_ns - job->began_ns, 0);
                list_remove(&job->link);
                job->overdue = true;
                b->overdue++;
                if (!job->announced)
                        answer_overdue(job);
        }
        if (b->overdue == BUILD_THREADS_MAX)
                fail_queued(b);
}

/* May the build start? Earlier links and the cache must not read its program any more. The program
 * and its inputs must be loaded from the cache, if they come from there. */
static bool is_ready(const struct build *b)
{
        bool ready = !b->program->shared && !b->program->loading;
        for (size_t i = 0; i < b->input_count && ready; i++)
                ready = !b->inputs[i]->loading;
        return ready;
}

/* A build has ended. A session that waits looks at the account only from time to time, so this one leaves it some time
 * to do so before it begins the next build. */
static void end_turn(struct engine *e) REQUIRES(engine_held)
{
        struct builder *b = &e->programs.builder;
        if (engine_build_end(e))
                b->turn_ns = clock_now_ns() + 2 * ENGINE_TURN_NS;
        else
                condition_broadcast(&b->turn);
}

static void *builder_main(void *arg)
{
        struct engine *e = arg;
        struct builder *b = &e->programs.builder;
        engine_lock(e);
        while (!b->stop) {
                if (list_empty(&b->jobs)) {
                        builder_rest(e);
                        continue;
                }
                if (clock_now_ns() < b->turn_ns || !engine_build_begin(e)) {
                        engine_settle(e); /* it may have told the client */
                        engine_sleep(e, &b->turn, clock_now_ns() + ENGINE_TURN_NS);
                        continue;
                }
                struct build *job = list_entry(b->jobs.next, struct build, link);
                list_remove(&job->link);
                b->job_count--;
                job->began_ns = e->params.ops->now_ns(e->params.user);
                list_append(&b->working, &job->link);
                while (!is_ready(job))
                        engine_sleep(e, &b->unshared, UINT64_MAX);
                job->program->busy = true;
                engine_unlock(e);
                build_run(job);
                engine_lock(e);
                job->program->busy = false;
                build_done(job);
                engine_settle(e);
                end_turn(e);
        }
        engine_unlock(e);
        return NULL;
}

void engine_builder_stop(struct engine *e) LOCK_UNCHECKED
{
        struct builder *b = &e->programs.builder;
        engine_lock(e);
        b->stop = true;
        bool busy = e->commands.running; /* running commands go on; no new ones begin */
        condition_broadcast(&b->wake);
        condition_broadcast(&b->turn);
        engine_unlock(e);
        for (unsigned i = 0; i < b->thread_count; i++)
                thread_join(b->threads[i]);
        b->thread_count = 0;
        while (!list_empty(&b->jobs)) {
                struct build *job = list_entry(b->jobs.next, struct build, link);
                list_remove(&job->link);
                build_free(job);
        }
        for (uint64_t end_ms = clock_now_ns() / 1000000 + STORES_END_MS; !list_empty(&b->stores);) {
                struct store *s = list_entry(b->stores.next, struct store, link);
                stores_take(b, s);
                if (clock_now_ns() / 1000000 < end_ms && !(busy && s->alone))
                        store_run(e, s);
                store_free(s);
        }
}

static bool start_thread(struct engine *e)
{
        struct builder *b = &e->programs.builder;
        if (thread_start(&b->threads[b->thread_count], false, builder_main, e) < 0)
                return false;
        b->thread_count++;
        return true;
}

/* Queue the build and start a thread for it if needed. False: no thread could be started. */
static bool builder_start(struct engine *e, struct build *job) REQUIRES(engine_held)
{
        struct builder *b = &e->programs.builder;
        if (b->job_count >= BUILD_QUEUE_MAX)
                return false;
        if (b->idle <= b->job_count && b->thread_count < BUILD_THREADS_MAX && !start_thread(e) &&
            !b->thread_count)
                return false;
        list_append(&b->jobs, &job->link);
        b->job_count++;
        condition_signal(&b->wake);
        if (b->overdue == BUILD_THREADS_MAX)
                fail_queued(b);
        return true;
}

/* ---- the messages --------------------------------------------------------------------------- */

static bool is_whole(const struct program *p, const struct part *part)
{
        const struct engine *e = p->object.engine;
        size_t count = 0;
        for (size_t i = 0; i < p->device_count; i++)
                count += e->be->device.domain(e->backend, p->devices[i]) == part->domain;
        return count == part->device_count;
}

/* Name the part in the compile cache. The inputs of a link are complete: they are shared, and not
 * being built. */
static bool part_key(struct build *b, struct part *p) REQUIRES(engine_held)
{
        const struct engine *e = b->engine;
        if (e->params.in_process && is_dear(e, p->domain))
                return false;
        return b->is_link
                       ? cached_build_link_key(b->engine, b->inputs, b->input_count, b->in.options,
                                               p->domain, p->devices, p->device_count, &p->key)
                       : cached_build_key(b->program, &b->in, p->devices, p->device_count, &p->key);
}

/* Sort the devices by domain. */
static cl_int take_devices(struct build *b, struct wire_u64s devices) REQUIRES(engine_held)
{
        struct engine *e = b->engine;
        struct program *p = b->program;
        size_t count = devices.count ? devices.count : p->device_count;
        b->parts = mem_zalloc(p->replica_count * sizeof(*b->parts));
        if (!b->parts)
                return CL_OUT_OF_HOST_MEMORY;
        for (size_t n = 0; n < p->replica_count; n++) {
                unsigned domain = p->replicas[n].domain;
                struct part *part = &b->parts[b->part_count];
                part->domain = domain;
                for (size_t i = 0; i < count; i++) {
                        uint64_t device = devices.count ? wire_u64s_at(devices, i) : p->devices[i];
                        if (!engine_program_has(p, device))
                                return CL_INVALID_DEVICE;
                        if (e->be->device.domain(e->backend, (unsigned)device) != domain ||
                            engine_part_has(part, (unsigned)device))
                                continue;
                        if (!part->devices) {
                                b->part_count++;
                                part->devices = mem_alloc(count * sizeof(*part->devices));
                                if (!part->devices)
                                        return CL_OUT_OF_HOST_MEMORY;
                        }
                        part->devices[part->device_count++] = (unsigned)device;
                }
                if (!part->device_count)
                        continue;
                part->whole = is_whole(p, part);
                part->keyed = part->whole && part_key(b, part);
        }
        return CL_SUCCESS;
}

static cl_int take_options(struct build *b, struct bytes options)
{
        b->in.options = mem_alloc(options.size + 1);
        if (!b->in.options)
                return CL_OUT_OF_HOST_MEMORY;
        if (options.size)
                memcpy(b->in.options, options.data, options.size);
        b->in.options[options.size] = '\0';
        return CL_SUCCESS;
}

static cl_int take_input(struct build *b, const struct wire_program_build *m)
{
        b->in.embedded = m->flags & BUILD_EMBEDDED;
        b->in.compile = m->flags & BUILD_COMPILE;
        if (buf_put(&b->in.constants, m->constants.data, m->constants.size) < 0)
                return CL_OUT_OF_HOST_MEMORY;
        return take_options(b, m->options);
}

static bool constants_valid(struct bytes constants)
{
        struct info_entry e;
        while (info_next(&constants, &e))
                if (e.key != INFO_CONSTANT || e.value.size < 9 ||
                    bytes_get_u64(e.value.data) > UINT32_MAX)
                        return false;
        return true;
}

static struct build *build_new(struct engine *e, uint64_t request, bool is_link)
{
        struct build *b = mem_zalloc(sizeof(*b));
        if (!b)
                return NULL;
        list_init(&b->link);
        b->engine = e;
        b->request = request;
        b->is_link = is_link;
        return b;
}

static void build_start(struct build *b) REQUIRES(engine_held)
{
        if (!b->status && b->engine->params.single_threaded)
                build_run(b);
        else if (!b->status && builder_start(b->engine, b))
                return;
        else if (!b->status)
                b->status = CL_OUT_OF_RESOURCES;
        build_done(b);
}

static bool mentions_printf(struct bytes text)
{
        return text.size && memmem(text.data, text.size, "printf", 6);
}

int engine_handle_program_build(void *user, const struct wire_program_build *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct program *p = engine_program_find(e, m->program);
        if (!p || p->kind == PROGRAM_KIND_LINKED || !constants_valid(m->constants))
                return SP_E_PROTO;
        struct build *b = build_new(e, m->request, false);
        if (!b)
                return SP_E_NOMEM;
        if (p->building) {
                /* "CL_INVALID_OPERATION if the build of a program executable for any of the devices
                 * listed in device_list by a previous call to clBuildProgram has not completed." */
                b->status = CL_INVALID_OPERATION;
                build_done(b);
                return 0;
        }
        int r = engine_content_take(e, m->headers, m->headers_digest, b->in.digest, &b->in.headers);
        if (!r && b->in.headers &&
            (info_check(content_bytes(b->in.headers)) < 0 ||
             !engine_include_valid(content_bytes(b->in.headers))))
                r = SP_E_PROTO;
        if (r < 0) {
                build_free(b);
                return r;
        }
        (void)engine_program_complete(p);
        stores_drop(p);
        b->program = p;
        engine_object_ref(&p->object);
        p->building = true;
        /* The source itself does not show whether headers or options use printf (may_print). */
        e->programs.prints |=
                !b->in.headers ||
                mentions_printf(bytes_of(b->in.headers->data.data, b->in.headers->data.size)) ||
                mentions_printf(m->options);
        b->status = take_input(b, m);
        if (!b->status)
                b->status = take_devices(b, m->devices);
        build_start(b);
        return 0;
}

/* Hold the link's inputs. Each has to have all of the devices. */
static int take_programs(struct build *b, const struct wire_program_link *m)
{
        b->inputs = mem_alloc(m->inputs.count * sizeof(struct program *));
        if (!b->inputs)
                return SP_E_NOMEM;
        for (size_t i = 0; i < m->inputs.count; i++) {
                struct program *p = engine_program_find(b->engine, wire_u64s_at(m->inputs, i));
                if (!p)
                        return SP_E_PROTO;
                for (size_t k = 0; k < m->devices.count; k++)
                        if (!engine_program_has(p, wire_u64s_at(m->devices, k)))
                                return SP_E_PROTO;
                /* "CL_INVALID_OPERATION if the compilation or build of a program executable for any
                 * of the devices listed in device_list by a previous call [...] for program has not
                 * completed." */
                if (p->building)
                        b->status = CL_INVALID_OPERATION;
                b->inputs[b->input_count++] = p;
                engine_object_ref(&p->object);
                p->shared++;
        }
        return 0;
}

int engine_handle_program_link(void *user, const struct wire_program_link *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        if (!m->devices.count || !m->inputs.count)
                return SP_E_PROTO;
        struct build *b = build_new(e, m->request, true);
        if (!b)
                return SP_E_NOMEM;
        int r = take_programs(b, m);
        struct program *p = NULL;
        if (!r)
                r = engine_program_new(e, m->program, PROGRAM_KIND_LINKED, m->devices, &p);
        if (r < 0) {
                build_free(b);
                return r;
        }
        b->program = p;
        engine_object_ref(&p->object);
        p->building = true;
        e->programs.prints = true; /* may use printf: unknown, as for binaries */
        if (!b->status)
                b->status = take_options(b, m->options);
        if (!b->status)
                b->status = take_devices(b, m->devices);
        build_start(b);
        return 0;
}

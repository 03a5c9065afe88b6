/* Queries, builds, and what builds need of the client. */
#include "support/check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/program/content.h"
#include "engine/program/include.h"
#include "engine/program/program.h"
#include "support/world.h"

TEST(queries_are_answered)
{
        struct world *w = world_new(1);
        struct node *n = &w->nodes[0];
        send(w, 0, server_info_query, .request = 1);
        pump(w);
        assert_int_equal(n->answers, 1);
        struct bytes block = { n->info.data, n->info.size }, name;
        struct info_entry e;
        unsigned devices = 0, servers = 0;
        while (info_next(&block, &e)) {
                if (e.key == INFO_SERVER) {
                        servers++;
                        continue;
                }
                assert_int_equal(e.key, INFO_DEVICE);
                assert_int_equal(info_u64(e.value, INFO_DEVICE_DOMAIN, 99), devices);
                assert_true(info_find(e.value, CL_DEVICE_NAME, &name));
                devices++;
        }
        assert_int_equal(devices, 2);
        assert_int_equal(servers, 1);
        send(w, 0, clock_query, .time_ns = 4);
        pump(w);
        assert_int_equal(n->answer, 4);
        send(w, 0, stats_query, .request = 2);
        pump(w);
        assert_int_equal(n->answers, 3);
        assert_true(info_find(bytes_of(n->info.data, n->info.size), INFO_LINK, &block));
        assert_int_equal(info_u64(block, INFO_LINK_MESSAGES_RECEIVED, 0), 3);
        send(w, 0, close, .status = 0);
        pump(w);
        engine_lock(n->engine);
        assert_true(engine_closed(n->engine));
        engine_unlock(n->engine);
        world_free(w);
}

TEST(builds_of_several_domains_are_one_answer)
{
        for (int threads = 0; threads < 2; threads++) {
                struct world *w = calloc(1, sizeof(*w));
                struct node *n = &w->nodes[0];
                w->count = 1;
                backend_reference_manual = true;
                assert_int_equal(node_init(n, !threads, NULL), 0);
                make_program(w, 0);
                await(w, &n->answers, 1);
                assert_int_equal(n->answer, CL_SUCCESS);
                struct bytes block = { n->info.data, n->info.size };
                struct info_entry e, inner;
                unsigned builds = 0, kernels = 0, devices = 0;
                while (info_next(&block, &e)) {
                        builds += e.key == INFO_BUILD;
                        kernels += e.key == INFO_KERNEL;
                        while (e.key == INFO_KERNEL && info_next(&e.value, &inner))
                                devices += inner.key == INFO_KERNEL_DEVICE;
                }
                assert_int_equal(builds, 2);
                assert_int_equal(kernels, 3);
                assert_int_equal(devices, 6);
                send(w, 0, program_binaries_query, .request = 2, .program = PROGRAM,
                     .devices = WAITS(1, 0));
                await(w, &n->answers, 2);
                assert_int_equal(n->answer, CL_SUCCESS);
                world_free(w);
        }
}

static void make_empty_program(struct world *w)
{
        struct buf parts = { 0 };
        assert_int_equal(info_put(&parts, INFO_PART, "kernel void f() {}", 18), 0);
        send(w, 0, program_create, .program = PROGRAM, .kind = 0, .devices = WAITS(1),
             .parts = bytes_of(parts.data, parts.size));
        buf_fini(&parts);
}

TEST(a_build_that_fails_says_so)
{
        struct world *w = world_new(1);
        struct node *n = &w->nodes[0];
        make_empty_program(w);
        send(w, 0, program_build, .request = 1, .program = PROGRAM, .devices = WAITS(1));
        pump(w);
        assert_int_equal(n->answer, CL_COMPILER_NOT_AVAILABLE);
        send(w, 0, program_build, .request = 1, .program = PROGRAM, .devices = WAITS(0));
        pump(w);
        assert_int_equal(n->answer, CL_INVALID_DEVICE);
        world_free(w);
}

TEST(resources_only_named_are_requested)
{
        struct world *w = world_new(1);
        struct node *n = &w->nodes[0];
        struct buf parts = { 0 };
        uint8_t digest[BLAKE2B_SIZE], none[BLAKE2B_SIZE];
        assert_int_equal(info_put(&parts, INFO_PART, "kernel void f() {}", 18), 0);
        blake2b_of(bytes_of(parts.data, parts.size), digest);
        blake2b_of(bytes_str("never sent"), none);
        send(w, 0, program_create, .program = PROGRAM, .kind = 0, .devices = WAITS(1),
             .digest = bytes_of(digest, sizeof(digest)));
        send(w, 0, program_build, .request = 1, .program = PROGRAM, .devices = WAITS(1));
        pump(w);
        assert_int_equal(n->answer, BUILD_NEEDS);
        send(w, 0, content, .data = bytes_of(parts.data, parts.size));
        send(w, 0, program_build, .request = 1, .program = PROGRAM, .devices = WAITS(1),
             .headers_digest = bytes_of(none, sizeof(none)));
        pump(w);
        assert_int_equal(n->answer, BUILD_NEEDS);
        send(w, 0, program_build, .request = 1, .program = PROGRAM, .devices = WAITS(1));
        pump(w);
        assert_int_equal(n->answer, CL_COMPILER_NOT_AVAILABLE);
        /* Bytes that are no parts are as good as none. */
        blake2b_of(bytes_str("no parts"), digest);
        send(w, 0, program_create, .program = PROGRAM + 1, .kind = 0, .devices = WAITS(1),
             .digest = bytes_of(digest, sizeof(digest)));
        send(w, 0, content, .data = bytes_str("no parts"));
        send(w, 0, program_build, .request = 1, .program = PROGRAM + 1, .devices = WAITS(1));
        pump(w);
        assert_int_equal(n->answer, BUILD_NEEDS);
        buf_fini(&parts);
        world_free(w);
}

TEST(contents_go_when_there_are_too_many)
{
        struct content_store store = { 0 };
        struct content *c, *kept;
        char *large = mem_zalloc(CONTENT_STORE_MAX / 4);
        assert_non_null(large);
        content_store_init(&store);
        assert_int_equal(content_put(&store, bytes_str("kept"), &kept), 0);
        for (int i = 0; i < 2 * CONTENT_KEEP; i++) {
                large[0] = (char)i;
                assert_int_equal(content_put(&store, bytes_of(large, CONTENT_STORE_MAX / 4), &c),
                                 0);
                assert_ptr_equal(content_get(&store, c->digest), c);
                content_unref(c);
                content_unref(c);
        }
        assert_int_equal(store.count, CONTENT_KEEP);
        assert_null(content_get(&store, kept->digest));
        /* A holder of a reference keeps its content. */
        assert_memory_equal(kept->data.data, "kept", 4);
        content_unref(kept);
        content_store_fini(&store);
        mem_free(large);
}

TEST(a_link_without_a_linker_says_so)
{
        struct world *w = world_new(1);
        struct node *n = &w->nodes[0];
        make_empty_program(w);
        send(w, 0, program_build, .request = 1, .program = PROGRAM, .flags = BUILD_COMPILE,
             .devices = WAITS(1));
        pump(w);
        assert_int_equal(n->answer, CL_COMPILER_NOT_AVAILABLE);
        send(w, 0, program_link, .request = 2, .program = PROGRAM + 1, .devices = WAITS(1),
             .inputs = WAITS(PROGRAM));
        pump(w);
        assert_int_equal(n->answer, CL_LINKER_NOT_AVAILABLE);
        /* It stays, as one without an executable, until it is released. */
        send(w, 0, release, .object = PROGRAM + 1);
        pump(w);
        assert_false(n->died);
        world_free(w);
}

static void put_header(struct buf *b, const char *path, const char *text)
{
        size_t mark;
        assert_int_equal(info_begin(b, INFO_HEADER, &mark), 0);
        assert_int_equal(info_put(b, INFO_HEADER_PATH, path, strlen(path)), 0);
        assert_int_equal(info_put(b, INFO_HEADER_TEXT, text, strlen(text)), 0);
        info_end(b, mark);
}

TEST(headers_are_mirrored_and_folders_translated)
{
        char top[] = "/tmp/spancl-test-XXXXXX", root[64], want[512];
        assert_non_null(mkdtemp(top));
        (void)snprintf(root, sizeof(root), "%s/h", top);
        struct buf b = { 0 };
        put_header(&b, "/inc/a b/x.h", "#define X 1\n");
        put_header(&b, "/inc/y.h", "");
        struct bytes headers = { b.data, b.size };
        assert_true(engine_include_valid(headers));
        assert_int_equal(engine_include_write(root, headers), 0);
        (void)snprintf(want, sizeof(want), "%s/inc/a b/x.h", root);
        FILE *f = fopen(want, "r");
        assert_non_null(f);
        char text[32] = "";
        assert_non_null(fgets(text, sizeof(text), f));
        assert_string_equal(text, "#define X 1\n");
        (void)fclose(f);

        char *options;
        static const char given[] =
                " -DA=1 -I /inc -I/inc/sub/../. -I \"/inc/a b\" -DI=\"-I x\"  -Werror -I'/q r' -I";
        assert_int_equal(engine_include_rewrite(root, given, &options), 0);
        (void)snprintf(want, sizeof(want),
                       "-DA=1 -I %s/inc -I %s/inc -I %s/.folder-2 -DI=\"-I x\" -Werror "
                       "-I %s/.folder-3 ",
                       root, root, root, root);
        assert_string_equal(options, want);
        mem_free(options);
        struct stat st;
        (void)snprintf(want, sizeof(want), "%s/q r", root);
        assert_int_equal(stat(want, &st), 0);
        engine_include_remove(root);
        assert_int_equal(stat(root, &st), -1);
        assert_int_equal(rmdir(top), 0);

        static const char *const bad[] = { "x.h", "/", "/a/../b", "/..", "/a//b", "/a/", "/./a" };
        for (size_t i = 0; i < array_size(bad); i++) {
                b.size = 0;
                put_header(&b, bad[i], "");
                assert_false(engine_include_valid(bytes_of(b.data, b.size)));
        }
        buf_fini(&b);
}

/* A backend whose programs of binaries take as long as the test wants, or fail. */
static struct {
        struct backend_ops ops;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        const struct backend_program *loaded; /* the newest of a binary */
        const struct backend_program *kept;   /* the newest whose binary was asked for */
        const struct backend_program *made;   /* the newest of source */
        bool closed, fails, source_fails, dear, required, manual;
        unsigned loads, builds, binaries;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static cl_int gate_create(struct backend *b, unsigned domain, unsigned kind,
                          const unsigned *devices, size_t device_count, struct bytes parts,
                          struct backend_program **ret)
{
        struct buf names = { 0 };
        assert_int_equal(info_put(&names, INFO_PART, "spancl.noop", 11), 0);
        cl_int r = backend_reference.program.create(b, domain, PROGRAM_KIND_BUILT_IN, devices,
                                                    device_count, bytes_of(names.data, names.size),
                                                    ret);
        buf_fini(&names);
        pthread_mutex_lock(&gate.lock);
        if (kind == PROGRAM_KIND_BINARY)
                gate.loaded = *ret;
        else if (gate.loaded == *ret)
                gate.loaded = NULL;
        if (kind != PROGRAM_KIND_BINARY)
                gate.made = *ret;
        pthread_mutex_unlock(&gate.lock);
        return r;
}

/* As if the kernel in there had a required work-group size. */
static void require_size(const struct buf *info)
{
        static const size_t size[3] = { 4, 2, 1 };
        struct bytes kernel, device, value;
        assert_true(info_find(bytes_of(info->data, info->size), INFO_KERNEL, &kernel));
        assert_true(info_find(kernel, INFO_KERNEL_DEVICE, &device));
        assert_true(info_find(device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, &value));
        assert_int_equal(value.size, sizeof(size));
        memcpy((void *)(uintptr_t)value.data, size, sizeof(size));
}

static bool gate_is_dear(struct backend *b, unsigned domain)
{
        (void)b;
        (void)domain;
        return gate.dear;
}

static cl_int gate_build(struct backend_program *p, const unsigned *devices, size_t device_count,
                         const char *options, struct buf *info)
{
        pthread_mutex_lock(&gate.lock);
        bool is_load = p == gate.loaded;
        while (is_load && gate.closed)
                pthread_cond_wait(&gate.changed, &gate.lock);
        gate.loads += is_load;
        gate.builds += !is_load;
        bool fails = is_load ? gate.fails : gate.source_fails, required = gate.required;
        pthread_mutex_unlock(&gate.lock);
        if (fails || !info)
                return fails ? CL_INVALID_BINARY : CL_SUCCESS;
        cl_int r = backend_reference.program.build(p, devices, device_count, options, info);
        if (required)
                require_size(info);
        return r;
}

static cl_int gate_binary(struct backend_program *p, unsigned device, struct buf *out)
{
        pthread_mutex_lock(&gate.lock);
        gate.binaries++;
        gate.kept = p;
        pthread_cond_broadcast(&gate.changed);
        pthread_mutex_unlock(&gate.lock);
        return info_put(out, INFO_PART, "a binary", 8) < 0 ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
}

static cl_int gate_kernel(struct backend_program *p, const char *name, struct backend_kernel **ret)
{
        return gate.source_fails ? CL_INVALID_PROGRAM_EXECUTABLE
                                 : backend_reference.kernel.create(p, name, ret);
}

static void gate_set(bool closed)
{
        pthread_mutex_lock(&gate.lock);
        gate.closed = closed;
        pthread_cond_broadcast(&gate.changed);
        pthread_mutex_unlock(&gate.lock);
}

static struct world *gate_world(char folder[32])
{
        struct world *w = calloc(1, sizeof(*w));
        cache_dir = folder;
        gate.ops = backend_reference;
        gate.ops.program.create = gate_create;
        gate.ops.program.build = gate_build;
        gate.ops.program.binary = gate_binary;
        gate.ops.program.binary_is_dear = gate_is_dear;
        gate.ops.kernel.create = gate_kernel;
        gate.loads = gate.builds = gate.binaries = 0;
        gate.loaded = gate.kept = NULL;
        backend_reference_manual = gate.manual;
        w->count = 1;
        assert_int_equal(node_init_on(&w->nodes[0], &gate.ops, false, NULL), 0);
        cache_dir = NULL;
        struct buf parts = { 0 };
        assert_int_equal(info_put(&parts, INFO_PART, "kernel void f() {}", 18), 0);
        send(w, 0, program_create, .program = PROGRAM, .kind = 0, .devices = WAITS(0),
             .parts = bytes_of(parts.data, parts.size));
        buf_fini(&parts);
        send(w, 0, program_build, .request = 1, .program = PROGRAM, .devices = WAITS(0));
        await(w, &w->nodes[0].answers, 1);
        assert_int_equal(w->nodes[0].answer, CL_SUCCESS);
        send(w, 0, queue_create, .queue = QUEUE(1), .device = 0);
        send(w, 0, kernel_create, .kernel = KERNEL(1), .program = PROGRAM,
             .name = bytes_str("spancl.noop"));
        return w;
}

/* In a cache's folder that has the program. */
static void gate_begin(char folder[32])
{
        strcpy(folder, "/tmp/spancl-test-XXXXXX");
        assert_non_null(mkdtemp(folder));
        gate.fails = gate.source_fails = false;
        world_free(gate_world(folder));
        assert_int_equal(gate.builds, 1);
        assert_int_equal(gate.loads, 0);
        gate_set(true);
}

static void gate_end(char folder[32])
{
        char command[64];
        snprintf(command, sizeof(command), "rm -r %s", folder);
        assert_int_equal(system(command), 0);
}

static void launch_and_mark(struct world *w)
{
        send(w, 0, kernel_launch, .queue = QUEUE(1), .kernel = KERNEL(1), .event = EVENT(1),
             .flags = COMMAND_NOTIFY, .global = WAITS(1));
        send(w, 0, marker, .queue = QUEUE(1), .event = EVENT(2), .flags = COMMAND_NOTIFY);
        pump(w);
}

TEST(cached_information_is_reported_before_the_build)
{
        char folder[32];
        gate_begin(folder);
        struct world *w = gate_world(folder);
        struct node *n = &w->nodes[0];
        launch_and_mark(w);
        /* The kernel query waits, because it asks the device. The binaries are known. */
        send(w, 0, kernel_query, .request = 2, .kernel = KERNEL(1), .device = 0, .size = 8);
        send(w, 0, program_binaries_query, .request = 3, .program = PROGRAM, .devices = WAITS(0));
        await(w, &n->answers, 2);
        struct bytes block = { n->info.data, n->info.size }, binary;
        assert_int_equal(n->answer, CL_SUCCESS);
        assert_true(info_find(block, INFO_PART, &binary));
        assert_memory_equal(binary.data, "a binary", 8);
        assert_int_equal(n->answers, 2);
        assert_int_equal(n->done_count, 0);
        assert_int_equal(gate.loads, 0);
        gate_set(false);
        await(w, &n->answers, 3);
        assert_int_equal(n->answer, CL_INVALID_OPERATION); /* has no sub-groups */
        await(w, &n->done_count, 2);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_SUCCESS);
        assert_int_equal(gate.builds, 0);
        assert_int_equal(gate.loads, 1);
        world_free(w);
        gate_end(folder);
}

/* ---- what can't be kept while kernels run ----------------------------------------------------- */

static void create_and_build(struct world *w, uint64_t program, uint64_t request,
                             const char *source)
{
        struct buf parts = { 0 };
        assert_int_equal(info_put(&parts, INFO_PART, source, strlen(source)), 0);
        send(w, 0, program_create, .program = program, .kind = 0, .devices = WAITS(0),
             .parts = bytes_of(parts.data, parts.size));
        buf_fini(&parts);
        send(w, 0, program_build, .request = request, .program = program, .devices = WAITS(0));
        await(w, &w->nodes[0].answers, (unsigned)request);
        assert_int_equal(w->nodes[0].answer, CL_SUCCESS);
}

/* An engine whose binaries are expensive to get. The first program's kernel has a required size.
 * The second one's has none, so its binary is kept as soon as nothing else happens. */
static struct world *dear_world(char folder[32], bool manual)
{
        strcpy(folder, "/tmp/spancl-test-XXXXXX");
        assert_non_null(mkdtemp(folder));
        gate.fails = gate.source_fails = false;
        gate.dear = gate.required = true;
        gate.manual = manual;
        gate_set(false);
        struct world *w = gate_world(folder);
        gate.required = false;
        create_and_build(w, object_id(OBJECT_PROGRAM, 2), 2, "kernel void g() {}");
        pthread_mutex_lock(&gate.lock);
        while (!gate.binaries)
                pthread_cond_wait(&gate.changed, &gate.lock);
        assert_int_equal(gate.binaries, 1);
        assert_ptr_equal(gate.kept, gate.made);
        pthread_mutex_unlock(&gate.lock);
        return w;
}

TEST(a_binary_that_disturbs_launches_is_kept_when_the_session_has_ended)
{
        char folder[32];
        struct world *w = dear_world(folder, false);
        const struct backend_program *second = gate.kept;
        world_free(w);
        assert_int_equal(gate.binaries, 2);
        assert_ptr_not_equal(gate.kept, second);
        gate.dear = false;
        gate_end(folder);
}

TEST(and_never_while_a_command_goes_on)
{
        char folder[32];
        struct world *w = dear_world(folder, true);
        launch_and_mark(w);
        assert_int_equal(w->nodes[0].done_count, 0);
        world_free(w);
        assert_int_equal(gate.binaries, 1);
        gate.dear = gate.manual = false;
        gate_end(folder);
}

/* The last answer was that of a launch_query. */
static bool was_submitted(const struct world *w)
{
        const struct buf *info = &w->nodes[0].info;
        assert_int_equal(info->size, 1);
        return info->data[0];
}

TEST(a_launch_query_waits_for_the_program)
{
        char folder[32];
        gate_begin(folder);
        struct world *w = gate_world(folder);
        struct node *n = &w->nodes[0];
        launch_and_mark(w);
        send(w, 0, launch_query, .request = 2, .event = EVENT(1));
        pump(w);
        assert_int_equal(n->answers, 1);
        gate_set(false);
        await(w, &n->answers, 2);
        assert_int_equal(n->answer, CL_SUCCESS);
        assert_true(was_submitted(w));
        await(w, &n->done_count, 2);
        world_free(w);
        gate_end(folder);
}

TEST(a_launch_query_tells_how_the_implementation_took_the_launch)
{
        struct world *w = world_new(1);
        struct node *n = &w->nodes[0];
        make_objects(w, 0, 64);
        pump(w);
        const unsigned before = n->answers;
        /* The queue is busy, so the failure of the second launch waits for the first one. */
        send(w, 0, kernel_launch, .queue = QUEUE(1), .kernel = KERNEL(2), .event = EVENT(1),
             .flags = COMMAND_NAMED, .global = WAITS(1));
        send(w, 0, launch_query, .request = 2, .event = EVENT(1));
        pump(w);
        assert_int_equal(n->answers, before + 1);
        assert_int_equal(n->answer, CL_SUCCESS);
        assert_true(was_submitted(w));
        send(w, 0, kernel_launch, .queue = QUEUE(1), .kernel = KERNEL(2), .event = EVENT(2),
             .flags = COMMAND_NAMED, .global = WAITS(1024, 2), .local = WAITS(1024, 2));
        send(w, 0, launch_query, .request = 3, .event = EVENT(2));
        pump(w);
        assert_int_equal(n->answers, before + 2);
        assert_int_equal(n->answer, CL_INVALID_WORK_GROUP_SIZE);
        assert_true(was_submitted(w));
        assert_int_equal(status_of(w, 0, EVENT(2)), PENDING);
        /* A launch that waits for the client is not judged yet, nor is there more to say about it. */
        send(w, 0, event_import, .event = EVENT(9));
        send(w, 0, kernel_launch, .queue = QUEUE(1), .kernel = KERNEL(2), .event = EVENT(3),
             .flags = COMMAND_NAMED, .global = WAITS(1), .waits = WAITS(EVENT(9)));
        send(w, 0, launch_query, .request = 4, .event = EVENT(3));
        pump(w);
        assert_int_equal(n->answers, before + 3);
        assert_int_equal(n->answer, CL_SUCCESS);
        assert_false(was_submitted(w));
        send(w, 0, event_done, .event = EVENT(9));
        world_run(w);
        /* Nor was one that fails with its wait list. */
        send(w, 0, kernel_launch, .queue = QUEUE(2), .kernel = KERNEL(2), .event = EVENT(4),
             .flags = COMMAND_NAMED, .global = WAITS(1), .waits = WAITS(EVENT(2)));
        send(w, 0, launch_query, .request = 7, .event = EVENT(4));
        pump(w);
        assert_int_equal(n->answers, before + 4);
        assert_int_equal(n->answer, CL_SUCCESS);
        assert_false(was_submitted(w));
        world_run(w);
        assert_int_equal(status_of(w, 0, EVENT(2)), CL_INVALID_WORK_GROUP_SIZE);
        /* Events that are complete, or that there never were. */
        send(w, 0, launch_query, .request = 5, .event = EVENT(1));
        send(w, 0, launch_query, .request = 6, .event = EVENT(77));
        pump(w);
        assert_int_equal(n->answers, before + 6);
        assert_int_equal(n->answer, CL_SUCCESS);
        release_objects(w, 0);
        world_free(w);
}

TEST(a_build_waits_for_one_that_was_told_early)
{
        char folder[32];
        gate_begin(folder);
        struct world *w = gate_world(folder);
        launch_and_mark(w); /* of a kernel that the client gives back before it builds again */
        send(w, 0, release, .object = KERNEL(1));
        send(w, 0, program_build, .request = 2, .program = PROGRAM, .devices = WAITS(0));
        pump(w);
        assert_int_equal(w->nodes[0].answers, 1);
        gate_set(false);
        await(w, &w->nodes[0].answers, 2);
        assert_int_equal(w->nodes[0].answer, CL_SUCCESS);
        await(w, &w->nodes[0].done_count, 2);
        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
        send(w, 0, kernel_create, .kernel = KERNEL(2), .program = PROGRAM,
             .name = bytes_str("spancl.noop"));
        send(w, 0, kernel_launch, .queue = QUEUE(1), .kernel = KERNEL(2), .event = EVENT(3),
             .flags = COMMAND_NOTIFY, .global = WAITS(1));
        await(w, &w->nodes[0].done_count, 3);
        assert_int_equal(status_of(w, 0, EVENT(3)), CL_SUCCESS);
        world_free(w);
        gate_end(folder);
}

TEST(a_program_announced_early_and_refused_is_built)
{
        for (int source_fails = 0; source_fails < 2; source_fails++) {
                char folder[32];
                gate_begin(folder);
                gate.fails = true;
                gate.source_fails = source_fails;
                struct world *w = gate_world(folder);
                struct node *n = &w->nodes[0];
                launch_and_mark(w);
                gate_set(false);
                await(w, &n->done_count, 2);
                assert_int_equal(gate.loads, 1);
                assert_int_equal(gate.builds, 1);
                if (source_fails)
                        assert_int_equal(status_of(w, 0, EVENT(1)), CL_INVALID_PROGRAM_EXECUTABLE);
                else
                        assert_int_equal(status_of(w, 0, EVENT(1)), CL_SUCCESS);
                world_free(w);
                gate_end(folder);
        }
}

TEST(a_launch_that_waits_for_its_program_is_watched)
{
        char folder[32];
        gate_begin(folder);
        limits.max[LIMIT_RUN_NS] = 1000;
        struct world *w = gate_world(folder);
        struct engine *e = w->nodes[0].engine;
        engine_lock(e);
        assert_true(engine_deadline(e) == UINT64_MAX);
        engine_unlock(e);
        launch_and_mark(w);
        engine_lock(e);
        /* The thread that begins it tells nobody who sleeps until then. */
        assert_true(engine_deadline(e) == now_ns + 1000);
        engine_unlock(e);
        gate_set(false);
        await(w, &w->nodes[0].done_count, 2);
        world_free(w);
        limits.max[LIMIT_RUN_NS] = 0;
        gate_end(folder);
}

TEST(an_engine_ends_while_it_makes_what_it_has_told_of)
{
        char folder[32];
        gate_begin(folder);
        struct world *w = gate_world(folder);
        launch_and_mark(w);
        send(w, 0, kernel_query, .request = 2, .kernel = KERNEL(1), .device = 0, .size = 8);
        send(w, 0, release, .object = PROGRAM);
        pump(w);
        gate_set(false);
        world_free(w);
        gate_end(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(queries_are_answered),
                cmocka_unit_test(builds_of_several_domains_are_one_answer),
                cmocka_unit_test(a_build_that_fails_says_so),
                cmocka_unit_test(resources_only_named_are_requested),
                cmocka_unit_test(contents_go_when_there_are_too_many),
                cmocka_unit_test(a_link_without_a_linker_says_so),
                cmocka_unit_test(headers_are_mirrored_and_folders_translated),
                cmocka_unit_test(
                        a_binary_that_disturbs_launches_is_kept_when_the_session_has_ended),
                cmocka_unit_test(and_never_while_a_command_goes_on),
                cmocka_unit_test(cached_information_is_reported_before_the_build),
                cmocka_unit_test(a_launch_query_waits_for_the_program),
                cmocka_unit_test(a_launch_query_tells_how_the_implementation_took_the_launch),
                cmocka_unit_test(a_build_waits_for_one_that_was_told_early),
                cmocka_unit_test(a_program_announced_early_and_refused_is_built),
                cmocka_unit_test(a_launch_that_waits_for_its_program_is_watched),
                cmocka_unit_test(an_engine_ends_while_it_makes_what_it_has_told_of),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

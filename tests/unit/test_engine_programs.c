/* Queries, builds, and what builds need of the client. */
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/content.h"
#include "engine/include.h"
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
        unsigned devices = 0;
        while (info_next(&block, &e)) {
                assert_int_equal(e.key, INFO_DEVICE);
                assert_int_equal(info_u64(e.value, INFO_DEVICE_DOMAIN, 99), devices);
                assert_true(info_find(e.value, CL_DEVICE_NAME, &name));
                devices++;
        }
        assert_int_equal(devices, 2);
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
        assert_true(engine_closed(n->engine));
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

TEST(what_is_only_named_is_asked_for)
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
        /* Who holds one has it. */
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(queries_are_answered),
                cmocka_unit_test(builds_of_several_domains_are_one_answer),
                cmocka_unit_test(a_build_that_fails_says_so),
                cmocka_unit_test(what_is_only_named_is_asked_for),
                cmocka_unit_test(contents_go_when_there_are_too_many),
                cmocka_unit_test(a_link_without_a_linker_says_so),
                cmocka_unit_test(headers_are_mirrored_and_folders_translated),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* core/program/include.c and core/program/macro.c: which files travel with a program, and as what. */
#include "support/check.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "core/hash.h"
#include "core/program/include.h"
#include "core/program/macro.h"
#include "proto/info.h"
#include "proto/option.h"

static char root[] = "/tmp/spancl-include.XXXXXX";

/* A file below the test's folder; the folders on its way are made. */
static void file(const char *name, const char *text)
{
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", root, name);
        for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
                *p = 0;
                mkdir(path, 0700);
                *p = '/';
        }
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        assert_int_equal(fclose(f), 0);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        return remove(path);
}

static int setup(void **state)
{
        return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
        return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static struct include_result collect(const char *source, const char *options)
{
        struct include_result r = { 0 };
        assert_int_equal(
                include_collect(&(struct include_params){ bytes_str(source), options, root }, &r),
                0);
        assert_int_equal(info_check(bytes_of(r.headers.data, r.headers.size)), 0);
        return r;
}

/* The text that is sent for a file, NULL: it is not sent. Static storage. */
static const char *sent(const struct include_result *r, const char *name)
{
        static char text[4096];
        char path[512];
        snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : root,
                 name[0] == '/' ? "" : "/", name);
        struct bytes block = bytes_of(r->headers.data, r->headers.size), p, t;
        struct info_entry e;
        while (info_next(&block, &e)) {
                assert_int_equal(e.key, INFO_HEADER);
                assert_true(info_find(e.value, INFO_HEADER_PATH, &p));
                assert_true(info_find(e.value, INFO_HEADER_TEXT, &t));
                if (p.size != strlen(path) || memcmp(p.data, path, p.size))
                        continue;
                assert_true(t.size < sizeof(text));
                if (t.size)
                        memcpy(text, t.data, t.size);
                text[t.size] = 0;
                return text;
        }
        return NULL;
}

/* Options with the test's folder written as @. */
static void expect_options(const struct include_result *r, const char *wanted)
{
        char text[1024], *out = text;
        for (const char *p = wanted; *p; p++)
                out += *p == '@' ? sprintf(out, "%s", root) : sprintf(out, "%c", *p);
        assert_string_equal((const char *)r->options.data, text);
}

TEST(quoted_names_come_from_the_including_file_then_the_folders_in_order)
{
        file("q/a.h", "#include \"b.h\"\n#include <c.h>\n");
        file("q/b.h", "int b;\n");
        file("q2/b.h", "wrong\n");
        file("q2/c.h", "int c;\n");
        file("q3/c.h", "wrong\n");
        struct include_result r = collect("#include \"a.h\"\n", "-I q -Iq2 -I ./q3/ -w");
        assert_int_equal(r.files, 3);
        assert_string_equal(sent(&r, "q/b.h"), "int b;\n");
        assert_string_equal(sent(&r, "q2/c.h"), "int c;\n");
        expect_options(&r, "-I@/q -I@/q2 -I@/q3 -w");
        assert_int_equal(r.source.size, 0);
        include_fini(&r);
}

TEST(the_source_itself_lies_in_the_current_folder)
{
        file("here.h", "#include <there.h>\n");
        file("there.h", "");
        struct include_result r = collect("#include \"here.h\"\n", NULL);
        assert_non_null(sent(&r, "here.h"));
        /* <there.h> is not looked for beside the file that names it. */
        assert_null(sent(&r, "there.h"));
        assert_int_equal(r.missing, 1);
        expect_options(&r, "-I@");
        include_fini(&r);
}

TEST(comments_strings_and_continued_lines_are_respected)
{
        file("lex/yes.h", "");
        file("lex/also.h", "");
        file("lex/last.h", "");
        file("lex/no.h", "");
        struct include_result r = collect("/* #include \"no.h\"\n#include \"no.h\" */\n"
                                          "// \\\n#include \"no.h\"\n"
                                          "constant char *s = \"/*\\\"\";\n"
                                          "  # /* why */ inc\\\nlude /**/ \"yes.h\" // */\n"
                                          "char c = '\"'; x #include \"no.h\"\n"
                                          "#define S \"#include \\\"no.h\\\"\"\n"
                                          "#error don't\n"
                                          "/**/ #include <also.h>\r\n"
                                          "#include <last.h> /* no newline */",
                                          "-Ilex");
        assert_non_null(sent(&r, "lex/yes.h"));
        assert_non_null(sent(&r, "lex/also.h"));
        assert_non_null(sent(&r, "lex/last.h"));
        assert_int_equal(r.files, 3);
        include_fini(&r);
}

TEST(both_branches_are_taken_and_missing_files_ignored)
{
        file("br/one.h", "");
        file("br/two.h", "");
        struct include_result r =
                collect("#ifdef X\n#include \"one.h\"\n#else\n#include \"two.h\"\n"
                        "#include \"gone.h\"\n#include <br>\n#endif\n",
                        "-Ibr");
        assert_int_equal(r.files, 2);
        assert_int_equal(r.missing, 2);
        include_fini(&r);
}

TEST(each_file_travels_once_and_circles_end)
{
        file("circle/a.h", "#include \"b.h\"\n");
        file("circle/b.h", "#include \"a.h\"\n#include \"./b.h\"\n#include \"../circle/a.h\"\n");
        struct include_result r =
                collect("#include <a.h>\n#include <a.h>\n#include <b.h>\n", "-I circle");
        assert_int_equal(r.files, 2);
        include_fini(&r);
}

TEST(computed_names_are_expanded)
{
        file("m/inc_vendor.h", "#include M2S(INCLUDE_PATH/inc_types.h)\n");
        file("m/inc_types.h", "");
        file("m/cfg_7.h", "");
        file("m/plain.h", "");
        struct include_result r =
                collect("#include M2S(INCLUDE_PATH/inc_vendor.h)\n"
                        "#define CAT(a, b) a##b\n#define XCAT(a, b) CAT(a, b)\n"
                        "#define STR(...) #__VA_ARGS__\n#define XSTR(x) STR(x)\n"
                        "#define N 7\n#include XSTR(XCAT(cfg_, N).h)\n"
                        "#define HEADER <plain.h>\n#include HEADER\n"
                        "#include NOTHING\n",
                        "-I m -D INCLUDE_PATH=m -D \"M2S(x)=XM2S(x)\" -D XM2S(x)=#x -DUNUSED");
        assert_non_null(sent(&r, "m/inc_vendor.h"));
        assert_null(sent(&r, "m/m/inc_types.h"));
        assert_non_null(sent(&r, "m/cfg_7.h"));
        assert_non_null(sent(&r, "m/plain.h"));
        /* From m/inc_vendor.h, "m/inc_types.h" is neither beside it nor in a folder. */
        assert_null(sent(&r, "m/inc_types.h"));
        /* Relative names need no help on the other side, where the folder above m is not known. */
        expect_options(&r,
                       "-I@ -I@/m -D INCLUDE_PATH=m -D \"M2S(x)=XM2S(x)\" -D XM2S(x)=#x -DUNUSED");
        include_fini(&r);
}

TEST(all_definitions_of_a_macro_are_tried)
{
        file("alt/a.h", "");
        file("alt/b.h", "");
        struct include_result r =
                collect("#if A\n#define H \"a.h\"\n#else\n#define H \"b.h\"\n#endif\n"
                        "#include H\n",
                        "-Ialt");
        assert_int_equal(r.files, 2);
        include_fini(&r);
}

TEST(absolute_names_become_relative_to_the_root_folder)
{
        char source[512], wanted[512];
        file("abs/x.h", "#include M2S(INCLUDE_PATH/y.h)\nint x;\n");
        file("abs/y.h", "int y;\n");
        snprintf(source, sizeof(source), "int a;\n#include /*\n*/ \"%s/abs/../abs/x.h\"\nint b;\n",
                 root);
        char options[512];
        snprintf(options, sizeof(options), "-D INCLUDE_PATH=%s/abs -D M2S(x)=XM2S(x) -D XM2S(x)=#x",
                 root);
        struct include_result r = collect(source, options);
        snprintf(wanted, sizeof(wanted), "int a;\n#include <%s/abs/x.h>\n\nint b;\n", root + 1);
        assert_int_equal(r.source.size, strlen(wanted));
        assert_memory_equal(r.source.data, wanted, r.source.size);
        snprintf(wanted, sizeof(wanted), "#include <%s/abs/y.h>\nint x;\n", root + 1);
        assert_string_equal(sent(&r, "abs/x.h"), wanted);
        assert_string_equal(sent(&r, "abs/y.h"), "int y;\n");
        expect_options(&r, "-I/ -D INCLUDE_PATH=@/abs -D M2S(x)=XM2S(x) -D XM2S(x)=#x");
        include_fini(&r);
}

TEST(folders_on_the_way_to_a_file_exist_on_the_other_side)
{
        file("way/lib/empty", "");
        file("way/common/x.h", "");
        struct include_result r = collect("#include \"lib/../common/x.h\"\n", "-I way");
        assert_non_null(sent(&r, "way/common/x.h"));
        assert_string_equal(sent(&r, "way/lib/.spancl"), "");
        include_fini(&r);
}

TEST(folders_may_have_spaces_and_quotes)
{
        file("sp ace/x.h", "");
        struct include_result r =
                collect("#include <x.h>\n", "-cl-mad-enable -I \"sp ace\" -DA='b c'");
        assert_int_equal(r.files, 1);
        expect_options(&r, "-I\"@/sp ace\" -cl-mad-enable -DA='b c'");
        include_fini(&r);
        r = collect("#include <x.h>\n", "-Isp\\ ace");
        assert_int_equal(r.files, 1);
        expect_options(&r, "-I\"@/sp ace\"");
        include_fini(&r);
}

/* Found by a fuzzer: the second line of the folder's name was taken for an option of its own. */
TEST(folders_may_have_lines)
{
        file("li\n-D/x.h", "");
        struct include_result r = collect("#include <x.h>\n", "-I 'li\n-D' -w");
        assert_int_equal(r.files, 1);
        expect_options(&r, "-I\"@/li\n-D\" -w");
        assert_true(options_valid((const char *)r.options.data));
        include_fini(&r);
}

TEST(files_are_read_anew_at_each_build)
{
        file("new/x.h", "old\n");
        struct include_result r = collect("#include <x.h>\n", "-Inew");
        assert_string_equal(sent(&r, "new/x.h"), "old\n");
        include_fini(&r);
        file("new/x.h", "new\n");
        r = collect("#include <x.h>\n", "-Inew");
        assert_string_equal(sent(&r, "new/x.h"), "new\n");
        include_fini(&r);
}

TEST(irregular_files_are_not_read)
{
        char fifo[512];
        snprintf(fifo, sizeof(fifo), "%s/fifo.h", root);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        struct include_result r =
                collect("#include \"fifo.h\"\n#include \"/dev/zero\"\n#include \".\"\n"
                        "#include \"\"\n#include\n#include \"x\n#include <x\n",
                        NULL);
        assert_int_equal(r.files, 0);
        include_fini(&r);
}

TEST(bounds_hold)
{
        struct include_result r = { 0 };
        char name[64], text[64];
        for (int i = 0; i <= INCLUDE_DEPTH_MAX; i++) {
                snprintf(name, sizeof(name), "deep/%d.h", i);
                snprintf(text, sizeof(text), "#include \"%d.h\"\n", i + 1);
                file(name, text);
        }
        struct include_params params = { bytes_str("#include \"deep/0.h\"\n"), NULL, root };
        assert_int_equal(include_collect(&params, &r), SP_E_LIMIT);
        assert_null(r.headers.data);

        /* A sparse file that is too large. */
        char path[512];
        snprintf(path, sizeof(path), "%s/large.h", root);
        file("large.h", "");
        assert_int_equal(truncate(path, INCLUDE_TOTAL_MAX + 1), 0);
        params.source = bytes_str("#include \"large.h\"\n");
        assert_int_equal(include_collect(&params, &r), SP_E_LIMIT);
        assert_int_equal(truncate(path, 0), 0);
}

TEST(options_lack_nothing)
{
        assert_true(options_valid(NULL));
        assert_true(options_valid(""));
        assert_true(options_valid("  -D A=1 -DB -I x -w -cl-std=CL1.2 -U A "));
        assert_true(options_valid("-D 'F(x)=\"a b\"'"));
        assert_false(options_valid("-D"));
        assert_false(options_valid("-I"));
        assert_false(options_valid("-w -I "));
        assert_false(options_valid("-D 1=2"));
        assert_false(options_valid("-I \"\""));
        struct include_result r;
        struct include_params params = { bytes_str(""), "-I", root };
        assert_int_equal(include_collect(&params, &r), SP_E_INVAL);
}

/* ---- macros --------------------------------------------------------------------------------- */

static void expect_expansion(const char *defines, const char *text, const char *wanted)
{
        struct macro_table t = { 0 };
        while (*defines) {
                size_t n = strcspn(defines, "\n");
                assert_int_equal(macro_define(&t, bytes_of(defines, n)), 0);
                defines += n + (defines[n] == '\n');
        }
        struct buf out = { 0 };
        unsigned picks;
        assert_int_equal(macro_expand(&t, bytes_str(text), 0, &out, &picks), 0);
        assert_int_equal(buf_put(&out, "", 1), 0);
        assert_string_equal((char *)out.data, wanted);
        buf_fini(&out);
        macro_fini(&t);
}

TEST(macros_expand_as_the_standard_says)
{
        expect_expansion("A B\nB C\nC 1", "A + D", "1 + D");
        expect_expansion("A A B\nB A", "A", "A A");
        expect_expansion("F(x) x + x", "F (1) F", "1 + 1 F");
        expect_expansion("F(x) [x]", "F F(F(1))", "F [[1]]");
        expect_expansion("F(x, y) y x", "F((a, b), c)", "c (a, b)");
        expect_expansion("F() z", "F() F", "z F");
        expect_expansion("S(x) #x", "S( a  \"b\\n\" '\\0' )", "\"a \\\"b\\\\n\\\" '\\\\0'\"");
        expect_expansion("C(a, b) a ## b", "C(x, 1) C(, y) C(z, )", "x1 y z");
        expect_expansion("V(f, ...) f(__VA_ARGS__)", "V(g, 1, 2)", "g(1, 2)");
        expect_expansion("V(f, r...) f(r)", "V(g, 1, 2)", "g(1, 2)");
        /* The examples 6.10.3.5. */
        expect_expansion("x 3\nf(a) f(x * (a))\nz z[0]\ng f\nt(a) a",
                         "f(y+1) + f(f(z)) % t(t(g)(0) + t)(1);",
                         "f(3 * (y+1)) + f(3 * (f(3 * (z[0])))) % f(3 * (0)) + t(1);");
        expect_expansion("str(s) # s\nxstr(s) str(s)\nINCFILE(n) vers ## n", "xstr(INCFILE(2).h)",
                         "\"vers2.h\"");
        expect_expansion(
                "glue(a, b) a ## b\nxglue(a, b) glue(a, b)\nHIGHLOW \"hello\"\nLOW LOW \", world\"",
                "glue(HIGH, LOW); xglue(HIGH, LOW)", "\"hello\"; \"hello\" \", world\"");
        expect_expansion("t(x,y,z) x ## y ## z",
                         "t(1,2,3) t(,4,5) t(6,,7) t(8,9,) t(10,,) t(,11,) t(,,12) t(,,)",
                         "123 45 67 89 10 11 12");
}

TEST(macro_expansion_is_bounded)
{
        struct macro_table t = { 0 };
        char text[64];
        assert_int_equal(macro_define(&t, bytes_str("X0 y")), 0);
        for (int i = 1; i < 40; i++) {
                snprintf(text, sizeof(text), "X%d X%d X%d", i, i - 1, i - 1);
                assert_int_equal(macro_define(&t, bytes_str(text)), 0);
        }
        struct buf out = { 0 };
        unsigned picks;
        assert_int_equal(macro_expand(&t, bytes_str("X39"), 0, &out, &picks), SP_E_LIMIT);
        buf_fini(&out);
        macro_fini(&t);
}

/* ---- out of memory -------------------------------------------------------------------------- */

TEST(each_allocation_may_fail)
{
        file("oom/a.h", "#define H \"b.h\"\n#include H\n");
        file("oom/b.h", "");
        char source[512];
        snprintf(source, sizeof(source), "#include <a.h>\n#include \"%s/oom/b.h\"\n", root);
        struct include_params params = { bytes_str(source), "-I oom -D F(x)=#x -w", root };
        for (unsigned long n = 1;; n++) {
                struct include_result r = { 0 };
                mem_fail_at(n);
                int e = include_collect(&params, &r);
                mem_fail_at(0);
                if (!e) {
                        assert_int_equal(r.files, 2);
                        include_fini(&r);
                        break;
                }
                assert_int_equal(e, SP_E_NOMEM);
                assert_null(r.headers.data);
                assert_true(n < 10000);
        }
}

/* ---- a large program that we did not write -------------------------------------------------- */

TEST(hashcats_kernels_resolve)
{
        static const char folder[] = "/usr/share/hashcat/OpenCL";
        DIR *d = opendir(folder);
        if (!d)
                skip();
        /* Named in a branch for another API. */
        file("hashcat/metal_stdlib", "");
        unsigned kernels = 0, missing = 0;
        for (struct dirent *e; (e = readdir(d));) {
                size_t n = strlen(e->d_name);
                if (e->d_name[0] != 'm' || n < 3 || strcmp(e->d_name + n - 3, ".cl"))
                        continue;
                /* One in sixteen: there are more than a thousand. */
                if (hash_bytes(e->d_name, n) % 16)
                        continue;
                char path[512];
                snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
                FILE *f = fopen(path, "r");
                assert_non_null(f);
                static char text[4 << 20];
                size_t size = fread(text, 1, sizeof(text), f);
                fclose(f);
                struct include_result r = { 0 };
                struct include_params params = {
                        bytes_of(text, size),
                        "-D KERNEL_STATIC -D INCLUDE_PATH=/usr/share/hashcat/OpenCL "
                        "-D XM2S(x)=#x -D M2S(x)=XM2S(x) "
                        "-I hashcat -I /usr/share/hashcat/OpenCL",
                        root,
                };
                assert_int_equal(include_collect(&params, &r), 0);
                if (r.missing || !sent(&r, "/usr/share/hashcat/OpenCL/inc_vendor.h"))
                        print_message("%s: %u missing\n", path, r.missing);
                missing += r.missing;
                kernels++;
                include_fini(&r);
        }
        closedir(d);
        print_message("%u kernels\n", kernels);
        assert_true(kernels > 0);
        assert_int_equal(missing, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(
                        quoted_names_come_from_the_including_file_then_the_folders_in_order),
                cmocka_unit_test(the_source_itself_lies_in_the_current_folder),
                cmocka_unit_test(comments_strings_and_continued_lines_are_respected),
                cmocka_unit_test(both_branches_are_taken_and_missing_files_ignored),
                cmocka_unit_test(each_file_travels_once_and_circles_end),
                cmocka_unit_test(computed_names_are_expanded),
                cmocka_unit_test(all_definitions_of_a_macro_are_tried),
                cmocka_unit_test(absolute_names_become_relative_to_the_root_folder),
                cmocka_unit_test(folders_on_the_way_to_a_file_exist_on_the_other_side),
                cmocka_unit_test(folders_may_have_spaces_and_quotes),
                cmocka_unit_test(folders_may_have_lines),
                cmocka_unit_test(files_are_read_anew_at_each_build),
                cmocka_unit_test(irregular_files_are_not_read),
                cmocka_unit_test(bounds_hold),
                cmocka_unit_test(options_lack_nothing),
                cmocka_unit_test(macros_expand_as_the_standard_says),
                cmocka_unit_test(macro_expansion_is_bounded),
                cmocka_unit_test(each_allocation_may_fail),
                cmocka_unit_test(hashcats_kernels_resolve),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}

/* The generated documents in the repository are what the program prints now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"

static void read_all(FILE *f, struct buf *ret)
{
        char chunk[4096];
        size_t n;
        assert_non_null(f);
        while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
                assert_int_equal(buf_put(ret, chunk, n), 0);
        assert_int_equal(buf_put(ret, "", 1), 0);
}

static void assert_current(const char *command, const char *file)
{
        const char *build = getenv("SPANCL_BUILD_DIR"), *source = getenv("SPANCL_SOURCE_DIR");
        struct buf printed = { 0 }, kept = { 0 };
        char line[1024];
        if (!build || !source)
                skip();
        snprintf(line, sizeof(line), "'%s/bin/spancl' %s --markdown", build, command);
        FILE *f = popen(line, "r");
        read_all(f, &printed);
        assert_int_equal(pclose(f), 0);
        snprintf(line, sizeof(line), "%s/docs/%s", source, file);
        f = fopen(line, "r");
        read_all(f, &kept);
        fclose(f);
        if (strcmp((char *)printed.data, (char *)kept.data))
                fail_msg("docs/%s is old: spancl %s --markdown > docs/%s", file, command, file);
        buf_fini(&printed);
        buf_fini(&kept);
}

static void config_md_is_current(void **state)
{
        (void)state;
        assert_current("config", "CONFIG.md");
}

static void protocol_md_is_current(void **state)
{
        (void)state;
        assert_current("protocol", "PROTOCOL.md");
}

/* docs/SECURITY.md lists exactly the attacks that there are. */
static void security_md_has_all_attacks(void **state)
{
        static const char *const rows[] = {
                "\n| attack | how | kept out by |\n|---|---|---|\n",
#define ATTACK(group, name, judge, wall, sentence) \
        "| " group ": " #name " | " sentence " | " wall " |\n",
#include "sandbox/attacks/attacks.def"
#undef ATTACK
                "\n", "" /* the table ends, and so does the text */
        };
        (void)state;
        const char *source = getenv("SPANCL_SOURCE_DIR");
        struct buf expected = { 0 }, kept = { 0 };
        char path[1024];
        if (!source)
                skip();
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
                assert_int_equal(buf_put(&expected, rows[i], strlen(rows[i]) + !*rows[i]), 0);
        snprintf(path, sizeof(path), "%s/docs/SECURITY.md", source);
        FILE *f = fopen(path, "r");
        read_all(f, &kept);
        fclose(f);
        if (!strstr((char *)kept.data, (char *)expected.data))
                fail_msg(
                        "docs/SECURITY.md is old: its table is what tests/attacks/run --markdown says");
        buf_fini(&expected);
        buf_fini(&kept);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(config_md_is_current),
                cmocka_unit_test(protocol_md_is_current),
                cmocka_unit_test(security_md_has_all_attacks),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

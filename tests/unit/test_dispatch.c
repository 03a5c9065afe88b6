/* The dispatch table: nothing of the registry is missing in it, by name, or in docs/CONFORMANCE.md. */
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/dispatch.h"
#include "base/mem.h"

static const char *const names[] = {
#define CORE(major, minor, name) #name,
#define EXT(extension, name)     #name,
#define WINDOWS(extension, name)
#include "api/dispatch.def"
};

/* Newer headers have slots of later versions, and those of other systems stay empty. */
TEST(every_entry_point_has_its_slot)
{
        size_t filled = 0;
        void *const *slots = (void *const *)(const void *)&spancl_dispatch;
        for (size_t i = 0; i < sizeof(spancl_dispatch) / sizeof(void *); i++)
                filled += slots[i] != NULL;
        assert_int_equal(filled, array_size(names));
}

TEST(every_entry_point_is_found_by_name)
{
        for (size_t i = 0; i < array_size(names); i++)
                assert_non_null(dispatch_find(names[i]));
        assert_null(dispatch_find("clNoSuchFunction"));
        assert_null(dispatch_find(""));
        assert_null(dispatch_find(NULL));
}

TEST(every_entry_point_stands_in_the_conformance_page)
{
        const char *folder = getenv("SPANCL_SOURCE_DIR");
        if (!folder)
                skip();
        char path[4096];
        snprintf(path, sizeof(path), "%s/docs/CONFORMANCE.md", folder);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        static char text[1 << 20];
        text[fread(text, 1, sizeof(text) - 1, f)] = 0;
        fclose(f);
        for (size_t i = 0; i < array_size(names); i++) {
                const char *p = text;
                size_t n = strlen(names[i]);
                /* As a whole word. */
                while ((p = strstr(p, names[i])) && strchr("abcdefghijklmnopqrstuvwxyz"
                                                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ23",
                                                           p[n]))
                        p += n;
                if (!p)
                        print_error("docs/CONFORMANCE.md does not mention %s\n", names[i]);
                assert_non_null(p);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_entry_point_has_its_slot),
                cmocka_unit_test(every_entry_point_is_found_by_name),
                cmocka_unit_test(every_entry_point_stands_in_the_conformance_page),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

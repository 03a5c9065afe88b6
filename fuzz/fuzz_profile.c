/* A file of SPANCL_PROFILE_FILE (cli/profile/ledger.h), and the reports made of it. */
#include "fuzz/target.h"

#include <stdio.h>

#include "cli/profile/html.h"
#include "cli/profile/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char name[] = "a <program>", *command[] = { name, NULL };
        struct ledger_file l;
        struct answers a;
        FILE *from = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
        if (!from)
                return 0;
        int r = ledger_read(from, &l);
        fclose(from);
        if (r < 0)
                return 0;
        answers_find(&l, &a);
        fuzz_check(a.kernel_count <= ANSWERS_TOP && a.transfer_count <= ANSWERS_TOP);
        FILE *null = fopen("/dev/null", "we");
        if (null) {
                report_text(null, &l, &a);
                report_json(null, &l, &a);
                html_write(null, &l, &a, command);
                fclose(null);
        }
        ledger_fini(&l);
        return 0;
}

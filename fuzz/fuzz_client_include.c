/* Build options and a source with #include lines, as an application hands them to clBuildProgram.
 * The input has the options up to the first zero byte, then the source. A server has to accept
 * the headers that the client finds. */
#include "fuzz/target.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/program/include.h"
#include "engine/program/include.h"
#include "proto/option.h"

static char folder[PATH_MAX];

static void put(const char *name, const char *text)
{
        char path[PATH_MAX + 16];
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        FILE *f = fopen(path, "w");
        fuzz_check(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Some files to be found, beside this program: a name of their own at each run would steer the fuzzer
 * elsewhere. They stay. */
static void make_folder(void)
{
        char path[PATH_MAX + 16];
        ssize_t n = readlink("/proc/self/exe", folder, sizeof(folder) - 8);
        fuzz_check(n > 0);
        strcpy(folder + n, ".files");
        snprintf(path, sizeof(path), "%s/sub", folder);
        fuzz_check(mkdir(folder, 0700) == 0 || errno == EEXIST);
        fuzz_check(mkdir(path, 0700) == 0 || errno == EEXIST);
        put("a.h", "#include \"sub/b.h\"\n#define C <b.h>\n#include C\n");
        put("sub/b.h", "#include \"../a.h\"\nint b;\n");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static bool made;
        if (!made)
                make_folder();
        made = true;
        const uint8_t *end = size ? memchr(data, 0, size) : NULL;
        if (!end)
                return 0;
        size_t length = (size_t)(end - data) + 1;
        char *options = malloc(length);
        fuzz_check(options);
        memcpy(options, data, length);

        struct include_result r;
        struct include_params params = {
                .source = bytes_of(data + length, size - length),
                .options = options,
                .folder = folder,
        };
        bool valid = options_valid(options);
        if (valid && include_collect(&params, &r) == 0) {
                fuzz_check(engine_include_valid(bytes_of(r.headers.data, r.headers.size)));
                fuzz_check(r.options.size && !r.options.data[r.options.size - 1]);
                fuzz_check(options_valid((const char *)r.options.data));
                include_fini(&r);
        }
        free(options);
        return 0;
}

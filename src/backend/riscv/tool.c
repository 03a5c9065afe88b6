#include "backend/riscv/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"
#include "os/folder.h"
#include "os/process/tool.h"

enum { PART = 65536, LOG_MAX = 1 << 20 };

bool tool_find(const char *const *names, char ret[PATH_MAX])
{
        const char *path = secure_getenv("PATH");
        for (; path && *names; names++) {
                for (const char *p = path; *p;) {
                        const char *end = strchrnul(p, ':');
                        int n = snprintf(ret, PATH_MAX, "%.*s/%s", (int)(end - p), p, *names);
                        if (end > p && n < PATH_MAX && file_is_executable(ret))
                                return true;
                        p = *end ? end + 1 : end;
                }
        }
        ret[0] = 0;
        return false;
}

int tool_folder(const char *base, char ret[PATH_MAX])
{
        const char *tmp = secure_getenv("TMPDIR");
        if (!base)
                base = tmp && *tmp == '/' ? tmp : "/tmp";
        int n = snprintf(ret, PATH_MAX, "%s/spancl-riscv-XXXXXX", base);
        return n < PATH_MAX && folder_make_unique(ret) ? 0 : SP_E_NOENT;
}

static int join(char path[PATH_MAX], const char *folder, const char *name)
{
        return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX ? 0 : SP_E_NOENT;
}

int tool_read(const char *folder, const char *name, struct buf *ret)
{
        char path[PATH_MAX];
        int r = join(path, folder, name);
        FILE *f = r < 0 ? NULL : fopen(path, "re");
        if (!f)
                return SP_E_NOENT;
        size_t n = 1;
        while (!r && n) {
                r = buf_reserve(ret, PART);
                n = r < 0 ? 0 : fread(ret->data + ret->size, 1, PART, f);
                ret->size += n;
        }
        fclose(f);
        return r;
}

int tool_write(const char *folder, const char *name, const void *data, size_t size)
{
        char path[PATH_MAX];
        int r = join(path, folder, name);
        FILE *f = r < 0 ? NULL : fopen(path, "we");
        if (!f)
                return SP_E_NOENT;
        bool good = fwrite(data, 1, size, f) == size;
        good &= fclose(f) == 0;
        return good ? 0 : SP_E_NOENT;
}

int tool_run(const char *folder, char *const *argv, struct buf *log)
{
        char out[PATH_MAX];
        struct buf text = { 0 };
        int r = join(out, folder, "messages");
        if (r < 0)
                return r;
        r = tool_execute(folder, out, argv);
        if (tool_read(folder, "messages", &text) == 0 &&
            buf_put(log, text.data, text.size < LOG_MAX ? text.size : LOG_MAX) < 0)
                r = SP_E_NOMEM;
        buf_fini(&text);
        return r;
}

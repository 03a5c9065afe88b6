#include "engine/program/include.h"

#include <limits.h>
#include <stdio.h>

#include "base/mem.h"
#include "os/file.h"
#include "os/folder.h"
#include "proto/info.h"
#include "proto/option.h"

/* Is the path absolute, with neither "." nor ".." nor empty names? Such a path stays below the
 * root. */
static bool path_valid(struct bytes path)
{
        const char *p = path.data;
        if (path.size < 2 || path.size >= PATH_MAX || p[0] != '/' || memchr(p, '\0', path.size))
                return false;
        for (size_t i = 1; i <= path.size;) {
                const char *slash = memchr(p + i, '/', path.size - i);
                size_t n = slash ? (size_t)(slash - p) - i : path.size - i;
                if (!n || n > NAME_MAX || (n == 1 && p[i] == '.') ||
                    (n == 2 && p[i] == '.' && p[i + 1] == '.'))
                        return false;
                i += n + 1;
        }
        return true;
}

bool engine_include_valid(struct bytes headers)
{
        struct info_entry e;
        struct bytes path, text;
        while (info_next(&headers, &e))
                if (e.key != INFO_HEADER || info_check(e.value) < 0 ||
                    !info_find(e.value, INFO_HEADER_PATH, &path) ||
                    !info_find(e.value, INFO_HEADER_TEXT, &text) || !path_valid(path))
                        return false;
        return true;
}

static int write_file(const char *path, struct bytes text)
{
        int fd = file_create(path);
        if (fd < 0)
                return SP_E_LIMIT;
        bool all = file_write_all(fd, text.data, text.size);
        file_close(fd);
        return all ? 0 : SP_E_LIMIT;
}

static int write_header(const char *root, struct bytes header)
{
        struct bytes path, text;
        if (!info_find(header, INFO_HEADER_PATH, &path) ||
            !info_find(header, INFO_HEADER_TEXT, &text))
                return SP_E_INVAL;
        struct buf full = { 0 };
        int r = buf_put(&full, root, strlen(root));
        if (!r)
                r = buf_put(&full, path.data, path.size);
        if (!r)
                r = buf_put(&full, "", 1);
        if (!r) {
                char *name = strrchr((char *)full.data, '/');
                *name = '\0';
                r = folder_make((const char *)full.data);
                *name = '/';
        }
        if (!r)
                r = write_file((const char *)full.data, text);
        buf_fini(&full);
        return r;
}

int engine_include_write(const char *root, struct bytes headers)
{
        int r = folder_make(root);
        struct info_entry e;
        while (!r && info_next(&headers, &e))
                r = write_header(root, e.value);
        return r;
}

/* ---- options -------------------------------------------------------------------------------- */

/* Append `path` without ".", ".." and empty names, with a "/" in front of each remaining name. */
static int put_normal(struct buf *b, const char *path)
{
        size_t start = b->size;
        while (*path) {
                size_t n = strcspn(path, "/");
                if (n == 2 && !memcmp(path, "..", 2)) {
                        while (b->size > start && b->data[--b->size] != '/') {
                        }
                } else if (n && !(n == 1 && *path == '.')) {
                        int r = buf_put(b, "/", 1);
                        if (!r)
                                r = buf_put(b, path, n);
                        if (r < 0)
                                return r;
                }
                path += n + (path[n] == '/');
        }
        return 0;
}

/* Make a link to `folder` whose name every compiler understands: some do not support quotes. */
static int put_link(struct buf *out, const char *root, const char *folder, unsigned number)
{
        char name[32];
        size_t start = out->size;
        int n = snprintf(name, sizeof(name), "/.folder-%u", number);
        int r = buf_put(out, root, strlen(root));
        if (!r)
                r = buf_put(out, name, (size_t)n + 1);
        if (r < 0)
                return r;
        out->size--;
        return file_link(folder, (const char *)out->data + start) ? 0 : SP_E_LIMIT;
}

/* Append the option for a folder of the client. */
static int put_folder(struct buf *out, const char *root, const char *folder, unsigned number)
{
        struct buf full = { 0 };
        int r = buf_put(&full, root, strlen(root));
        if (!r)
                r = put_normal(&full, folder);
        if (!r)
                r = buf_put(&full, "", 1);
        if (!r) {
                /* If the folder can't be made, the compiler finds nothing there. */
                (void)!folder_make((const char *)full.data);
                r = buf_put(out, "-I ", 3);
        }
        const char *path = (const char *)full.data;
        if (!r)
                r = strpbrk(path, OPTION_SPACES "\"'\\") ? put_link(out, root, path, number)
                                                         : buf_put(out, path, strlen(path));
        buf_fini(&full);
        return r;
}

int engine_include_rewrite(const char *root, const char *options, char **ret)
{
        struct buf out = { 0 }, word = { 0 };
        const char *begin, *end;
        unsigned folders = 0;
        int r;
        while ((r = option_next(&options, &word, &begin, &end)) > 0) {
                r = out.size ? buf_put(&out, " ", 1) : 0;
                if (r < 0)
                        break;
                if (option_with_argument(&word) != 'I') {
                        r = buf_put(&out, begin, (size_t)(end - begin));
                } else {
                        const char *folder = option_argument(&options, &word, &end, &r);
                        if (folder)
                                r = put_folder(&out, root, folder, folders++);
                }
                if (r < 0)
                        break;
        }
        if (!r)
                r = buf_put(&out, "", 1);
        buf_fini(&word);
        if (r < 0) {
                buf_fini(&out);
                return r;
        }
        *ret = (char *)out.data;
        return 0;
}

void engine_include_remove(const char *root)
{
        folder_remove(root);
}

#include "daemon/system/tree.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "os/folder.h"
#include "os/windows/wide.h"

#include <windows.h>

/* A file below the folder. */
struct leaf {
        uint64_t written; /* in units of 100 ns since 1601 */
        uint64_t size;
        wchar_t *path;
};

struct walk {
        uint64_t limit_bytes, least_bytes, bytes;
        bool over;        /* more than limit_bytes, or too deep */
        struct leaf *all; /* NULL: only counted */
        size_t count, room;
};

void tree_remove(const char *path)
{
        if (*path)
                folder_remove(path);
}

static bool keep(struct walk *w, const wchar_t *path, const WIN32_FIND_DATAW *d, uint64_t size)
{
        if (w->count == w->room) {
                size_t room = w->room ? 2 * w->room : 64;
                struct leaf *all = realloc(w->all, room * sizeof(*all));
                if (!all)
                        return false;
                w->all = all;
                w->room = room;
        }
        wchar_t *copy = _wcsdup(path);
        if (copy)
                w->all[w->count++] =
                        (struct leaf){ .written = (uint64_t)d->ftLastWriteTime.dwHighDateTime
                                                          << 32 |
                                                  d->ftLastWriteTime.dwLowDateTime,
                                       .size = size,
                                       .path = copy };
        return copy;
}

/* Walk the folder `path`, whose buffer has room for the names below. `list`: also list the files. No link is followed
 * (reparse points). */
static void walk(struct walk *w, wchar_t path[WIDE_MAX], unsigned depth, bool list)
{
        WIN32_FIND_DATAW d;
        size_t n = wcslen(path);
        if (depth > TREE_DEPTH_MEASURED || n + 2 >= WIDE_MAX) {
                w->over = true;
                return;
        }
        wcscpy(path + n, L"\\*");
        HANDLE h = FindFirstFileW(path, &d);
        path[n] = 0;
        if (h == INVALID_HANDLE_VALUE)
                return;
        do {
                if (!wcscmp(d.cFileName, L".") || !wcscmp(d.cFileName, L".."))
                        continue;
                uint64_t size = (uint64_t)d.nFileSizeHigh << 32 | d.nFileSizeLow;
                bool folder = d.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY &&
                              !(d.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT);
                w->bytes += size > w->least_bytes ? size : w->least_bytes;
                if (w->bytes > w->limit_bytes)
                        w->over = true;
                if (n + 1 + wcslen(d.cFileName) >= WIDE_MAX)
                        continue;
                path[n] = L'\\';
                wcscpy(path + n + 1, d.cFileName);
                if (folder)
                        walk(w, path, depth + 1, list);
                else if (list && !keep(w, path, &d, size))
                        w->over = true;
                path[n] = 0;
        } while (!w->over && FindNextFileW(h, &d));
        FindClose(h);
}

static int by_age(const void *a, const void *b)
{
        uint64_t x = ((const struct leaf *)a)->written, y = ((const struct leaf *)b)->written;
        return x < y ? -1 : x > y;
}

uint64_t tree_trim(const char *path, uint64_t limit_bytes, unsigned grace_s)
{
        struct walk w = { .limit_bytes = UINT64_MAX };
        wchar_t wide[WIDE_MAX];
        FILETIME now;
        uint64_t removed = 0;
        if (!wide_path(path, wide))
                return 0;
        walk(&w, wide, 0, true);
        GetSystemTimeAsFileTime(&now);
        uint64_t now_100ns = (uint64_t)now.dwHighDateTime << 32 | now.dwLowDateTime;
        uint64_t grace_100ns = (uint64_t)grace_s * 10000000;
        for (size_t i = 0; i < w.count; i++)
                if (w.all[i].written > now_100ns)
                        w.all[i].written = 0;
        if (w.count)
                qsort(w.all, w.count, sizeof(w.all[0]), by_age);
        for (size_t i = 0; i < w.count; i++) {
                const struct leaf *l = &w.all[i];
                if (w.bytes - removed > limit_bytes && l->written + grace_100ns <= now_100ns &&
                    DeleteFileW(l->path))
                        removed += l->size;
                free(l->path);
        }
        free(w.all);
        return removed;
}

uint64_t tree_measure(const char *path, uint64_t limit_bytes, uint64_t least_bytes)
{
        struct walk w = { .limit_bytes = limit_bytes, .least_bytes = least_bytes };
        wchar_t wide[WIDE_MAX];
        if (!wide_path(path, wide))
                return 0;
        walk(&w, wide, 0, false);
        return w.over ? UINT64_MAX : w.bytes;
}

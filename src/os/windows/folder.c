#include "os/folder.h"

#include <direct.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"
#include "os/file_info.h"
#include "os/random.h"
#include "os/windows/access.h"
#include "os/windows/descriptor.h"
#include "os/windows/wide.h"

#include <windows.h>

bool folder_make_new(const char *path)
{
        wchar_t wide[WIDE_MAX];
        SECURITY_ATTRIBUTES *private = access_private();
        return private && wide_path(path, wide) &&
               (CreateDirectoryW(wide, private) || descriptor_fail_system() == 0);
}

int folder_make(const char *path)
{
        char part[PATH_MAX];
        size_t n = strlen(path);
        if (n >= sizeof(part)) {
                errno = ENAMETOOLONG;
                return SP_E_LIMIT;
        }
        memcpy(part, path, n + 1);
        for (size_t i = 1; i <= n; i++) {
                if (path[i] && path[i] != '/')
                        continue;
                part[i] = 0;
                if (part[i - 1] != ':' && !folder_exists(part) && !folder_make_new(part) &&
                    errno != EEXIST)
                        return SP_E_LIMIT;
                part[i] = path[i];
        }
        return 0;
}

bool folder_make_unique(char *path)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
        enum { RANDOM = 6, ATTEMPTS = 100 };
        size_t n = strlen(path);
        for (int i = 0; n >= RANDOM && i < ATTEMPTS; i++) {
                unsigned char bytes[RANDOM];
                if (!random_fill(bytes, sizeof(bytes)))
                        return false;
                for (size_t k = 0; k < RANDOM; k++)
                        path[n - RANDOM + k] = letters[bytes[k] % 32];
                if (folder_make_new(path))
                        return true;
                if (errno != EEXIST)
                        return false;
        }
        return false;
}

/* Call `each` for the entries until it returns non-zero. */
static int entries(const char *path,
                   int (*each)(void *user, const char *name, const WIN32_FIND_DATAW *d), void *user)
{
        wchar_t pattern[WIDE_MAX + 2];
        WIN32_FIND_DATAW d;
        char name[NAME_MAX * 3 + 1];
        if (!wide_path(path, pattern))
                return SP_E_NOENT;
        wcscat(pattern, L"\\*");
        HANDLE h = FindFirstFileW(pattern, &d);
        if (h == INVALID_HANDLE_VALUE)
                return SP_E_NOENT;
        int r = 0;
        do
                if (wide_text(d.cFileName, name, sizeof(name)))
                        r = each(user, name, &d);
        while (!r && FindNextFileW(h, &d));
        FindClose(h);
        return r;
}

static int remove_entry(void *user, const char *name, const WIN32_FIND_DATAW *d)
{
        char path[PATH_MAX];
        if (!strcmp(name, ".") || !strcmp(name, "..") ||
            snprintf(path, sizeof(path), "%s/%s", (const char *)user, name) >= PATH_MAX)
                return 0;
        if (d->dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY &&
            !(d->dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT))
                folder_remove(path);
        else
                (void)file_unlink(path);
        return 0;
}

void folder_remove(const char *path)
{
        wchar_t wide[WIDE_MAX];
        if (!wide_path(path, wide))
                return;
        DWORD a = GetFileAttributesW(wide);
        if (a != INVALID_FILE_ATTRIBUTES && !(a & FILE_ATTRIBUTE_REPARSE_POINT))
                (void)entries(path, remove_entry, (void *)(uintptr_t)path);
        (void)RemoveDirectoryW(wide);
}

bool folder_is_read_only(const char *path)
{
        (void)path;
        return false;
}

bool folder_room(const char *path, uint64_t *ret_bytes, bool *ret_names)
{
        wchar_t wide[WIDE_MAX];
        ULARGE_INTEGER room;
        if (!wide_path(path, wide))
                return false;
        if (!GetDiskFreeSpaceExW(wide, &room, NULL, NULL))
                return descriptor_fail_system() == 0;
        *ret_bytes = room.QuadPart;
        *ret_names = true;
        return true;
}

bool folder_takes_files(const char *path)
{
        return folder_exists(path);
}

bool folder_exists(const char *path)
{
        wchar_t wide[WIDE_MAX];
        DWORD a = wide_path(path, wide) ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
        return a != INVALID_FILE_ATTRIBUTES && a & FILE_ATTRIBUTE_DIRECTORY;
}

char *folder_current(void)
{
        wchar_t wide[WIDE_MAX];
        char text[PATH_MAX];
        DWORD n = GetCurrentDirectoryW(WIDE_MAX, wide);
        return n && n < WIDE_MAX && wide_path_text(wide, text, sizeof(text)) ? _strdup(text) : NULL;
}

struct walk {
        const char *folder;
        int (*file)(void *user, const struct folder_file *f);
        void (*name)(void *user, const char *name);
        void *user;
};

static int take_file(void *user, const char *name, const WIN32_FIND_DATAW *d)
{
        const struct walk *w = user;
        char path[PATH_MAX];
        struct file_info info;
        if (d->dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT) ||
            snprintf(path, sizeof(path), "%s/%s", w->folder, name) >= PATH_MAX ||
            !file_info(path, false, &info))
                return 0;
        const struct folder_file f = { .name = name,
                                       .size = info.size,
                                       .changed_ns = info.changed_ns };
        return w->file(w->user, &f);
}

int folder_files(const char *path, int (*each)(void *user, const struct folder_file *f), void *user)
{
        struct walk w = { .folder = path, .file = each, .user = user };
        return entries(path, take_file, &w);
}

static int take_name(void *user, const char *name, const WIN32_FIND_DATAW *d)
{
        const struct walk *w = user;
        (void)d;
        w->name(w->user, name);
        return 0;
}

int folder_names(const char *path, void (*each)(void *user, const char *name), void *user)
{
        struct walk w = { .name = each, .user = user };
        return entries(path, take_name, &w);
}

/* Locks a file in the folder, because a folder itself can't be locked. */
int folder_lock(const char *path, unsigned ms)
{
        enum { EACH_MS = 10 };
        char file[PATH_MAX];
        if (snprintf(file, sizeof(file), "%s/.lock", path) >= PATH_MAX) {
                errno = ENAMETOOLONG;
                return -1;
        }
        int fd = file_open_both(file, true);
        for (unsigned waited = 0; fd >= 0 && !file_lock_bytes(fd, 0, 1); waited += EACH_MS) {
                if (waited >= ms) {
                        (void)file_close(fd);
                        errno = EWOULDBLOCK;
                        return -1;
                }
                Sleep(EACH_MS);
        }
        return fd;
}

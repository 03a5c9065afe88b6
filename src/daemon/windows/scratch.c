/* Scratch folders are in the user's folder for temporary files. Beside each is a file ".lock", which the system removes
 * when its last handle is closed. A folder without such a file was left behind by a killed process. */
#include "daemon/system/scratch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/system/tree.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/ownership.h"
#include "os/random.h"
#include "os/windows/access.h"
#include "os/windows/descriptor.h"
#include "os/windows/wide.h"

#include <windows.h>

#define PREFIX "spancld."
#define LOCK   ".lock"

enum { TRIES = 16, RANDOM = 8 };

static bool base_folder(char ret[SCRATCH_PATH_MAX])
{
        wchar_t wide[MAX_PATH + 1];
        if (!GetTempPathW(MAX_PATH, wide) || !wide_path_text(wide, ret, SCRATCH_PATH_MAX))
                return false;
        size_t n = strlen(ret);
        if (n && ret[n - 1] == '/')
                ret[n - 1] = 0;
        return true;
}

/* Make the file beside the folder `path`. -1: there is one, or it can't be made. */
static int make_lock(const char *path)
{
        char name[SCRATCH_PATH_MAX + sizeof(LOCK)];
        wchar_t wide[WIDE_MAX];
        snprintf(name, sizeof(name), "%s" LOCK, path);
        SECURITY_ATTRIBUTES *private = access_private();
        if (!private || !wide_path(name, wide))
                return -1;
        HANDLE h = CreateFileW(
                wide, GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                private, CREATE_NEW, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
        return descriptor_of_file(h);
}

int scratch_make(char path[SCRATCH_PATH_MAX], int *ret_lock)
{
        char base[SCRATCH_PATH_MAX];
        unsigned char bytes[RANDOM];
        if (!base_folder(base))
                return SP_E_INVAL;
        for (int i = 0; i < TRIES; i++) {
                if (!random_fill(bytes, sizeof(bytes)))
                        return SP_E_LIMIT;
                int n = snprintf(path, SCRATCH_PATH_MAX, "%s/" PREFIX, base);
                if (n < 0 || n + 2 * RANDOM >= SCRATCH_PATH_MAX)
                        break;
                for (int k = 0; k < RANDOM; k++)
                        n += snprintf(path + n, SCRATCH_PATH_MAX - (size_t)n, "%02x", bytes[k]);
                int lock = make_lock(path);
                if (lock >= 0 && folder_make_new(path)) {
                        *ret_lock = lock;
                        return 0;
                }
                if (lock >= 0)
                        (void)file_close(lock);
        }
        path[0] = 0;
        return SP_E_INVAL;
}

/* This system has no Unix sockets. */
int scratch_socket(const char *path, const char *name, struct socket_address *ret)
{
        (void)path, (void)name, (void)ret;
        errno = EAFNOSUPPORT;
        return -1;
}

/* Other users' folders stay: their owner could change a folder into a link while this process removes it. */
static void sweep_one(void *base, const char *name)
{
        enum ownership o;
        unsigned user;
        char path[SCRATCH_PATH_MAX + MAX_PATH], lock[SCRATCH_PATH_MAX + MAX_PATH + sizeof(LOCK)];
        if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || strstr(name, LOCK))
                return;
        snprintf(path, sizeof(path), "%s/%s", (const char *)base, name);
        snprintf(lock, sizeof(lock), "%s" LOCK, path);
        if (!file_exists(lock) && ownership_of_folder(path, &o, &user) && o == OWNERSHIP_PRIVATE)
                tree_remove(path);
}

void scratch_sweep(void)
{
        char base[SCRATCH_PATH_MAX];
        if (base_folder(base))
                (void)folder_names(base, sweep_one, base);
}

#include "engine/transfer/upload_store.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/lock.h"

#define LOG  "uploads"
#define TEMP ".new-"

enum {
        NAME_LENGTH = 2 * BLAKE2B_SIZE,
        ROOM_SHARE = 8,   /* the store takes this part of the free space at most */
        SLACK_SHARE = 16, /* a trim removes this part of the limit more than it must */
};

/* Age after which an unfinished file has no owner. */
#define TEMP_AGE_NS (3600 * 1000000000ull)

struct upload_store {
        char *folder;
        struct lock lock; /* guards the members below; a leaf */
        uint64_t limit;
        uint64_t total; /* bytes of all files, as the last look at them showed, and stored since */
        uint64_t fresh; /* bytes stored since that look */
        uint64_t stored, found; /* bytes of this session */
};

/* ---- files ---------------------------------------------------------------------------------- */

static bool file_name(const struct upload_store *s, const struct upload_name *name,
                      char path[PATH_MAX])
{
        char text[NAME_LENGTH + 1];
        for (size_t i = 0; i < BLAKE2B_SIZE; i++)
                snprintf(text + 2 * i, 3, "%02x", name->bytes[i]);
        int n = snprintf(path, PATH_MAX, "%s/%s", s->folder, text);
        return n > 0 && n < PATH_MAX;
}

static bool is_named(struct bytes chunk, const struct upload_name *name)
{
        uint8_t digest[BLAKE2B_SIZE];
        blake2bp_of(chunk, digest);
        return !memcmp(digest, name->bytes, sizeof(digest));
}

struct found {
        char name[NAME_LENGTH + 1];
        uint64_t size, used_ns;
};

/* A look at the folder. */
struct listing {
        const struct upload_store *store;
        struct buf all; /* struct found */
        uint64_t total;
};

static void remove_file(const struct upload_store *s, const char *name)
{
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s/%s", s->folder, name);
        if (n > 0 && n < PATH_MAX)
                file_unlink(path);
}

/* List a file, or remove an old temporary one. */
static int list_file(void *user, const struct folder_file *file)
{
        struct listing *l = user;
        struct found f = { .size = file->size, .used_ns = file->changed_ns };
        if (!strncmp(file->name, TEMP, strlen(TEMP)) &&
            file->changed_ns + TEMP_AGE_NS < clock_wall_ns())
                remove_file(l->store, file->name);
        if (strlen(file->name) != NAME_LENGTH)
                return 0;
        memcpy(f.name, file->name, sizeof(f.name));
        l->total += f.size;
        return buf_put(&l->all, &f, sizeof(f));
}

static int compare_age(const void *a, const void *b)
{
        const struct found *x = a, *y = b;
        return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

/* Look at the folder, and remove the least recently used files beyond the limit. */
static void trim(struct upload_store *s) REQUIRES(s->lock)
{
        struct listing l = { .store = s };
        int r = folder_files(s->folder, list_file, &l);
        struct found *f = (struct found *)(void *)l.all.data;
        size_t count = r ? 0 : l.all.size / sizeof(*f);
        uint64_t most = s->limit - s->limit / SLACK_SHARE;
        if (l.total > s->limit && count) {
                qsort(f, count, sizeof(*f), compare_age);
                for (size_t i = 0; i < count && l.total > most; i++) {
                        remove_file(s, f[i].name);
                        l.total -= f[i].size;
                }
        }
        buf_fini(&l.all);
        s->total = l.total;
        s->fresh = 0;
}

/* ---- the store ------------------------------------------------------------------------------ */

int upload_store_new(const char *folder, uint64_t limit_bytes, struct upload_store **ret)
{
        struct upload_store *s = mem_zalloc(sizeof(*s));
        if (!s)
                return SP_E_NOMEM;
        lock_init(&s->lock);
        s->folder = mem_strdup(folder);
        if (!s->folder) {
                upload_store_free(s);
                return SP_E_NOMEM;
        }
        s->limit = limit_bytes;
        *ret = s;
        return 0;
}

struct upload_store *upload_store_free(struct upload_store *s)
{
        if (!s)
                return NULL;
        lock_fini(&s->lock);
        mem_free(s->folder);
        mem_free(s);
        return NULL;
}

bool upload_store_get(struct upload_store *s, const struct upload_name *name, void *ret,
                      size_t size)
{
        char path[PATH_MAX];
        uint64_t there = 0;
        int fd = file_name(s, name, path) ? file_open(path, false, &there) : -1;
        if (fd < 0)
                return false;
        bool good = there == size && file_read_all(fd, ret, size) &&
                    is_named(bytes_of(ret, size), name);
        if (good)
                file_touch(fd); /* used now */
        file_close(fd);
        if (!good) {
                log_warn(LOG, "%s is damaged and removed", path);
                file_unlink(path);
                return false;
        }
        lock_take(&s->lock);
        s->found += size;
        lock_release(&s->lock);
        return true;
}

/* The first chunk is to be stored: make the folder, and find out how much it may take. */
static bool open_folder(struct upload_store *s) REQUIRES(s->lock)
{
        uint64_t room;
        bool names;
        if (folder_make(s->folder) < 0 || !folder_room(s->folder, &room, &names)) {
                log_info(LOG, "%s can't be used: data that the client sends is not kept",
                         s->folder);
                return false;
        }
        trim(s);
        uint64_t most = (s->total + room) / ROOM_SHARE;
        if (s->limit > most)
                s->limit = most;
        return true;
}

/* Make room for a chunk. False: do not store it. */
static bool admit(struct upload_store *s, size_t size)
{
        lock_take(&s->lock);
        bool fits = size <= s->limit && s->stored <= s->limit + s->found;
        if (fits && !s->stored)
                fits = open_folder(s) && size <= s->limit;
        if (fits) {
                s->stored += size;
                s->total += size;
                s->fresh += size;
                if (s->total > s->limit || s->fresh > s->limit / SLACK_SHARE)
                        trim(s);
        }
        lock_release(&s->lock);
        return fits;
}

static bool write_file(int fd, struct bytes chunk)
{
        bool good = file_write_all(fd, chunk.data, chunk.size);
        return file_close(fd) && good;
}

void upload_store_put(struct upload_store *s, const struct upload_name *name, struct bytes chunk)
{
        char path[PATH_MAX], temp[PATH_MAX];
        if (!is_named(chunk, name) || !file_name(s, name, path) || !admit(s, chunk.size))
                return;
        int n = snprintf(temp, sizeof(temp), "%s/" TEMP "XXXXXX", s->folder);
        int fd = n > 0 && n < PATH_MAX ? file_create_unique(temp) : -1;
        if (fd >= 0 && write_file(fd, chunk) && file_move(temp, path, true))
                return;
        log_info(LOG, "can't write to %s: %s", s->folder, strerror(errno));
        if (fd >= 0)
                file_unlink(temp);
        lock_take(&s->lock);
        s->limit = 0; /* the disk is full or broken: nothing more is tried in this session */
        lock_release(&s->lock);
}

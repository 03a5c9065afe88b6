#include "engine/program/cache.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/lock.h"

#define LOG    "cache"
#define SUFFIX ".program"
#define TEMP   ".new-"

enum {
        HEADER_SIZE = 8 + 2 * BLAKE2B_SIZE + 8,
        MEMORY_MAX = 32 << 20, /* bytes kept in this process */
        VALUE_MAX = 256 << 20,
};

/* Age after which an unfinished file has no owner. */
#define TEMP_AGE_NS (3600 * 1000000000ull)

static const char magic[] = "SPANCLC1";

/* One value in memory. */
struct entry {
        struct list link;
        struct cache_key key;
        struct buf value;
};

struct cache {
        char *folder;
        _Atomic uint64_t limit;
        struct lock lock;    /* guards what follows; a leaf */
        struct list entries; /* used last: first */
        size_t bytes;
};

int cache_new(const char *folder, uint64_t limit_bytes, struct cache **ret)
{
        struct cache *c = mem_zalloc(sizeof(*c));
        if (!c)
                return SP_E_NOMEM;
        list_init(&c->entries);
        lock_init(&c->lock);
        c->limit = limit_bytes;
        c->folder = mem_strdup(folder);
        if (!c->folder) {
                cache_free(c);
                return SP_E_NOMEM;
        }
        *ret = c;
        return 0;
}

static void entry_free(struct cache *c, struct entry *e) REQUIRES(c->lock)
{
        list_remove(&e->link);
        c->bytes -= e->value.size;
        buf_fini(&e->value);
        mem_free(e);
}

struct cache *cache_free(struct cache *c) LOCK_UNCHECKED
{
        if (!c)
                return NULL;
        while (!list_empty(&c->entries))
                entry_free(c, list_entry(c->entries.next, struct entry, link));
        lock_fini(&c->lock);
        mem_free(c->folder);
        mem_free(c);
        return NULL;
}

/* ---- in memory ------------------------------------------------------------------------------ */

static struct entry *entry_find(struct cache *c, const struct cache_key *key) REQUIRES(c->lock)
{
        list_each(e, &c->entries, struct entry, link)
        {
                if (!memcmp(&e->key, key, sizeof(*key)))
                        return e;
        }
        return NULL;
}

static void remember(struct cache *c, const struct cache_key *key, struct bytes value)
{
        if (value.size > MEMORY_MAX / 4)
                return;
        lock_take(&c->lock);
        struct entry *e = entry_find(c, key);
        if (e)
                entry_free(c, e);
        e = mem_zalloc(sizeof(*e));
        if (e && buf_put(&e->value, value.data, value.size) == 0) {
                e->key = *key;
                list_init(&e->link);
                list_append(c->entries.next, &e->link);
                c->bytes += value.size;
                e = NULL;
        }
        mem_free(e);
        while (c->bytes > MEMORY_MAX)
                entry_free(c, list_entry(c->entries.prev, struct entry, link));
        lock_release(&c->lock);
}

static int recall(struct cache *c, const struct cache_key *key, struct buf *ret)
{
        lock_take(&c->lock);
        struct entry *e = entry_find(c, key);
        int r = e ? buf_put(ret, e->value.data, e->value.size) : SP_E_NOENT;
        if (e) {
                list_remove(&e->link);
                list_append(c->entries.next, &e->link);
        }
        lock_release(&c->lock);
        return r;
}

/* ---- files ---------------------------------------------------------------------------------- */

static bool file_name(const struct cache *c, const struct cache_key *key, char path[PATH_MAX])
{
        char name[2 * BLAKE2B_SIZE + 1];
        for (size_t i = 0; i < BLAKE2B_SIZE; i++)
                snprintf(name + 2 * i, 3, "%02x", key->bytes[i]);
        int n = snprintf(path, PATH_MAX, "%s/%s" SUFFIX, c->folder, name);
        return n > 0 && n < PATH_MAX;
}

/* Read a file of the cache. SP_E_INVAL: it is damaged, or has another key than its name. */
static int value_read(int fd, uint64_t file_size, const struct cache_key *key, struct buf *ret)
{
        uint8_t header[HEADER_SIZE], sum[BLAKE2B_SIZE];
        if (file_size < HEADER_SIZE || file_size - HEADER_SIZE > VALUE_MAX ||
            !file_read_all(fd, header, sizeof(header)))
                return SP_E_INVAL;
        size_t size = (size_t)file_size - HEADER_SIZE;
        if (memcmp(header, magic, 8) || memcmp(header + 8, key, sizeof(*key)) ||
            bytes_get_u64(header + 8 + 2 * BLAKE2B_SIZE) != size)
                return SP_E_INVAL;
        int r = buf_reserve(ret, size);
        if (r < 0)
                return r;
        if (!file_read_all(fd, ret->data + ret->size, size))
                return SP_E_INVAL;
        blake2b_of(bytes_of(ret->data + ret->size, size), sum);
        if (memcmp(sum, header + 8 + BLAKE2B_SIZE, sizeof(sum)) != 0)
                return SP_E_INVAL;
        ret->size += size;
        return 0;
}

int cache_get(struct cache *c, const struct cache_key *key, struct buf *ret)
{
        int r = recall(c, key, ret);
        if (r != SP_E_NOENT)
                return r;
        char path[PATH_MAX];
        uint64_t size;
        int fd = file_name(c, key, path) ? file_open(path, false, &size) : -1;
        if (fd < 0)
                return SP_E_NOENT;
        size_t before = ret->size;
        r = value_read(fd, size, key, ret);
        if (!r)
                file_touch(fd); /* used now */
        file_close(fd);
        if (r == SP_E_INVAL) {
                log_warn(LOG, "%s is damaged and removed", path);
                (void)file_unlink(path);
                return SP_E_NOENT;
        }
        if (!r)
                remember(c, key, bytes_of(ret->data + before, ret->size - before));
        return r;
}

static int value_write(int fd, const struct cache_key *key, struct bytes value)
{
        uint8_t header[HEADER_SIZE];
        memcpy(header, magic, 8);
        memcpy(header + 8, key, sizeof(*key));
        blake2b_of(value, header + 8 + BLAKE2B_SIZE);
        bytes_put_u64(header + 8 + 2 * BLAKE2B_SIZE, value.size);
        return file_write_all(fd, header, sizeof(header)) &&
                               file_write_all(fd, value.data, value.size)
                       ? 0
                       : SP_E_LIMIT;
}

/* ---- the bound ------------------------------------------------------------------------------ */

struct found {
        char name[2 * BLAKE2B_SIZE + sizeof(SUFFIX)];
        uint64_t size;
        uint64_t used_ns;
};

/* The folder's entries. */
struct listing {
        const struct cache *cache;
        struct buf all; /* struct found */
        uint64_t total; /* their bytes */
};

static int compare_age(const void *a, const void *b)
{
        const struct found *x = a, *y = b;
        return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

static bool remove_file(const struct cache *c, const char *name)
{
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s/%s", c->folder, name);
        return n < PATH_MAX && (file_unlink(path) || errno == ENOENT);
}

/* List an entry, or remove an old temporary file. */
static int list_file(void *user, const struct folder_file *file)
{
        struct listing *l = user;
        struct found f = { .size = file->size, .used_ns = file->changed_ns };
        size_t n = strlen(file->name);
        if (!strncmp(file->name, TEMP, strlen(TEMP))) {
                if (file->changed_ns + TEMP_AGE_NS < clock_wall_ns())
                        (void)remove_file(l->cache, file->name);
                return 0;
        }
        if (n + 1 != sizeof(f.name) || strcmp(file->name + 2 * BLAKE2B_SIZE, SUFFIX) != 0)
                return 0;
        memcpy(f.name, file->name, n);
        l->total += f.size;
        return buf_put(&l->all, &f, sizeof(f));
}

/* Return true if all found room. */
static bool trim(struct cache *c)
{
        struct listing l = { .cache = c };
        bool fits = true;
        if (folder_files(c->folder, list_file, &l) == 0 && l.total > c->limit) {
                struct found *f = (struct found *)(void *)l.all.data;
                size_t count = l.all.size / sizeof(*f);
                fits = false;
                qsort(f, count, sizeof(*f), compare_age);
                for (size_t i = 0; i < count && l.total > c->limit; i++)
                        if (remove_file(c, f[i].name))
                                l.total -= f[i].size;
        }
        buf_fini(&l.all);
        return fits;
}

/* ---- changing ------------------------------------------------------------------------------- */

void cache_limit(struct cache *c, uint64_t limit_bytes)
{
        c->limit = limit_bytes;
}

bool cache_put(struct cache *c, const struct cache_key *key, struct bytes value)
{
        char path[PATH_MAX], temp[PATH_MAX];
        remember(c, key, value);
        if (value.size > c->limit)
                return false;
        if (value.size > VALUE_MAX || !file_name(c, key, path))
                return true;
        int n = snprintf(temp, sizeof(temp), "%s/" TEMP "XXXXXX", c->folder);
        if (n < 0 || (size_t)n >= sizeof(temp) || folder_make(c->folder) < 0) {
                log_info(LOG, "%s can't be made: compiled programs are not kept", c->folder);
                return true;
        }
        int fd = file_create_unique(temp);
        if (fd < 0) {
                log_info(LOG, "can't write to %s: %s", c->folder, strerror(errno));
                return true;
        }
        int r = value_write(fd, key, value);
        if (!file_close(fd))
                r = SP_E_LIMIT;
        if (r < 0 || !file_move(temp, path, true)) {
                log_info(LOG, "can't write to %s: %s", c->folder, strerror(errno));
                (void)file_unlink(temp);
                return true;
        }
        return trim(c);
}

void cache_drop(struct cache *c, const struct cache_key *key)
{
        char path[PATH_MAX];
        lock_take(&c->lock);
        struct entry *e = entry_find(c, key);
        if (e)
                entry_free(c, e);
        lock_release(&c->lock);
        if (file_name(c, key, path))
                (void)file_unlink(path);
}

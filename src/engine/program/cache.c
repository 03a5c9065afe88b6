#include "engine/program/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/folder.h"

#define LOG    "cache"
#define SUFFIX ".program"
#define TEMP   ".new-"

enum {
        HEADER_SIZE = 8 + 2 * BLAKE2B_SIZE + 8,
        MEMORY_MAX = 32 << 20, /* bytes kept in this process */
        VALUE_MAX = 256 << 20,
        TEMP_AGE_S = 3600, /* age after which an unfinished file has no owner */
};

static const char magic[8] = "SPANCLC1";

/* One value in memory. */
struct entry {
        struct list link;
        struct cache_key key;
        struct buf value;
};

struct cache {
        char *folder;
        uint64_t limit;
        pthread_mutex_t lock; /* guards what follows; a leaf */
        struct list entries;  /* used last: first */
        size_t bytes;
};

int cache_new(const char *folder, uint64_t limit_bytes, struct cache **ret)
{
        struct cache *c = mem_zalloc(sizeof(*c));
        if (!c)
                return SP_E_NOMEM;
        list_init(&c->entries);
        pthread_mutex_init(&c->lock, NULL);
        c->limit = limit_bytes;
        c->folder = mem_strdup(folder);
        if (!c->folder) {
                cache_free(c);
                return SP_E_NOMEM;
        }
        *ret = c;
        return 0;
}

/* Lock held. */
static void entry_free(struct cache *c, struct entry *e)
{
        list_remove(&e->link);
        c->bytes -= e->value.size;
        buf_fini(&e->value);
        mem_free(e);
}

struct cache *cache_free(struct cache *c)
{
        if (!c)
                return NULL;
        while (!list_empty(&c->entries))
                entry_free(c, list_entry(c->entries.next, struct entry, link));
        pthread_mutex_destroy(&c->lock);
        mem_free(c->folder);
        mem_free(c);
        return NULL;
}

/* ---- in memory ------------------------------------------------------------------------------ */

/* Lock held. */
static struct entry *entry_find(struct cache *c, const struct cache_key *key)
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
        pthread_mutex_lock(&c->lock);
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
        pthread_mutex_unlock(&c->lock);
}

static int recall(struct cache *c, const struct cache_key *key, struct buf *ret)
{
        pthread_mutex_lock(&c->lock);
        struct entry *e = entry_find(c, key);
        int r = e ? buf_put(ret, e->value.data, e->value.size) : SP_E_NOENT;
        if (e) {
                list_remove(&e->link);
                list_append(c->entries.next, &e->link);
        }
        pthread_mutex_unlock(&c->lock);
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

static bool read_all(int fd, uint8_t *p, size_t size)
{
        while (size) {
                ssize_t n = read(fd, p, size);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return false;
                p += n;
                size -= (size_t)n;
        }
        return true;
}

static bool write_all(int fd, const void *data, size_t size)
{
        const uint8_t *p = data;
        while (size) {
                ssize_t n = write(fd, p, size);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return false;
                p += n;
                size -= (size_t)n;
        }
        return true;
}

/* Read a file of the cache. SP_E_INVAL: it is damaged, or has another key than its name. */
static int file_read(int fd, const struct cache_key *key, struct buf *ret)
{
        uint8_t header[HEADER_SIZE], sum[BLAKE2B_SIZE];
        struct stat st;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < HEADER_SIZE ||
            st.st_size - HEADER_SIZE > VALUE_MAX || !read_all(fd, header, sizeof(header)))
                return SP_E_INVAL;
        size_t size = (size_t)st.st_size - HEADER_SIZE;
        if (memcmp(header, magic, 8) || memcmp(header + 8, key, sizeof(*key)) ||
            bytes_get_u64(header + 8 + 2 * BLAKE2B_SIZE) != size)
                return SP_E_INVAL;
        int r = buf_reserve(ret, size);
        if (r < 0)
                return r;
        if (!read_all(fd, ret->data + ret->size, size))
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
        int fd = file_name(c, key, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
        if (fd < 0)
                return SP_E_NOENT;
        size_t before = ret->size;
        r = file_read(fd, key, ret);
        if (!r)
                (void)futimens(fd, NULL); /* used now */
        close(fd);
        if (r == SP_E_INVAL) {
                log_warn(LOG, "%s is damaged and removed", path);
                (void)unlink(path);
                return SP_E_NOENT;
        }
        if (!r)
                remember(c, key, bytes_of(ret->data + before, ret->size - before));
        return r;
}

static int file_write(int fd, const struct cache_key *key, struct bytes value)
{
        uint8_t header[HEADER_SIZE];
        memcpy(header, magic, 8);
        memcpy(header + 8, key, sizeof(*key));
        blake2b_of(value, header + 8 + BLAKE2B_SIZE);
        bytes_put_u64(header + 8 + 2 * BLAKE2B_SIZE, value.size);
        return write_all(fd, header, sizeof(header)) && write_all(fd, value.data, value.size)
                       ? 0
                       : SP_E_LIMIT;
}

/* ---- the bound ------------------------------------------------------------------------------ */

struct found {
        char name[2 * BLAKE2B_SIZE + sizeof(SUFFIX)];
        uint64_t size;
        struct timespec used;
};

static int compare_age(const void *a, const void *b)
{
        const struct found *x = a, *y = b;
        if (x->used.tv_sec != y->used.tv_sec)
                return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
        return x->used.tv_nsec < y->used.tv_nsec ? -1 : x->used.tv_nsec > y->used.tv_nsec;
}

/* List all entries with their total size, and remove old temporary files. */
static int list_files(int folder_fd, DIR *dir, struct buf *all, uint64_t *ret_total)
{
        struct dirent *d;
        struct stat st;
        uint64_t total = 0;
        while ((d = readdir(dir))) {
                struct found f = { 0 };
                size_t n = strlen(d->d_name);
                if (fstatat(folder_fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    !S_ISREG(st.st_mode))
                        continue;
                if (!strncmp(d->d_name, TEMP, strlen(TEMP))) {
                        if (time(NULL) - st.st_mtim.tv_sec > TEMP_AGE_S)
                                (void)unlinkat(folder_fd, d->d_name, 0);
                        continue;
                }
                if (n + 1 != sizeof(f.name) || strcmp(d->d_name + 2 * BLAKE2B_SIZE, SUFFIX) != 0)
                        continue;
                memcpy(f.name, d->d_name, n);
                f.size = (uint64_t)st.st_size;
                f.used = st.st_mtim;
                total += f.size;
                int r = buf_put(all, &f, sizeof(f));
                if (r < 0)
                        return r;
        }
        *ret_total = total;
        return 0;
}

static void trim(struct cache *c)
{
        DIR *dir = opendir(c->folder);
        if (!dir)
                return;
        struct buf all = { 0 };
        uint64_t total = 0;
        int fd = dirfd(dir);
        if (list_files(fd, dir, &all, &total) == 0 && total > c->limit) {
                struct found *f = (struct found *)(void *)all.data;
                size_t count = all.size / sizeof(*f);
                qsort(f, count, sizeof(*f), compare_age);
                for (size_t i = 0; i < count && total > c->limit; i++) {
                        if (unlinkat(fd, f[i].name, 0) < 0 && errno != ENOENT)
                                continue;
                        total -= f[i].size;
                }
        }
        buf_fini(&all);
        closedir(dir);
}

/* ---- changing ------------------------------------------------------------------------------- */

void cache_put(struct cache *c, const struct cache_key *key, struct bytes value)
{
        char path[PATH_MAX], temp[PATH_MAX];
        remember(c, key, value);
        if (value.size > VALUE_MAX || value.size > c->limit || !file_name(c, key, path))
                return;
        int n = snprintf(temp, sizeof(temp), "%s/" TEMP "XXXXXX", c->folder);
        if (n < 0 || (size_t)n >= sizeof(temp) || folder_make(c->folder) < 0) {
                log_info(LOG, "%s can't be made: compiled programs are not kept", c->folder);
                return;
        }
        int fd = mkostemp(temp, O_CLOEXEC);
        if (fd < 0) {
                log_info(LOG, "can't write to %s: %s", c->folder, strerror(errno));
                return;
        }
        int r = file_write(fd, key, value);
        if (close(fd) < 0)
                r = SP_E_LIMIT;
        if (r < 0 || rename(temp, path) < 0) {
                log_info(LOG, "can't write to %s: %s", c->folder, strerror(errno));
                (void)unlink(temp);
                return;
        }
        trim(c);
}

void cache_drop(struct cache *c, const struct cache_key *key)
{
        char path[PATH_MAX];
        pthread_mutex_lock(&c->lock);
        struct entry *e = entry_find(c, key);
        if (e)
                entry_free(c, e);
        pthread_mutex_unlock(&c->lock);
        if (file_name(c, key, path))
                (void)unlink(path);
}

#include "daemon/system/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"

#define DEEP ".spancl-deep-"

enum {
        DEPTH_MAX = 24,    /* deeper folders are moved to the top first */
        PASSES_MAX = 4096, /* over a folder that changes all the time */
        INODE_COST = 512,  /* bytes that a name without blocks counts */
};

/* A file or folder: the time of its last write, and its size. */
struct item {
        int64_t time;
        uint64_t cost;
};

struct walk {
        dev_t device;
        int root;
        int64_t now;
        bool trims;         /* remove the oldest; else remove everything */
        bool counts;        /* remove nothing: put items into `items` */
        int64_t until;      /* items written later stay */
        uint64_t left;      /* bytes still to be removed */
        uint64_t removed;   /* bytes */
        unsigned moved;     /* folders moved in this pass */
        unsigned long name; /* the last name given to a moved folder */
        bool failed;
        struct buf items;
};

/* Open a folder, and let its owner read and change it whatever its mode was. -1: it is no folder. */
static int open_folder(int dir, const char *name, struct stat *st)
{
        static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
        int fd = openat(dir, name, flags);
        if (fd < 0 && errno == EACCES) {
                char path[64];
                int at = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
                if (at >= 0 && chmod(path, 0700) == 0)
                        fd = openat(dir, name, flags);
                if (at >= 0)
                        close(at);
        }
        if (fd >= 0 && fstat(fd, st) < 0) {
                close(fd);
                return -1;
        }
        if (fd >= 0 && (st->st_mode & 0700) != 0700)
                (void)fchmod(fd, 0700);
        return fd;
}

static int64_t time_of(const struct walk *w, const struct stat *st)
{
        return st->st_mtim.tv_sec > w->now ? 0 : st->st_mtim.tv_sec;
}

static uint64_t cost_of(const struct stat *st)
{
        return (uint64_t)st->st_blocks * 512 + INODE_COST;
}

/* Remove the item, or put it on the list of all. */
static void take(struct walk *w, int dir, const char *name, const struct stat *st, int flag)
{
        struct item item = { time_of(w, st), cost_of(st) };
        if (w->counts) {
                if (buf_put(&w->items, &item, sizeof(item)) < 0)
                        w->failed = true;
                return;
        }
        if (w->trims && (!w->left || item.time > w->until))
                return;
        if (unlinkat(dir, name, flag) < 0)
                return;
        w->left -= item.cost < w->left ? item.cost : w->left;
        w->removed += item.cost;
}

/* Move a deep folder to the top. Sessions can nest folders without limit, but descriptors are
 * few. */
static void move_up(struct walk *w, int dir, const char *name)
{
        char to[48];
        struct stat st;
        int fd = open_folder(dir, name, &st); /* so that it may be moved */
        if (fd < 0)
                return;
        close(fd);
        snprintf(to, sizeof(to), DEEP "%d-%lu", (int)getpid(), ++w->name);
        w->moved += renameat(dir, name, w->root, to) == 0;
}

static void walk_folder(struct walk *w, int fd, unsigned depth);

static void walk_one(struct walk *w, int dir, const char *name, unsigned depth)
{
        struct stat st;
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != w->device)
                return;
        if (!S_ISDIR(st.st_mode)) {
                take(w, dir, name, &st, 0);
                return;
        }
        if (depth >= DEPTH_MAX) {
                move_up(w, dir, name);
                return;
        }
        int fd = open_folder(dir, name, &st);
        if (fd < 0)
                return;
        if (st.st_dev == w->device)
                walk_folder(w, fd, depth + 1);
        else
                close(fd);
        if (!w->trims || depth >= TREE_DEPTH_KEPT)
                take(w, dir, name, &st, AT_REMOVEDIR);
}

/* Remove or collect the contents of a folder. Closes `fd`. */
static void walk_folder(struct walk *w, int fd, unsigned depth)
{
        DIR *folder = fdopendir(fd);
        if (!folder) {
                close(fd);
                return;
        }
        for (struct dirent *e; (e = readdir(folder));)
                if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                        walk_one(w, fd, e->d_name, depth);
        closedir(folder);
}

/* Walk the whole tree, again while folders were too deep. */
static void walk_all(struct walk *w)
{
        for (unsigned i = 0; i < PASSES_MAX; i++) {
                int fd = openat(w->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                w->moved = 0;
                w->items.size = 0;
                if (fd >= 0)
                        walk_folder(w, fd, 0);
                if (!w->moved)
                        return;
        }
}

static bool start(struct walk *w, const char *path)
{
        struct stat st;
        *w = (struct walk){ .root = *path ? open_folder(AT_FDCWD, path, &st) : -1 };
        w->now = time(NULL);
        if (w->root >= 0)
                w->device = st.st_dev;
        return w->root >= 0;
}

/* Add up the sizes below a folder. Closes `fd`. False: they exceed `w->left`. */
static bool measure(struct walk *w, int fd, unsigned depth, uint64_t least)
{
        struct stat st;
        DIR *folder = depth < TREE_DEPTH_MEASURED ? fdopendir(fd) : NULL;
        bool fits = folder || depth < TREE_DEPTH_MEASURED;
        if (!folder)
                close(fd);
        for (struct dirent *e; folder && fits && (e = readdir(folder));) {
                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
                    fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != w->device)
                        continue;
                uint64_t bytes = (uint64_t)st.st_blocks * 512;
                if (!S_ISDIR(st.st_mode) && st.st_nlink > 1)
                        bytes /= st.st_nlink;
                bytes = bytes < least ? least : bytes;
                fits = bytes <= w->left;
                w->left -= fits ? bytes : 0;
                int next = fits && S_ISDIR(st.st_mode) ? open_folder(fd, e->d_name, &st) : -1;
                if (next >= 0 && st.st_dev == w->device)
                        fits = measure(w, next, depth + 1, least);
                else if (next >= 0)
                        close(next);
        }
        if (folder)
                closedir(folder);
        return fits;
}

uint64_t tree_measure(const char *path, uint64_t limit_bytes, uint64_t least_bytes)
{
        struct walk w;
        if (!start(&w, path))
                return 0;
        w.left = limit_bytes;
        return measure(&w, w.root, 0, least_bytes) ? limit_bytes - w.left : UINT64_MAX;
}

void tree_remove(const char *path)
{
        struct walk w;
        if (!start(&w, path))
                return;
        walk_all(&w);
        close(w.root);
        if (rmdir(path) < 0)
                log_debug("scratch", "can't remove %s: %s", path, strerror(errno));
}

static int compare_time(const void *a, const void *b)
{
        const struct item *x = a, *y = b;
        return x->time < y->time ? -1 : x->time > y->time;
}

uint64_t tree_trim(const char *path, uint64_t limit_bytes, unsigned grace_s)
{
        struct walk w;
        uint64_t total = 0;
        if (!start(&w, path))
                return 0;
        w.trims = w.counts = true;
        walk_all(&w);
        struct item *items = (struct item *)(void *)w.items.data;
        size_t count = w.items.size / sizeof(*items);
        for (size_t i = 0; i < count; i++)
                total += items[i].cost;
        w.counts = false;
        if (total > limit_bytes || w.failed) {
                w.left = w.failed ? UINT64_MAX : total - limit_bytes;
                if (count)
                        qsort(items, count, sizeof(*items), compare_time);
                uint64_t sum = 0;
                for (size_t i = 0; i < count && sum < w.left; i++) {
                        w.until = items[i].time;
                        sum += items[i].cost;
                }
                if (w.failed)
                        w.until = w.now;
                if (w.until > w.now - (int64_t)grace_s)
                        w.until = w.now - (int64_t)grace_s;
                walk_all(&w);
        }
        close(w.root);
        buf_fini(&w.items);
        return w.removed;
}

#include "sandbox/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/text_file.h"

#define LOG "sandbox"

enum { LINKS_MAX = 40 }; /* as Linux follows in one path */

/* A path of the list, with its links resolved. */
struct place {
        char *real;
        enum path_use use;
};

struct tree {
        /* The place where the new root folder is built, with links resolved. */
        const char *base;
        /* The user namespace that maps root to the session's user; -1: files stay root's. */
        int users;
        struct place *places;
        size_t count;
};

/* ---- the owner of writable files ------------------------------------------------------------ */

static bool put(pid_t pid, const char *name, const char *text)
{
        char file[64];
        snprintf(file, sizeof(file), "/proc/%d/%s", (int)pid, name);
        return !text_file_write(AT_FDCWD, file, text);
}

/* Make a user namespace in which 0 is `user`. A child holds it until this process has opened it.
 * Returns its descriptor, or -1. */
static int map_root_to(uid_t user)
{
        char map[32], file[64];
        int made[2], fd = -1;
        char byte;
        snprintf(map, sizeof(map), "0 %u 1", (unsigned)user);
        if (pipe2(made, O_CLOEXEC) < 0)
                return -1;
        pid_t pid = fork();
        if (!pid) {
                bool ok = unshare(CLONE_NEWUSER) == 0 && write(made[1], "", 1) == 1;
                while (ok)
                        pause();
                _exit(1);
        }
        close(made[1]);
        if (pid > 0 && read(made[0], &byte, 1) == 1 && put(pid, "uid_map", map) &&
            put(pid, "gid_map", map)) {
                snprintf(file, sizeof(file), "/proc/%d/ns/user", (int)pid);
                fd = open(file, O_RDONLY | O_CLOEXEC);
        }
        close(made[0]);
        if (pid > 0) {
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
        }
        return fd;
}

/* ---- places ------------------------------------------------------------------------------------- */

static bool is_below(const char *path, const char *folder)
{
        size_t n = strlen(folder);
        return strncmp(path, folder, n) == 0 && (!path[n] || path[n] == '/');
}

static int in_order(const void *a, const void *b)
{
        const struct place *p = a, *q = b;
        int r = strcmp(p->real, q->real);
        return r ? r : (int)q->use - (int)p->use;
}

/* Find the places, sorted so that a folder comes before its contents. */
static bool find_places(struct tree *t, const struct paths *p)
{
        char real[PATH_MAX];
        t->places = mem_zalloc((p->count + 1) * sizeof(*t->places));
        for (size_t i = 0; t->places && i < p->count; i++) {
                if (is_below(p->list[i].name, "/proc/self") || !realpath(p->list[i].name, real))
                        continue;
                struct place *place = &t->places[t->count];
                *place = (struct place){ mem_strdup(real), p->list[i].use };
                if (!place->real)
                        return false;
                t->count++;
        }
        if (t->places)
                qsort(t->places, t->count, sizeof(*t->places), in_order);
        return t->places != NULL;
}

static void forget_places(struct tree *t)
{
        for (size_t i = 0; i < t->count; i++)
                mem_free(t->places[i].real);
        mem_free(t->places);
}

/* Does the mount of `p` contain the files of `below`? A file system in memory begins empty. */
static bool contains(const struct place *p, const struct place *below)
{
        return p->use == PATH_MEMORY ? !strcmp(below->real, p->real)
                                     : is_below(below->real, p->real);
}

/* Return true if an earlier place already covers this one. */
static bool is_covered(const struct tree *t, size_t i)
{
        bool reads = t->places[i].use == PATH_NAMED && t->users < 0;
        for (size_t k = 0; k < i; k++)
                if ((reads || t->places[k].use >= t->places[i].use) &&
                    contains(&t->places[k], &t->places[i]))
                        return true;
        return false;
}

/* ---- mounts ------------------------------------------------------------------------------------- */

/* Make the folder of a path in the new tree, and the folders above it. */
static bool make_parents(const char *path, size_t base)
{
        char folder[PATH_MAX];
        snprintf(folder, sizeof(folder), "%s", path);
        for (char *p = folder + base + 1; (p = strchr(p, '/')); p++) {
                *p = 0;
                if (mkdir(folder, 0755) < 0 && errno != EEXIST)
                        return false;
                *p = '/';
        }
        return true;
}

static bool make_target(const char *path, size_t base, bool folder)
{
        struct stat st;
        if (stat(path, &st) == 0)
                return S_ISDIR(st.st_mode) == folder;
        if (!make_parents(path, base))
                return false;
        if (folder)
                return mkdir(path, 0755) == 0;
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

/* Make a detached mount of a place, with its rights; -1: not possible. `users`: a user namespace
 * under which root's files become another user's. */
static int mount_with(const struct place *place, int users)
{
        const unsigned all = AT_RECURSIVE;
        bool is_proc = !strcmp(place->real, "/proc"); /* has files that the session writes to */
        struct mount_attr attr = {
                .attr_set = MOUNT_ATTR_NOSUID | (place->use == PATH_DEVICE ? 0 : MOUNT_ATTR_NODEV) |
                            (place->use <= PATH_NAMED && !is_proc ? MOUNT_ATTR_RDONLY : 0) |
                            (users >= 0 ? MOUNT_ATTR_IDMAP : 0),
                /* Without this, a later mount of the host would appear without these rights. */
                .propagation = MS_PRIVATE,
                .userns_fd = users >= 0 ? (uint64_t)users : 0,
        };
        int fd = (int)syscall(SYS_open_tree, AT_FDCWD, place->real,
                              OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | all);
        if (fd >= 0 &&
            syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | all, &attr, sizeof(attr)) == 0)
                return fd;
        int error = errno;
        if (fd >= 0)
                close(fd);
        errno = error;
        return -1;
}

/* Make a detached file system in memory; -1: not possible. Its size is that of /dev/shm in most
 * containers, where drivers of GPUs run with it. */
static int make_memory(void)
{
        int fd = -1, fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
        if (fs >= 0 && !syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "size", "64m", 0) &&
            !syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "nr_inodes", "1024", 0) &&
            !syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "mode", "1777", 0) &&
            !syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
                fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
                                  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
        int error = errno;
        if (fs >= 0)
                close(fs);
        errno = error;
        return fd;
}

static int mount_of(const struct tree *t, const struct place *place)
{
        int fd = -1;
        if (place->use == PATH_MEMORY)
                return make_memory();
        bool mapped = t->users >= 0 && (place->use == PATH_WRITE || place->use == PATH_NAMED);
        if (mapped)
                fd = mount_with(place, t->users);
        return fd < 0 && (!mapped || place->use == PATH_NAMED) ? mount_with(place, -1) : fd;
}

static bool attach(const struct tree *t, const struct place *place, int fd)
{
        char target[PATH_MAX * 2];
        struct stat st;
        int n = snprintf(target, sizeof(target), "%s%s", t->base, place->real);
        return n < PATH_MAX && fstat(fd, &st) == 0 &&
               make_target(target, strlen(t->base), S_ISDIR(st.st_mode)) &&
               syscall(SYS_move_mount, fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

/* Mount all places. The new root folder covers the scratch folder, so that folder's mount was
 * made before. */
static bool mount_all(const struct tree *t, int scratch)
{
        for (size_t i = 0; i < t->count; i++) {
                const struct place *place = &t->places[i];
                bool is_scratch = !strcmp(place->real, t->base);
                if (is_covered(t, i))
                        continue;
                int fd = is_scratch ? scratch : mount_of(t, place);
                bool ok = fd >= 0 && attach(t, place, fd);
                int error = errno;
                if (fd >= 0 && !is_scratch)
                        close(fd);
                if (!ok) {
                        log_info(LOG, "%s can't be mounted for sessions: %s", place->real,
                                 strerror(error));
                        errno = error;
                        return false;
                }
        }
        return true;
}

/* Find the end of the first part of `path` that is a link; NULL: there is none. */
static char *first_link(char *path)
{
        struct stat st;
        for (char *end = path; *end;) {
                end += 1 + strcspn(end + 1, "/");
                char kept = *end;
                *end = 0;
                bool is_link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
                *end = kept;
                if (is_link)
                        return end;
        }
        return NULL;
}

/* Copy the links that lead into the tree. */
static void copy_links(const struct tree *t, const char *name)
{
        char path[PATH_MAX], rest[PATH_MAX], to[PATH_MAX], link[PATH_MAX * 2], next[PATH_MAX * 3];
        struct stat st;
        char *end;
        if (*name != '/')
                return;
        snprintf(path, sizeof(path), "%s", name);
        for (int i = 0; i < LINKS_MAX && (end = first_link(path)); i++) {
                snprintf(rest, sizeof(rest), "%s", end);
                *end = 0;
                ssize_t n = readlink(path, to, sizeof(to) - 1);
                to[n > 0 ? n : 0] = 0;
                snprintf(link, sizeof(link), "%s%s", t->base, path);
                if (lstat(link, &st) < 0 && make_parents(link, strlen(t->base)))
                        (void)!symlink(to, link);
                *strrchr(path, '/') = 0;
                int size = *to == '/' ? snprintf(next, sizeof(next), "%s%s", to, rest)
                                      : snprintf(next, sizeof(next), "%s/%s%s", path, to, rest);
                if (size >= (int)sizeof(path))
                        return;
                memcpy(path, next, (size_t)size + 1);
        }
}

/* Enter the new root. The working folder stays the same if it is in the tree, because environment
 * variables name libraries relative to it. */
static bool enter(const char *base)
{
        char present[PATH_MAX];
        bool known = getcwd(present, sizeof(present)) != NULL;
        return chdir(base) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 &&
               umount2(".", MNT_DETACH) == 0 &&
               ((known && chdir(present) == 0) || chdir("/") == 0) &&
               mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV,
                     NULL) == 0;
}

/* Make the links that shells expect in /dev. */
static void link_streams(const struct tree *t)
{
        static const char *const links[][2] = { { "/dev/fd", "/proc/self/fd" },
                                                { "/dev/stdin", "/proc/self/fd/0" },
                                                { "/dev/stdout", "/proc/self/fd/1" },
                                                { "/dev/stderr", "/proc/self/fd/2" } };
        char link[PATH_MAX + 16];
        for (size_t i = 0; i < array_size(links); i++) {
                snprintf(link, sizeof(link), "%s%s", t->base, links[i][0]);
                (void)!symlink(links[i][1], link);
        }
}

/* Build the tree over its base, whose own mount is `scratch`, and enter it. False: the base is
 * unchanged. */
static bool build(const struct tree *t, const struct paths *p, int scratch)
{
        if (mount("spancld", t->base, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m") < 0)
                return false;
        if (mount_all(t, scratch)) {
                for (size_t i = 0; i < p->count; i++)
                        copy_links(t, p->list[i].name);
                link_streams(t);
                if (enter(t->base))
                        return true;
        }
        int error = errno;
        (void)umount2(t->base, MNT_DETACH);
        errno = error;
        return false;
}

/* Change the root, with the user namespace `users`. False: errno may be the reason. */
static bool change(const struct paths *p, const char *base, int users)
{
        struct tree t = { .base = base, .users = users };
        bool ok = find_places(&t, p);
        /* A tree that contains the whole host is useless. */
        if (ok && t.count && !strcmp(t.places[0].real, "/")) {
                errno = EBUSY;
                ok = false;
        }
        int scratch =
                ok ? mount_of(&t, &(struct place){ (char *)(uintptr_t)base, PATH_WRITE }) : -1;
        ok = scratch >= 0 && build(&t, p, scratch);
        int error = errno;
        if (scratch >= 0)
                close(scratch);
        forget_places(&t);
        errno = error;
        return ok;
}

bool root_change(const struct paths *p, const char *scratch_dir, uid_t user)
{
        char base[PATH_MAX];
        int users = user ? map_root_to(user) : -1;
        bool ok = (!user || users >= 0) && realpath(scratch_dir, base) && change(p, base, users);
        if (!ok)
                log_info(LOG, "sessions have no root folder%s of their own: %s",
                         user ? " and user" : "", strerror(errno));
        if (users >= 0)
                close(users);
        return ok;
}

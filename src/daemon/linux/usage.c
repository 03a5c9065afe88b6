#include "daemon/system/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/text_file.h"

enum {
        TEXT_MAX = 4096,
        BLOCK_MAX = 65536,
        SOCKET_COST = 256 << 10, /* bytes that a socket's buffer may take */
        PIPE_COST = 64 << 10,
        DEVICES_MAX = 16,
        CLOCK_TICKS = 256, /* items between clock reads */
};

enum place { ON_DISK, IN_MEMORY, IN_BUFFERS };

/* A file, which counts once, however many descriptors and mappings it has. */
struct file {
        uint64_t device, inode, bytes;
        enum place place;
};

struct process {
        pid_t pid, parent;
};

struct scan {
        const struct usage_params *p;
        struct usage u;
        struct buf processes; /* struct process: those found; inspected up to the present one */
        struct buf files;     /* struct file */
        struct buf spaces;    /* pid_t: one process of each address space, in the kernel's order */
        struct buf text;
        uint64_t private_bytes, shared_bytes; /* in address spaces */
        struct {
                uint64_t device;
                bool memory;
        } devices[DEVICES_MAX];
        size_t device_count;
        unsigned ticks;
        int error;
};

static bool stops(struct scan *s)
{
        if (++s->ticks % CLOCK_TICKS == 0 && clock_now_ns() > s->p->deadline_ns)
                s->u.moving = true;
        return s->error || s->u.over_files || s->u.over_tasks ||
               (s->u.moving && clock_now_ns() > s->p->deadline_ns);
}

static void put(struct scan *s, struct buf *b, const void *data, size_t size)
{
        if (buf_put(b, data, size) < 0)
                s->error = SP_E_NOMEM;
}

/* Find the number behind `name` at the start of a line. False: there is none. */
static bool number_of(const char *text, const char *name, uint64_t *ret)
{
        size_t n = strlen(name);
        for (const char *p = text; (p = strstr(p, name)); p += n)
                if (p == text || p[-1] == '\n') {
                        *ret = strtoull(p + n, NULL, 10);
                        return true;
                }
        return false;
}

static uint64_t kib_of(const char *text, const char *name)
{
        uint64_t kib = 0;
        return number_of(text, name, &kib) ? kib << 10 : 0;
}

/* Read the whole file, with a NUL behind. False: it can't be read. */
static bool read_all(struct scan *s, int dir, const char *path)
{
        ssize_t n = -1;
        int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        s->text.size = 0;
        while (fd >= 0 && buf_reserve(&s->text, TEXT_MAX + 1) == 0 &&
               (n = read(fd, s->text.data + s->text.size, TEXT_MAX)) > 0)
                s->text.size += (size_t)n;
        if (fd >= 0)
                close(fd);
        if (n < 0)
                return false;
        s->text.data[s->text.size] = 0;
        return true;
}

/* ---- files --------------------------------------------------------------------------------- */

/* Return true if files of this device are in memory. `name` is a link to one of them. A file that
 * was closed meanwhile counts as memory, which takes two measurements to exceed a limit. */
static bool is_memory(struct scan *s, int dir, const char *name, uint64_t device)
{
        char path[64];
        struct statfs fs;
        for (size_t i = 0; i < s->device_count; i++)
                if (s->devices[i].device == device)
                        return s->devices[i].memory;
        int fd = openat(dir, name, O_PATH | O_CLOEXEC);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        bool known = fd >= 0 && fstatfs(fd, &fs) == 0;
        bool memory = !known || (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
        if (fd >= 0)
                close(fd);
        if (known && s->device_count < DEVICES_MAX) {
                s->devices[s->device_count].device = device;
                s->devices[s->device_count++].memory = memory;
        }
        return memory;
}

static void add_file(struct scan *s, const struct statx *st, uint64_t bytes, enum place place)
{
        const struct file f = { makedev(st->stx_dev_major, st->stx_dev_minor), st->stx_ino, bytes,
                                place };
        put(s, &s->files, &f, sizeof(f));
}

static void add_unnamed(struct scan *s, int dir, const char *name, const struct statx *st)
{
        uint64_t device = makedev(st->stx_dev_major, st->stx_dev_minor);
        add_file(s, st, st->stx_blocks * 512,
                 is_memory(s, dir, name, device) ? IN_MEMORY : ON_DISK);
}

/* Look up a file's status without asking a network file system. */
static int look_up(int dir, const char *name, struct statx *ret)
{
        return statx(dir, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
                     STATX_TYPE | STATX_NLINK | STATX_INO | STATX_BLOCKS | STATX_MTIME, ret) < 0
                       ? -errno
                       : 0;
}

static void inspect_socket(struct scan *s, int process, const char *table, const char *name,
                           const struct statx *st)
{
        char path[96], text[512];
        uint64_t n = 0;
        snprintf(path, sizeof(path), "%sfdinfo/%.16s", table, name);
        text_file_read(process, path, text, sizeof(text));
        if (st->stx_ino != s->p->trusted && number_of(text, "scm_fds:", &n))
                s->u.in_flight += n;
        add_file(s, st, SOCKET_COST, IN_BUFFERS);
}

/* Count the files of a descriptor table: `table` is "" or "task/NUMBER/". */
static void inspect_table(struct scan *s, int process, const char *table)
{
        char path[64];
        struct statx st;
        snprintf(path, sizeof(path), "%sfd", table);
        int fd = openat(process, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);
        if (!folder) {
                s->u.closed |= fd < 0 && (errno == EACCES || errno == EPERM);
                s->u.moving |= fd < 0 && (errno == ENOENT || errno == ESRCH);
                if (fd < 0 && (errno == EMFILE || errno == ENFILE))
                        s->error = SP_E_LIMIT;
                if (fd >= 0)
                        close(fd);
                return;
        }
        for (struct dirent *e; !stops(s) && (e = readdir(folder));) {
                if (e->d_name[0] == '.')
                        continue;
                s->u.over_files |= ++s->u.files > USAGE_FILES_MAX;
                int r = look_up(fd, e->d_name, &st);
                if (r < 0) {
                        s->u.closed |= r == -EACCES || r == -EPERM;
                        continue; /* or it was closed */
                }
                if (S_ISREG(st.stx_mode) && !st.stx_nlink)
                        add_unnamed(s, fd, e->d_name, &st);
                else if (S_ISSOCK(st.stx_mode))
                        inspect_socket(s, process, table, e->d_name, &st);
                else if (S_ISFIFO(st.stx_mode))
                        add_file(s, &st, PIPE_COST, IN_BUFFERS);
        }
        closedir(folder);
}

/* Count a mapping. The line of maps is "START-END MODE OFFSET MAJOR:MINOR INODE PATH". A file
 * without a name has " (deleted)" behind its path. */
static void inspect_mapping(struct scan *s, int process, const char *line, char last[32])
{
        static const char deleted[] = " (deleted)";
        unsigned long start, end, inode;
        unsigned major, minor;
        char path[64], key[32];
        struct statx st;
        size_t n = strlen(line);
        s->u.over_files |= ++s->u.mappings > USAGE_MAPPINGS_MAX;
        if (n < sizeof(deleted) || strcmp(line + n + 1 - sizeof(deleted), deleted) != 0 ||
            sscanf(line, "%lx-%lx %*s %*s %x:%x %lu", &start, &end, &major, &minor, &inode) != 5)
                return;
        snprintf(key, sizeof(key), "%x:%x %lx", major & 0xffff, minor & 0xfffff, inode);
        if (!strcmp(key, last)) /* a library has several mappings in a row */
                return;
        memcpy(last, key, sizeof(key));
        /* Only root may follow the link. */
        snprintf(path, sizeof(path), "map_files/%lx-%lx", start, end);
        if (look_up(process, path, &st) == 0 && S_ISREG(st.stx_mode) && !st.stx_nlink &&
            st.stx_mtime.tv_sec >= s->p->since)
                add_unnamed(s, process, path, &st);
}

static void inspect_mappings(struct scan *s, int process)
{
        static const size_t line_max = 8192; /* longer than any path */
        char last[32] = "";
        int fd = openat(process, "maps", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        ssize_t n = 1;
        s->text.size = 0;
        while (fd >= 0 && !stops(s) && buf_reserve(&s->text, BLOCK_MAX + 1) == 0 &&
               (n = read(fd, s->text.data + s->text.size, BLOCK_MAX)) > 0) {
                s->text.size += (size_t)n;
                s->text.data[s->text.size] = 0;
                char *p = (char *)s->text.data, *end;
                while (!stops(s) && (end = strchr(p, '\n'))) {
                        *end = 0;
                        inspect_mapping(s, process, p, last);
                        p = end + 1;
                }
                buf_consume(&s->text, (size_t)(p - (char *)s->text.data));
                if (s->text.size > line_max)
                        break;
        }
        s->u.closed |= fd < 0 && (errno == EACCES || errno == EPERM);
        if (fd >= 0)
                close(fd);
}

/* ---- memory -------------------------------------------------------------------------------- */

static long compare(pid_t a, pid_t b, int what)
{
        return syscall(SYS_kcmp, a, b, what, 0, 0); /* 0: the same; 1: less; 2: more; -1: unknown */
}

/* Return true if this process is the first with its address space. */
static bool is_new_space(struct scan *s, pid_t pid)
{
        pid_t *known = (pid_t *)(void *)s->spaces.data;
        size_t lo = 0, hi = s->spaces.size / sizeof(pid);
        while (lo < hi) {
                size_t middle = lo + (hi - lo) / 2;
                long r = compare(pid, known[middle], KCMP_VM);
                if (r == 0)
                        return false;
                if (r == 1)
                        hi = middle;
                else
                        lo = middle + 1;
        }
        put(s, &s->spaces, &pid, sizeof(pid));
        if (s->error)
                return true;
        known = (pid_t *)(void *)s->spaces.data;
        memmove(known + lo + 1, known + lo, s->spaces.size - (lo + 1) * sizeof(pid));
        known[lo] = pid;
        return true;
}

static void inspect_space(struct scan *s, int process, pid_t pid, const char *status)
{
        char exact[TEXT_MAX] = "";
        uint64_t any;
        if (!number_of(status, "RssAnon:", &any) || !is_new_space(s, pid))
                return;
        if (s->p->shares)
                text_file_read(process, "smaps_rollup", exact, sizeof(exact));
        if (number_of(exact, "Pss_Anon:", &any)) {
                s->private_bytes += kib_of(exact, "Pss_Anon:") + kib_of(exact, "SwapPss:");
                s->shared_bytes += kib_of(exact, "Pss_Shmem:");
        } else {
                s->private_bytes += kib_of(status, "RssAnon:") + kib_of(status, "VmSwap:");
                s->shared_bytes += kib_of(status, "RssShmem:");
        }
        s->private_bytes += kib_of(status, "VmPTE:");
        inspect_mappings(s, process);
}

/* ---- processes ------------------------------------------------------------------------------ */

static bool is_known(const struct scan *s, pid_t pid)
{
        const struct process *known = (const struct process *)(void *)s->processes.data;
        for (size_t i = 0; i < s->processes.size / sizeof(*known); i++)
                if (known[i].pid == pid)
                        return true;
        return false;
}

static void add_children(struct scan *s, int process, pid_t pid, const char *task)
{
        char path[64];
        snprintf(path, sizeof(path), "task/%.16s/children", task);
        if (!read_all(s, process, path))
                return;
        char *p = (char *)s->text.data, *end;
        for (pid_t child; (child = (pid_t)strtol(p, &end, 10)) > 0 && !s->error; p = end) {
                const struct process new = { child, pid };
                if (!is_known(s, child)) /* it may have another parent now */
                        put(s, &s->processes, &new, sizeof(new));
        }
}

/* Count the descriptor tables of a process's threads, if they have their own. */
static void inspect_threads(struct scan *s, int process, pid_t pid)
{
        char table[32];
        int fd = openat(process, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);
        pid_t before = pid;
        if (fd >= 0 && !folder)
                close(fd);
        for (struct dirent *e; folder && !stops(s) && (e = readdir(folder));) {
                pid_t task = (pid_t)strtol(e->d_name, NULL, 10);
                if (task <= 0)
                        continue;
                add_children(s, process, pid, e->d_name);
                /* Where kcmp(2) is not permitted, each thread is taken to share the table: otherwise
                 * the same descriptors would count once for each thread. */
                if (task == pid || compare(task, pid, KCMP_FILES) <= 0 ||
                    compare(task, before, KCMP_FILES) <= 0)
                        continue;
                snprintf(table, sizeof(table), "task/%d/", (int)task);
                bool moving = s->u.moving;
                inspect_table(s, process, table);
                s->u.moving = moving || clock_now_ns() > s->p->deadline_ns; /* it has just ended */
                before = task;
        }
        if (folder)
                closedir(folder);
}

/* Inspect a process. `process`: its folder in /proc. False: it has ended, or is not the
 * session's. */
static bool inspect_process(struct scan *s, int process, struct process of)
{
        char status[TEXT_MAX], task[16];
        uint64_t parent = 0, threads = 1;
        text_file_read(process, "status", status, sizeof(status));
        const char *state = strstr(status, "\nState:\t");
        if (!state || !number_of(status, "PPid:", &parent))
                return false;
        (void)number_of(status, "Threads:", &threads);
        if (of.parent && (pid_t)parent != of.parent && !is_known(s, (pid_t)parent))
                return false;
        s->u.tasks += threads;
        s->u.over_tasks |= s->p->tasks_max && s->u.tasks > s->p->tasks_max;
        if (stops(s) || (threads <= 1 && (state[8] == 'Z' || state[8] == 'X')))
                return state[8] != 'X';
        /* The first thread has ended, and others go on: then nothing shows their memory. */
        s->u.closed |= state[8] == 'Z';
        snprintf(task, sizeof(task), "%d", (int)of.pid);
        if (threads > 1)
                inspect_threads(s, process, of.pid);
        else
                add_children(s, process, of.pid, task);
        inspect_table(s, process, "");
        inspect_space(s, process, of.pid, status);
        return true;
}

static void inspect_all(struct scan *s)
{
        char path[32];
        for (size_t i = 0; i < s->processes.size / sizeof(struct process) && !stops(s); i++) {
                struct process one;
                memcpy(&one, s->processes.data + i * sizeof(one), sizeof(one));
                snprintf(path, sizeof(path), "/proc/%d", (int)one.pid);
                int fd = i ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : s->p->folder;
                if (fd < 0 && (errno == EMFILE || errno == ENFILE))
                        s->error = SP_E_LIMIT;
                bool there = fd >= 0 && inspect_process(s, fd, one);
                /* A process that hides (hidepid of /proc) does not fail with ESRCH. */
                if (!there && !i && !s->error) {
                        if (faccessat(fd, "status", R_OK, AT_EACCESS) < 0 && errno == ESRCH)
                                s->error = SP_E_GONE;
                        else
                                s->u.closed = true;
                }
                s->u.moving |= !there;
                if (i && fd >= 0)
                        close(fd);
        }
}

/* ---- sums ---------------------------------------------------------------------------------- */

static int compare_files(const void *a, const void *b)
{
        const struct file *x = a, *y = b;
        if (x->device != y->device)
                return x->device < y->device ? -1 : 1;
        return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static void add_up(struct scan *s)
{
        struct file *files = (struct file *)(void *)s->files.data;
        size_t count = s->files.size / sizeof(*files);
        uint64_t sums[3] = { 0 };
        if (count)
                qsort(files, count, sizeof(*files), compare_files);
        for (size_t i = 0; i < count; i++) {
                if (!i || compare_files(&files[i - 1], &files[i]))
                        sums[files[i].place] += files[i].bytes;
        }
        s->u.unnamed_bytes = sums[ON_DISK];
        /* Most shared pages belong to files that are counted as well. */
        s->u.memory_bytes = s->private_bytes + sums[IN_BUFFERS] +
                            (sums[IN_MEMORY] > s->shared_bytes ? sums[IN_MEMORY] : s->shared_bytes);
}

int usage_folder(pid_t pid)
{
        char path[32];
        snprintf(path, sizeof(path), "/proc/%d", (int)pid);
        return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool usage_can_inspect(int folder)
{
        struct statx st;
        return look_up(folder, "fd/0", &st) == 0;
}

/* Return the ticks of a process and of its children that have ended; 0: not known. */
static uint64_t ticks_of(struct scan *s, int process, struct process of)
{
        char text[1024];
        int parent;
        unsigned long own[2];
        long ended[2];
        text_file_read(process, "stat", text, sizeof(text));
        const char *p = strrchr(text, ')'); /* behind the name, which the process chooses */
        if (!p || sscanf(p + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld",
                         &parent, &own[0], &own[1], &ended[0], &ended[1]) != 5)
                return 0;
        if (of.parent && parent != of.parent && !is_known(s, parent))
                return 0;
        return own[0] + own[1] + (unsigned long)(ended[0] + ended[1]);
}

static void add_descendants(struct scan *s, int process, pid_t pid)
{
        int fd = openat(process, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);
        if (fd >= 0 && !folder)
                close(fd);
        for (struct dirent *e;
             folder && s->u.tasks < USAGE_CPU_TASKS_MAX && !s->error && (e = readdir(folder));) {
                if (e->d_name[0] == '.')
                        continue;
                s->u.tasks++;
                add_children(s, process, pid, e->d_name);
        }
        if (folder)
                closedir(folder);
}

uint64_t usage_cpu_ns(pid_t pid)
{
        struct scan s = { 0 };
        struct process one = { pid, 0 };
        uint64_t ticks = 0;
        put(&s, &s.processes, &one, sizeof(one));
        for (size_t i = 0; i < s.processes.size / sizeof(one) && !s.error; i++) {
                memcpy(&one, s.processes.data + i * sizeof(one), sizeof(one));
                int folder = usage_folder(one.pid);
                if (folder < 0)
                        continue;
                ticks += ticks_of(&s, folder, one);
                add_descendants(&s, folder, one.pid);
                close(folder);
        }
        buf_fini(&s.processes);
        buf_fini(&s.text);
        return ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

int usage_measure(const struct usage_params *p, struct usage *ret)
{
        struct scan s = { .p = p };
        const struct process first = { p->pid, 0 };
        put(&s, &s.processes, &first, sizeof(first));
        inspect_all(&s);
        add_up(&s);
        if (!s.error)
                *ret = s.u;
        buf_fini(&s.processes);
        buf_fini(&s.files);
        buf_fini(&s.spaces);
        buf_fini(&s.text);
        return s.error;
}

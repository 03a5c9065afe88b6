#include "sandbox/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/process/control_group.h"
#include "os/text_file.h"
#include "sandbox/limits.h"

#define LOG        "sandbox"
#define PREFIX     "spancld."
#define SUPERVISOR "supervisor"

enum {
        NAME_SIZE = 48, /* of a folder of spancld, with the NUL */
        GROUP_SIZE = NAME_SIZE + sizeof("/" SUPERVISOR),
        TRIES = 8,
        LOCK_MS = 3000,  /* for other spanclds that start */
        SWEEP_MS = 1000, /* for the processes of a dead spancld to end */
};

/* ---- a group's files ------------------------------------------------------------------------ */

static int write_file(int dir, const char *group, const char *file, const char *text)
{
        char path[GROUP_SIZE + 64];
        snprintf(path, sizeof(path), "%s/%s", group, file);
        return text_file_write(dir, path, text);
}

/* Read a group's file. "": it can't be read. */
static void read_file(int dir, const char *group, const char *file, char *text, size_t size)
{
        char path[GROUP_SIZE + 64];
        snprintf(path, sizeof(path), "%s/%s", group, file);
        text_file_read(dir, path, text, size);
}

/* Find the number behind `name` in lines of "name number"; 0: there is no such line. */
static unsigned long number_of(const char *text, const char *name)
{
        size_t n = strlen(name);
        while (*text) {
                if (!strncmp(text, name, n) && text[n] == ' ')
                        return strtoul(text + n, NULL, 10);
                text += strcspn(text, "\n");
                text += *text == '\n';
        }
        return 0;
}

static bool is_populated(int dir, const char *group)
{
        char text[256];
        read_file(dir, group, "cgroup.events", text, sizeof(text));
        return number_of(text, "populated");
}

static bool has_word(const char *text, const char *word)
{
        size_t n = strlen(word);
        for (const char *p = text; (p = strstr(p, word)); p += n)
                if ((p == text || p[-1] == ' ') && (!p[n] || p[n] == ' ' || p[n] == '\n'))
                        return true;
        return false;
}

/* ---- groups of dead spanclds ---------------------------------------------------------------- */

/* Remove the folder `name` with the groups in it. False: there are still processes in it. */
static bool remove_groups(int dir, const char *name)
{
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *groups = fd < 0 ? NULL : fdopendir(fd);
        if (fd >= 0 && !groups)
                close(fd);
        for (struct dirent *e; groups && (e = readdir(groups));)
                if (e->d_name[0] != '.' && e->d_type == DT_DIR)
                        (void)unlinkat(dirfd(groups), e->d_name, AT_REMOVEDIR);
        if (groups)
                closedir(groups);
        return !unlinkat(dir, name, AT_REMOVEDIR) || errno == ENOENT;
}

/* Return true if a process is in another PID namespace than this one, so that its number differs
 * there. Number 0: it has no number here. */
static bool is_elsewhere(long pid)
{
        char path[48];
        struct stat its, ours;
        snprintf(path, sizeof(path), "/proc/%ld/ns/pid", pid);
        return !pid || (stat(path, &its) == 0 && stat("/proc/self/ns/pid", &ours) == 0 &&
                        its.st_ino != ours.st_ino);
}

/* Return true if the spancld that has made this folder is alive. The name has fewer than
 * NAME_SIZE bytes. A spancld whose processes have other numbers here counts as alive. */
static bool is_alive(int home, const char *name)
{
        char group[GROUP_SIZE], pids[4096], *end;
        long pid = strtol(name + strlen(PREFIX), NULL, 10);
        snprintf(group, sizeof(group), "%.*s/" SUPERVISOR, NAME_SIZE - 1, name);
        read_file(home, group, "cgroup.procs", pids, sizeof(pids));
        for (const char *p = pids; *p; p = end + (*end == '\n')) {
                long one = strtol(p, &end, 10);
                if (one == pid || is_elsewhere(one))
                        return true;
        }
        return false;
}

/* Return true if a dead spancld of this user has left the folder. A spancld that is being started
 * makes a removed one again. */
static bool is_left(int home, const char *name)
{
        struct stat st;
        return !strncmp(name, PREFIX, strlen(PREFIX)) && strlen(name) < NAME_SIZE &&
               !fstatat(home, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode) &&
               st.st_uid == geteuid() && !is_alive(home, name);
}

static void sweep(int home)
{
        uint64_t deadline = clock_now_ns() + SWEEP_MS * 1000000ull;
        int fd = openat(home, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *groups = fd < 0 ? NULL : fdopendir(fd);
        if (fd >= 0 && !groups)
                close(fd);
        for (struct dirent *e; groups && (e = readdir(groups));) {
                if (!is_left(home, e->d_name))
                        continue;
                bool alive = is_populated(home, e->d_name);
                if (alive)
                        (void)write_file(home, e->d_name, "cgroup.kill", "1");
                while (!remove_groups(home, e->d_name) && clock_now_ns() < deadline)
                        usleep(1000);
                if (alive)
                        log_info(LOG, "processes that sessions of %s had left are ended",
                                 e->d_name);
        }
        if (groups)
                closedir(groups);
}

/* ---- the group that spancld is in ------------------------------------------------------------ */

/* Open the folder of this process's group; -1: `*ret_why` is the reason. */
static int open_own(const char **ret_why)
{
        char path[CONTROL_GROUP_PATH];
        size_t unused;
        if (!control_group_folder("/proc/self", NULL, path, &unused, ret_why))
                return -1;
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        *ret_why = strerror(errno);
        return fd;
}

/* Make the folder and move there. Until this process is in it, another spancld may remove it. */
static int move_in(struct cgroups *c)
{
        int r = -EAGAIN;
        char group[sizeof(c->name) + sizeof(SUPERVISOR)];
        for (int i = 0;
             i < TRIES && r < 0 && (r == -EAGAIN || r == -EEXIST || r == -ENOENT || r == -ENODEV);
             i++) {
                snprintf(c->name, sizeof(c->name), i ? PREFIX "%d.%d" : PREFIX "%d", (int)getpid(),
                         i);
                snprintf(group, sizeof(group), "%s/" SUPERVISOR, c->name);
                r = mkdirat(c->home, c->name, 0755) < 0 ? -errno : 0;
                if (r < 0)
                        continue;
                r = mkdirat(c->home, group, 0755) < 0 ? -errno : 0;
                if (!r)
                        r = write_file(c->home, group, "cgroup.procs", "0");
                if (!r) {
                        c->base = openat(c->home, c->name,
                                         O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                        r = c->base < 0 ? -errno : 0;
                }
                if (r < 0)
                        (void)remove_groups(c->home, c->name);
        }
        return r;
}

/* Enable `controller` in the workers' groups. Returns 0 or an errno. */
static int enable(struct cgroups *c, const char *controller)
{
        char text[256], word[16];
        snprintf(word, sizeof(word), "+%s", controller);
        read_file(c->home, ".", "cgroup.controllers", text, sizeof(text));
        if (!has_word(text, controller))
                return -ENOENT;
        read_file(c->home, ".", "cgroup.subtree_control", text, sizeof(text));
        int r = has_word(text, controller)
                        ? 0
                        : write_file(c->home, ".", "cgroup.subtree_control", word);
        return r < 0 ? r : write_file(c->base, ".", "cgroup.subtree_control", word);
}

static bool lock(int home)
{
        uint64_t deadline = clock_now_ns() + LOCK_MS * 1000000ull;
        while (flock(home, LOCK_EX | LOCK_NB) < 0) {
                if (clock_now_ns() > deadline)
                        return false;
                usleep(1000);
        }
        return true;
}

static void log_limit(bool limited, const char *what, const char *why)
{
        static const char help[] =
                "a systemd service with Delegate=yes has them (systemd-run --property=Delegate=yes)";
        if (limited)
                log_warn(LOG, "%s: %s; %s", what, why, help);
        else
                log_info(LOG, "%s: %s; %s", what, why, help);
}

static const char *reason(int r)
{
        return r == -EBUSY    ? "other processes are in spancld's control group"
               : r == -ENOENT ? "the controllers are not there"
                              : strerror(-r);
}

void cgroups_init(struct cgroups *c, const struct config_options *o)
{
        static const char none[] =
                "sessions have no control groups, which would limit memory and processes of each at once";
        const char *why = "";
        uint64_t mib = config_option_number(o, CONFIG_session_memory);
        *c = (struct cgroups){ .home = open_own(&why), .base = -1 };
        c->memory_bytes = limits_memory_bytes(o);
        c->process_count = limits_task_count(o);
        if (c->home < 0) {
                log_limit(mib, none, why);
                return;
        }
        /* A spancld that is half started looks dead to others, hence the lock. Any process can
         * hold it, so the wait has a limit. */
        bool locked = lock(c->home);
        if (locked)
                sweep(c->home);
        int r = move_in(c);
        if (locked)
                (void)flock(c->home, LOCK_UN);
        if (r < 0) {
                log_limit(mib, none, reason(r));
                close(c->home);
                c->home = -1;
                return;
        }
        r = enable(c, "memory");
        c->memory = !r;
        if (r < 0)
                log_limit(
                        mib,
                        "a control group ends what a session has started, but does not limit memory",
                        reason(r));
        r = enable(c, "pids");
        c->pids = !r;
        if (r < 0 && c->memory)
                log_limit(false, "control groups do not limit processes", reason(r));
        /* Sessions get equal shares, by the default weight. The supervisor still answers then. */
        if (!enable(c, "cpu"))
                (void)write_file(c->base, SUPERVISOR, "cpu.weight", "1000");
        (void)enable(c, "io");
}

void cgroups_fini(struct cgroups *c)
{
        static const char *const controllers[] = { "-io", "-cpu", "-pids", "-memory" };
        if (c->base >= 0) {
                cgroups_reap(c);
                for (size_t i = 0; i < array_size(controllers); i++)
                        (void)write_file(c->base, ".", "cgroup.subtree_control", controllers[i]);
                /* Move back, if no rule forbids it; else the next spancld removes the rest. */
                if (write_file(c->home, ".", "cgroup.procs", "0") < 0) {
                        for (size_t i = 0; i < array_size(controllers); i++)
                                (void)write_file(c->home, ".", "cgroup.subtree_control",
                                                 controllers[i]);
                        (void)write_file(c->home, ".", "cgroup.procs", "0");
                }
                if (!is_populated(c->base, SUPERVISOR))
                        (void)write_file(c->base, ".", "cgroup.kill", "1");
                (void)remove_groups(c->home, c->name);
                close(c->base);
        }
        if (c->home >= 0)
                close(c->home);
        buf_fini(&c->ended);
        c->home = c->base = -1;
}

/* ---- a worker's group ----------------------------------------------------------------------- */

static void name_of(unsigned number, char name[16])
{
        snprintf(name, 16, "%u", number);
}

static int limit(const struct cgroups *c, const char *group)
{
        char text[32];
        int r = 0;
        if (c->memory) {
                snprintf(text, sizeof(text), "%llu", (unsigned long long)c->memory_bytes);
                if (c->memory_bytes)
                        r = write_file(c->base, group, "memory.max", text);
                if (c->memory_bytes) /* a kernel without swap has no such file */
                        (void)write_file(c->base, group, "memory.swap.max", "0");
                (void)write_file(c->base, group, "memory.oom.group", "1");
        }
        if (!r && c->pids && c->process_count) {
                snprintf(text, sizeof(text), "%llu", (unsigned long long)c->process_count);
                r = write_file(c->base, group, "pids.max", text);
        }
        return r;
}

int cgroup_make(struct cgroups *c, unsigned *ret_number)
{
        char group[16];
        *ret_number = 0;
        if (c->base < 0)
                return 0;
        name_of(++c->last, group);
        int r = mkdirat(c->base, group, 0755) < 0 ? -errno : limit(c, group);
        if (r < 0) {
                log_error(LOG, "a session's control group can't be made: %s", strerror(-r));
                (void)unlinkat(c->base, group, AT_REMOVEDIR);
                return SP_E_LIMIT;
        }
        *ret_number = c->last;
        return 0;
}

int cgroup_add(struct cgroups *c, unsigned number, pid_t pid)
{
        char group[16], text[16];
        if (!number)
                return 0;
        name_of(number, group);
        snprintf(text, sizeof(text), "%d", (int)pid);
        int r = write_file(c->base, group, "cgroup.procs", text);
        if (!r || r == -ESRCH)
                return 0;
        log_error(LOG, "process %s can't be moved into its control group: %s", text, strerror(-r));
        return SP_E_LIMIT;
}

bool cgroup_weigh(const struct cgroups *c, unsigned number, unsigned weight)
{
        char group[16], text[16];
        if (!number)
                return false;
        name_of(number, group);
        snprintf(text, sizeof(text), "%u", weight);
        return !write_file(c->base, group, "cpu.weight", text);
}

uint64_t cgroup_cpu_ns(const struct cgroups *c, unsigned number)
{
        char group[16], text[1024];
        if (!number)
                return 0;
        name_of(number, group);
        read_file(c->base, group, "cpu.stat", text, sizeof(text));
        return (uint64_t)number_of(text, "usage_usec") * 1000;
}

enum cgroup_end cgroup_end_of(const struct cgroups *c, unsigned number)
{
        char group[16], text[256];
        if (!number || !c->memory)
                return CGROUP_ALIVE;
        name_of(number, group);
        read_file(c->base, group, "memory.events", text, sizeof(text));
        if (!number_of(text, "oom_kill"))
                return CGROUP_ALIVE;
        return c->memory_bytes && number_of(text, "oom") ? CGROUP_OVER_LIMIT : CGROUP_HOST_FULL;
}

/* Remove the group. False: there are still processes in it. */
static bool try_remove(const struct cgroups *c, unsigned number)
{
        char group[16];
        name_of(number, group);
        return !unlinkat(c->base, group, AT_REMOVEDIR) || errno == ENOENT;
}

void cgroup_end(struct cgroups *c, unsigned number)
{
        char group[16];
        if (!number)
                return;
        name_of(number, group);
        if (is_populated(c->base, group))
                (void)write_file(c->base, group, "cgroup.kill", "1");
        /* If the list has no memory for it, the group is removed at the end. */
        if (!try_remove(c, number))
                (void)!buf_put(&c->ended, &number, sizeof(number));
}

void cgroups_reap(struct cgroups *c)
{
        unsigned number;
        size_t kept = 0;
        for (size_t i = 0; i < c->ended.size; i += sizeof(number)) {
                memcpy(&number, c->ended.data + i, sizeof(number));
                if (try_remove(c, number))
                        continue;
                memcpy(c->ended.data + kept, &number, sizeof(number));
                kept += sizeof(number);
        }
        c->ended.size = kept;
}

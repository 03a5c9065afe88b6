#include "sandbox/namespaces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/text_file.h"
#include "sandbox/sandbox.h"

static pid_t number_outside; /* 0: no namespaces */
static bool has_users, has_proc;

static bool put(const char *file, const char *text)
{
        int r = text_file_write(AT_FDCWD, file, text);
        errno = -r;
        return !r;
}

/* Map the same user and group, and no others, into a new user namespace (user_namespaces(7)). */
static bool keep_user(uid_t user, gid_t group)
{
        char users[64], groups[64];
        snprintf(users, sizeof(users), "%u %u 1", (unsigned)user, (unsigned)user);
        snprintf(groups, sizeof(groups), "%u %u 1", (unsigned)group, (unsigned)group);
        return put("/proc/self/setgroups", "deny") && put("/proc/self/gid_map", groups) &&
               put("/proc/self/uid_map", users);
}

/* Return true if /proc belongs to this process's PID namespace. Otherwise a new namespace can't
 * be verified. */
static bool knows_itself(void)
{
        char text[16] = "";
        return readlink("/proc/self", text, sizeof(text) - 1) > 0 && atoi(text) == getpid();
}

/* Return true if the root folder is the root of a mount, as pivot_root(2) and the mounts of a new
 * namespace require. In the folder of a chroot(2) it may not be. */
static bool root_is_mount(void)
{
        struct statx x;
        return statx(AT_FDCWD, "/", 0, 0, &x) < 0 ||
               !(x.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) ||
               x.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* Find out if this process can have namespaces that belong to a new user namespace. A child tries
 * it, because it can't be undone. Returns 0 or an errno. */
static int try_users(int wanted, uid_t user, gid_t group)
{
        int status = 0;
        pid_t pid = fork();
        if (!pid) {
                errno = 0;
                bool ok = unshare(CLONE_NEWUSER | wanted) == 0 && keep_user(user, group);
                _exit(ok ? 0 : errno ? errno : EPERM);
        }
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return pid < 0 ? errno : WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

int namespaces_leave(const struct config_options *o)
{
        /* The shm provider of libfabric names processes by their numbers, and reads their memory. */
        if (!config_option_flag(o, CONFIG_sandbox) || !config_option_flag(o, CONFIG_namespaces) ||
            !strcmp(config_option_text(o, CONFIG_fabric), "shm"))
                return 0;
        if (!knows_itself())
                return ENOENT;
        if (!root_is_mount())
                return EINVAL;
        int wanted = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                     (worker_needs_network(o) ? 0 : CLONE_NEWNET);
        uid_t user = geteuid();
        gid_t group = getegid();
        if (!unshare(wanted))
                return 0;
        /* --user needs a second user, but a user namespace made here has only one. */
        if (errno != EPERM || (!user && *config_option_text(o, CONFIG_user)))
                return errno;
        int error = try_users(wanted, user, group);
        if (error)
                return error;
        has_users = unshare(CLONE_NEWUSER | wanted) == 0 && keep_user(user, group);
        return has_users ? 0 : -1;
}

static const unsigned long proc_flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

/* Make a file or folder of /proc read-only. 0 or an errno. */
static int make_readonly(const char *path)
{
        if (mount(path, path, NULL, MS_BIND, NULL) < 0)
                return errno == ENOENT ? 0 : errno;
        return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | proc_flags, NULL) < 0
                       ? errno
                       : 0;
}

/* Mount /proc. All but the folders of processes concerns the whole host, and is read-only, even for uid 0. */
static int mount_proc(void)
{
        char path[PATH_MAX];
        struct stat st;
        int error = 0;
        if (mount("proc", "/proc", "proc", proc_flags, NULL) < 0)
                return errno;
        DIR *dir = opendir("/proc");
        if (!dir)
                return errno;
        for (struct dirent *e; !error && (e = readdir(dir));) {
                bool of_process = *e->d_name >= '0' && *e->d_name <= '9';
                if (of_process || *e->d_name == '.' ||
                    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                snprintf(path, sizeof(path), "/proc/%s", e->d_name);
                /* Links lead to the folders of processes. */
                if (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && st.st_mode & 0222))
                        error = make_readonly(path);
        }
        closedir(dir);
        return error;
}

int namespaces_enter(pid_t outside)
{
        if (getpid() != 1 || getppid()) /* the first process of a namespace sees no parent */
                return 0;
        /* Without this, mounts of a chroot would appear on the host. */
        if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
                return errno;
        number_outside = outside;
        int error = mount_proc();
        has_proc = !error;
        return error;
}

pid_t namespaces_outside(void)
{
        return number_outside;
}

bool namespaces_have_proc(void)
{
        return has_proc;
}

bool namespaces_of_users(void)
{
        return has_users;
}

#include "sandbox/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/log.h"
#include "sandbox/sandbox.h"

#define LOG "sandbox"

static pid_t number_outside; /* 0: there are no namespaces */
static bool has_users;

static bool put(const char *file, const char *text)
{
        int fd = open(file, O_WRONLY | O_CLOEXEC);
        bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
        if (fd >= 0)
                close(fd);
        return ok;
}

/* In a new user namespace: the same user and group, and no others (user_namespaces(7)). */
static bool keep_user(uid_t user, gid_t group)
{
        char users[64], groups[64];
        snprintf(users, sizeof(users), "%u %u 1", (unsigned)user, (unsigned)user);
        snprintf(groups, sizeof(groups), "%u %u 1", (unsigned)group, (unsigned)group);
        return put("/proc/self/setgroups", "deny") && put("/proc/self/gid_map", groups) &&
               put("/proc/self/uid_map", users);
}

/* Is /proc of this process's namespace? A new one can't be told from it otherwise. */
static bool knows_itself(void)
{
        char text[16] = "";
        return readlink("/proc/self", text, sizeof(text) - 1) > 0 && atoi(text) == getpid();
}

int namespaces_leave(const struct config_options *o)
{
        /* libfabric's shm names processes by their numbers, and reads the memory of others. */
        if (!config_option_flag(o, CONFIG_sandbox) || !config_option_flag(o, CONFIG_namespaces) ||
            !strcmp(config_option_text(o, CONFIG_fabric), "shm"))
                return 0;
        if (!knows_itself())
                return ENOENT;
        int wanted = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                     (worker_needs_network(o) ? 0 : CLONE_NEWNET);
        uid_t user = geteuid();
        gid_t group = getegid();
        if (!unshare(wanted))
                return 0;
        /* --user needs a user that a namespace of one user does not have. */
        if (errno != EPERM || (!user && *config_option_text(o, CONFIG_user)) ||
            unshare(CLONE_NEWUSER | wanted) < 0)
                return errno;
        has_users = keep_user(user, group);
        if (has_users)
                return 0;
        log_error(LOG, "the user of a new namespace can't be set: %s", strerror(errno));
        return -1;
}

void namespaces_enter(pid_t outside)
{
        if (getpid() != 1 || getppid()) /* the first process has no parent that it knows */
                return;
        number_outside = outside;
        if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
            mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
                log_info(LOG, "/proc shows sessions the host's processes: %s", strerror(errno));
}

pid_t namespaces_outside(void)
{
        return number_outside;
}

bool namespaces_of_users(void)
{
        return has_users;
}

#include "sandbox/user.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/host_user.h"
#include "sandbox/namespaces.h"

#define LOG "sandbox"

/* The numbers of sessions' users: this plus the process's number, so that no two sessions share
 * one. systemd's list (UIDS-GIDS.md) reserves this range for no other use. */
#define FIRST_USER 0x70000000u

enum { GROUPS_MAX = 32 };

bool user_lay_aside(struct user *u, const struct config_options *o, const char *scratch_dir)
{
        const char *name = config_option_text(o, CONFIG_user);
        *u = (struct user){ 0 };
        if (!*name)
                return true;
        struct host_user user;
        if (!host_user_find(name, &user)) {
                log_error(LOG, "--user %s: there is no such user", name);
                return false;
        }
        if (geteuid() == user.user)
                return true;
        u->uid = user.user;
        u->gid = user.group;
        if (chown(scratch_dir, u->uid, u->gid) < 0 || initgroups(name, u->gid) < 0 ||
            setegid(u->gid) < 0 || seteuid(u->uid) < 0) {
                log_error(LOG, "can't become user %s: %s", name, strerror(errno));
                return false;
        }
        host_user_settle(&user); /* drivers write their caches there */
        return true;
}

bool user_take_up(void)
{
        return getuid() == geteuid() || (seteuid(getuid()) == 0 && setegid(getgid()) == 0);
}

void user_choose(struct user *u, const struct config_options *o)
{
        pid_t pid = namespaces_outside();
        if (geteuid() || u->uid || !pid || namespaces_of_users() ||
            *config_option_text(o, CONFIG_almaif))
                return;
        u->uid = u->gid = FIRST_USER + (unsigned)pid;
        u->own = true;
}

/* Without capabilities, root still owns root's files, but can't access those of others. */
void user_drop_powers(void)
{
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = { 0 };
        for (int i = 0; i <= CAP_LAST_CAP; i++)
                (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
        (void)!syscall(SYS_capset, &head, none);
}

static size_t add_group(gid_t *groups, size_t n, const struct stat *st)
{
        const mode_t both = S_IRGRP | S_IWGRP;
        if (!S_ISCHR(st->st_mode) || !st->st_gid || (st->st_mode & both) != both || n == GROUPS_MAX)
                return n;
        for (size_t i = 0; i < n; i++)
                if (groups[i] == st->st_gid)
                        return n;
        groups[n] = st->st_gid;
        return n + 1;
}

/* Find the groups that own devices, such as "video" and "render". */
static size_t find_groups(const struct paths *p, gid_t *groups)
{
        struct stat st;
        size_t n = 0;
        for (size_t i = 0; i < p->count; i++) {
                if (p->list[i].use != PATH_DEVICE || stat(p->list[i].name, &st) < 0)
                        continue;
                n = add_group(groups, n, &st);
                DIR *dir = S_ISDIR(st.st_mode) ? opendir(p->list[i].name) : NULL;
                for (struct dirent *e; dir && (e = readdir(dir));)
                        if (fstatat(dirfd(dir), e->d_name, &st, 0) == 0)
                                n = add_group(groups, n, &st);
                if (dir)
                        closedir(dir);
        }
        return n;
}

bool user_become(const struct user *u, const struct config_options *o, const struct paths *p)
{
        gid_t groups[GROUPS_MAX];
        if (u->own && setgroups(find_groups(p, groups), groups) < 0) {
                log_error(LOG, "can't have the devices' groups: %s", strerror(errno));
                return false;
        }
        if (u->uid &&
            (setresgid(u->gid, u->gid, u->gid) < 0 || setresuid(u->uid, u->uid, u->uid) < 0)) {
                log_error(LOG, "can't become user %u: %s", (unsigned)u->uid, strerror(errno));
                return false;
        }
        if (u->uid)
                prctl(PR_SET_DUMPABLE, 1); /* else /proc/self would be root's */
        if (!config_option_flag(o, CONFIG_sandbox))
                return true;
        if (!geteuid())
                log_info(
                        LOG,
                        "workers run as root without its capabilities; --user gives them another user");
        user_drop_powers(); /* also those in a user namespace */
        return true;
}

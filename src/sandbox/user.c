#include "sandbox/user.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

#define LOG "sandbox"

static bool become(const char *name, const char *scratch_dir)
{
        const struct passwd *user = getpwnam(name);
        if (!user) {
                log_error(LOG, "--user %s: there is no such user", name);
                return false;
        }
        if (geteuid() == user->pw_uid)
                return true;
        if (chown(scratch_dir, user->pw_uid, user->pw_gid) < 0 ||
            initgroups(name, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 ||
            setuid(user->pw_uid) < 0) {
                log_error(LOG, "can't become user %s: %s", name, strerror(errno));
                return false;
        }
        setenv("HOME", user->pw_dir, 1); /* whose caches drivers write */
        unsetenv("XDG_CACHE_HOME");
        prctl(PR_SET_DUMPABLE, 1); /* so that /proc/self is its own */
        return true;
}

/* Root without its powers is still the owner of root's files, but cannot get at others'. */
void user_drop_powers(void)
{
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = { 0 };
        for (int i = 0; i <= CAP_LAST_CAP; i++)
                (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
        (void)!syscall(SYS_capset, &head, none);
}

bool sandbox_user(const struct config_options *o, const char *scratch_dir)
{
        const char *name = config_option_text(o, CONFIG_user);
        if (*name && !become(name, scratch_dir))
                return false;
        if (!geteuid() && config_option_flag(o, CONFIG_sandbox)) {
                log_info(LOG, "workers run as root: --user names a better one");
                user_drop_powers();
        }
        return true;
}

#include "daemon/system/rights.h"

#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/host_user.h"
#include "os/process/process.h"
#include "os/process/rights.h"

bool rights_become(const char *name)
{
        struct host_user user;
        if (!*name || geteuid())
                return true;
        if (!host_user_find(name, &user) || initgroups(name, user.group) < 0 ||
            setgid(user.group) < 0 || setuid(user.user) < 0)
                return false;
        host_user_settle(&user);
        return true;
}

/* setresuid(2) itself changes one thread; the C library changes all. */
bool rights_become_thread(unsigned user, unsigned group)
{
        return !syscall(SYS_setgroups, 0, NULL) && !syscall(SYS_setresgid, group, group, group) &&
               !syscall(SYS_setresuid, user, user, user);
}

void rights_gain_none(void)
{
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int rights_give_up(unsigned files)
{
        const struct rlimit limit = { files, files };
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        int error = rights_become_nobody();
        rights_gain_none();
        process_end_with_parent(); /* behind the change of user, which clears it */
        return error;
}

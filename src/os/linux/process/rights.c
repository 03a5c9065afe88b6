#include "os/process/rights.h"

#include <errno.h>
#include <grp.h>
#include <malloc.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NOBODY = 65534, DESCRIPTORS = 64, MEMORY_MIB = 256 };

static void limit(int what, rlim_t value)
{
        struct rlimit r;
        if (getrlimit(what, &r) < 0)
                return;
        r.rlim_max = r.rlim_max < value ? r.rlim_max : value;
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(what, &r);
}

int rights_become_nobody(void)
{
        if (geteuid())
                return 0;
        const struct passwd *nobody = getpwnam("nobody");
        uid_t uid = nobody ? nobody->pw_uid : NOBODY;
        gid_t gid = nobody ? nobody->pw_gid : NOBODY;
        return setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
                               setresuid(uid, uid, uid) < 0
                       ? errno
                       : 0;
}

void rights_drop_but_threads(void)
{
        if (rights_become_nobody())
                fprintf(stderr, "the process stays root's: it can't become nobody\n");
        if (chdir("/") < 0)
                fprintf(stderr, "the process keeps its folder: it can't enter /\n");
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#ifdef M_ARENA_MAX
        /* Each thread's heap would reserve much of the limited addresses. musl has no such heaps. */
        (void)mallopt(M_ARENA_MAX, 1);
#endif
        limit(RLIMIT_CORE, 0);
        limit(RLIMIT_NOFILE, DESCRIPTORS);
#ifndef SPANCL_SANITIZED
        limit(RLIMIT_AS, (rlim_t)MEMORY_MIB << 20);
#endif
}

void rights_end_threads(void)
{
        limit(RLIMIT_NPROC, 0);
}

void rights_drop(void)
{
        rights_drop_but_threads();
        rights_end_threads();
}

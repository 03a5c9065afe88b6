#include "os/ownership.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/text_file.h"

/* Return true if the group is this user's alone: the primary one, with the user's name and no other member. */
static bool is_private_group(gid_t gid)
{
        char user_text[1024], group_text[4096];
        struct passwd user, *u;
        struct group group, *g;
        if (getpwuid_r(geteuid(), &user, user_text, sizeof(user_text), &u) || !u ||
            u->pw_gid != gid || getgrgid_r(gid, &group, group_text, sizeof(group_text), &g) || !g ||
            strcmp(g->gr_name, u->pw_name) != 0)
                return false;
        for (char **m = g->gr_mem; *m; m++)
                if (strcmp(*m, u->pw_name) != 0)
                        return false;
        return true;
}

static enum ownership judge(const struct stat *st)
{
        if (st->st_uid && st->st_uid != geteuid())
                return OWNERSHIP_FOREIGN;
        if (S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX)
                return OWNERSHIP_PRIVATE;
        return st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && !is_private_group(st->st_gid))
                       ? OWNERSHIP_SHARED
                       : OWNERSHIP_PRIVATE;
}

bool ownership_of_file(int fd, enum ownership *ret, unsigned *ret_user)
{
        struct stat st;
        if (fstat(fd, &st) < 0)
                return false;
        *ret = judge(&st);
        *ret_user = st.st_uid;
        return true;
}

bool ownership_of_folder(const char *path, enum ownership *ret, unsigned *ret_user)
{
        struct stat st;
        if (stat(path, &st) < 0)
                return false;
        *ret = judge(&st);
        *ret_user = st.st_uid;
        return true;
}

bool ownership_is_unmapped(const char *path)
{
        char text[16];
        struct stat st;
        text_file_read(AT_FDCWD, "/proc/sys/kernel/overflowuid", text, sizeof(text));
        return *text && stat(path, &st) == 0 && st.st_uid == strtoul(text, NULL, 10) &&
               faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0;
}

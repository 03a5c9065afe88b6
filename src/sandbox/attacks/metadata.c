/* Attacks on modes, owners, times and attributes of files outside: Landlock does not control
 * them. */
#include "sandbox/attacks/attack.h"

int attack_chmod_file(struct attack *a)
{
        return judge(a, SYS3(fchmodat, AT_CWD, P(prey), 0666));
}

int attack_chmod_by_new_call(struct attack *a)
{
        return judge(a, SYS4(fchmodat2, AT_CWD, P(prey), 0666, 0));
}

int attack_chmod_by_link(struct attack *a)
{
        char path[PATH_SIZE];
        u32 at = 0;
        i64 fd = open_file(P(prey), O_NAME);
        if (fd < 0)
                return judge(a, fd);
        put_text(path, &at, "/proc/self/fd/");
        put_number(path, &at, (u64)fd);
        i64 r = SYS3(fchmodat, AT_CWD, path, 0666);
        (void)SYS1(close, fd);
        return judge(a, r);
}

int attack_chmod_by_empty_path(struct attack *a)
{
        i64 fd = open_file(P(prey), O_NAME);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS4(fchmodat2, fd, "", 0666, AT_EMPTY);
        (void)SYS1(close, fd);
        return judge(a, r);
}

int attack_chmod_folder(struct attack *a)
{
        return judge(a, SYS3(fchmodat, AT_CWD, P(outside), 0777));
}

int attack_chmod_keys(struct attack *a)
{
        return judge(a, SYS3(fchmodat, AT_CWD, P(keys), 0600));
}

int attack_chmod_other_scratch(struct attack *a)
{
        return judge(a, SYS3(fchmodat, AT_CWD, P(other_scratch), 0700));
}

int attack_chmod_other_cache(struct attack *a)
{
        return judge(a, SYS3(fchmodat, AT_CWD, P(other_cache), 0700));
}

int attack_chown_file(struct attack *a)
{
        return judge(a, SYS5(fchownat, AT_CWD, P(prey), -1, SYS0(getegid), 0));
}

int attack_set_times(struct attack *a)
{
        return judge(a, SYS4(utimensat, AT_CWD, P(prey), 0, 0));
}

int attack_set_times_by_fd(struct attack *a)
{
        i64 fd = open_file(P(prey), O_NAME);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS4(utimensat, fd, "", 0, AT_EMPTY);
        (void)SYS1(close, fd);
        return judge(a, r);
}

int attack_set_attribute(struct attack *a)
{
        char value = 'x';
        return judge(a, SYS5(setxattr, P(prey), "user.prey", &value, 1, 0));
}

int attack_set_attribute_at(struct attack *a)
{
        char value = 'x';
        u64 args[2] = { (u64)&value, 1 };
        return judge(a, SYS6(setxattrat, AT_CWD, P(prey), 0, "user.prey", args, sizeof(args)));
}

int attack_remove_attribute(struct attack *a)
{
        char value = 'x';
        i64 r = SYS2(removexattr, P(prey), "user.prey");
        if (r >= 0)
                (void)SYS5(setxattr, P(prey), "user.prey", &value, 1, 0);
        return judge(a, r);
}

int attack_read_attribute(struct attack *a)
{
        char value[16];
        return judge(a, SYS4(getxattr, P(prey), "user.prey", value, sizeof(value)));
}

int attack_set_capability(struct attack *a)
{
        u32 none[5] = { 0x02000000, 0, 0, 0, 0 };
        return judge(a, SYS5(setxattr, P(prey), "security.capability", none, sizeof(none), 0));
}

int attack_set_file_flags(struct attack *a)
{
        u64 flags[4] = { 0 };
        return judge(a, SYS5(file_setattr, AT_CWD, P(prey), flags, 24, 0));
}

int attack_watch_folder(struct attack *a)
{
        i64 fd = SYS1(inotify_init1, O_CLOSE);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS3(inotify_add_watch, fd, P(outside), 0xfff);
        (void)SYS1(close, fd);
        return judge(a, r);
}

int attack_watch_other_scratch(struct attack *a)
{
        i64 fd = SYS1(inotify_init1, O_CLOSE);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS3(inotify_add_watch, fd, P(other_scratch), 0xfff);
        (void)SYS1(close, fd);
        return judge(a, r);
}

int attack_watch_everything(struct attack *a)
{
        return judge_fd(a, SYS2(fanotify_init, 0x200, 0)); /* FAN_REPORT_FID */
}

int attack_lock_other_scratch(struct attack *a)
{
        i64 fd = open_file(P(other_scratch), O_READ | O_FOLDER);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS2(flock, fd, 2 | 4);
        (void)SYS1(close, fd);
        return r == -11 ? ATTACK_BREACHED : judge(a, r); /* the supervisor holds it */
}

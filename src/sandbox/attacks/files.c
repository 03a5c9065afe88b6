/* Files outside the session's folders. */
#include "sandbox/attacks/attack.h"

int attack_read_secret(struct attack *a)
{
        return opens(a, P(secret), O_READ);
}

int attack_read_shadow(struct attack *a)
{
        return opens(a, (i64) "/etc/shadow", O_READ);
}

int attack_read_keys(struct attack *a)
{
        return opens(a, P(keys), O_READ);
}

int attack_list_folder(struct attack *a)
{
        return opens(a, P(outside), O_READ | O_FOLDER);
}

int attack_read_by_root_link(struct attack *a)
{
        char path[PATH_SIZE];
        u32 at = 0;
        put_text(path, &at, "/proc/self/root");
        put_param(path, &at, P(secret));
        return opens(a, (i64)path, O_READ);
}

int attack_read_by_supervisor_root(struct attack *a)
{
        char path[PATH_SIZE];
        path_of(path, N(supervisor), "root");
        u32 at = 0;
        while (path[at])
                at++;
        put_param(path, &at, P(secret));
        return opens(a, (i64)path, O_READ);
}

int attack_read_by_link(struct attack *a)
{
        char path[PATH_SIZE];
        path_in(path, P(scratch), "link");
        i64 r = SYS3(symlinkat, P(secret), AT_CWD, path);
        if (r < 0)
                return judge(a, r);
        int outcome = opens(a, (i64)path, O_READ);
        (void)SYS3(unlinkat, AT_CWD, path, 0);
        return outcome;
}

int attack_read_by_handle(struct attack *a)
{
        u32 handle[40] = { 128, 0 };
        i32 mount = 0;
        i64 r = SYS5(name_to_handle_at, AT_CWD, P(secret), handle, &mount, 0);
        if (r < 0)
                return judge(a, r);
        i64 folder = open_file(P(scratch), O_READ | O_FOLDER);
        r = SYS3(open_by_handle_at, folder, handle, O_READ);
        (void)SYS1(close, folder);
        return judge_fd(a, r);
}

int attack_write_file(struct attack *a)
{
        return opens(a, P(prey), O_WRITE);
}

int attack_truncate_file(struct attack *a)
{
        return judge(a, SYS2(truncate, P(prey), 5));
}

int attack_truncate_on_open(struct attack *a)
{
        return opens(a, P(prey), O_READ | O_TRUNCATE);
}

/* Remove an entry that the attack has made. */
static int made(struct attack *a, i64 r, i64 path, i64 flags)
{
        if (r >= 0)
                (void)SYS3(unlinkat, AT_CWD, path, flags);
        return judge(a, r);
}

int attack_create_file(struct attack *a)
{
        char path[PATH_SIZE];
        i64 fd = open_file(path_in(path, P(outside), "made"), O_BOTH | O_CREATE);
        if (fd >= 0)
                (void)SYS1(close, fd);
        return made(a, fd, (i64)path, 0);
}

int attack_make_folder(struct attack *a)
{
        char path[PATH_SIZE];
        path_in(path, P(outside), "made");
        return made(a, SYS3(mkdirat, AT_CWD, path, 0700), (i64)path, AT_REMOVE_DIR);
}

int attack_make_link(struct attack *a)
{
        char path[PATH_SIZE];
        path_in(path, P(outside), "made");
        return made(a, SYS3(symlinkat, "nowhere", AT_CWD, path), (i64)path, 0);
}

int attack_make_fifo(struct attack *a)
{
        char path[PATH_SIZE];
        path_in(path, P(outside), "made");
        return made(a, SYS4(mknodat, AT_CWD, path, 0010600, 0), (i64)path, 0);
}

int attack_make_device(struct attack *a)
{
        char path[PATH_SIZE];
        path_in(path, P(scratch), "device"); /* a node of /dev/null */
        return made(a, SYS4(mknodat, AT_CWD, path, 0020600, 0x103), (i64)path, 0);
}

int attack_hard_link_in(struct attack *a)
{
        char path[PATH_SIZE];
        path_in(path, P(scratch), "linked");
        return made(a, SYS5(linkat, AT_CWD, P(prey), AT_CWD, path, 0), (i64)path, 0);
}

int attack_hard_link_out(struct attack *a)
{
        char path[PATH_SIZE], own[PATH_SIZE];
        i64 fd = open_file(path_in(own, P(scratch), "own"), O_BOTH | O_CREATE);
        if (fd < 0)
                return judge(a, fd);
        (void)SYS1(close, fd);
        path_in(path, P(outside), "made");
        int outcome = made(a, SYS5(linkat, AT_CWD, own, AT_CWD, path, 0), (i64)path, 0);
        (void)SYS3(unlinkat, AT_CWD, own, 0);
        return outcome;
}

static int renamed(struct attack *a, i64 from, i64 to)
{
        i64 r = SYS5(renameat2, AT_CWD, from, AT_CWD, to, 1); /* over nothing */
        if (r >= 0)
                (void)SYS5(renameat2, AT_CWD, to, AT_CWD, from, 1);
        return judge(a, r);
}

int attack_rename_file(struct attack *a)
{
        char path[PATH_SIZE];
        i64 to = path_in(path, P(outside), "renamed");
        return renamed(a, P(prey), to);
}

int attack_rename_in(struct attack *a)
{
        char path[PATH_SIZE];
        i64 to = path_in(path, P(scratch), "renamed");
        return renamed(a, P(prey), to);
}

int attack_remove_file(struct attack *a)
{
        char path[PATH_SIZE];
        i64 r = SYS3(unlinkat, AT_CWD, path_in(path, P(outside), "dispensable"), 0);
        if (r >= 0)
                (void)SYS1(close, open_file((i64)path, O_WRITE | O_CREATE));
        return judge(a, r);
}

static int removed_folder(struct attack *a, i64 path)
{
        i64 r = SYS3(unlinkat, AT_CWD, path, AT_REMOVE_DIR);
        if (r >= 0)
                (void)SYS3(mkdirat, AT_CWD, path, 0700);
        return judge(a, r);
}

int attack_remove_folder(struct attack *a)
{
        return removed_folder(a, P(empty));
}

int attack_remove_other_scratch(struct attack *a)
{
        return removed_folder(a, P(other_empty));
}

int attack_read_other_scratch(struct attack *a)
{
        char path[PATH_SIZE];
        return opens(a, path_in(path, P(other_scratch), "file"), O_READ);
}

int attack_list_other_scratch(struct attack *a)
{
        return opens(a, P(other_scratch), O_READ | O_FOLDER);
}

int attack_write_other_scratch(struct attack *a)
{
        char path[PATH_SIZE];
        return opens(a, path_in(path, P(other_scratch), "file"), O_WRITE);
}

int attack_read_shared_memory(struct attack *a)
{
        return opens(a, P(shared_file), O_READ);
}

int attack_write_core_pattern(struct attack *a)
{
        return opens(a, (i64) "/proc/sys/kernel/core_pattern", O_WRITE);
}

int attack_write_sysrq(struct attack *a)
{
        return opens(a, (i64) "/proc/sysrq-trigger", O_WRITE);
}

int attack_write_own_program(struct attack *a)
{
        return opens(a, (i64) "/proc/self/exe", O_WRITE);
}

/* The supervisor's copy of the program is also that of the next workers. */
int attack_write_library(struct attack *a)
{
        return opens(a, (i64) "/lib64/ld-linux-x86-64.so.2", O_BOTH);
}

int attack_see_file(struct attack *a)
{
        u64 facts[32];
        return judge(a, SYS5(statx, AT_CWD, P(secret), 0, 0x7ff, facts));
}

int attack_read_other_cache(struct attack *a)
{
        char path[PATH_SIZE];
        return opens(a, path_in(path, P(other_cache), "file"), O_READ);
}

int attack_list_other_cache(struct attack *a)
{
        return opens(a, P(other_cache), O_READ | O_FOLDER);
}

int attack_write_other_cache(struct attack *a)
{
        char path[PATH_SIZE];
        return opens(a, path_in(path, P(other_cache), "file"), O_WRITE);
}

int attack_create_in_other_cache(struct attack *a)
{
        char path[PATH_SIZE];
        i64 fd = open_file(path_in(path, P(other_cache), "made"), O_BOTH | O_CREATE);
        if (fd >= 0)
                (void)SYS1(close, fd);
        return made(a, fd, (i64)path, 0);
}

int attack_rename_other_cache(struct attack *a)
{
        char path[PATH_SIZE];
        i64 to = path_in(path, P(cache), "stolen");
        return renamed(a, P(other_cache), to);
}

int attack_link_to_other_cache(struct attack *a)
{
        char path[PATH_SIZE], file[PATH_SIZE];
        path_in(path, P(cache), "link");
        i64 r = SYS3(symlinkat, P(other_cache), AT_CWD, path);
        if (r < 0)
                return judge(a, r);
        int outcome = opens(a, path_in(file, P(cache), "link/file"), O_READ);
        (void)SYS3(unlinkat, AT_CWD, path, 0);
        return outcome;
}

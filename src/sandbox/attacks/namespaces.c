/* Attacks that make new namespaces, enter others', and mount. */
#include "sandbox/attacks/attack.h"

enum {
        NEW_TIME = 0x80,
        NEW_MOUNTS = 0x20000,
        NEW_CGROUP = 0x02000000,
        NEW_UTS = 0x04000000,
        NEW_IPC = 0x08000000,
        NEW_USER = 0x10000000,
        NEW_PID = 0x20000000,
        NEW_NETWORK = 0x40000000,
};

static int cloned(struct attack *a, i64 flags)
{
        i64 child = SYS5(clone, flags | SIGNAL_CHILD, 0, 0, 0, 0);
        if (!child)
                end_child(0);
        if (child > 0)
                (void)SYS4(wait4, child, 0, 0, 0);
        return judge(a, child);
}

/* Run in a child, so that the worker stays in its namespaces. */
static int unshared(struct attack *a, i64 flags)
{
        i32 status = 0;
        i64 child = fork_child();
        if (child < 0)
                return judge(a, child);
        if (!child) {
                i64 r = SYS1(unshare, flags);
                end_child(r < 0 ? (int)-r : 0);
        }
        (void)SYS4(wait4, child, &status, 0, 0);
        return judge(a, -(i64)(status >> 8 & 0xff));
}

int attack_new_user_and_network(struct attack *a)
{
        return cloned(a, NEW_USER | NEW_NETWORK);
}

int attack_new_user(struct attack *a)
{
        return cloned(a, NEW_USER);
}

int attack_new_mounts(struct attack *a)
{
        return cloned(a, NEW_MOUNTS);
}

int attack_new_processes(struct attack *a)
{
        return cloned(a, NEW_PID);
}

int attack_new_name(struct attack *a)
{
        return cloned(a, NEW_UTS);
}

int attack_new_ipc(struct attack *a)
{
        return cloned(a, NEW_IPC);
}

int attack_new_cgroup(struct attack *a)
{
        return cloned(a, NEW_CGROUP);
}

int attack_new_user_by_clone3(struct attack *a)
{
        u64 args[11] = { NEW_USER | NEW_NETWORK, 0, 0, 0, SIGNAL_CHILD };
        i64 child = SYS2(clone3, args, 64);
        if (!child)
                end_child(0);
        if (child > 0)
                (void)SYS4(wait4, child, 0, 0, 0);
        return judge(a, child);
}

int attack_unshare_user(struct attack *a)
{
        return unshared(a, NEW_USER);
}

int attack_unshare_mounts(struct attack *a)
{
        return unshared(a, NEW_MOUNTS);
}

int attack_unshare_network(struct attack *a)
{
        return unshared(a, NEW_NETWORK);
}

int attack_unshare_time(struct attack *a)
{
        return unshared(a, NEW_TIME);
}

static int entered(struct attack *a, i64 fd, i64 kind)
{
        i32 status = 0;
        if (fd < 0)
                return judge(a, fd);
        i64 child = fork_child();
        if (!child) {
                i64 r = SYS2(setns, fd, kind);
                end_child(r < 0 ? (int)-r : 0);
        }
        (void)SYS1(close, fd);
        if (child < 0)
                return judge(a, child);
        (void)SYS4(wait4, child, &status, 0, 0);
        return judge(a, -(i64)(status >> 8 & 0xff));
}

int attack_enter_supervisor_network(struct attack *a)
{
        char path[PATH_SIZE];
        return entered(a, open_file(path_of(path, N(supervisor), "ns/net"), O_READ), NEW_NETWORK);
}

int attack_enter_supervisor_mounts(struct attack *a)
{
        char path[PATH_SIZE];
        return entered(a, open_file(path_of(path, N(supervisor), "ns/mnt"), O_READ), NEW_MOUNTS);
}

int attack_enter_by_pidfd(struct attack *a)
{
        return entered(a, SYS2(pidfd_open, N(supervisor), 0), NEW_PID | NEW_IPC);
}

int attack_mount_memory(struct attack *a)
{
        i64 r = SYS5(mount, "none", P(scratch), "tmpfs", 0, 0);
        if (r >= 0)
                (void)SYS2(umount2, P(scratch), 2);
        return judge(a, r);
}

int attack_mount_folder(struct attack *a)
{
        i64 r = SYS5(mount, P(outside), P(scratch), 0, 4096, 0); /* MS_BIND */
        if (r >= 0)
                (void)SYS2(umount2, P(scratch), 2);
        return judge(a, r);
}

/* The folder is no mount point, so nothing is lost: EINVAL is a breach. */
int attack_unmount(struct attack *a)
{
        i64 r = SYS2(umount2, P(scratch), 2);
        return r == -22 ? ATTACK_BREACHED : judge(a, r);
}

int attack_change_root(struct attack *a)
{
        i32 status = 0;
        i64 folder = P(scratch), child = fork_child();
        if (child < 0)
                return judge(a, child);
        if (!child) {
                i64 r = SYS1(chroot, folder);
                end_child(r < 0 ? (int)-r : 0);
        }
        (void)SYS4(wait4, child, &status, 0, 0);
        return judge(a, -(i64)(status >> 8 & 0xff));
}

/* The same folder twice is no new root: EINVAL or EBUSY is a breach. */
int attack_pivot_root(struct attack *a)
{
        i64 r = SYS2(pivot_root, P(scratch), P(scratch));
        return r == -22 || r == -16 ? ATTACK_BREACHED : judge(a, r);
}

int attack_open_tree(struct attack *a)
{
        return judge_fd(a, SYS3(open_tree, AT_CWD, "/", O_CLOSE));
}

int attack_clone_tree(struct attack *a)
{
        return judge_fd(a, SYS3(open_tree, AT_CWD, "/", O_CLOSE | 1));
}

int attack_open_tree_with_attributes(struct attack *a)
{
        u64 attributes[4] = { 0 };
        return judge_fd(a, SYS5(open_tree_attr, AT_CWD, "/", O_CLOSE, attributes, 32));
}

int attack_move_mount(struct attack *a)
{
        i64 r = SYS5(move_mount, AT_CWD, P(scratch), AT_CWD, P(scratch), 0);
        return r == -22 || r == -40 ? ATTACK_BREACHED : judge(a, r);
}

int attack_open_filesystem(struct attack *a)
{
        return judge_fd(a, SYS2(fsopen, "tmpfs", 1));
}

int attack_pick_filesystem(struct attack *a)
{
        return judge_fd(a, SYS3(fspick, AT_CWD, "/", 1));
}

int attack_set_mount_attributes(struct attack *a)
{
        u64 attributes[4] = { 0 };
        return judge(a, SYS5(mount_setattr, AT_CWD, "/", 0, attributes, 32));
}

int attack_list_mounts(struct attack *a)
{
        u64 request[4] = { 24, ~0ul, 0, 0 }, ids[8];
        return judge(a, SYS4(listmount, request, ids, 8, 0));
}

int attack_set_host_name(struct attack *a)
{
        i64 r = SYS2(sethostname, "spancl", -1); /* EINVAL is behind the kernel's own check */
        return r == -22 ? ATTACK_BREACHED : judge(a, r);
}

int attack_set_domain_name(struct attack *a)
{
        i64 r = SYS2(setdomainname, "spancl", -1);
        return r == -22 ? ATTACK_BREACHED : judge(a, r);
}

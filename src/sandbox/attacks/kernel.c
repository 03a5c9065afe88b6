/* Attacks on privileges, and on parts of the kernel that drivers and compilers do not need. A
 * call that would change something has arguments that the kernel refuses only after it has
 * checked the caller's rights. */
#include "sandbox/attacks/attack.h"

/* An errno that the kernel returns after the check of rights is a breach, too. */
static int judge_behind(struct attack *a, i64 r, i64 error)
{
        return r == -error ? ATTACK_BREACHED : judge(a, r);
}

int attack_bpf_map(struct attack *a)
{
        u32 attributes[32] = { 2, 4, 4, 1 };
        return judge_fd(a, SYS3(bpf, 0, attributes, 48));
}

int attack_bpf_program(struct attack *a)
{
        u64 code[2] = { 0xb7, 0x95 }, attributes[16] = { 1 | 2ul << 32, 0, 0 };
        attributes[1] = (u64)code;
        attributes[2] = (u64)(TEXT const char *)"GPL";
        return judge_fd(a, SYS3(bpf, 5, attributes, 48));
}

int attack_io_uring(struct attack *a)
{
        u64 params[16] = { 0 };
        return judge_fd(a, SYS2(io_uring_setup, 4, params));
}

static int counts(struct attack *a, i64 pid, u64 flags)
{
        u64 attributes[16] = {
                1 | 112ul << 32, 0, 0, 0, 0, 0
        }; /* software: the clock of the CPU */
        attributes[5] = flags;
        return judge_fd(a, SYS5(perf_event_open, attributes, pid, -1, -1, 8));
}

int attack_perf_self(struct attack *a)
{
        return counts(a, 0, 0);
}

int attack_perf_worker(struct attack *a)
{
        return counts(a, N(worker), 0);
}

int attack_key_ring(struct attack *a)
{
        return judge(a, SYS3(keyctl, 0, -3, 1)); /* KEYCTL_GET_KEYRING_ID of the session */
}

int attack_add_key(struct attack *a)
{
        char byte = 'x';
        return judge(a, SYS5(add_key, "user", "spancl-attack", &byte, 1, -2));
}

int attack_request_key(struct attack *a)
{
        i64 r = SYS4(request_key, "user", "spancl-attack", 0, 0);
        return judge_behind(a, r, 126); /* ENOKEY */
}

int attack_user_faults(struct attack *a)
{
        return judge_fd(a, SYS1(userfaultfd, O_CLOSE | 1));
}

int attack_load_module(struct attack *a)
{
        return judge_behind(a, SYS3(init_module, 0, 0, ""), 8);
}

int attack_load_module_file(struct attack *a)
{
        return judge_behind(a, SYS3(finit_module, -1, "", 0), 9);
}

int attack_remove_module(struct attack *a)
{
        return judge_behind(a, SYS2(delete_module, "spancl_attack", 04000), 2);
}

int attack_load_kernel(struct attack *a)
{
        return judge_behind(a, SYS4(kexec_load, 0, 1, 0, 0xdead0000), 22);
}

int attack_reboot(struct attack *a)
{
        return judge_behind(a, SYS4(reboot, 0, 0, 0, 0), 22); /* without its magic numbers */
}

int attack_swap(struct attack *a)
{
        return judge_behind(a, SYS2(swapon, "/proc/0/nothing", 0), 2);
}

int attack_accounting(struct attack *a)
{
        return judge_behind(a, SYS1(acct, "/proc/0/nothing"), 2);
}

int attack_kernel_log(struct attack *a)
{
        return judge(a, SYS3(syslog, 10, 0, 0)); /* its size */
}

int attack_kernel_log_text(struct attack *a)
{
        char text[64];
        return judge(a, SYS3(syslog, 3, text, sizeof(text)));
}

int attack_set_clock(struct attack *a)
{
        u64 adjustment[32] = { 0 }; /* the clock ticks as it does */
        i64 r = SYS2(clock_adjtime, 0, adjustment);
        if (r < 0)
                return judge(a, r);
        adjustment[0] = 0x4000; /* ADJ_TICK */
        return judge(a, SYS2(clock_adjtime, 0, adjustment));
}

int attack_quota(struct attack *a)
{
        return judge(a, SYS4(quotactl, 0x80000100, 0, 0, 0)); /* Q_SYNC of everything */
}

int attack_segment_table(struct attack *a)
{
        u32 entry[4] = { 0, 0, 0, 0x28 }; /* an empty one */
        return judge(a, SYS3(modify_ldt, 0x11, entry, sizeof(entry)));
}

int attack_ports(struct attack *a)
{
        return judge(a, SYS1(iopl, 3));
}

int attack_device_memory(struct attack *a)
{
        return opens(a, (i64) "/dev/mem", O_READ);
}

int attack_device_log(struct attack *a)
{
        return opens(a, (i64) "/dev/kmsg", O_WRITE);
}

int attack_device_fuse(struct attack *a)
{
        return opens(a, (i64) "/dev/fuse", O_BOTH);
}

int attack_device_kvm(struct attack *a)
{
        return opens(a, (i64) "/dev/kvm", O_BOTH);
}

int attack_device_tunnel(struct attack *a)
{
        return opens(a, (i64) "/dev/net/tun", O_BOTH);
}

int attack_device_input(struct attack *a)
{
        return opens(a, (i64) "/dev/uinput", O_BOTH);
}

int attack_device_terminals(struct attack *a)
{
        return opens(a, (i64) "/dev/ptmx", O_BOTH | 0400); /* O_NOCTTY */
}

int attack_device_loop(struct attack *a)
{
        return opens(a, (i64) "/dev/loop-control", O_BOTH);
}

int attack_device_vhost(struct attack *a)
{
        return opens(a, (i64) "/dev/vhost-net", O_BOTH);
}

int attack_tracing(struct attack *a)
{
        return opens(a, (i64) "/sys/kernel/tracing/trace_pipe", O_READ);
}

int attack_debugging(struct attack *a)
{
        return opens(a, (i64) "/sys/kernel/debug", O_READ | O_FOLDER);
}

int attack_kernel_memory(struct attack *a)
{
        return opens(a, (i64) "/proc/kcore", O_READ);
}

int attack_terminal_input(struct attack *a)
{
        char byte = ' ';
        int outcome = ATTACK_HELD;
        for (i64 fd = 0; fd < 3 && outcome == ATTACK_HELD; fd++)
                outcome = judge(a, SYS3(ioctl, fd, 0x5412, &byte)); /* TIOCSTI */
        return outcome;
}

int attack_become_root(struct attack *a)
{
        if (SYS0(geteuid) == 0)
                return ATTACK_NOT_APPLICABLE;
        return judge(a, SYS3(setresuid, 0, 0, 0));
}

/* Root may give its own user away, but must not take another one. */
int attack_change_user(struct attack *a)
{
        i32 status = 0;
        i64 child = fork_child();
        if (child < 0)
                return judge(a, child);
        if (!child) {
                i64 r = SYS3(setresuid, 12345, 12345, 12345);
                end_child(r < 0 ? (int)-r : 0);
        }
        (void)SYS4(wait4, child, &status, 0, 0);
        return judge(a, -(i64)(status >> 8 & 0xff));
}

int attack_change_groups(struct attack *a)
{
        i32 status = 0, group = 0;
        i64 child = fork_child();
        if (child < 0)
                return judge(a, child);
        if (!child) {
                i64 r = SYS2(setgroups, 1, &group);
                end_child(r < 0 ? (int)-r : 0);
        }
        (void)SYS4(wait4, child, &status, 0, 0);
        return judge(a, -(i64)(status >> 8 & 0xff));
}

int attack_have_capabilities(struct attack *a)
{
        u32 head[2] = { 0x20080522, 0 }, sets[6] = { 0 };
        i64 r = SYS2(capget, head, sets);
        if (r < 0)
                return judge(a, r);
        return sets[0] | sets[1] | sets[3] | sets[4] ? ATTACK_BREACHED : ATTACK_HELD;
}

int attack_gain_capability(struct attack *a)
{
        u32 head[2] = { 0x20080522, 0 }, sets[6] = { 1u << 21, 1u << 21 };
        u32 before[6] = { 0 };
        i64 r = SYS2(capget, head, before);
        if (r >= 0)
                r = SYS2(capset, head, sets);
        if (r >= 0)
                (void)SYS2(capset, head, before);
        return judge(a, r);
}

int attack_regain_privileges(struct attack *a)
{
        i64 r = SYS5(prctl, 39, 0, 0, 0, 0); /* PR_GET_NO_NEW_PRIVS */
        return r == 0 ? ATTACK_BREACHED : judge(a, SYS5(prctl, 38, 0, 0, 0, 0));
}

/* A filter may have forgotten the numbers of x32, or 32-bit calls. */
int attack_other_numbers(struct attack *a)
{
        return judge_fd(a, sys6(NR_userfaultfd | 0x40000000, O_CLOSE | 1, 0, 0, 0, 0, 0));
}

int attack_other_calls(struct attack *a)
{
#if defined(__x86_64__)
        i64 r;
        __asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory"); /* getpid of 32 bits */
        return judge(a, (i64)(i32)r);
#else
        return ATTACK_NOT_APPLICABLE;
#endif
}

int attack_set_user_program(struct attack *a)
{
        u64 facts[32];
        char path[PATH_SIZE];
        i64 fd = open_file(path_in(path, P(scratch), "set-user"), O_BOTH | O_CREATE);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS2(fchmod, fd, 04755);
        (void)SYS1(close, fd);
        i64 s = SYS5(statx, AT_CWD, path, 0, 0x7ff, facts);
        (void)SYS3(unlinkat, AT_CWD, path, 0);
        if (r < 0)
                return judge(a, r);
        /* A file of another user: with a set-user-ID bit, any user who runs it would become this
         * session's user. */
        return s >= 0 && (((u16 *)facts)[14] & 04000) && SYS0(geteuid) == 0 ? ATTACK_BREACHED
                                                                            : ATTACK_HELD;
}

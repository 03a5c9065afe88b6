/* Attacks on other processes: the supervisor, the zygote, other sessions' workers, and
 * bystanders. */
#include "sandbox/attacks/attack.h"

enum {
        PTRACE_SEIZE = 0x4206,
        PTRACE_DETACH = 17,
        PTRACE_ATTACH = 16,
        WAIT_ANY = 0x40000000, /* __WALL */
};

int attack_signal_supervisor(struct attack *a)
{
        return judge(a, SYS2(kill, N(supervisor), 0));
}

int attack_signal_zygote(struct attack *a)
{
        return judge(a, SYS2(kill, N(zygote), 0));
}

int attack_signal_worker(struct attack *a)
{
        return judge(a, SYS2(kill, N(worker), 0));
}

int attack_signal_bystander(struct attack *a)
{
        return judge(a, SYS2(kill, N(bystander), 0));
}

int attack_signal_group(struct attack *a)
{
        return judge(a, SYS2(kill, -N(worker), 0)); /* it leads a group */
}

int attack_signal_thread(struct attack *a)
{
        return judge(a, SYS3(tgkill, N(worker), N(worker), 0));
}

int attack_signal_task(struct attack *a)
{
        return judge(a, SYS2(tkill, N(worker), 0));
}

int attack_signal_queued(struct attack *a)
{
        u32 info[32] = { 0 };
        info[2] = 0xffffffff; /* SI_QUEUE */
        return judge(a, SYS3(rt_sigqueueinfo, N(worker), 0, info));
}

int attack_signal_by_pidfd(struct attack *a)
{
        i64 fd = SYS2(pidfd_open, N(worker), 0);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS4(pidfd_send_signal, fd, 0, 0, 0);
        (void)SYS1(close, fd);
        return judge(a, r);
}

/* The kernel signals the owner of a descriptor when data arrives. SIGIO ends a process without a
 * handler for it. */
int attack_signal_by_owner(struct attack *a)
{
        i32 pair[2];
        i64 owner = N(bystander);
        i64 r = SYS4(socketpair, 1, 1, 0, pair);
        if (r < 0)
                return judge(a, r);
        r = SYS3(fcntl, pair[0], 8, owner); /* F_SETOWN */
        if (r >= 0)
                r = SYS3(fcntl, pair[0], 4, 020000); /* F_SETFL, O_ASYNC */
        (void)SYS3(write, pair[1], pair, 1);
        (void)SYS1(close, pair[0]);
        (void)SYS1(close, pair[1]);
        if (r >= 0)
                return ATTACK_DONE;
        return judge(a, r);
}

static int traced(struct attack *a, i64 pid, i64 how)
{
        i64 r = SYS4(ptrace, how, pid, 0, 0);
        if (r >= 0) {
                if (how == PTRACE_ATTACH)
                        (void)SYS4(wait4, pid, 0, WAIT_ANY, 0);
                (void)SYS4(ptrace, PTRACE_DETACH, pid, 0, 0);
        }
        return judge(a, r);
}

int attack_trace_supervisor(struct attack *a)
{
        return traced(a, N(supervisor), PTRACE_SEIZE);
}

int attack_trace_worker(struct attack *a)
{
        return traced(a, N(worker), PTRACE_SEIZE);
}

int attack_trace_bystander(struct attack *a)
{
        return traced(a, N(bystander), PTRACE_ATTACH);
}

int attack_read_process_memory(struct attack *a)
{
        u64 here[2], there[2] = { PAGE, 1 }; /* no memory is there: EFAULT is a breach, too */
        char byte;
        here[0] = (u64)&byte;
        here[1] = 1;
        i64 r = SYS6(process_vm_readv, N(worker), here, 1, there, 1, 0);
        return r == -14 ? ATTACK_BREACHED : judge(a, r);
}

int attack_write_process_memory(struct attack *a)
{
        u64 here[2], there[2] = { PAGE, 1 };
        char byte = 0;
        here[0] = (u64)&byte;
        here[1] = 1;
        i64 r = SYS6(process_vm_writev, N(worker), here, 1, there, 1, 0);
        return r == -14 ? ATTACK_BREACHED : judge(a, r);
}

static int opens_of(struct attack *a, i64 pid, TEXT const char *name, i64 flags)
{
        char path[PATH_SIZE];
        return opens(a, path_of(path, pid, name), flags);
}

int attack_open_supervisor_memory(struct attack *a)
{
        return opens_of(a, N(supervisor), "mem", O_READ);
}

int attack_open_worker_memory(struct attack *a)
{
        return opens_of(a, N(worker), "mem", O_BOTH);
}

int attack_read_worker_maps(struct attack *a)
{
        return opens_of(a, N(worker), "maps", O_READ);
}

int attack_read_supervisor_environment(struct attack *a)
{
        return opens_of(a, N(supervisor), "environ", O_READ);
}

int attack_read_supervisor_arguments(struct attack *a)
{
        return opens_of(a, N(supervisor), "cmdline", O_READ);
}

int attack_list_supervisor_descriptors(struct attack *a)
{
        return opens_of(a, N(supervisor), "fd", O_READ | O_FOLDER);
}

int attack_open_supervisor_descriptor(struct attack *a)
{
        return opens_of(a, N(supervisor), "fd/2", O_WRITE);
}

int attack_enter_worker_folder(struct attack *a)
{
        return opens_of(a, N(worker), "cwd", O_READ | O_FOLDER);
}

int attack_set_worker_oom_score(struct attack *a)
{
        return opens_of(a, N(worker), "oom_score_adj", O_WRITE);
}

int attack_set_worker_name(struct attack *a)
{
        return opens_of(a, N(worker), "comm", O_WRITE);
}

int attack_take_descriptor(struct attack *a)
{
        i64 fd = SYS2(pidfd_open, N(supervisor), 0);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS3(pidfd_getfd, fd, 2, 0);
        (void)SYS1(close, fd);
        return judge_fd(a, r);
}

int attack_compare_processes(struct attack *a)
{
        return judge(a, SYS5(kcmp, N(supervisor), N(worker), 1, 0, 0));
}

int attack_read_robust_list(struct attack *a)
{
        u64 head = 0, size = 0;
        return judge(a, SYS3(get_robust_list, N(worker), &head, &size));
}

int attack_list_pages(struct attack *a)
{
        u64 page = PAGE;
        i32 status = 0;
        return judge(a, SYS6(move_pages, N(worker), 1, &page, 0, &status, 0));
}

int attack_advise_memory(struct attack *a)
{
        u64 range[2] = { PAGE, 0 };
        i64 fd = SYS2(pidfd_open, N(worker), 0);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS5(process_madvise, fd, range, 1, 20, 0); /* MADV_COLD, of an empty range */
        (void)SYS1(close, fd);
        return judge(a, r);
}

/* Set the present limit again. */
static int limited(struct attack *a, i64 pid)
{
        u64 now[2] = { 0, 0 };
        i64 r = SYS4(prlimit64, pid, FILES_LIMIT, 0, now);
        if (r >= 0)
                r = SYS4(prlimit64, pid, FILES_LIMIT, now, 0);
        return judge(a, r);
}

int attack_limit_supervisor(struct attack *a)
{
        return limited(a, N(supervisor));
}

int attack_limit_worker(struct attack *a)
{
        return limited(a, N(worker));
}

int attack_limit_bystander(struct attack *a)
{
        return limited(a, N(bystander));
}

int attack_read_limit(struct attack *a)
{
        u64 now[2];
        return judge(a, SYS4(prlimit64, N(supervisor), FILES_LIMIT, 0, now));
}

static int scheduled(struct attack *a, i64 pid)
{
        i32 priority = 0; /* SCHED_OTHER has no other */
        return judge(a, SYS3(sched_setscheduler, pid, 0, &priority));
}

int attack_schedule_supervisor(struct attack *a)
{
        return scheduled(a, N(supervisor));
}

int attack_schedule_worker(struct attack *a)
{
        return scheduled(a, N(worker));
}

int attack_schedule_by_parameter(struct attack *a)
{
        i32 priority = 0;
        return judge(a, SYS2(sched_setparam, N(worker), &priority));
}

int attack_schedule_by_attributes(struct attack *a)
{
        u64 attributes[8] = { 48 };
        i64 r = SYS4(sched_getattr, N(bystander), attributes, 48, 0);
        if (r >= 0)
                r = SYS3(sched_setattr, N(bystander), attributes, 0);
        return judge(a, r);
}

static int moved(struct attack *a, i64 pid)
{
        u64 cores[128];
        i64 r = SYS3(sched_getaffinity, pid, sizeof(cores), cores);
        if (r > 0)
                r = SYS3(sched_setaffinity, pid, r, cores);
        return judge(a, r);
}

int attack_move_supervisor(struct attack *a)
{
        return moved(a, N(supervisor));
}

int attack_move_worker(struct attack *a)
{
        return moved(a, N(worker));
}

static int niced(struct attack *a, i64 which, i64 pid)
{
        i64 r = SYS2(getpriority, which, pid); /* 20 - nice */
        if (r >= 0)
                r = SYS3(setpriority, which, pid, 20 - r);
        return judge(a, r);
}

int attack_nice_supervisor(struct attack *a)
{
        return niced(a, 0, N(supervisor));
}

int attack_nice_worker(struct attack *a)
{
        return niced(a, 0, N(worker));
}

int attack_nice_group(struct attack *a)
{
        return niced(a, 1, N(worker));
}

int attack_set_io_priority(struct attack *a)
{
        i64 r = SYS2(ioprio_get, 1, N(worker));
        if (r >= 0)
                r = SYS3(ioprio_set, 1, N(worker), r);
        return judge(a, r);
}

int attack_migrate_pages(struct attack *a)
{
        u64 from = 1, to = 1;
        return judge(a, SYS4(migrate_pages, N(worker), 64, &from, &to));
}

int attack_join_group(struct attack *a)
{
        i64 child = fork_child(); /* so that the worker stays in its own */
        if (child < 0)
                return judge(a, child);
        if (!child) {
                i64 r = SYS2(setpgid, 0, N(supervisor));
                end_child(r < 0 ? (int)-r : 0);
        }
        i32 status = 0;
        (void)SYS4(wait4, child, &status, 0, 0);
        return judge(a, -(i64)(status >> 8 & 0xff));
}

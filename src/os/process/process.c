#include "os/process/process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

pid_t process_self(void)
{
        return getpid();
}

pid_t process_parent(void)
{
        return getppid();
}

unsigned process_user(void)
{
        return geteuid();
}

void process_begin_group(void)
{
        (void)setpgid(0, 0);
}

void process_exit(int status)
{
        _exit(status);
}

void process_priority(int nice)
{
        (void)setpriority(PRIO_PROCESS, 0, nice);
}

unsigned process_file_mask(unsigned mask)
{
        return umask(mask);
}

uint64_t process_files_max(void)
{
        struct rlimit files = { 0 };
        (void)getrlimit(RLIMIT_NOFILE, &files);
        return files.rlim_cur;
}

void process_files_raise(uint64_t wanted)
{
        struct rlimit r;
        if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= wanted || r.rlim_cur == RLIM_INFINITY)
                return;
        r.rlim_cur = r.rlim_max == RLIM_INFINITY || r.rlim_max > wanted ? wanted : r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
}

void process_kill(pid_t pid)
{
        (void)kill(pid, SIGKILL);
}

bool process_was_killed(int status)
{
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

bool process_has_ended(pid_t pid)
{
        siginfo_t info = { 0 };
        return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

bool process_is_child(pid_t pid)
{
        siginfo_t info;
        return pid > 0 && !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
}

pid_t process_ended(void)
{
        siginfo_t info = { 0 };
        return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) ? 0 : info.si_pid;
}

static double seconds(const struct timeval *t)
{
        return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

void process_collect(pid_t pid, int *ret_status, struct process_usage *ret_usage)
{
        struct rusage used;
        int status = 0;
        pid_t r;
        memset(&used, 0, sizeof(used));
        do
                r = wait4(pid, &status, 0, &used);
        while (r < 0 && errno == EINTR);
        if (ret_status)
                *ret_status = status;
        if (ret_usage)
                *ret_usage = (struct process_usage){
                        .cpu_s = seconds(&used.ru_utime) + seconds(&used.ru_stime),
                        .memory_peak_bytes = (uint64_t)used.ru_maxrss << 10,
                };
}

pid_t process_fork(void)
{
        return fork();
}

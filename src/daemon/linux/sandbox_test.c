#include "daemon/system/sandbox_test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/control.h"
#include "daemon/linux/victims.h"
#include "daemon/system/usage.h"
#include "daemon/worker/worker.h"
#include "os/clock.h"
#include "sandbox/attacks/attack.h"
#include "sandbox/limits.h"
#include "sandbox/namespaces.h"

#define LOG "sandbox-test"

enum {
        HANG_S = 60,       /* an attack takes less */
        MEASURE_MS = 1000, /* between measurements of its processes, as by a server's meter */
        SCAN_MS = 30000,   /* of one: a slow host looks at thousands of processes for seconds */
        BUSY = 0,          /* no outcome yet: the process ended in the attack */
        FAILED = -1,       /* the sandbox could not be set up */
};

struct entry {
        const char *group, *name, *sentence;
        enum attack_judge judge;
};

static const struct entry entries[] = {
#define ATTACK(group, name, judge, wall, sentence) { group, #name, sentence, ATTACK_##judge },
#include "sandbox/attacks/attacks.def"
#undef ATTACK
};

static const char *const namespaces[] = { "user", "mnt", "pid", "ipc", "net", "uts", "cgroup" };

/* The measures of the sandbox, as a process inside it sees them. */
struct walls {
        uid_t user;
        bool no_privileges, filter;
        bool capabilities; /* the process has some */
        ino_t namespaces[array_size(namespaces)];
};

/* A result, in memory that the attacking process shares with this one. */
struct report {
        int outcome, error;
        struct walls walls;
};

static void find_walls(struct walls *ret)
{
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[2] = { 0 };
        char path[64];
        struct stat st;
        (void)!syscall(SYS_capget, &head, sets);
        ret->user = geteuid();
        ret->no_privileges = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
        int mode = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
        /* EPERM: the filter refuses the prctl. */
        ret->filter = mode == SECCOMP_MODE_FILTER || (mode < 0 && errno == EPERM);
        ret->capabilities =
                sets[0].effective | sets[1].effective | sets[0].permitted | sets[1].permitted;
        for (size_t i = 0; i < array_size(namespaces); i++) {
                snprintf(path, sizeof(path), "/proc/self/ns/%s", namespaces[i]);
                ret->namespaces[i] = stat(path, &st) == 0 ? st.st_ino : 0;
        }
}

static void print_walls(const struct config_options *o, const struct walls *inside)
{
        struct walls here;
        find_walls(&here);
        long landlock = config_option_flag(o, CONFIG_sandbox)
                                ? syscall(SYS_landlock_create_ruleset, NULL, 0,
                                          LANDLOCK_CREATE_RULESET_VERSION)
                                : 0;
        printf("A session's process here has the user %u%s, %s, %s, %s, ", (unsigned)inside->user,
               inside->user == here.user ? " (the server's)" : "",
               inside->capabilities ? "capabilities" : "no capabilities",
               inside->no_privileges ? "no-new-privs" : "a way to gain privileges",
               inside->filter ? "a filter of system calls" : "no filter of system calls");
        if (landlock > 0)
                printf("Landlock (version %ld), own namespaces:", landlock);
        else
                printf("no Landlock, own namespaces:");
        bool any = false;
        for (size_t i = 0; i < array_size(namespaces); i++)
                if (inside->namespaces[i] != here.namespaces[i]) {
                        printf(" %s", namespaces[i]);
                        any = true;
                }
        printf("%s\n", any ? "" : " none");
}

static void attack_and_end(const struct config_options *o, const struct victims *v, int id,
                           struct report *report, pid_t between)
{
        struct caches caches;
        int pair[2];
        (void)namespaces_enter(between);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* Like a worker, the process has a socket to the supervisor, and no other descriptor of
         * it. */
        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0 || dup2(pair[0], CONTROL_FD) < 0 ||
            close_range(CONTROL_FD + 1, ~0u, 0) < 0 ||
            !worker_shut_in(o, v->scratch, "", &caches, NULL)) {
                report->outcome = FAILED;
                _exit(1);
        }
        find_walls(&report->walls);
        struct attack a = { .params = (const char *)v->params.data };
        int outcome = attack_run(id, &a);
        report->error = a.error;
        report->outcome = outcome;
        _exit(0);
}

/* Run as the intermediate process: the process that it forks can have namespaces of its own. It
 * ends when that one does. */
static void be_between(const struct config_options *o, const struct victims *v, int id,
                       struct report *report)
{
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pid_t self = getpid(), pid = namespaces_leave(o) < 0 ? -1 : fork();
        if (!pid)
                attack_and_end(o, v, id, report, self);
        if (pid < 0)
                report->outcome = FAILED;
        else
                waitpid(pid, NULL, 0);
        _exit(0);
}

/* Return true if the process has more descendants than a server's meter allows a session. */
static bool has_too_many(const struct config_options *o, pid_t pid)
{
        char path[32];
        struct usage u = { 0 };
        snprintf(path, sizeof(path), "/proc/%d", (int)pid);
        struct usage_params p = {
                .folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC),
                .pid = pid,
                .tasks_max = limits_task_count(o),
                .deadline_ns = clock_now_ns() + SCAN_MS * 1000000ull,
        };
        if (p.folder < 0)
                return false;
        bool over = usage_measure(&p, &u) == 0 && u.over_tasks;
        close(p.folder);
        return over;
}

enum ending { BY_ITSELF, MEASURED, NEVER };

/* Wait for the end of the attacking process. */
static enum ending wait_for(const struct config_options *o, pid_t pid)
{
        const struct timespec nap = { .tv_nsec = 1000000 };
        for (int i = 1; i <= HANG_S * 1000; i++) {
                if (waitpid(pid, NULL, WNOHANG) == pid)
                        return BY_ITSELF;
                if (i % MEASURE_MS == 0 && has_too_many(o, pid))
                        return MEASURED;
                nanosleep(&nap, NULL);
        }
        return NEVER;
}

static const char *run_one(const struct config_options *o, const struct victims *v, int id,
                           struct report *report)
{
        report->outcome = BUSY;
        report->error = 0;
        (void)fflush(stdout);
        pid_t pid = fork();
        if (!pid)
                be_between(o, v, id, report);
        enum ending ending = pid > 0 ? wait_for(o, pid) : BY_ITSELF;
        if (pid > 0)
                kill(-pid, SIGKILL); /* what it forked */
        if (pid > 0 && ending != BY_ITSELF)
                waitpid(pid, NULL, 0);
        if (pid < 0 || report->outcome == FAILED)
                return NULL;
        if (ending == MEASURED)
                return "held";
        if (ending == NEVER)
                return "BREACHED";
        switch (report->outcome) {
        case ATTACK_BREACHED:
                return "BREACHED";
        case ATTACK_NOT_APPLICABLE:
                return "not applicable here";
        default: /* or the process was killed for the attack */
                return "held";
        }
}

/* Return true if the attack can be judged here. A worker's log, and a server's work for a worker,
 * exist only at a running server. */
static bool is_for_here(const struct entry *e)
{
        return e->judge == ATTACK_SELF && strcmp(e->group, "log") != 0;
}

static int run_all(const struct config_options *o, const struct victims *v, struct report *report)
{
        unsigned held = 0, breached = 0, other = 0;
        for (int id = 0; id < ATTACK_COUNT; id++) {
                const struct entry *e = &entries[id];
                if (!is_for_here(e))
                        continue;
                const char *outcome = run_one(o, v, id, report);
                if (!outcome) {
                        log_error(LOG, "this host can't shut sessions in");
                        return 2;
                }
                if (!held && !breached && !other)
                        print_walls(o, &report->walls);
                held += *outcome == 'h';
                breached += *outcome == 'B';
                other += *outcome == 'n';
                printf("%-20s %s: %s%s%s%s\n", outcome, e->name, e->sentence,
                       report->error ? " (" : "",
                       report->error ? strerrorname_np(report->error) : "",
                       report->error ? ")" : "");
        }
        printf("%u held, %u breached, %u not applicable here\n", held, breached, other);
        return breached ? 1 : 0;
}

int sandbox_test(const struct config_options *o)
{
        struct victims v;
        int status = 2;
        if (!ATTACKS_KNOWN) {
                log_error(LOG, "there are no attacks for this processor");
                return status;
        }
        struct report *report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (report == MAP_FAILED)
                return status;
        if (victims_make(&v, o) == 0)
                status = run_all(o, &v, report);
        victims_remove(&v);
        munmap(report, sizeof(*report));
        return status;
}

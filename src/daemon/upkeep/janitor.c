#include "daemon/upkeep/janitor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/linux/scratch.h"
#include "daemon/linux/tree.h"
#include "daemon/upkeep/caches.h"
#include "os/clock.h"

#define LOG "janitor"

enum {
        GRACE_S = 60, /* while others may build: newer files stay */
        FINI_MS = 5000,
        WORK_S = 600, /* limit for one process, because sessions may add files all the time */
        NICE = 10,
        /* ioprio_set(2): lowest, but not idle, which starves on a busy host. */
        LAST = 2 << 13 | 7,
};

struct job {
        struct list link;
        char scratch[SCRATCH_PATH_MAX];
        int lock;
        bool all, shared;
        char owner[KEYS_HEX + 1];
};

static void job_free(struct job *job)
{
        list_remove(&job->link);
        if (job->lock >= 0)
                close(job->lock);
        mem_free(job);
}

/* Become the user of --user before trimming its caches. That user can change every folder above
 * them, so the janitor must have no more rights than the user. */
static bool become_user(const char *name)
{
        const struct passwd *user = *name && !geteuid() ? getpwnam(name) : NULL;
        if (!user)
                return !*name || geteuid();
        if (initgroups(name, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 ||
            setuid(user->pw_uid) < 0)
                return false;
        setenv("HOME", user->pw_dir, 1);
        unsetenv("XDG_CACHE_HOME");
        return true;
}

/* Return true if an earlier job trims the same caches; each is trimmed once. */
static bool is_done(const struct janitor *j, const struct job *job)
{
        list_each(earlier, &j->running, struct job, link)
        {
                if (earlier == job)
                        break;
                if (earlier->all || (!job->all && !strcmp(earlier->owner, job->owner)))
                        return true;
        }
        return false;
}

static void work(const struct janitor *j)
{
        prctl(PR_SET_NAME, "spancld-janitor");
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setpriority(PRIO_PROCESS, 0, NICE);
        (void)syscall(SYS_ioprio_set, 1, 0, LAST);
        alarm(WORK_S);
        list_each(job, &j->running, struct job, link)
        {
                tree_remove(job->scratch);
                if (job->all)
                        scratch_sweep();
        }
        if (!become_user(config_option_text(j->options, CONFIG_user)))
                return;
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* again: a change of user has cleared it */
        list_each(job, &j->running, struct job, link)
        {
                if (!is_done(j, job))
                        caches_trim(j->options, job->all ? NULL : job->owner,
                                    job->shared ? GRACE_S : 0);
        }
}

/* Run the waiting jobs in a child process, unless one is running. */
static void run(struct janitor *j)
{
        if (j->pid || list_empty(&j->waiting))
                return;
        list_each(job, &j->waiting, struct job, link)
        {
                list_remove(&job->link);
                list_append(&j->running, &job->link);
        }
        int copies[2];
        if (pipe2(copies, O_CLOEXEC) < 0)
                copies[0] = copies[1] = -1;
        j->pid = fork();
        if (!j->pid) {
                /* An inherited listener would keep its port. A descriptor that the supervisor
                 * closes would keep its place in epoll. */
                (void)close_range(STDERR_FILENO + 1, ~0u, 0);
                work(j);
                _exit(0);
        }
        if (copies[0] >= 0) {
                char byte;
                close(copies[1]);
                /* Wait until the child has closed its copies. */
                while (read(copies[0], &byte, 1) < 0 && errno == EINTR)
                        ;
                close(copies[0]);
        }
        if (j->pid > 0)
                return;
        log_warn(LOG, "files of ended sessions stay for now: no process can be forked");
        j->pid = 0;
        list_each(job, &j->running, struct job, link)
        {
                list_remove(&job->link);
                list_append(&j->waiting, &job->link);
        }
}

static void add(struct janitor *j, struct job *job, const char *scratch, int lock)
{
        if (!job) { /* the next spancld removes the folder */
                if (lock >= 0)
                        close(lock);
                return;
        }
        list_init(&job->link);
        job->lock = lock;
        strncat(job->scratch, scratch, sizeof(job->scratch) - 1);
        list_append(&j->waiting, &job->link);
        run(j);
}

void janitor_init(struct janitor *j, const struct config_options *o)
{
        *j = (struct janitor){ .options = o };
        list_init(&j->waiting);
        list_init(&j->running);
        struct job *job = mem_zalloc(sizeof(*job));
        if (job)
                job->all = job->shared = true; /* other servers of this user may have sessions */
        add(j, job, "", -1);
}

void janitor_add(struct janitor *j, const char *scratch, int lock, const char *owner, bool shared)
{
        struct job *job = mem_zalloc(sizeof(*job));
        if (job) {
                strncat(job->owner, owner, sizeof(job->owner) - 1);
                job->shared = shared;
        }
        add(j, job, scratch, lock);
}

bool janitor_ended(struct janitor *j, pid_t pid)
{
        if (!j->pid || pid != j->pid)
                return false;
        j->pid = 0;
        list_each(job, &j->running, struct job, link)
        {
                job_free(job);
        }
        run(j);
        return true;
}

void janitor_fini(struct janitor *j)
{
        uint64_t deadline = clock_now_ns() + FINI_MS * 1000000ull;
        run(j);
        while (j->pid && clock_now_ns() < deadline) {
                pid_t pid = waitpid(j->pid, NULL, WNOHANG);
                if (pid == j->pid)
                        janitor_ended(j, pid);
                else
                        usleep(1000);
        }
        if (j->pid)
                log_warn(LOG, "files of ended sessions are left to the next spancld");
        /* `running` and `waiting`. */
        list_each(job, &j->running, struct job, link)
        {
                job_free(job);
        }
        list_each(job, &j->waiting, struct job, link)
        {
                job_free(job);
        }
}

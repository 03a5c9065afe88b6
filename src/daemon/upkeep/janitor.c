#include "daemon/upkeep/janitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/system/child.h"
#include "daemon/system/rights.h"
#include "daemon/system/scratch.h"
#include "daemon/system/tree.h"
#include "daemon/upkeep/caches.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process/process.h"
#include "os/thread.h"

#define LOG "janitor"

enum {
        GRACE_S = 60, /* while others may build: newer files stay */
        FINI_MS = 5000,
        WORK_S = 600, /* limit for one process, because sessions may add files all the time */
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
                (void)file_close(job->lock);
        mem_free(job);
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

/* Read the list of clients, for their limits. NULL: there is none that can be read; then the options' limits hold. */
static char *read_clients(const struct janitor *j)
{
        char folder[KEYS_PATH_MAX], text[KEYS_TEXT_MAX], *list;
        return gate_folder(j->options, folder) < 0 ||
                               keys_read(folder, KEYS_CLIENTS, &list, text) < 0
                       ? NULL
                       : list;
}

/* The work of the child process. Before it trims the caches it becomes the user of --user. That user can change every
 * folder above them, so the janitor must have no more rights than the user. */
static void work(void *user)
{
        const struct janitor *j = user;
        process_name("spancld-janitor");
        list_each(job, &j->running, struct job, link)
        {
                tree_remove(job->scratch);
                if (job->all)
                        scratch_sweep();
        }
        char *clients = read_clients(j); /* as long as it may read it */
        bool may = rights_become(config_option_text(j->options, CONFIG_user));
        process_end_with_parent(); /* again: a change of user has cleared it */
        list_each(job, &j->running, struct job, link)
        {
                if (may && !is_done(j, job))
                        caches_trim(j->options, clients, job->all ? NULL : job->owner,
                                    job->shared ? GRACE_S : 0);
        }
        mem_free(clients);
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
        j->pid = child_fork(work, j, WORK_S);
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
                        (void)file_close(lock);
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
                if (!process_has_ended(j->pid)) {
                        (void)thread_sleep(1000000);
                        continue;
                }
                process_collect(j->pid, NULL, NULL);
                janitor_ended(j, j->pid);
        }
        if (j->pid) { /* it may read the jobs */
                log_warn(LOG, "files of ended sessions are left to the next spancld");
                return;
        }
        list_each(job, &j->running, struct job, link)
        {
                job_free(job);
        }
        list_each(job, &j->waiting, struct job, link)
        {
                job_free(job);
        }
}

/* Job objects in the place of control groups: each worker has one, whose number is its handle. The job ends its
 * processes when its last handle is closed, so also with the supervisor. A process of a job starts no other one. */
#include "base/log.h"
#include "os/clock.h"
#include "sandbox/cgroup.h"
#include "sandbox/limits.h"

#include <windows.h>

#define LOG "sandbox"

static HANDLE job_of(unsigned number)
{
        return (HANDLE)(uintptr_t)number;
}

/* Children of a process in a job are in that job, too. The system puts such a process into no job with limits of the
 * user interface (AssignProcessToJobObject). */
static bool is_in_job(void)
{
        BOOL in;
        return IsProcessInJob(GetCurrentProcess(), NULL, &in) && in;
}

/* Memory is measured as well (daemon/upkeep/meter.h): a job's limit makes allocations fail, and does not count what
 * drivers allocate in the kernel. */
void cgroups_init(struct cgroups *c, const struct config_options *o)
{
        *c = (struct cgroups){ .home = -1,
                               .base = -1,
                               .pids = true,
                               .memory_bytes = limits_memory_bytes(o),
                               .process_count = 1 };
        if (is_in_job())
                log_warn(
                        LOG,
                        "spancld is itself in a job object: sessions may use the desktop and the clipboard");
}

void cgroups_fini(struct cgroups *c)
{
        (void)c;
}

/* Set the limits of a job. False: the system refuses them. */
static bool limit(const struct cgroups *c, HANDLE job)
{
        JOBOBJECT_EXTENDED_LIMIT_INFORMATION l = {
                .BasicLimitInformation = { .LimitFlags =
                                                   JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE |
                                                   JOB_OBJECT_LIMIT_ACTIVE_PROCESS |
                                                   JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION,
                                           .ActiveProcessLimit = 1 },
        };
        JOBOBJECT_BASIC_UI_RESTRICTIONS ui = {
                .UIRestrictionsClass =
                        JOB_OBJECT_UILIMIT_DESKTOP | JOB_OBJECT_UILIMIT_DISPLAYSETTINGS |
                        JOB_OBJECT_UILIMIT_EXITWINDOWS | JOB_OBJECT_UILIMIT_GLOBALATOMS |
                        JOB_OBJECT_UILIMIT_HANDLES | JOB_OBJECT_UILIMIT_READCLIPBOARD |
                        JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS | JOB_OBJECT_UILIMIT_WRITECLIPBOARD
        };
        if (c->memory_bytes) {
                l.BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_PROCESS_MEMORY;
                l.ProcessMemoryLimit = (SIZE_T)c->memory_bytes;
        }
        return SetInformationJobObject(job, JobObjectExtendedLimitInformation, &l, sizeof(l)) &&
               (is_in_job() ||
                SetInformationJobObject(job, JobObjectBasicUIRestrictions, &ui, sizeof(ui)));
}

int cgroup_make(struct cgroups *c, unsigned *ret_number)
{
        HANDLE job = CreateJobObjectW(NULL, NULL);
        if (job && limit(c, job)) {
                *ret_number = (unsigned)(uintptr_t)job;
                return 0;
        }
        log_error(LOG, "a session gets no job object: error %lu of Windows", GetLastError());
        if (job)
                CloseHandle(job);
        return SP_E_LIMIT;
}

/* A worker begins in its job (daemon/windows/spawn.c). */
int cgroup_add(struct cgroups *c, unsigned number, pid_t pid)
{
        (void)c, (void)number, (void)pid;
        return 0;
}

bool cgroup_weigh(const struct cgroups *c, unsigned number, unsigned weight)
{
        (void)c, (void)number, (void)weight;
        return false;
}

uint64_t cgroup_cpu_ns(const struct cgroups *c, unsigned number)
{
        enum { UNIT_NS = 100 };
        JOBOBJECT_BASIC_ACCOUNTING_INFORMATION info = { 0 };
        (void)c;
        if (!number ||
            !QueryInformationJobObject(job_of(number), JobObjectBasicAccountingInformation, &info,
                                       sizeof(info), NULL))
                return 0;
        return (uint64_t)(info.TotalUserTime.QuadPart + info.TotalKernelTime.QuadPart) * UNIT_NS;
}

/* A job lets allocations fail, and ends no process for lack of memory. */
enum cgroup_end cgroup_end_of(const struct cgroups *c, unsigned number)
{
        (void)c, (void)number;
        return CGROUP_ALIVE;
}

void cgroup_end(struct cgroups *c, unsigned number)
{
        (void)c;
        if (!number)
                return;
        (void)TerminateJobObject(job_of(number), 1);
        CloseHandle(job_of(number));
}

void cgroups_reap(struct cgroups *c)
{
        (void)c;
}

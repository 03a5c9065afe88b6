/* The start of worker processes: the supervisor runs its own program anew. There is no zygote, because Windows can't
 * copy a process. */
#include "daemon/system/spawn.h"

#include "base/mem.h"
#include "os/windows/process/start.h"

void spawner_init(struct spawner *s, const struct config_options *o, int argc, char **argv)
{
        (void)o;
        *s = (struct spawner){ .argc = argc, .argv = argv, .zygote = -1, .log.fd = -1 };
}

void spawner_fini(struct spawner *s)
{
        (void)s;
}

void spawner_give_up(struct spawner *s)
{
        (void)s;
}

bool spawner_receive(struct spawner *s)
{
        (void)s;
        return false;
}

/* The number of a group is the handle of a job (sandbox/windows/job.c). */
int run_own(char *const *argv, unsigned group, int control, int log, pid_t *ret_pid)
{
        *ret_pid = start_self(argv, &(struct start_with){ .control = control,
                                                          .error = log,
                                                          .job = (HANDLE)(uintptr_t)group });
        return *ret_pid < 0 ? SP_E_LIMIT : 0;
}

/* No option that this system takes needs other programs. */
int run_program(const char *path, char *const *argv, int input, int log, pid_t *ret_pid)
{
        (void)path, (void)argv, (void)input, (void)log, (void)ret_pid;
        return SP_E_LIMIT;
}

int spawn_worker(struct spawner *s, const char *scratch_dir, const char *devices, const char *owner,
                 unsigned group, int control, int log, pid_t *ret_pid)
{
        static char word[] = "--worker", option[] = "--devices";
        char *const first[] = { word, (char *)(uintptr_t)scratch_dir, (char *)(uintptr_t)owner,
                                NULL };
        /* If an option comes twice, the last one counts. */
        char *const last[] = { *devices ? option : NULL, (char *)(uintptr_t)devices, NULL };
        return run_self(s, first, last, group, control, log, ret_pid);
}

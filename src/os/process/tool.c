#include "os/process/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* Wait for a child. If the application reaps children elsewhere, waitpid fails, and the output
 * files show whether the tool succeeded. */
static int wait_for(pid_t pid)
{
        int status;
        pid_t r;
        do
                r = waitpid(pid, &status, 0);
        while (r < 0 && errno == EINTR);
        if (r < 0)
                return 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
                return SP_E_NOENT;
        return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : SP_E_INVAL;
}

static int start(const char *folder, const char *out, char *const *argv, pid_t *ret)
{
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attr;
        sigset_t none, all;
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawn_file_actions_init(&files);
        posix_spawnattr_init(&attr);
        posix_spawnattr_setsigmask(&attr, &none);
        posix_spawnattr_setsigdefault(&attr, &all);
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&files, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_adddup2(&files, 1, 2);
        posix_spawn_file_actions_addchdir_np(&files, folder);
        int r = posix_spawn(ret, argv[0], &files, &attr, argv, environ);
        posix_spawn_file_actions_destroy(&files);
        posix_spawnattr_destroy(&attr);
        return r ? SP_E_NOENT : 0;
}

int tool_execute(const char *folder, const char *out, char *const *argv)
{
        pid_t pid;
        int r = start(folder, out, argv, &pid);
        return r < 0 ? r : wait_for(pid);
}

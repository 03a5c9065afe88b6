#include "support/accelerator.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

enum { OPTIONS_MAX = 40, READY_FD = 9 };

static void run_emulator(const char *path, const char *const *options, int ready)
{
        const char *argv[OPTIONS_MAX] = { "spancl-almaif-emu", "--file", path, "--ready-fd", "9" };
        const char *build = getenv("SPANCL_BUILD_DIR");
        char program[512];
        size_t n = 5;
        while (*options && n < OPTIONS_MAX - 1)
                argv[n++] = *options++;
        snprintf(program, sizeof(program), "%s/bin/spancl-almaif-emu", build ? build : ".");
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (dup2(ready, READY_FD) == READY_FD)
                execv(program, (char *const *)(uintptr_t)argv);
        perror(program);
        _exit(127);
}

void accelerator_start(struct accelerator *a, const char *path, const char *const *options)
{
        int ready[2];
        char word;
        *a = (struct accelerator){ .own_path = !path };
        if (path) {
                snprintf(a->path, sizeof(a->path), "%s", path);
        } else {
                const char *tmp = getenv("TMPDIR");
                snprintf(a->path, sizeof(a->path), "%.60s/spancl-almaif.XXXXXX",
                         tmp ? tmp : "/tmp");
                int fd = mkstemp(a->path);
                assert_true(fd >= 0);
                close(fd);
        }
        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        a->pid = fork();
        assert_true(a->pid >= 0);
        if (!a->pid)
                run_emulator(a->path, options, ready[1]);
        close(ready[1]);
        assert_int_equal(read(ready[0], &word, 1), 1);
        close(ready[0]);
}

void accelerator_stop(struct accelerator *a)
{
        if (a->pid) {
                kill(a->pid, SIGKILL);
                waitpid(a->pid, NULL, 0);
        }
        if (a->own_path)
                unlink(a->path);
        *a = (struct accelerator){ 0 };
}

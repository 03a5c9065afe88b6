#include "backend/riscv/tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PART = 65536, LOG_MAX = 1 << 20 };

extern char **environ;

bool tool_find(const char *const *names, char ret[PATH_MAX])
{
        const char *path = secure_getenv("PATH");
        for (; path && *names; names++) {
                for (const char *p = path; *p;) {
                        const char *end = strchrnul(p, ':');
                        int n = snprintf(ret, PATH_MAX, "%.*s/%s", (int)(end - p), p, *names);
                        if (end > p && n < PATH_MAX && access(ret, X_OK) == 0)
                                return true;
                        p = *end ? end + 1 : end;
                }
        }
        ret[0] = 0;
        return false;
}

int tool_folder(const char *base, char ret[PATH_MAX])
{
        const char *tmp = secure_getenv("TMPDIR");
        if (!base)
                base = tmp && *tmp == '/' ? tmp : "/tmp";
        int n = snprintf(ret, PATH_MAX, "%s/spancl-riscv-XXXXXX", base);
        return n < PATH_MAX && mkdtemp(ret) ? 0 : SP_E_NOENT;
}

static int join(char path[PATH_MAX], const char *folder, const char *name)
{
        return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX ? 0 : SP_E_NOENT;
}

void tool_folder_remove(const char *folder)
{
        DIR *d = opendir(folder);
        struct dirent *entry;
        char path[PATH_MAX];
        while (d && (entry = readdir(d)))
                if (*entry->d_name != '.' && !join(path, folder, entry->d_name))
                        unlink(path);
        if (d)
                closedir(d);
        rmdir(folder);
}

int tool_read(const char *folder, const char *name, struct buf *ret)
{
        char path[PATH_MAX];
        int r = join(path, folder, name);
        FILE *f = r < 0 ? NULL : fopen(path, "re");
        if (!f)
                return SP_E_NOENT;
        size_t n = 1;
        while (!r && n) {
                r = buf_reserve(ret, PART);
                n = r < 0 ? 0 : fread(ret->data + ret->size, 1, PART, f);
                ret->size += n;
        }
        fclose(f);
        return r;
}

int tool_write(const char *folder, const char *name, const void *data, size_t size)
{
        char path[PATH_MAX];
        int r = join(path, folder, name);
        FILE *f = r < 0 ? NULL : fopen(path, "we");
        if (!f)
                return SP_E_NOENT;
        bool good = fwrite(data, 1, size, f) == size;
        good &= fclose(f) == 0;
        return good ? 0 : SP_E_NOENT;
}

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

int tool_run(const char *folder, char *const *argv, struct buf *log)
{
        char out[PATH_MAX];
        struct buf text = { 0 };
        pid_t pid;
        int r = join(out, folder, "messages");
        if (!r)
                r = start(folder, out, argv, &pid);
        if (r < 0)
                return r;
        r = wait_for(pid);
        if (tool_read(folder, "messages", &text) == 0 &&
            buf_put(log, text.data, text.size < LOG_MAX ? text.size : LOG_MAX) < 0)
                r = SP_E_NOMEM;
        buf_fini(&text);
        return r;
}

#include "daemon/system/spawn.h"

#include "base/mem.h"

int run_self(const struct spawner *s, char *const *first, char *const *last, unsigned group,
             int control, int log, pid_t *ret_pid)
{
        size_t count = (size_t)s->argc + 1, n = 0;
        for (char *const *at = first; *at; at++)
                count++;
        for (char *const *at = last; *at; at++)
                count++;
        char **argv = mem_alloc(count * sizeof(*argv));
        if (!argv)
                return SP_E_NOMEM;
        argv[n++] = s->argv[0];
        while (*first)
                argv[n++] = *first++;
        for (int i = 1; i < s->argc; i++)
                argv[n++] = s->argv[i];
        while (*last)
                argv[n++] = *last++;
        argv[n] = NULL;
        int r = run_own(argv, group, control, log, ret_pid);
        mem_free(argv);
        return r;
}

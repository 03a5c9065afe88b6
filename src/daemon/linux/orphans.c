#include "daemon/system/orphans.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/supervisor/workers.h"
#include "os/text_file.h"

enum { PASSES = 8, STATUS_MAX = 4096 };

void orphans_adopt(void)
{
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                log_warn(LOG, "processes that sessions leave behind are not ended");
}

/* Count the system call filters of a process; -1: it has ended, or the kernel does not say. */
static long filters_of(pid_t pid)
{
        static const char name[] = "\nSeccomp_filters:";
        char path[48], text[STATUS_MAX];
        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        text_file_read(AT_FDCWD, path, text, sizeof(text));
        const char *line = strstr(text, name), *state = strstr(text, "\nState:\t");
        if (!line || !state || state[8] == 'Z' || state[8] == 'X')
                return -1;
        return strtol(line + strlen(name), NULL, 10);
}

static bool is_ours(const struct supervisor *s, pid_t pid)
{
        if (pid == s->spawner.zygote_pid || pid == s->janitor.pid || pid == s->dialler.pid ||
            pid == s->meter.process.pid || pid == s->exporter.process.pid ||
            pid == s->sensors.process.pid || pid == s->streams.pid || pid == s->allocator.pid)
                return true;
        for (size_t i = 0; i < ADVERTISERS; i++) {
                if (s->advertisers[i].process.pid == pid)
                        return true;
        }
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->pid == pid)
                        return true;
        }
        return false;
}

/* Read the numbers of the children, as text. */
static int read_children(struct buf *text)
{
        char path[64];
        ssize_t n = -1;
        snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        text->size = 0;
        while (fd >= 0 && buf_reserve(text, STATUS_MAX + 1) == 0 &&
               (n = read(fd, text->data + text->size, STATUS_MAX)) > 0)
                text->size += (size_t)n;
        if (fd >= 0)
                close(fd);
        if (n < 0)
                return SP_E_LIMIT;
        text->data[text->size] = 0;
        return 0;
}

/* Receive from workers whose number is not known yet. A worker with a filter has already sent it,
 * but the supervisor may not have read it. */
static void receive_births(struct supervisor *s)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (!w->pid && !w->gone)
                        worker_read(s, w);
        }
}

static bool end_once(struct supervisor *s, long filters, struct buf *text)
{
        bool some = false;
        if (read_children(text) < 0)
                return false;
        char *p = (char *)text->data, *end;
        for (pid_t pid; (pid = (pid_t)strtol(p, &end, 10)) > 0; p = end) {
                if (is_ours(s, pid) || filters_of(pid) <= filters)
                        continue;
                receive_births(s);
                if (is_ours(s, pid))
                        continue;
                /* Only this process waits for its children, so the number can't have been reused. */
                (void)kill(pid, SIGKILL);
                some = true;
        }
        return some;
}

bool orphans_end(struct supervisor *s)
{
        long filters = filters_of(getpid());
        auto_clean(buf_fini) struct buf text = { 0 };
        bool some = filters >= 0;
        for (int i = 0; i < PASSES && some; i++)
                some = end_once(s, filters, &text);
        return some;
}

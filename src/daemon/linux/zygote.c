#include "daemon/system/zygote.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/log.h"
#include "daemon/control.h"
#include "daemon/system/birth.h"
#include "daemon/worker/worker.h"

#define LOG "zygote"

static unsigned count_entries(const char *folder)
{
        unsigned n = 0;
        DIR *d = opendir(folder);
        while (d && readdir(d))
                n++;
        if (d)
                closedir(d);
        return n;
}

/* Load the libraries. False: a library has made a thread or a descriptor, which would be wrong in
 * a forked process. */
static bool load(const struct config_options *o)
{
        const struct backend_ops *b = backend_find(config_option_text(o, CONFIG_backend));
        unsigned threads = count_entries("/proc/self/task"), fds = count_entries("/proc/self/fd");
        size_t n = b && b->preload ? b->preload(config_option_text(o, CONFIG_preload)) : 0;
        if (!n)
                log_debug(LOG, "nothing to load");
        else if (threads != 3 || count_entries("/proc/self/task") != threads) /* ., .., one */
                log_info(
                        LOG,
                        "a library has a thread already when it is loaded: sessions load it themselves");
        else if (count_entries("/proc/self/fd") != fds)
                log_info(LOG,
                         "a library opens files when it is loaded: sessions load it themselves");
        else
                return true;
        return false;
}

static bool send_text(enum control_kind kind, const char *text)
{
        return control_send(CONTROL_FD, kind, bytes_str(text), -1) == 0;
}

static int be_worker(struct config_options *o, struct control *c, pid_t supervisor)
{
        const char *scratch_dir = (const char *)c->data;
        const char *devices = scratch_dir + strlen(scratch_dir) + 1;
        const char *owner = devices + strlen(devices) + 1;
        setpgid(0, 0);
        dup2(c->log, STDERR_FILENO);
        dup2(c->fd, CONTROL_FD);
        control_drop(c);
        prctl(PR_SET_NAME, "spancld-worker");
        if (*devices)
                o->values[CONFIG_devices] = devices;
        return birth(o, supervisor) ? worker_main(o, scratch_dir, owner) : 1;
}

/* Fork the intermediate process, which forks the worker and ends. True: this is the worker. */
static bool fork_between(void)
{
        pid_t between = fork();
        if (!between)
                return true;
        int status = 1;
        while (between > 0 && waitpid(between, &status, 0) < 0 && errno == EINTR)
                ;
        if (between < 0 || status)
                log_warn(LOG, "a process can't be forked");
        return false;
}

int zygote_main(struct config_options *o)
{
        static struct control c; /* static because it is large */
        pid_t supervisor = getppid();
        prctl(PR_SET_NAME, "spancld-zygote");
        if (!load(o) || !send_text(CONTROL_READY, ""))
                return 1;
        for (;;) {
                struct pollfd p = { .fd = CONTROL_FD, .events = POLLIN };
                if (poll(&p, 1, -1) < 0)
                        continue;
                int r = control_receive(CONTROL_FD, &c);
                if (r == SP_E_LINK)
                        return 0;
                if (r < 0)
                        continue;
                /* Three texts, each with its NUL. */
                if (c.kind == CONTROL_FORK && c.log >= 0 && fork_between())
                        return be_worker(o, &c, supervisor);
                control_drop(&c);
        }
}

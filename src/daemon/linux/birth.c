#include "daemon/system/birth.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control.h"
#include "os/text_file.h"
#include "sandbox/namespaces.h"

#define LOG "worker"

/* Find the numbers of this process and its parent as the supervisor sees them. In a new PID
 * namespace getpid(2) returns other numbers. But the /proc that is still mounted is the
 * supervisor's. */
static bool look_up(pid_t *ret_self, pid_t *ret_parent)
{
        char text[512];
        *ret_self = getpid();
        *ret_parent = getppid();
        if (*ret_parent)
                return true;
        text_file_read(AT_FDCWD, "/proc/self/stat", text, sizeof(text));
        /* "NUMBER (NAME) STATE PARENT ..." (proc(5)); the name may have any characters. */
        const char *end = strrchr(text, ')');
        if (!end || strlen(end) < 5)
                return false;
        *ret_self = (pid_t)strtol(text, NULL, 10);
        *ret_parent = (pid_t)strtol(end + 4, NULL, 10);
        return true;
}

/* Wait until the intermediate process has ended. False: the supervisor is gone, or another process
 * has adopted this one, which the supervisor could not wait for. */
static bool is_adopted(pid_t supervisor, pid_t between, pid_t *ret_self)
{
        pid_t parent;
        while (look_up(ret_self, &parent)) {
                struct pollfd p = { .fd = CONTROL_FD };
                if (parent == supervisor)
                        return true;
                if (parent != between) {
                        log_error(
                                LOG,
                                "a session can't begin: the process numbered %d has adopted it instead "
                                "of the server; PR_SET_CHILD_SUBREAPER must work here",
                                (int)parent);
                        return false;
                }
                if (poll(&p, 1, 1) > 0)
                        return false;
        }
        return false;
}

bool birth(const struct config_options *o, pid_t supervisor)
{
        char text[48];
        pid_t self, between = getpid();
        int error = namespaces_leave(o);
        pid_t pid = error < 0 ? -1 : fork();
        if (pid)
                _exit(pid < 0);
        if (!is_adopted(supervisor, between, &self))
                return false;
        int shown = namespaces_enter(self);
        snprintf(text, sizeof(text), "%d %d", (int)self, error ? error : shown);
        return control_send(CONTROL_FD, CONTROL_PID, bytes_str(text), -1) == 0;
}

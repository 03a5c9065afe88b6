/* src/daemon/linux/birth: a worker begins only as the supervisor's child. */
#include "support/check.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "daemon/control.h"
#include "daemon/system/birth.h"

enum { BORN = 10, NOT_BORN = 11, OTHER = 12 };

/* As the intermediate process, which does not return. */
static void be_between(pid_t supervisor, int control)
{
        char *argv[] = { (char *)"spancld", (char *)"--sandbox", (char *)"0", NULL };
        struct config_options o;
        char *error = NULL;
        if (config_options_parse(3, argv, &o, &error) < 0 || dup2(control, CONTROL_FD) < 0)
                _exit(OTHER);
        _exit(birth(&o, supervisor) ? BORN : NOT_BORN);
}

static int status_of(pid_t pid)
{
        int status = -1;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* As the supervisor. `adopts`: it waits for the worker, and returns how that ended. */
static int supervise(bool adopts, int control)
{
        pid_t supervisor = getpid(), between;
        if (adopts && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return OTHER;
        between = fork();
        if (!between)
                be_between(supervisor, control);
        if (between < 0 || status_of(between))
                return OTHER;
        return adopts ? status_of(-1) : 0;
}

static pid_t supervisor_start(bool adopts, int *ret_socket)
{
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                close(pair[0]);
                _exit(supervise(adopts, pair[1]));
        }
        close(pair[1]);
        *ret_socket = pair[0];
        return pid;
}

static void the_supervisors_child_begins(void **state)
{
        static struct control c; /* static because it is large */
        int socket;
        (void)state;
        pid_t supervisor = supervisor_start(true, &socket);
        assert_int_equal(status_of(supervisor), BORN);
        assert_int_equal(control_receive(socket, &c), 0);
        assert_int_equal(c.kind, CONTROL_PID);
        control_drop(&c);
        close(socket);
}

static void another_processs_child_ends(void **state)
{
        int socket;
        (void)state;
        /* This process adopts the worker, as the first process of a system would. */
        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        pid_t supervisor = supervisor_start(false, &socket);
        assert_int_equal(status_of(supervisor), 0);
        assert_int_equal(status_of(-1), NOT_BORN);
        prctl(PR_SET_CHILD_SUBREAPER, 0);
        close(socket);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_supervisors_child_begins),
                cmocka_unit_test(another_processs_child_ends),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

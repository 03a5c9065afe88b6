/* src/daemon/orphans: which processes that the supervisor has adopted are ended. */
#include "support/check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "daemon/control.h"
#include "daemon/supervisor/pending.h"
#include "daemon/supervisor/workers.h"
#include "daemon/system/orphans.h"

/* A filter of system calls that allows all of them, as a worker and what it starts have one. */
static void be_shut_in(void)
{
        struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        const struct sock_fprog filter = { 1, &all };
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
                _exit(1);
}

/* A child that has a filter when this returns. `control`: as a worker it tells its number before; else -1. */
static pid_t start(int control)
{
        int ready[2];
        char text[16], byte;
        assert_int_equal(pipe(ready), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                snprintf(text, sizeof(text), "%d 0", (int)getpid());
                if (control >= 0 && control_send(control, CONTROL_PID, bytes_str(text), -1) < 0)
                        _exit(1);
                be_shut_in();
                if (write(ready[1], "", 1) != 1)
                        _exit(1);
                for (;;)
                        pause();
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        return pid;
}

static void supervisor_init(struct supervisor *s)
{
        *s = (struct supervisor){ .events.set = event_set_new(),
                                  .cgroups = { .home = -1, .base = -1 } };
        assert_true(s->events.set >= 0);
        pending_init(s);
        list_init(&s->workers);
}

/* Its process was forked, but nothing of it was heard. Returns the process's end of its socket. */
static int worker_init(struct supervisor *s, struct worker *w)
{
        int pair[2];
        assert_int_equal(
                socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        *w = (struct worker){ .control = pair[0],
                              .log.fd = -1,
                              .refusals.fd = -1,
                              .scratch_lock = -1,
                              .state = WORKER_WARMING };
        list_append(&s->workers, &w->link);
        return pair[1];
}

static void is_killed(pid_t pid)
{
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void is_alive(pid_t pid)
{
        siginfo_t info = { 0 };
        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
        assert_int_equal(info.si_pid, 0);
        assert_int_equal(kill(pid, SIGKILL), 0);
        is_killed(pid);
}

TEST(processes_left_by_a_session_are_ended)
{
        static struct supervisor s;
        supervisor_init(&s);
        pid_t pid = start(-1);
        (void)orphans_end(&s);
        is_killed(pid);
        assert_false(orphans_end(&s));
        close(s.events.set);
}

/* A helper process has no session, and may have a filter. */
TEST(the_supervisors_own_processes_are_none)
{
        static struct supervisor s;
        supervisor_init(&s);
        pid_t *const own[] = { &s.spawner.zygote_pid,
                               &s.janitor.pid,
                               &s.dialler.pid,
                               &s.meter.process.pid,
                               &s.exporter.process.pid,
                               &s.advertisers[ADVERTISER_MDNS].process.pid,
                               &s.advertisers[ADVERTISER_DHT].process.pid };
        for (size_t i = 0; i < array_size(own); i++)
                *own[i] = start(-1);
        assert_false(orphans_end(&s));
        for (size_t i = 0; i < array_size(own); i++)
                is_alive(*own[i]);
        close(s.events.set);
}

/* The supervisor looks for orphans between two reads of its workers' messages. */
TEST(a_worker_that_was_not_heard_yet_is_none)
{
        static struct supervisor s;
        static struct worker w;
        supervisor_init(&s);
        int control = worker_init(&s, &w);
        pid_t worker = start(control), orphan = start(-1);
        (void)orphans_end(&s);
        is_killed(orphan);
        assert_int_equal(w.pid, worker);
        assert_false(w.gone);
        assert_false(orphans_end(&s));
        is_alive(worker);
        close(control);
        close(w.control);
        close(s.events.set);
}

/* So is each of several: one that was heard does not keep the others from being heard. */
TEST(several_that_were_not_heard_yet_are_none)
{
        enum { WORKERS = 3 };
        static struct supervisor s;
        static struct worker w[WORKERS];
        int control[WORKERS];
        pid_t pid[WORKERS];
        supervisor_init(&s);
        for (int i = 0; i < WORKERS; i++)
                control[i] = worker_init(&s, &w[i]);
        for (int i = WORKERS; i-- > 0;)
                pid[i] = start(control[i]);
        assert_false(orphans_end(&s));
        for (int i = 0; i < WORKERS; i++) {
                assert_int_equal(w[i].pid, pid[i]);
                is_alive(pid[i]);
                close(control[i]);
                close(w[i].control);
        }
        close(s.events.set);
}

/* The supervisor gave the worker up before it received anything from it. It has closed the
 * worker's socket, and expects nothing of it. */
TEST(a_worker_that_was_given_up_before_is_one)
{
        static struct supervisor s;
        static struct worker w;
        supervisor_init(&s);
        int control = worker_init(&s, &w);
        pid_t pid = start(control);
        worker_dismiss(&s, &w);
        (void)orphans_end(&s);
        is_killed(pid);
        close(control);
        close(w.control);
        close(s.events.set);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(processes_left_by_a_session_are_ended),
                cmocka_unit_test(the_supervisors_own_processes_are_none),
                cmocka_unit_test(a_worker_that_was_not_heard_yet_is_none),
                cmocka_unit_test(several_that_were_not_heard_yet_are_none),
                cmocka_unit_test(a_worker_that_was_given_up_before_is_one),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

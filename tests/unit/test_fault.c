/* os/fault.h: threads that touch closed memory go on when it has been opened; other faults are the program's. */
#include "os/fault.h"

#include "support/check.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/file.h"
#include "os/thread.h"
#include "os/vm.h"

enum { SIZE = 16 * VM_GRANULE, THREADS = 4 };

static uint64_t at, other;
static int fd;
static uint64_t refused; /* faults there are not served */
static volatile sig_atomic_t own;
static sigjmp_buf back;

static void *serve(void *arg)
{
        struct fault *f;
        while ((f = fault_next())) {
                uint64_t page = f->address / vm_page_size() * vm_page_size();
                bool opens = f->address != refused;
                assert_ptr_equal(f->user, &at);
                if (opens)
                        assert_int_equal(vm_allow(page, vm_page_size(), VM_WRITE), 0);
                fault_end(f, opens);
        }
        return arg;
}

static void own_handler(int number)
{
        own++;
        siglongjmp(back, number);
}

/* cmocka has a handler of its own in each test. */
static void arm(void)
{
        signal(SIGSEGV, own_handler);
        fault_arm();
}

static int setup(void **state)
{
        (void)state;
        if (vm_map_twice(0, SIZE, &at, &other, &fd) < 0 || fault_begin_serving() != 1 ||
            fault_watch(at, SIZE, &at) < 0)
                return -1;
        return thread_start(NULL, true, serve, NULL);
}

static int teardown(void **state)
{
        (void)state;
        fault_forget(at);
        vm_unmap(at, SIZE);
        vm_unmap(other, SIZE);
        file_close(fd);
        return 0;
}

static volatile uint8_t *byte(size_t offset)
{
        return (volatile uint8_t *)(uintptr_t)(at + offset);
}

static void *touch(void *arg)
{
        size_t step = vm_page_size();
        for (size_t i = (size_t)(uintptr_t)arg * step; i < SIZE / 2; i += THREADS * step)
                *byte(i) = *byte(i) + 1;
        return NULL;
}

TEST(threads_go_on_when_their_page_is_open)
{
        thread_id all[THREADS];
        sigset_t blocked, old;
        arm();
        /* Their creator's blocked signals do not matter. */
        sigfillset(&blocked);
        pthread_sigmask(SIG_SETMASK, &blocked, &old);
        for (uintptr_t i = 0; i < THREADS; i++)
                assert_int_equal(thread_start_with_signals(&all[i], touch, (void *)i), 0);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        for (int i = 0; i < THREADS; i++)
                thread_join(all[i]);
        for (size_t i = 0; i < SIZE / 2; i += vm_page_size())
                assert_int_equal(*(const uint8_t *)(uintptr_t)(other + i), 1);
}

TEST(a_fault_elsewhere_reaches_the_programs_handler)
{
        volatile uint8_t *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        arm();
        own = 0;
        if (!sigsetjmp(back, 1))
                none[5] = 1;
        assert_int_equal(own, 1);
        munmap((void *)(uintptr_t)none, 4096);
}

TEST(a_fault_that_is_refused_does_as_well)
{
        arm();
        refused = at + SIZE - 1;
        own = 0;
        if (!sigsetjmp(back, 1))
                *byte(SIZE - 1) = 1;
        assert_int_equal(own, 1);
        refused = 0;
}

static struct sigaction behind;
static volatile sig_atomic_t later, blocks[3];

static void later_handler(int number, siginfo_t *info, void *context)
{
        static const int signals[] = { SIGSEGV, SIGUSR1, SIGUSR2 };
        sigset_t now;
        later++;
        pthread_sigmask(SIG_SETMASK, NULL, &now);
        for (int i = 0; i < 3; i++)
                blocks[i] = sigismember(&now, signals[i]);
        behind.sa_sigaction(number, info, context);
}

/* The newest first, each with its own mask. */
TEST(handlers_that_call_their_predecessor_are_all_asked)
{
        volatile uint8_t *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct sigaction now = { .sa_sigaction = later_handler, .sa_flags = SA_SIGINFO };
        arm();
        sigaddset(&now.sa_mask, SIGUSR2);
        sigaction(SIGSEGV, &now, &behind);
        fault_arm();
        own = later = 0;
        if (!sigsetjmp(back, 1))
                none[5] = 1;
        assert_int_equal(later, 1);
        assert_int_equal(own, 1);
        assert_true(blocks[0] && !blocks[1] && blocks[2]);
        munmap((void *)(uintptr_t)none, 4096);
}

TEST(a_handler_that_was_installed_later_is_asked_after_ours)
{
        arm();
        own = 0;
        *byte(SIZE - 1) = 1;
        assert_int_equal(own, 0);
}

/* Without its handler, too: it ends rather than waits for a thread that only the parent has. */
TEST(a_child_of_fork_ends)
{
        int status;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                signal(SIGSEGV, SIG_DFL);
                fault_arm();
                fclose(stderr);
                _exit(*byte(SIZE / 2));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 1);
}

TEST(pages_that_nobody_used_are_known)
{
        uint64_t page = vm_page_size(), begin, end;
        arm();
        assert_int_equal(vm_allow(at + SIZE / 2, 4 * page, VM_READ), 0);
        vm_untouch(at + SIZE / 2, 4 * page);
        assert_false(vm_touched(at + SIZE / 2, 4 * page));
        (void)*byte(SIZE / 2 + page);
        assert_true(vm_touched(at + SIZE / 2, 4 * page));
        assert_true(vm_next_data(fd, 0, SIZE, &begin, &end));
        assert_int_equal(begin, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(threads_go_on_when_their_page_is_open),
                cmocka_unit_test(a_fault_elsewhere_reaches_the_programs_handler),
                cmocka_unit_test(a_fault_that_is_refused_does_as_well),
                cmocka_unit_test(a_handler_that_was_installed_later_is_asked_after_ours),
                cmocka_unit_test(handlers_that_call_their_predecessor_are_all_asked),
                cmocka_unit_test(a_child_of_fork_ends),
                cmocka_unit_test(pages_that_nobody_used_are_known),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}

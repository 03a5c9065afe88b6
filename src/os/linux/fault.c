#include "os/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

enum done {
        DONE_NOT,
        DONE_OPENED,
        DONE_REFUSED,
};

/* An entry is never freed, because a handler may look at it at any time. An entry whose `begin` is
 * 0 is free to be used again. */
struct watched {
        _Atomic uint64_t begin, end;
        _Atomic pid_t process;
        void *_Atomic user;
        struct watched *next; /* immutable */
};

static struct watched *_Atomic all;
/* A handler of the program's that is behind ours. Never freed, for the same reason. */
struct handler {
        struct sigaction action;
        const struct handler *older; /* behind it, if it calls its predecessor, which is ours */
};
static const struct handler *_Atomic previous;
static atomic_int pipe_in, pipe_out; /* `owner`'s */
static atomic_uint handed_over;      /* counts requests, see ask() */
static _Atomic pid_t owner, server;  /* the process that has the pipe; that serves */

/* The program's own handler was called, and may raise the signal again. The handler must not
 * allocate, so the variable has its place from the thread's beginning. */
static _Thread_local bool forwarding INITIAL_EXEC;
static _Thread_local struct fault_memory memory INITIAL_EXEC;
/* In si_errno, which is 0 for faults: a handler of the program has seen this one. For each older one that has, it is
 * one more. They may lead back here, and may also leave by longjmp(). */
enum { FORWARDED = 0x53706100, HANDLERS_MAX = 255 };

/* Find the entry, rather of this process than of its parent. */
static const struct watched *find(uint64_t at, pid_t self)
{
        const struct watched *found = NULL;
        for (const struct watched *w = atomic_load(&all); w; w = w->next) {
                uint64_t begin = atomic_load(&w->begin);
                if (begin && at >= begin && at < atomic_load(&w->end) &&
                    (!found || atomic_load(&w->process) == self))
                        found = w;
        }
        return found;
}

static enum fault_access access_of(const void *context)
{
#if defined(__x86_64__) || defined(__i386__)
        const ucontext_t *c = context;
        return c->uc_mcontext.gregs[REG_ERR] & 2 ? FAULT_WRITE : FAULT_READ;
#else
        (void)context;
        return FAULT_UNKNOWN;
#endif
}

/* It would run the memory as a program: nobody can make that right. */
static bool is_instruction(const void *context)
{
#if defined(__x86_64__) || defined(__i386__)
        const ucontext_t *c = context;
        return c->uc_mcontext.gregs[REG_ERR] & 16;
#else
        (void)context;
        return false;
#endif
}

/* Have the serving thread open the memory, and wait until it has. */
static bool ask(struct fault *f)
{
        uintptr_t self = (uintptr_t)f;
        long n;
        /* The pipe orders the two threads, but C and ThreadSanitizer know only of atomics. */
        atomic_fetch_add(&handed_over, 1);
        /* Not write(), which a thread can be cancelled in. */
        do
                n = syscall(SYS_write, atomic_load(&pipe_in), &self, sizeof(self));
        while (n < 0 && errno == EINTR);
        if (n != (long)sizeof(self))
                return false;
        while (atomic_load(&f->done) == DONE_NOT)
                (void)syscall(SYS_futex, &f->done, FUTEX_WAIT_PRIVATE, DONE_NOT, NULL, NULL, 0);
        return atomic_load(&f->done) == DONE_OPENED;
}

static void end_by_default(int number, const siginfo_t *info)
{
        struct sigaction original = { .sa_handler = SIG_DFL };
        sigaction(number, &original, NULL);
        if (info->si_code <= 0) /* sent by a process: the instruction does not fault again */
                (void)raise(number);
}

/* The handler that is next: the newest, or after that the older ones. NULL: none. */
static const struct sigaction *next_handler(const siginfo_t *info, int *ret_mark)
{
        const struct handler *h = atomic_load(&previous);
        unsigned seen = (unsigned)info->si_errno - FORWARDED + 1;
        if (seen > HANDLERS_MAX)
                seen = 0;
        for (unsigned i = 0; h && i < seen; i++)
                h = h->older;
        *ret_mark = FORWARDED + (int)seen;
        return h && seen < HANDLERS_MAX ? &h->action : NULL;
}

/* Signals as the system blocks them for that handler; ours blocks all. */
static void block_for(const struct sigaction *to, int number, const void *context,
                      sigset_t *ret_old)
{
        const ucontext_t *c = context;
        sigset_t now;
        sigemptyset(&now);
        memcpy(&now, &c->uc_sigmask, _NSIG / 8); /* the system's is not larger */
        sigorset(&now, &now, &to->sa_mask);
        if (!(to->sa_flags & SA_NODEFER))
                sigaddset(&now, number);
        pthread_sigmask(SIG_SETMASK, &now, ret_old);
}

/* The program's handler takes the fault. */
static void forward(int number, siginfo_t *info, void *context)
{
        int mark;
        sigset_t old;
        const struct sigaction *to = next_handler(info, &mark);
        bool none = !to || (!(to->sa_flags & SA_SIGINFO) &&
                            (to->sa_handler == SIG_DFL || to->sa_handler == SIG_IGN));
        if (none || (forwarding && info->si_code <= 0)) {
                end_by_default(number, info);
                return;
        }
        forwarding = true;
        info->si_errno = mark;
        block_for(to, number, context, &old);
        if (to->sa_flags & SA_SIGINFO)
                to->sa_sigaction(number, info, context);
        else
                to->sa_handler(number);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        forwarding = false;
}

static void reset_child(void)
{
        static const char text[] =
                "spancl: this child of fork() used shared memory of its parent's OpenCL context\n";
        (void)syscall(SYS_write, STDERR_FILENO, text, sizeof(text) - 1);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
        int error = errno;
        uint64_t at = (uint64_t)(uintptr_t)info->si_addr;
        pid_t self = getpid();
        bool ours = info->si_code > 0 && !is_instruction(context);
        const struct watched *w = ours ? find(at, self) : NULL;
        bool opened = false;
        if (w && atomic_load(&w->process) == self) {
                struct fault f = { .address = at,
                                   .access = access_of(context),
                                   .memory = &memory,
                                   .user = atomic_load(&w->user) };
                opened = ask(&f);
        } else if (w) {
                reset_child();
        }
        if (!opened)
                forward(number, info, context);
        errno = error;
}

static bool is_same(const struct sigaction *a, const struct sigaction *b)
{
        return a->sa_sigaction == b->sa_sigaction && a->sa_flags == b->sa_flags &&
               !memcmp(&a->sa_mask, &b->sa_mask, sizeof(a->sa_mask));
}

void fault_arm(void)
{
        struct sigaction ours = { .sa_sigaction = on_fault,
                                  .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART },
                         now;
        if (sigaction(SIGSEGV, NULL, &now) < 0)
                return;
        if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault)
                return;
        const struct handler *older = atomic_load(&previous);
        if (!older || !is_same(&older->action, &now)) {
                struct handler *kept = malloc(sizeof(*kept));
                if (!kept)
                        return;
                *kept = (struct handler){ now, older };
                atomic_store(&previous, kept);
        }
        /* The program's other handlers are not to run while this thread waits. */
        sigfillset(&ours.sa_mask);
        (void)sigaction(SIGSEGV, &ours, NULL);
}

/* A pipe of this process: the one from before a fork leads to the parent. */
static int own_pipe(pid_t self)
{
        int ends[2];
        if (atomic_load(&owner) == self)
                return 0;
        if (pipe2(ends, O_CLOEXEC) < 0)
                return SP_E_LIMIT;
        if (atomic_load(&owner)) {
                close(atomic_load(&pipe_in));
                close(atomic_load(&pipe_out));
        }
        atomic_store(&pipe_out, ends[0]);
        atomic_store(&pipe_in, ends[1]);
        atomic_store(&owner, self);
        return 0;
}

static struct watched *entry_new(void)
{
        for (struct watched *w = atomic_load(&all); w; w = w->next)
                if (!atomic_load(&w->begin))
                        return w;
        struct watched *w = calloc(1, sizeof(*w));
        if (!w)
                return NULL;
        w->next = atomic_load(&all);
        atomic_store(&all, w);
        return w;
}

int fault_watch(uint64_t at, size_t size, void *user)
{
        pid_t self = getpid();
        struct watched *w = entry_new();
        if (!w)
                return SP_E_NOMEM;
        atomic_store(&w->process, self);
        atomic_store(&w->user, user);
        atomic_store(&w->end, at + size);
        atomic_store(&w->begin, at);
        fault_arm();
        return 0;
}

bool fault_is_watched(uint64_t at, size_t size)
{
        pid_t self = 0;
        for (const struct watched *w = atomic_load(&all); w; w = w->next) {
                uint64_t begin = atomic_load(&w->begin);
                if (!begin || at >= atomic_load(&w->end) || (at < begin && begin - at >= size))
                        continue;
                self = self ? self : getpid();
                if (atomic_load(&w->process) == self)
                        return true;
        }
        return false;
}

void fault_forget(uint64_t at)
{
        pid_t self = getpid();
        for (struct watched *w = atomic_load(&all); w; w = w->next)
                if (atomic_load(&w->begin) == at && atomic_load(&w->process) == self)
                        atomic_store(&w->begin, 0);
}

struct fault *fault_next(void)
{
        uintptr_t at;
        ssize_t n;
        do
                n = read(atomic_load(&pipe_out), &at, sizeof(at));
        while (n < 0 && errno == EINTR);
        (void)atomic_load(&handed_over);
        return n == (ssize_t)sizeof(at) ? (struct fault *)at : NULL; /* NOLINT: our own pointer */
}

void fault_end(struct fault *f, bool opened)
{
        /* From the store on the thread may be gone, and its stack with it. A wake-up there harms
         * nobody. */
        atomic_uint *done = &f->done;
        atomic_store(done, opened ? DONE_OPENED : DONE_REFUSED);
        (void)syscall(SYS_futex, done, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

int fault_begin_serving(void)
{
        pid_t self = getpid();
        int r = own_pipe(self);
        return r < 0 ? r : atomic_exchange(&server, self) != self;
}

void fault_not_served(void)
{
        atomic_store(&server, 0);
}

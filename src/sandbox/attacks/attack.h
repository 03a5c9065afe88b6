/* The attacks: attempts to leave a session, as a regression test of the sandbox. attacks.def
 * lists them. Each is a function that makes system calls and tests if they are refused. They use
 * the common subset of C and OpenCL C, and no library. `spancld sandbox-test` runs them in a
 * process in a worker's sandbox; tests/attacks/run runs them as a kernel in a session.
 *
 * An attack aims only at victims that its runner made (params.def), or opens a file without
 * reading it. It undoes its effects. No state. */
#ifndef SPANCL_SANDBOX_ATTACKS_ATTACK_H
#define SPANCL_SANDBOX_ATTACKS_ATTACK_H

#include "sandbox/attacks/numbers.h"

#ifdef __OPENCL_C_VERSION__
#define GLOBAL __global
#define TEXT   __constant
#else
#define GLOBAL
#define TEXT
#endif

#if defined(__x86_64__) || defined(__aarch64__)
#define ATTACKS_KNOWN 1
#else
#define ATTACKS_KNOWN 0 /* sys6 has no instruction for this processor */
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long i64;
typedef unsigned long u64;

enum attack_outcome {
        ATTACK_HELD = 1,
        ATTACK_BREACHED,
        ATTACK_NOT_APPLICABLE,
        ATTACK_DONE, /* the runner judges the effect from outside */
};

/* The judge of an attack. */
enum attack_judge {
        ATTACK_SELF,   /* the attack itself: a call was refused or not */
        ATTACK_SERVER, /* the runner, at a running server */
        ATTACK_CLIENT, /* the same; a client makes the attack with OpenCL's calls, not a kernel */
};

enum attack_param {
#define PARAM(name, meaning) PARAM_##name,
#include "sandbox/attacks/params.def"
#undef PARAM
        PARAM_COUNT
};

enum attack_id {
#define ATTACK(group, name, judge, wall, sentence) ATTACK_ID_##name,
#include "sandbox/attacks/attacks.def"
#undef ATTACK
        ATTACK_COUNT
};

struct attack {
        GLOBAL const char *params; /* as params.def says */
        i32 missing;               /* a parameter that the attack needs is empty */
        i32 error;                 /* the errno of the refusal; 0: none */
};

/* Run the attack with the number `id`. */
int attack_run(int id, struct attack *a);

#define ATTACK(group, name, judge, wall, sentence) int attack_##name(struct attack *a);
#include "sandbox/attacks/attacks.def"
#undef ATTACK

/* Make a system call. Returns a negative errno if it fails. */
static inline i64 sys6(i64 n, i64 a, i64 b, i64 c, i64 d, i64 e, i64 f)
{
        i64 r = -38;
#if defined(__x86_64__)
        i64 v[7] = { n, a, b, c, d, e, f };
        __asm__ volatile("mov 8(%1), %%rdi\n\tmov 16(%1), %%rsi\n\tmov 24(%1), %%rdx\n\t"
                         "mov 32(%1), %%r10\n\tmov 40(%1), %%r8\n\tmov 48(%1), %%r9\n\t"
                         "mov (%1), %%rax\n\tsyscall\n\tmov %%rax, %0"
                         : "=&b"(r)
                         : "r"(v)
                         : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory",
                           "cc");
#elif defined(__aarch64__)
        i64 v[7] = { n, a, b, c, d, e, f };
        __asm__ volatile("ldp x8, x0, [%1]\n\tldp x2, x3, [%1, #24]\n\tldp x4, x5, [%1, #40]\n\t"
                         "ldr x1, [%1, #16]\n\tsvc #0\n\tmov %0, x0"
                         : "=&r"(r)
                         : "r"(v)
                         : "x0", "x1", "x2", "x3", "x4", "x5", "x8", "memory", "cc");
#endif
        return r;
}

#define SYS0(n)                sys6(NR_##n, 0, 0, 0, 0, 0, 0)
#define SYS1(n, a)             sys6(NR_##n, (i64)(a), 0, 0, 0, 0, 0)
#define SYS2(n, a, b)          sys6(NR_##n, (i64)(a), (i64)(b), 0, 0, 0, 0)
#define SYS3(n, a, b, c)       sys6(NR_##n, (i64)(a), (i64)(b), (i64)(c), 0, 0, 0)
#define SYS4(n, a, b, c, d)    sys6(NR_##n, (i64)(a), (i64)(b), (i64)(c), (i64)(d), 0, 0)
#define SYS5(n, a, b, c, d, e) sys6(NR_##n, (i64)(a), (i64)(b), (i64)(c), (i64)(d), (i64)(e), 0)
#define SYS6(n, a, b, c, d, e, f) \
        sys6(NR_##n, (i64)(a), (i64)(b), (i64)(c), (i64)(d), (i64)(e), (i64)(f))

/* Return the address of a parameter's text. */
#define P(name) attack_text(a, PARAM_##name)
/* Return a parameter's number. */
#define N(name) attack_number(a, PARAM_##name)

static inline i64 attack_text(struct attack *a, int id)
{
        GLOBAL const char *p = a->params;
        for (; id; id--) {
                while (*p)
                        p++;
                p++;
        }
        if (*p)
                return (i64)p;
        a->missing = 1;
        return (i64) "/proc/0/nothing";
}

static inline i64 attack_number(struct attack *a, int id)
{
        GLOBAL const char *p = (GLOBAL const char *)attack_text(a, id);
        i64 n = 0;
        if (*p < '0' || *p > '9')
                a->missing = 1;
        if (a->missing)
                return 0x3ffffffe; /* no process has this number */
        for (; *p >= '0' && *p <= '9'; p++)
                n = n * 10 + *p - '0';
        return n;
}

static inline void put_number(char *out, u32 *at, u64 n)
{
        char digits[20];
        int count = 0;
        do
                digits[count++] = (char)('0' + n % 10);
        while (n /= 10);
        while (count)
                out[(*at)++] = digits[--count];
        out[*at] = 0;
}

enum { PATH_SIZE = 512 };

static inline void put_param(char *out, u32 *at, i64 text)
{
        for (GLOBAL const char *p = (GLOBAL const char *)text; *p && *at < PATH_SIZE - 80; p++)
                out[(*at)++] = *p;
        out[*at] = 0;
}

static inline void put_text(char *out, u32 *at, TEXT const char *p)
{
        for (; *p; p++)
                out[(*at)++] = *p;
        out[*at] = 0;
}

/* Join the parameter's folder and the name behind it in `out`. */
static inline i64 path_in(char *out, i64 folder, TEXT const char *name)
{
        u32 at = 0;
        put_param(out, &at, folder);
        put_text(out, &at, "/");
        put_text(out, &at, name);
        return (i64)out;
}

/* Write "/proc/PID/NAME". */
static inline i64 path_of(char *out, i64 pid, TEXT const char *name)
{
        u32 at = 0;
        put_text(out, &at, "/proc/");
        put_number(out, &at, (u64)pid);
        put_text(out, &at, "/");
        put_text(out, &at, name);
        return (i64)out;
}

static inline void fill(void *out, u32 size, int value)
{
        for (u32 i = 0; i < size; i++)
                ((u8 *)out)[i] = (u8)value;
}

/* Judge an attack that succeeds if this call does. */
static inline int judge(struct attack *a, i64 r)
{
        if (r >= 0)
                return ATTACK_BREACHED;
        a->error = (i32)-r;
        return ATTACK_HELD;
}

/* The same; a descriptor that the call returned is closed. */
static inline int judge_fd(struct attack *a, i64 fd)
{
        if (fd >= 0)
                (void)SYS1(close, fd);
        return judge(a, fd);
}

enum {
        AT_CWD = -100,
        AT_EMPTY = 0x1000,
        AT_REMOVE_DIR = 0x200,
        O_READ = 0,
        O_WRITE = 1,
        O_BOTH = 2,
        O_CREATE = 0100,
        O_TRUNCATE = 01000,
        O_CLOSE = 02000000,
        O_NAME = 010000000, /* O_PATH */
#if defined(__aarch64__)
        O_FOLDER = 040000,
#else
        O_FOLDER = 0200000,
#endif
        SIGNAL_KILL = 9,
        SIGNAL_CHILD = 17,
        FILES_LIMIT = 7, /* RLIMIT_NOFILE */
        PAGE = 4096,
};

static inline i64 open_file(i64 path, i64 flags)
{
        return SYS4(openat, AT_CWD, path, flags | O_CLOSE, 0600);
}

static inline int opens(struct attack *a, i64 path, i64 flags)
{
        return judge_fd(a, open_file(path, flags));
}

static inline i64 fork_child(void)
{
        return SYS5(clone, SIGNAL_CHILD, 0, 0, 0, 0);
}

static inline void end_child(int status)
{
        for (;;)
                (void)SYS1(exit_group, status);
}

static inline void nap_ms(i64 ms)
{
        i64 time[2] = { ms / 1000, ms % 1000 * 1000000 };
        (void)SYS2(nanosleep, time, 0);
}

static inline void kill_child(i64 pid)
{
        if (pid <= 0)
                return;
        /* If the signal is refused, the child ends with the session. */
        if (SYS2(kill, pid, SIGNAL_KILL) >= 0)
                (void)SYS4(wait4, pid, 0, 0, 0);
}

#endif

#include "sandbox/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/ioprio.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

#define LOG "sandbox"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#endif

#ifdef ARCH
#include "sandbox/call_table.h" /* names calls that other architectures lack */

/* A test of an argument's lower 32 bits, which are all that the kernel uses in these calls. A
 * check passes if one of its tests holds. */
struct test {
        uint32_t mask, value;
};

struct check {
        unsigned argument, count;
        const struct test *tests;
};

#define IS(VALUE)                             \
        {                                     \
                UINT32_MAX, (uint32_t)(VALUE) \
        }
#define CHECK(ARGUMENT, TESTS)                     \
        {                                          \
                ARGUMENT, array_size(TESTS), TESTS \
        }

/* Flags of clone that are refused: new namespaces, a tracer's process, and a child of the
 * caller's parent. */
static const struct test clone_tests[] = {
        { CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                  CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE | CLONE_PARENT,
          0 },
};

/* Not F_SETOWN and F_SETSIG: with these the kernel could send any signal to any process of the
 * user. F_NOTIFY and F_SETLEASE watch other processes. */
static const struct test fcntl_tests[] = {
        IS(F_DUPFD),      IS(F_DUPFD_CLOEXEC), IS(F_GETFD),     IS(F_SETFD),
        IS(F_GETFL),      IS(F_SETFL),         IS(F_GETLK),     IS(F_SETLK),
        IS(F_SETLKW),     IS(F_OFD_GETLK),     IS(F_OFD_SETLK), IS(F_OFD_SETLKW),
        IS(F_SETPIPE_SZ), IS(F_GETPIPE_SZ),    IS(F_ADD_SEALS), IS(F_GET_SEALS),
};

static const struct test prctl_tests[] = {
        IS(PR_SET_NAME),
        IS(PR_GET_NAME),
        IS(PR_SET_VMA), /* glibc names its memory */
        IS(PR_SET_PDEATHSIG),
        IS(PR_GET_PDEATHSIG),
        IS(PR_SET_TIMERSLACK),
        IS(PR_GET_TIMERSLACK),
        IS(PR_GET_DUMPABLE),
        IS(PR_CAPBSET_READ),
        IS(PR_SET_NO_NEW_PRIVS),
        IS(PR_GET_NO_NEW_PRIVS),
        IS(PR_SET_THP_DISABLE),
        IS(PR_GET_THP_DISABLE),
        IS(PR_GET_SPECULATION_CTRL),
        IS(PR_SET_TAGGED_ADDR_CTRL), /* aarch64 */
        IS(PR_GET_TAGGED_ADDR_CTRL),
        IS(PR_SVE_SET_VL),
        IS(PR_SVE_GET_VL),
        IS(69), /* PR_RISCV_V_SET_CONTROL, PR_RISCV_V_GET_CONTROL */
        IS(70),
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        IS(PR_SET_DUMPABLE),
        IS(PR_SET_PTRACER),
#endif
};

static const struct test personality_tests[] = { IS(UINT32_MAX) }; /* the query only */
static const struct test pair_tests[] = { IS(AF_UNIX) };
/* SOCK_DGRAM is not allowed: one end of such a pair can send to any Unix socket of the host, and so can such a socket
 * without connect(2). */
static const struct test pair_type_tests[] = { { 0xf, SOCK_STREAM }, { 0xf, SOCK_SEQPACKET } };
static const struct test process_tests[] = { IS(PRIO_PROCESS) };
static const struct test process_io_tests[] = { IS(IOPRIO_WHO_PROCESS) };

/* A type of requests whose numbers contain the direction of data. The requests of consoles share
 * a type, but contain no direction. */
#define TYPE(LETTER)                  \
        {                             \
                0xff00, (LETTER) << 8 \
        }
#define TYPE_DATA(LETTER)                                                                       \
        { 0xc000ff00, 0x40000000 | (LETTER) << 8 }, { 0xc000ff00, 0x80000000 | (LETTER) << 8 }, \
        {                                                                                       \
                0xc000ff00, 0xc0000000 | (LETTER) << 8                                          \
        }

/* Some requests are left out: TIOCSTI, TIOCLINUX and TIOCCONS, which type into a terminal, select
 * in it or take it over; and those that change attributes of files. */
static const struct test ioctl_tests[] = {
        TYPE('F'),      /* NVIDIA */
        TYPE(0),        /* NVIDIA's unified memory; files */
        TYPE('d'),      /* DRM: AMD, Intel, accel */
        TYPE_DATA('K'), /* AMD's KFD */
        TYPE('b'),      /* dma-buf */
        TYPE('u'),      /* udmabuf */
        TYPE('>'),      /* sync_file */
        TYPE('H'),      /* dma-heap, nvhost */
        TYPE('N'),      /* nvmap */
        TYPE('G'),      /* nvgpu, dxg */
        TYPE('A'),      /* nvgpu */
        TYPE('D'),      /* nvgpu */
        TYPE(0x80),     /* Mali */
        TYPE(0x1b),     /* InfiniBand, hfi1 */
        TYPE('x'),      /* XDMA */
        IS(TCGETS),       IS(TIOCGWINSZ),  IS(FIONREAD),       IS(TIOCOUTQ),    IS(FIONBIO),
        IS(FIOASYNC),     IS(FIOCLEX),     IS(FIONCLEX),       IS(SIOCGIFNAME), IS(SIOCGIFCONF),
        IS(SIOCGIFFLAGS), IS(SIOCGIFADDR), IS(SIOCGIFNETMASK), IS(SIOCGIFMTU),  IS(SIOCGIFHWADDR),
        IS(SIOCGIFINDEX),
};

enum { CODE_MAX = 4096, JUMP_MAX = 255 }; /* BPF_MAXINSNS; the width of a jump */

struct filter {
        const struct calls_params *params;
        struct test families[CALLS_FAMILIES_MAX];
        struct test self[2]; /* the ways in which a call names its own process */
        struct call sorted[array_size(calls)];
        struct sock_filter code[CODE_MAX];
        size_t size;
        uint32_t refusal; /* the filter's result for a refused call */
};

static void emit(struct filter *f, unsigned code, uint32_t k, size_t if_true, size_t if_false)
{
        f->code[f->size++] = (struct sock_filter){
                .code = (uint16_t)code, .jt = (uint8_t)if_true, .jf = (uint8_t)if_false, .k = k
        };
}

static void emit_result(struct filter *f, uint32_t result)
{
        emit(f, BPF_RET | BPF_K, result, 0, 0);
}

/* Emit a check: continue behind it if one of the tests holds, or return EPERM. */
static void emit_check(struct filter *f, const struct check *c)
{
        size_t left = 1; /* the instruction that returns */
        for (size_t i = 0; i < c->count; i++)
                left += c->tests[i].mask == UINT32_MAX ? 2 : 3;
        for (size_t i = 0; i < c->count; i++) {
                const struct test *t = &c->tests[i];
                emit(f, BPF_LD | BPF_W | BPF_ABS,
                     (uint32_t)(offsetof(struct seccomp_data, args) + 8 * c->argument), 0, 0);
                if (t->mask != UINT32_MAX)
                        emit(f, BPF_ALU | BPF_AND | BPF_K, t->mask, 0, 0);
                left -= t->mask == UINT32_MAX ? 2 : 3;
                emit(f, BPF_JMP | BPF_JEQ | BPF_K, t->value, left, 0);
        }
        emit_result(f, f->refusal);
}

static bool is_allowed(const struct filter *f, const struct call *c)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        bool sanitizer = true;
#else
        bool sanitizer = false;
#endif
        size_t n = strlen(c->name);
        for (const char *s = f->params->allowed; *s; s += strcspn(s, ","), s += *s == ',')
                if (strcspn(s, ",") == n && !memcmp(s, c->name, n))
                        return true;
        switch (c->rule) {
        case ALLOW:
                return true;
        case NETWORK:
                return f->params->family_count > 0;
        case CONNECT:
                return f->params->family_count > 0 && !f->params->unconnected;
        case FILES:
                return f->params->own_files;
        case SELF:
        case PIN:
        case BOTH_SELF:
        case PRIORITY:
        case PRIORITY_IO:
                return f->params->own_pids;
        case SANITIZER:
                return sanitizer;
        default:
                return false;
        }
}

/* Find the argument checks of a rule. Returns their number; 0: none. */
static size_t find_checks(const struct filter *f, enum rule rule, struct check *c)
{
        size_t n = 0;
        switch (rule) {
        case CLONE:
                c[n++] = (struct check)CHECK(0, clone_tests);
                break;
        case FCNTL:
                c[n++] = (struct check)CHECK(1, fcntl_tests);
                break;
        case PRCTL:
                c[n++] = (struct check)CHECK(0, prctl_tests);
                break;
        case IOCTL:
                c[n++] = (struct check)CHECK(1, ioctl_tests);
                break;
        case PERSONALITY:
                c[n++] = (struct check)CHECK(0, personality_tests);
                break;
        case PAIR:
                c[n++] = (struct check)CHECK(0, pair_tests);
                c[n++] = (struct check)CHECK(1, pair_type_tests);
                break;
        case FAMILY:
                c[n++] = (struct check){ 0, (unsigned)f->params->family_count, f->families };
                if (f->params->unconnected)
                        c[n++] = (struct check)CHECK(1, pair_type_tests);
                break;
        case SELF:
        case PIN:
                c[n++] = (struct check)CHECK(0, f->self);
                break;
        case BOTH_SELF:
                c[n++] = (struct check)CHECK(0, f->self);
                c[n++] = (struct check)CHECK(1, f->self);
                break;
        case PRIORITY:
                c[n++] = (struct check)CHECK(0, process_tests);
                c[n++] = (struct check)CHECK(1, f->self);
                break;
        case PRIORITY_IO:
                c[n++] = (struct check)CHECK(0, process_io_tests);
                c[n++] = (struct check)CHECK(1, f->self);
                break;
        default:
                break;
        }
        return n;
}

/* A range of call numbers with the same result. It starts at the number of `c`, or behind the
 * previous call. */
struct segment {
        unsigned first;
        const struct call *call; /* NULL: no call */
};

static void emit_leaf(struct filter *f, const struct call *c)
{
        struct check checks[2];
        bool allowed = c && is_allowed(f, c);
        size_t n = c && !allowed ? find_checks(f, c->rule, checks) : 0;
        for (size_t i = 0; i < n; i++)
                emit_check(f, &checks[i]);
        if (!c || c->rule == ABSENT)
                emit_result(f, allowed ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | ENOSYS);
        else
                emit_result(f, allowed || n ? SECCOMP_RET_ALLOW : f->refusal);
}

/* Emit a search tree for the call number, which is loaded: the segments s[0 .. n - 1], n >= 1. */
static void emit_tree(struct filter *f, const struct segment *s, size_t n)
{
        if (n == 1) {
                emit_leaf(f, s->call);
                return;
        }
        size_t at = f->size, half = n / 2;
        f->size += 2; /* the jump may be too far for the comparing instruction */
        emit_tree(f, s, half);
        size_t left = f->size - at - 2;
        if (left > JUMP_MAX) {
                size_t end = f->size;
                f->size = at;
                emit(f, BPF_JMP | BPF_JGE | BPF_K, s[half].first, 0, 1);
                emit(f, BPF_JMP | BPF_JA, (uint32_t)left, 0, 0);
                f->size = end;
        } else {
                memmove(&f->code[at + 1], &f->code[at + 2], left * sizeof(f->code[0]));
                f->size = at;
                emit(f, BPF_JMP | BPF_JGE | BPF_K, s[half].first, left, 0);
                f->size += left;
        }
        emit_tree(f, s + half, n - half);
}

static int by_number(const void *a, const void *b)
{
        const struct call *x = a, *y = b;
        return x->number < y->number ? -1 : x->number > y->number;
}

/* Return true if both calls can share a segment: they have no checks, and the same result. */
static bool is_like(const struct filter *f, const struct call *a, const struct call *b)
{
        struct check checks[2];
        if (!a || !b)
                return a == b;
        bool allowed = is_allowed(f, a);
        if (allowed || is_allowed(f, b))
                return allowed && is_allowed(f, b);
        return !find_checks(f, a->rule, checks) && !find_checks(f, b->rule, checks) &&
               (a->rule == ABSENT) == (b->rule == ABSENT);
}

static size_t find_segments(const struct filter *f, struct segment *s)
{
        size_t n = 0;
        unsigned next = 0;
        for (size_t i = 0; i < array_size(calls); i++) {
                const struct call *c = &f->sorted[i];
                if (c->number > next)
                        s[n++] = (struct segment){ next, NULL };
                if (!n || !is_like(f, s[n - 1].call, c))
                        s[n++] = (struct segment){ c->number, c };
                next = c->number + 1;
        }
        s[n++] = (struct segment){ next, NULL };
        return n;
}

static void build(struct filter *f, const struct calls_params *p, uint32_t refusal)
{
        struct segment segments[2 * array_size(calls) + 1];
        *f = (struct filter){ .params = p, .refusal = refusal, .self = { IS(0), IS(getpid()) } };
        for (size_t i = 0; i < p->family_count; i++)
                f->families[i] = (struct test)IS(p->families[i]);
        memcpy(f->sorted, calls, sizeof(calls));
        qsort(f->sorted, array_size(calls), sizeof(f->sorted[0]), by_number);

        emit(f, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
        emit(f, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
        emit_result(f, SECCOMP_RET_ERRNO | ENOSYS);
        /* The numbers of x32 are higher than any call's, so they fail, too. */
        emit(f, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
        emit_tree(f, segments, find_segments(f, segments));
}

/* Install the filter. Returns its descriptor if `refusal` makes notifications, else 0; -1: see
 * errno. */
static int install(const struct calls_params *p, uint32_t refusal)
{
        static struct filter f; /* static because it is large */
        build(&f, p, refusal);
        struct sock_fprog program = { .len = (unsigned short)f.size, .filter = f.code };
        /* By default kernels before 5.16 also turn speculative store bypass off, which slows the
         * process; this flag keeps it on (seccomp(2), since 4.17). An attack could read secrets
         * of this process. But it has one client, and where the device is a CPU, that client's
         * kernels can read here anyway. */
        unsigned long flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW;
        if (refusal == SECCOMP_RET_USER_NOTIF)
                flags |= SECCOMP_FILTER_FLAG_NEW_LISTENER;
        int r = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
        if (r < 0 && refusal != SECCOMP_RET_USER_NOTIF)
                r = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
        return r;
}

bool calls_restrict(const struct calls_params *p, int *ret_refusals)
{
        if (ret_refusals) {
                *ret_refusals = install(p, SECCOMP_RET_USER_NOTIF);
                if (*ret_refusals >= 0)
                        return true;
                /* The kernel is too old, or the filter of a container has such a descriptor
                 * already. */
                log_info(LOG, "refused system calls are not logged: %s", strerror(errno));
        }
        if (install(p, SECCOMP_RET_ERRNO | EPERM) == 0)
                return true;
        log_info(LOG, "this kernel has no seccomp: %s", strerror(errno));
        return errno == EINVAL;
}

bool calls_describe(const struct seccomp_data *call, char text[CALLS_TEXT_MAX], uint64_t *ret_key)
{
        static const struct calls_params params = { .allowed = "" };
        static const struct filter none = { .params = &params };
        struct check checks[2];
        const struct call *c = NULL;
        for (size_t i = 0; i < array_size(calls) && !c; i++)
                if (calls[i].number == (unsigned)call->nr)
                        c = &calls[i];
        *ret_key = (uint64_t)(uint32_t)call->nr << 32;
        if (!c) {
                snprintf(text, CALLS_TEXT_MAX, "%d", call->nr);
        } else if (find_checks(&none, c->rule, checks)) {
                uint32_t value = (uint32_t)call->args[checks[0].argument];
                snprintf(text, CALLS_TEXT_MAX, "%s(%s%#x)", c->name,
                         checks[0].argument ? ".., " : "", value);
                *ret_key |=
                        checks[0].tests == none.self ? 0 : value; /* one text for all processes */
        } else {
                snprintf(text, CALLS_TEXT_MAX, "%s", c->name);
        }
        /* Mesa and NVIDIA's driver search for services; linkers make their output executable. */
        return c && (c->rule == FILES || c->rule == EXPECTED || c->rule == PIN ||
                     (c->rule == FAMILY && call->args[0] == AF_UNIX));
}

/* Return the number of letters that differ. */
static size_t distance(const char *a, size_t n, const char *b)
{
        size_t row[32], m = strlen(b);
        if (n >= array_size(row) || m >= array_size(row))
                return SIZE_MAX;
        for (size_t j = 0; j <= m; j++)
                row[j] = j;
        for (size_t i = 1; i <= n; i++) {
                size_t corner = row[0];
                row[0] = i;
                for (size_t j = 1; j <= m; j++) {
                        size_t change = corner + (a[i - 1] != b[j - 1]);
                        size_t shorter = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
                        corner = row[j];
                        row[j] = change < shorter ? change : shorter;
                }
        }
        return row[m];
}

bool calls_known(const char *allowed, char *text, size_t size)
{
        for (const char *s = allowed; *s; s += strcspn(s, ","), s += *s == ',') {
                size_t n = strcspn(s, ","), best = SIZE_MAX;
                const char *nearest = "";
                for (size_t i = 0; i < array_size(calls); i++) {
                        size_t d = distance(s, n, calls[i].name);
                        if (d < best) {
                                best = d;
                                nearest = calls[i].name;
                        }
                }
                if (best) {
                        snprintf(text, size, "%.*s is no system call; the nearest name is %s",
                                 (int)n, s, nearest);
                        return false;
                }
        }
        return true;
}
#else
bool calls_restrict(const struct calls_params *p, int *ret_refusals)
{
        (void)p;
        if (ret_refusals)
                *ret_refusals = -1;
        return true;
}

bool calls_describe(const struct seccomp_data *call, char text[CALLS_TEXT_MAX], uint64_t *ret_key)
{
        snprintf(text, CALLS_TEXT_MAX, "%d", call->nr);
        *ret_key = (uint64_t)(uint32_t)call->nr << 32;
        return false;
}

bool calls_known(const char *allowed, char *text, size_t size)
{
        (void)allowed, (void)text, (void)size;
        return true;
}
#endif

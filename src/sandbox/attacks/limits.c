/* Attacks on the limits of a session: processes, priorities, memory, disk, descriptors. */
#include "sandbox/attacks/attack.h"

enum {
        MOST = 8192, /* processes, descriptors or pipes that an attack remembers */
        MIB = 1 << 20,
        DATA_LIMIT = 2,
        CORE_LIMIT = 4,
        PRIVATE_MEMORY = 0x22, /* MAP_PRIVATE | MAP_ANONYMOUS */
        SHARED_MEMORY = 0x21,  /* MAP_SHARED | MAP_ANONYMOUS */
        SHARED_FILE = 1,       /* MAP_SHARED */
        READ_WRITE = 3,
        HOLD_MS = 15000,      /* meanwhile a server's meter ends the session */
        HOLD_MANY_MS = 45000, /* the same, where it looks at thousands of processes */
        MANY_FILES = 4 * MIB, /* bytes of each of many files */
};

/* Start an idle process that uses no memory: it shares this one's, and never touches its stack. */
static i64 idle_process(void)
{
        i64 r = -38;
#if defined(__x86_64__)
        __asm__ volatile("mov $0x111, %%edi\n\txor %%esi, %%esi\n\txor %%edx, %%edx\n\t"
                         "xor %%r10d, %%r10d\n\txor %%r8d, %%r8d\n\tmov $56, %%eax\n\tsyscall\n\t"
                         "test %%rax, %%rax\n\tjne 1f\n2:\txor %%edi, %%edi\n\txor %%esi, %%esi\n\t"
                         "xor %%edx, %%edx\n\txor %%r10d, %%r10d\n\tmov $271, %%eax\n\tsyscall\n\t"
                         "jmp 2b\n1:"
                         : "=a"(r)
                         :
                         : "rcx", "rdx", "rsi", "rdi", "r8", "r10", "r11", "memory", "cc");
#elif defined(__aarch64__)
        __asm__ volatile("mov x0, #0x111\n\tmov x1, xzr\n\tmov x2, xzr\n\tmov x3, xzr\n\t"
                         "mov x4, xzr\n\tmov x8, #220\n\tsvc #0\n\tcbnz x0, 1f\n2:\tmov x0, xzr\n\t"
                         "mov x1, xzr\n\tmov x2, xzr\n\tmov x3, xzr\n\tmov x8, #73\n\tsvc #0\n\t"
                         "b 2b\n1:\tmov %0, x0"
                         : "=r"(r)
                         :
                         : "x0", "x1", "x2", "x3", "x4", "x8", "memory", "cc");
#endif
        return r;
}

int attack_many_processes(struct attack *a)
{
        i32 pids[MOST];
        i64 wanted = N(processes), r = 0, n = 0;
        if (a->missing)
                return ATTACK_NOT_APPLICABLE;
        if (wanted > MOST)
                wanted = MOST;
        while (n < wanted && (r = idle_process()) > 0)
                pids[n++] = (i32)r;
        if (r > 0)
                nap_ms(HOLD_MANY_MS);
        int outcome = judge(a, r);
        while (n > 0)
                kill_child(pids[--n]);
        return outcome;
}

static int raised(struct attack *a, i64 limit)
{
        u64 before[2] = { 0, 0 }, none[2] = { ~0ul, ~0ul };
        i64 r = SYS4(prlimit64, 0, limit, 0, before);
        if (r < 0 || before[1] == ~0ul)
                return r < 0 ? judge(a, r) : ATTACK_BREACHED; /* there is no limit */
        r = SYS4(prlimit64, 0, limit, none, 0);
        if (r >= 0)
                (void)SYS4(prlimit64, 0, limit, before, 0);
        return judge(a, r);
}

int attack_raise_memory_limit(struct attack *a)
{
        (void)N(memory);
        if (a->missing) /* there is no limit */
                return ATTACK_NOT_APPLICABLE;
        return raised(a, DATA_LIMIT);
}

int attack_raise_core_limit(struct attack *a)
{
        return raised(a, CORE_LIMIT);
}

int attack_raise_descriptor_limit(struct attack *a)
{
        return raised(a, FILES_LIMIT);
}

int attack_become_nicer(struct attack *a)
{
        i64 r = SYS3(setpriority, 0, 0, -5);
        if (r >= 0)
                (void)SYS3(setpriority, 0, 0, 0);
        return judge(a, r);
}

int attack_become_realtime(struct attack *a)
{
        i32 one = 1, zero = 0;
        i64 r = SYS3(sched_setscheduler, 0, 1, &one);
        if (r >= 0)
                (void)SYS3(sched_setscheduler, 0, 0, &zero);
        return judge(a, r);
}

int attack_become_deadline(struct attack *a)
{
        u64 attributes[8] = { 48 | 6ul << 32, 0, 0, 1000000, 10000000, 10000000 };
        u64 before[8] = { 48 };
        i64 r = SYS3(sched_setattr, 0, attributes, 0);
        if (r >= 0)
                (void)SYS3(sched_setattr, 0, before, 0);
        return judge(a, r);
}

int attack_become_realtime_io(struct attack *a)
{
        i64 r = SYS3(ioprio_set, 1, 0, 1 << 13);
        if (r >= 0)
                (void)SYS3(ioprio_set, 1, 0, 0);
        return judge(a, r);
}

int attack_evade_oom(struct attack *a)
{
        char least[8] = "-1000";
        char zero = '0';
        i64 fd = open_file((i64) "/proc/self/oom_score_adj", O_WRITE);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS3(write, fd, least, 5);
        if (r >= 0)
                (void)SYS3(write, fd, &zero, 1);
        (void)SYS1(close, fd);
        return judge(a, r);
}

int attack_leave_cgroup(struct attack *a)
{
        return opens(a, (i64) "/sys/fs/cgroup/cgroup.procs", O_WRITE);
}

int attack_leave_cgroup_by_namespace(struct attack *a)
{
        i64 fd = open_file((i64) "/proc/self/ns/cgroup", O_READ);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS2(setns, fd, 0x02000000);
        (void)SYS1(close, fd);
        return judge(a, r);
}

/* Use memory: write to each page, so that it exists. */
static void touch(i64 address, i64 size)
{
        for (i64 at = 0; at < size; at += PAGE)
                *(volatile char *)(address + at) = 1;
}

static int is_address(i64 r)
{
        return r < -PAGE || r > 0;
}

/* Judge by the end of a child. Status 0: it got the memory; else an errno or a signal. */
static int judge_child(struct attack *a, i64 child)
{
        i32 status = 0;
        if (child < 0)
                return judge(a, child);
        i64 r = SYS4(wait4, child, &status, 0, 0);
        if (r < 0)
                return judge(a, r);
        if (status & 0x7f) { /* a kill counts as a refusal of memory */
                a->error = 12;
                return ATTACK_HELD;
        }
        return judge(a, -(i64)(status >> 8 & 0xff));
}

/* Write to the memory at `mapped` (an address or an error), hold it for a while, and end. For a
 * child. */
static void use_and_end(i64 mapped, i64 size)
{
        if (is_address(mapped)) {
                touch(mapped, size);
                nap_ms(HOLD_MS);
        }
        end_child(is_address(mapped) ? 0 : (int)-mapped);
}

int attack_many_descriptors(struct attack *a)
{
        i64 wanted = N(descriptors), r = 0;
        if (a->missing)
                return ATTACK_NOT_APPLICABLE;
        i64 child = fork_child();
        if (child)
                return judge_child(a, child);
        for (i64 n = 0; n < wanted && r >= 0; n++)
                r = SYS2(eventfd2, 0, O_CLOSE);
        end_child(r < 0 ? (int)-r : 0);
        return ATTACK_HELD;
}

/* Return an amount beyond the limit; 0: there is no limit. A child uses it, because its memory is
 * freed with it. The processes of a session may together have more than each of them, by a
 * quarter and 128 MiB. */
static i64 beyond(const struct attack *a, i64 mib)
{
        return a->missing ? 0 : (mib + mib / 2 + 256) * MIB;
}

int attack_private_memory(struct attack *a)
{
        i64 size = beyond(a, N(memory)), child = size ? fork_child() : 0;
        if (!size)
                return ATTACK_NOT_APPLICABLE;
        if (!child)
                use_and_end(SYS6(mmap, 0, size, READ_WRITE, PRIVATE_MEMORY, -1, 0), size);
        return judge_child(a, child);
}

int attack_shared_memory(struct attack *a)
{
        i64 size = beyond(a, N(all_memory)), child = size ? fork_child() : 0;
        if (!size)
                return ATTACK_NOT_APPLICABLE;
        if (!child)
                use_and_end(SYS6(mmap, 0, size, READ_WRITE, SHARED_MEMORY, -1, 0), size);
        return judge_child(a, child);
}

int attack_memory_file(struct attack *a)
{
        i64 size = beyond(a, N(all_memory)), child = size ? fork_child() : 0;
        if (!size)
                return ATTACK_NOT_APPLICABLE;
        if (!child) {
                i64 fd = SYS2(memfd_create, "attack", 1);
                i64 r = fd < 0 ? fd : SYS2(ftruncate, fd, size);
                use_and_end(r < 0 ? r : SYS6(mmap, 0, size, READ_WRITE, SHARED_FILE, fd, 0), size);
        }
        return judge_child(a, child);
}

/* Only one process has the pages mapped, and no descriptor leads to them. */
int attack_unmapped_memory(struct attack *a)
{
        i64 size = beyond(a, N(all_memory)), child = size ? fork_child() : 0;
        if (!size)
                return ATTACK_NOT_APPLICABLE;
        if (child)
                return judge_child(a, child);
        i64 r = SYS6(mmap, 0, size, READ_WRITE, SHARED_MEMORY, -1, 0);
        for (i64 at = 0; is_address(r) && at < size; at += MIB) {
                touch(r + at, size - at < MIB ? size - at : MIB);
                if (at)
                        (void)SYS2(munmap, r + at, MIB);
        }
        use_and_end(r, PAGE);
        return ATTACK_HELD;
}

int attack_segment_memory(struct attack *a)
{
        i64 size = beyond(a, N(all_memory));
        if (!size)
                return ATTACK_NOT_APPLICABLE;
        i64 id = SYS3(shmget, 0, size, 0600);
        if (id < 0)
                return judge(a, id);
        i64 child = fork_child();
        if (!child)
                use_and_end(SYS3(shmat, id, 0, 0), size);
        int outcome = judge_child(a, child);
        (void)SYS3(shmctl, id, 0, 0);
        return outcome;
}

/* Each process stays below the limit, but together they exceed it. */
int attack_memory_of_children(struct attack *a)
{
        i64 size = beyond(a, N(all_memory)) / 4, children[8], ends = 0;
        i32 ready[2], hold[2];
        char byte = 0;
        if (!size)
                return ATTACK_NOT_APPLICABLE;
        if (SYS2(pipe2, ready, 0) < 0 || SYS2(pipe2, hold, 0) < 0)
                return ATTACK_NOT_APPLICABLE;
        for (int i = 0; i < 5; i++) {
                children[i] = fork_child();
                if (children[i])
                        continue;
                (void)SYS1(close, ready[0]);
                (void)SYS1(close, hold[1]);
                i64 r = SYS6(mmap, 0, size, READ_WRITE, PRIVATE_MEMORY, -1, 0);
                if (is_address(r)) {
                        touch(r, size);
                        (void)SYS3(write, ready[1], &byte, 1);
                        (void)SYS3(read, hold[0], &byte, 1);
                }
                end_child(1);
        }
        (void)SYS1(close, ready[1]);
        while (ends < 5 && SYS3(read, ready[0], &byte, 1) > 0)
                ends++;
        if (ends == 5)
                nap_ms(HOLD_MS);
        for (int i = 0; i < 5; i++)
                kill_child(children[i]);
        (void)SYS1(close, ready[0]);
        (void)SYS1(close, hold[0]);
        (void)SYS1(close, hold[1]);
        return judge(a, ends == 5 ? 0 : -12);
}

/* Pages in pipes belong to the kernel, not to a process. */
int attack_memory_in_pipes(struct attack *a)
{
        i64 left = beyond(a, N(all_memory)), child = left ? fork_child() : 0;
        if (!left)
                return ATTACK_NOT_APPLICABLE;
        if (child)
                return judge_child(a, child);
        i64 block = SYS6(mmap, 0, MIB, READ_WRITE, PRIVATE_MEMORY, -1, 0);
        while (left > 0 && is_address(block)) {
                i32 fds[2];
                i64 r = SYS2(pipe2, fds, 04000);
                if (r >= 0)
                        r = SYS3(fcntl, fds[1], 1031, MIB); /* F_SETPIPE_SZ */
                if (r >= 0)
                        r = SYS3(write, fds[1], block, MIB);
                if (r <= 0)
                        end_child(r ? (int)-r : 12);
                left -= r;
        }
        nap_ms(HOLD_MS);
        end_child(is_address(block) ? 0 : 12);
        return ATTACK_HELD;
}

static int filled(struct attack *a, i64 folder)
{
        char path[PATH_SIZE];
        i64 size = (N(disk) + 64) * MIB;
        if (a->missing)
                return ATTACK_NOT_APPLICABLE;
        i64 fd = open_file(path_in(path, folder, "filler"), O_BOTH | O_CREATE);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS4(fallocate, fd, 0, 0, size);
        if (r >= 0)
                nap_ms(HOLD_MS);
        int outcome = judge(a, r);
        (void)SYS1(close, fd);
        (void)SYS3(unlinkat, AT_CWD, path, 0);
        return outcome;
}

/* Half a GiB stays in the driver's cache. */
int attack_cache_overfull(struct attack *a)
{
        char path[PATH_SIZE];
        i64 fd = open_file(path_in(path, P(cache), "overfull"), O_BOTH | O_CREATE);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS4(fallocate, fd, 0, 0, 512l * MIB);
        (void)SYS1(close, fd);
        return r < 0 ? judge(a, r) : ATTACK_DONE;
}

int attack_fill_scratch(struct attack *a)
{
        return filled(a, P(scratch));
}

int attack_fill_cache(struct attack *a)
{
        return filled(a, P(cache));
}

/* A file without a name is in no folder, so a walk can't count it. */
int attack_fill_without_name(struct attack *a)
{
        i64 size = (N(disk) + 64) * MIB;
        i64 fd = open_file(P(scratch), O_BOTH | 020000000 | O_FOLDER); /* O_TMPFILE */
        if (a->missing)
                return ATTACK_NOT_APPLICABLE;
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS4(fallocate, fd, 0, 0, size);
        if (r >= 0)
                nap_ms(HOLD_MS);
        (void)SYS1(close, fd);
        return judge(a, r);
}

/* Open the scratch folder's file number `i`. */
static i64 numbered(struct attack *a, char *path, i64 i)
{
        u32 at = 0;
        put_param(path, &at, P(scratch));
        put_text(path, &at, "/filler.");
        put_number(path, &at, (u64)i);
        return (i64)path;
}

int attack_fill_by_many_files(struct attack *a)
{
        char path[PATH_SIZE];
        i64 count = (N(disk) + 64) * MIB / MANY_FILES, n = 0, r = 0;
        (void)P(scratch);
        if (a->missing)
                return ATTACK_NOT_APPLICABLE;
        for (; n < count && r >= 0; n++) {
                i64 fd = open_file(numbered(a, path, n), O_BOTH | O_CREATE);
                r = fd < 0 ? fd : SYS4(fallocate, fd, 0, 0, MANY_FILES);
                if (fd >= 0)
                        (void)SYS1(close, fd);
        }
        if (r >= 0)
                nap_ms(HOLD_MS);
        int outcome = judge(a, r);
        while (n-- > 0)
                (void)SYS3(unlinkat, AT_CWD, numbered(a, path, n), 0);
        return outcome;
}

/* Only the mapping of one page leads to it. */
int attack_fill_by_mapping(struct attack *a)
{
        char path[PATH_SIZE];
        i64 size = (N(disk) + 64) * MIB;
        (void)P(scratch);
        if (a->missing)
                return ATTACK_NOT_APPLICABLE;
        i64 fd = open_file(path_in(path, P(scratch), "filler"), O_BOTH | O_CREATE);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS4(fallocate, fd, 0, 0, size), mapped = r;
        if (r >= 0)
                mapped = SYS6(mmap, 0, PAGE, READ_WRITE, SHARED_FILE, fd, 0);
        (void)SYS3(unlinkat, AT_CWD, path, 0);
        (void)SYS1(close, fd);
        if (!is_address(mapped))
                return judge(a, mapped);
        nap_ms(HOLD_MS);
        (void)SYS2(munmap, mapped, PAGE);
        return ATTACK_BREACHED;
}

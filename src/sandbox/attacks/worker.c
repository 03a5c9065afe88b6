/* Attacks on the work that a server does for a worker: the control socket, the log, scratch
 * folders, descriptors, and processes that stay. A runner judges most of them from outside. */
#include "sandbox/attacks/attack.h"

enum { CONTROL = 3, LOG = 2, NO_WAIT = 0x40 /* MSG_DONTWAIT */ };

/* --- Processes that stay: their name is "spancl-orphan" ----------------------------------------- */

enum stay { STAY_QUIET, STAY_DEAF, STAY_STOPPED, STAY_FORKING, STAY_TRACED };

static void stays(enum stay how)
{
        (void)SYS0(setsid);
        (void)SYS5(prctl, 15, "spancl-orphan", 0, 0, 0); /* PR_SET_NAME */
        (void)SYS5(prctl, 1, 0, 0, 0, 0);                /* PR_SET_PDEATHSIG */
        if (how == STAY_DEAF) {
                u64 all = ~0ul;
                (void)SYS4(rt_sigprocmask, 0, &all, 0, 8);
        }
        if (how == STAY_STOPPED)
                (void)SYS2(kill, SYS0(getpid), 19);
        for (;;) {
                nap_ms(100);
                /* Again and again, a new process replaces the old one. */
                if (how == STAY_FORKING && fork_child() > 0)
                        end_child(0);
        }
}

static int leaves(struct attack *a, enum stay how)
{
        i64 child = fork_child();
        if (child < 0)
                return judge(a, child);
        if (!child) {
                if (!fork_child())
                        stays(how);
                end_child(0);
        }
        (void)SYS4(wait4, child, 0, 0, 0);
        return ATTACK_DONE;
}

int attack_leave_process(struct attack *a)
{
        return leaves(a, STAY_QUIET);
}

int attack_leave_deaf_process(struct attack *a)
{
        return leaves(a, STAY_DEAF);
}

int attack_leave_stopped_process(struct attack *a)
{
        return leaves(a, STAY_STOPPED);
}

int attack_leave_forking_process(struct attack *a)
{
        return leaves(a, STAY_FORKING);
}

/* --- Descriptors -------------------------------------------------------------------------------- */

/* A listening descriptor is the server's. */
int attack_find_listener(struct attack *a)
{
        for (i64 fd = 0; fd < 1024; fd++) {
                i32 listens = 0, size = 4;
                i64 r = SYS5(getsockopt, fd, 1, 30, &listens, &size);
                if (r >= 0 && listens)
                        return ATTACK_BREACHED;
        }
        return ATTACK_HELD;
}

/* A worker has only one kind of packet sockets: its control sockets. */
int attack_find_other_control(struct attack *a)
{
        int found = 0;
        for (i64 fd = 0; fd < 1024; fd++) {
                i32 type = 0, size = 4;
                i64 r = SYS5(getsockopt, fd, 1, 3, &type, &size);
                found += r >= 0 && type == 5;
        }
        return found > 2 ? ATTACK_BREACHED
                         : ATTACK_HELD; /* its own: to the supervisor and to the dialler */
}

/* An open folder leads to others: /proc/self/fd/N/.. */
int attack_find_folder(struct attack *a)
{
        u64 facts[32];
        for (i64 fd = 0; fd < 1024; fd++) {
                i64 r = SYS5(statx, fd, "", AT_EMPTY, 0x7ff, facts);
                if (r >= 0 && (((u16 *)facts)[14] & 0170000) == 0040000)
                        return ATTACK_BREACHED;
        }
        return ATTACK_HELD;
}

/* --- The control socket ------------------------------------------------------------------------- */

static i64 says(const void *data, i64 size)
{
        return SYS6(sendto, CONTROL, data, size, NO_WAIT | 0x4000, 0, 0);
}

int attack_control_garbage(struct attack *a)
{
        u8 packet[256];
        u32 seed = 1;
        for (int i = 0; i < 2000; i++) {
                for (u32 k = 0; k < sizeof(packet); k++) {
                        seed = seed * 1664525 + 1013904223;
                        packet[k] = (u8)(seed >> 24);
                }
                (void)says(packet, i % 256);
        }
        return ATTACK_DONE;
}

int attack_control_each_kind(struct attack *a)
{
        u8 packet[64];
        fill(packet, sizeof(packet), '1');
        for (int kind = 0; kind < 256; kind++)
                for (int size = 1; size < 64; size *= 2) {
                        packet[0] = (u8)kind;
                        (void)says(packet, size);
                }
        return ATTACK_DONE;
}

int attack_control_flood(struct attack *a)
{
        u8 packet[9];
        fill(packet, sizeof(packet), 0);
        packet[0] = 'T';
        for (int i = 0; i < 300000; i++)
                (void)says(packet, sizeof(packet));
        return ATTACK_DONE;
}

int attack_control_large(struct attack *a)
{
        i64 block = SYS6(mmap, 0, 1 << 20, 3, 0x22, -1, 0);
        for (int i = 10; block > 0 && i <= 20; i++)
                (void)SYS6(sendto, CONTROL, block, 1ul << i, NO_WAIT | 0x4000, 0, 0);
        return ATTACK_DONE;
}

/* The message names the bystander as the worker's process, so that the supervisor would end it. */
int attack_control_false_process(struct attack *a)
{
        char packet[32];
        u32 at = 1;
        packet[0] = 'P';
        put_number(packet, &at, (u64)N(bystander));
        if (!a->missing)
                (void)says(packet, at);
        return ATTACK_DONE;
}

int attack_control_false_failure(struct attack *a)
{
        char packet[64];
        u32 at = 0;
        put_text(packet, &at, "F\x1b]0;spancl-attack\x07\nforged");
        (void)says(packet, at);
        return ATTACK_DONE;
}

/* Send descriptors without need, and more than a message may have. */
int attack_control_descriptors(struct attack *a)
{
        u8 byte = 'T';
        u64 part[2], message[7], control[130];
        i32 *fds = (i32 *)&control[2];
        part[0] = (u64)&byte;
        part[1] = 1;
        for (int i = 0; i < 250; i++)
                fds[i] = CONTROL;
        fill(message, sizeof(message), 0);
        message[2] = (u64)part;
        message[3] = 1;
        message[4] = (u64)control;
        i64 r = 0;
        for (int n = 1; n <= 250; n += 83) {
                control[0] = 16 + 4 * (u64)n;
                control[1] = 1 | 1ul << 32; /* SOL_SOCKET, SCM_RIGHTS */
                message[5] = (control[0] + 7) & ~7ul;
                for (int i = 0; i < 200 && r >= 0; i++)
                        r = SYS3(sendmsg, CONTROL, message, NO_WAIT | 0x4000);
        }
        return ATTACK_DONE;
}

int attack_control_shut(struct attack *a)
{
        (void)SYS2(shutdown, CONTROL, 1);
        return ATTACK_DONE;
}

/* --- The local socket: the supervisor connects for a worker, to other servers only --------------- */

static void asks_for(i64 path)
{
        char packet[PATH_SIZE + 16];
        u32 at = 9;
        fill(packet, sizeof(packet), 0);
        packet[0] = 'N';
        packet[1] = 77;
        for (const char *p = (const char *)path; *p; p++)
                packet[at++] = *p;
        (void)says(packet, at);
        nap_ms(200);
}

int attack_local_socket_other_socket(struct attack *a)
{
        char path[PATH_SIZE];
        u32 at = 0;
        put_param(path, &at, P(unix_socket));
        if (!a->missing)
                asks_for((i64)path);
        return ATTACK_DONE;
}

/* A name that looks like a server's, and leads elsewhere. */
int attack_local_socket_symbolic_link(struct attack *a)
{
        char path[PATH_SIZE];
        path_in(path, P(scratch), "peers");
        i64 r = SYS3(symlinkat, P(unix_socket), AT_CWD, path);
        if (r < 0)
                return judge(a, r);
        asks_for((i64)path);
        (void)SYS3(unlinkat, AT_CWD, path, 0);
        return ATTACK_DONE;
}

int attack_local_socket_hard_link(struct attack *a)
{
        char path[PATH_SIZE];
        path_in(path, P(scratch), "peers");
        i64 r = SYS5(linkat, AT_CWD, P(unix_socket), AT_CWD, path, 0);
        if (r < 0)
                return judge(a, r);
        asks_for((i64)path);
        (void)SYS3(unlinkat, AT_CWD, path, 0);
        return ATTACK_DONE;
}

int attack_local_socket_dots(struct attack *a)
{
        char path[PATH_SIZE];
        u32 at = 0;
        put_param(path, &at, P(scratch));
        put_text(path, &at, "/../../../../../../../../..");
        put_param(path, &at, P(unix_socket));
        if (!a->missing)
                asks_for((i64)path);
        return ATTACK_DONE;
}

/* The name changes between the check of it and its use. */
int attack_local_socket_race(struct attack *a)
{
        char path[PATH_SIZE], link[PATH_SIZE];
        path_in(path, P(scratch), "peers");
        path_in(link, P(scratch), "other");
        (void)SYS3(symlinkat, P(local_socket), AT_CWD, path);
        (void)SYS3(symlinkat, P(unix_socket), AT_CWD, link);
        if (a->missing)
                return ATTACK_NOT_APPLICABLE;
        i64 child = fork_child();
        if (!child)
                for (;;)
                        (void)SYS5(renameat2, AT_CWD, path, AT_CWD, link, 2);
        for (int i = 0; i < 10; i++)
                asks_for((i64)path);
        kill_child(child);
        (void)SYS3(unlinkat, AT_CWD, path, 0);
        (void)SYS3(unlinkat, AT_CWD, link, 0);
        return ATTACK_DONE;
}

/* --- The log ------------------------------------------------------------------------------------ */

int attack_log_forged_line(struct attack *a)
{
        char line[80];
        u32 at = 0;
        put_text(line, &at, "\nspancld: supervisor: this line is forged\n");
        (void)SYS3(write, LOG, line, at);
        return ATTACK_DONE;
}

int attack_log_escapes(struct attack *a)
{
        char line[80];
        u32 at = 0;
        put_text(line, &at, "\x1b]0;spancl-attack\x07\x1b[2J\n");
        (void)SYS3(write, LOG, line, at);
        return ATTACK_DONE;
}

/* Truncate the log to its present length. */
int attack_log_truncated(struct attack *a)
{
        u64 facts[32];
        i64 r = SYS5(statx, LOG, "", AT_EMPTY, 0x7ff, facts);
        return judge(a, r < 0 ? r : SYS2(ftruncate, LOG, facts[5]));
}

int attack_log_overwritten(struct attack *a)
{
        i64 at = SYS3(lseek, LOG, 0, 1);
        if (at < 0)
                return judge(a, at);
        i64 r = SYS3(lseek, LOG, 0, 0);
        if (r >= 0)
                (void)SYS3(lseek, LOG, at, 0);
        return judge(a, r);
}

int attack_log_read(struct attack *a)
{
        u8 byte;
        return judge(a, SYS4(pread64, LOG, &byte, 1, 0));
}

int attack_log_reopened(struct attack *a)
{
        i64 fd = open_file((i64) "/proc/self/fd/2", O_READ | 04000);
        i64 r = fd < 0 ? fd : SYS3(lseek, fd, 0, 0); /* a pipe has no place */
        if (fd >= 0)
                (void)SYS1(close, fd);
        return judge(a, r);
}

int attack_log_chmod(struct attack *a)
{
        u64 facts[32];
        i64 r = SYS5(statx, LOG, "", AT_EMPTY, 0x7ff, facts);
        if (r >= 0 && (((u16 *)facts)[14] & 0170000) != 0100000)
                return ATTACK_HELD; /* no file */
        return judge(a, SYS2(fchmod, LOG, 0600));
}

int attack_log_flood(struct attack *a)
{
        char line[4096];
        fill(line, sizeof(line), 'x');
        line[sizeof(line) - 1] = '\n';
        i64 child = fork_child();
        if (!child) {
                for (int i = 0; i < 64 << 8; i++) /* 64 MiB */
                        (void)SYS3(write, LOG, line, sizeof(line));
                end_child(0);
        }
        nap_ms(2000); /* a pipe may be slow */
        kill_child(child);
        return ATTACK_DONE;
}

int attack_log_blocked(struct attack *a)
{
        i64 flags = SYS3(fcntl, LOG, 3, 0);
        if (flags < 0)
                return judge(a, flags);
        /* If the open file is shared, this flag changes whether other processes wait. */
        u64 facts[32];
        i64 r = SYS5(statx, LOG, "", AT_EMPTY, 0x7ff, facts);
        if (r >= 0 && (((u16 *)facts)[14] & 0170000) != 0100000)
                return ATTACK_HELD;
        return judge(a, SYS3(fcntl, LOG, 4, flags));
}

/* --- The scratch folder, which the supervisor removes ------------------------------------------- */

int attack_scratch_link_out(struct attack *a)
{
        char path[PATH_SIZE];
        path_in(path, P(scratch), "out");
        i64 r = SYS3(symlinkat, P(outside), AT_CWD, path);
        return r < 0 ? judge(a, r) : ATTACK_DONE;
}

/* Replace the folder between the supervisor's two uses of its path. */
int attack_scratch_swapped(struct attack *a)
{
        char folder[PATH_SIZE], link[PATH_SIZE], file[PATH_SIZE];
        path_in(folder, P(scratch), "swapped");
        path_in(link, P(scratch), "target");
        i64 r = SYS3(mkdirat, AT_CWD, folder, 0700);
        if (r < 0)
                return judge(a, r);
        /* Use names of files that also exist outside. */
        (void)SYS1(close, open_file(path_in(file, P(scratch), "swapped/prey"), O_WRITE | O_CREATE));
        (void)SYS1(close,
                   open_file(path_in(file, P(scratch), "swapped/secret"), O_WRITE | O_CREATE));
        (void)SYS1(close,
                   open_file(path_in(file, P(scratch), "swapped/dispensable"), O_WRITE | O_CREATE));
        (void)SYS3(mkdirat, AT_CWD, path_in(file, P(scratch), "swapped/empty"), 0700);
        r = SYS3(symlinkat, P(outside), AT_CWD, link);
        if (r < 0)
                return judge(a, r);
        i64 child = fork_child();
        if (!child) {
                (void)SYS0(setsid);
                (void)SYS5(prctl, 1, 0, 0, 0, 0);
                for (int i = 0; i < 2000000; i++)
                        (void)SYS5(renameat2, AT_CWD, folder, AT_CWD, link, 2);
                end_child(0);
        }
        return child < 0 ? judge(a, child) : ATTACK_DONE;
}

/* Make a folder that no process can read, not even its owner's. */
int attack_scratch_closed(struct attack *a)
{
        char path[PATH_SIZE], file[PATH_SIZE];
        i64 r = SYS3(mkdirat, AT_CWD, path_in(path, P(scratch), "closed"), 0700);
        if (r < 0)
                return judge(a, r);
        (void)SYS1(close, open_file(path_in(file, P(scratch), "closed/file"), O_WRITE | O_CREATE));
        (void)SYS3(fchmodat, AT_CWD, path, 0);
        return ATTACK_DONE;
}

/* Nest folders deeper than a path may be long. */
int attack_scratch_deep(struct attack *a)
{
        char name[101];
        fill(name, sizeof(name), 'd');
        name[100] = 0;
        i64 at = open_file(P(scratch), O_NAME | O_FOLDER);
        if (at < 0)
                return judge(a, at);
        for (int i = 0; i < 60; i++) {
                (void)SYS3(mkdirat, at, name, 0700);
                i64 next = SYS4(openat, at, name, O_NAME | O_FOLDER | O_CLOSE, 0);
                (void)SYS1(close, at);
                at = next;
                if (at < 0)
                        break;
        }
        if (at >= 0)
                (void)SYS1(close, at);
        return ATTACK_DONE;
}

int attack_scratch_removed(struct attack *a)
{
        char path[PATH_SIZE];
        u32 at = 0;
        put_param(path, &at, P(scratch));
        i64 r = SYS3(unlinkat, AT_CWD, path, AT_REMOVE_DIR);
        return r < 0 ? judge(a, r) : ATTACK_DONE;
}

/* --- Caches ------------------------------------------------------------------------------------- */

int attack_cache_link_out(struct attack *a)
{
        char path[PATH_SIZE];
        i64 r = SYS3(symlinkat, P(outside), AT_CWD, path_in(path, P(cache), "out"));
        return r < 0 && r != -17 ? judge(a, r) : ATTACK_DONE;
}

/* Replace each file of the own client's cache by a link to the file outside. */
int attack_cache_links(struct attack *a)
{
        char path[PATH_SIZE];
        i64 at = P(prey), r = 0;
        for (int i = 0; i < 64 && r >= 0; i++) {
                u32 end = 0;
                put_param(path, &end, P(cache));
                put_text(path, &end, "/link.");
                put_number(path, &end, (u64)i);
                r = SYS3(symlinkat, at, AT_CWD, path);
                if (r == -17)
                        r = 0;
        }
        return r < 0 ? judge(a, r) : ATTACK_DONE;
}

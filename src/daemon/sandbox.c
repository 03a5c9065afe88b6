#include "daemon/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

#define LOG "sandbox"

/* ---- users ---------------------------------------------------------------------------------- */

static bool become(const char *name, const char *scratch_dir)
{
        const struct passwd *user = getpwnam(name);
        if (!user) {
                log_error(LOG, "--user %s: there is no such user", name);
                return false;
        }
        if (geteuid() == user->pw_uid)
                return true;
        if (chown(scratch_dir, user->pw_uid, user->pw_gid) < 0 ||
            initgroups(name, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 ||
            setuid(user->pw_uid) < 0) {
                log_error(LOG, "can't become user %s: %s", name, strerror(errno));
                return false;
        }
        setenv("HOME", user->pw_dir, 1); /* whose caches drivers write */
        unsetenv("XDG_CACHE_HOME");
        prctl(PR_SET_DUMPABLE, 1); /* so that /proc/self is its own */
        return true;
}

/* Root without its powers is still the owner of root's files, but cannot get at others'. */
static void drop_capabilities(void)
{
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = { 0 };
        for (int i = 0; i <= CAP_LAST_CAP; i++)
                (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
        (void)!syscall(SYS_capset, &head, none);
}

bool sandbox_user(const struct config_options *o, const char *scratch_dir)
{
        const char *name = config_option_text(o, CONFIG_user);
        if (*name && !become(name, scratch_dir))
                return false;
        if (!geteuid() && config_option_flag(o, CONFIG_sandbox)) {
                log_info(LOG, "workers run as root: --user names a better one");
                drop_capabilities();
        }
        return true;
}

/* ---- files ---------------------------------------------------------------------------------- */

#ifdef LANDLOCK_ACCESS_FS_TRUNCATE
#define ACCESS_TRUNCATE LANDLOCK_ACCESS_FS_TRUNCATE
#else
#define ACCESS_TRUNCATE (1ull << 14)
#endif
#define ACCESS_REFER     (1ull << 13)
#define ACCESS_IOCTL_DEV (1ull << 15)
#define ACCESS_READ \
        (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_FILE                                                   \
        (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | \
         LANDLOCK_ACCESS_FS_READ_FILE | ACCESS_TRUNCATE | ACCESS_IOCTL_DEV)
#define ACCESS_ALL ((1ull << 13) - 1)

struct rules {
        int fd;
        uint64_t handled;
};

static void allow(const struct rules *r, const char *path, uint64_t access)
{
        struct stat st;
        int fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0)
                return;
        access &= r->handled;
        if (!fstat(fd, &st) && !S_ISDIR(st.st_mode))
                access &= ACCESS_FILE;
        struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = fd };
        if (syscall(SYS_landlock_add_rule, r->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
                log_debug(LOG, "no rule for %s: %s", path, strerror(errno));
        close(fd);
}

static void allow_matching(const struct rules *r, const char *pattern, uint64_t access)
{
        glob_t found;
        if (glob(pattern, 0, NULL, &found) == 0)
                for (size_t i = 0; i < found.gl_pathc; i++)
                        allow(r, found.gl_pathv[i], access);
        globfree(&found);
}

static void allow_folder_of(const struct rules *r, const char *file)
{
        char path[PATH_MAX];
        if (!realpath(file, path))
                return;
        char *slash = strrchr(path, '/');
        if (slash > path)
                *slash = 0;
        allow(r, path, ACCESS_READ);
}

/* An orphan takes its own folder away when it is empty. */
static void allow_parent(const struct rules *r, const char *folder)
{
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s", folder);
        char *slash = strrchr(path, '/');
        if (!slash || slash == path)
                return;
        *slash = 0;
        allow(r, path, LANDLOCK_ACCESS_FS_REMOVE_DIR);
}

/* Paths separated by colons. */
static void allow_list(const struct rules *r, const char *list)
{
        while (list && *list) {
                char path[PATH_MAX];
                size_t n = strcspn(list, ":");
                if (n < sizeof(path)) {
                        memcpy(path, list, n);
                        path[n] = 0;
                        if (*path == '/')
                                allow(r, path, ACCESS_READ);
                }
                list += n + (list[n] == ':');
        }
}

/* The libraries that the ICD files of a folder name, wherever they are. */
static void allow_drivers(const struct rules *r, const char *folder)
{
        char path[PATH_MAX], line[PATH_MAX];
        DIR *dir = opendir(folder);
        for (struct dirent *e; dir && (e = readdir(dir));) {
                snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
                allow_folder_of(r, path); /* it may be a link */
                FILE *f = strstr(e->d_name, ".icd") ? fopen(path, "re") : NULL;
                if (f && fgets(line, sizeof(line), f)) {
                        line[strcspn(line, "\r\n")] = 0;
                        if (*line == '/')
                                allow_folder_of(r, line);
                }
                if (f)
                        fclose(f);
        }
        if (dir)
                closedir(dir);
}

static void allow_below(const struct rules *r, const char *base, const char *name)
{
        char path[PATH_MAX];
        if (!base || *base != '/')
                return;
        snprintf(path, sizeof(path), "%s/%s", base, name);
        allow(r, path, r->handled);
}

/* What drivers keep of compiled programs. A folder that is missing is made: it can't be later. */
static void allow_caches(const struct rules *r, const char *cache_dir)
{
        static const char *const names[] = { "pocl", "mesa_shader_cache", "mesa_shader_cache_db",
                                             "neo_compiler_cache", "rusticl" };
        const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        char cache[PATH_MAX] = "", pocl[PATH_MAX], nv[PATH_MAX];
        if (cache_dir) {
                (void)mkdir(cache_dir, 0700);
                allow(r, cache_dir, r->handled);
        }
        if (base && *base == '/')
                snprintf(cache, sizeof(cache), "%s", base);
        else if (home && *home == '/')
                snprintf(cache, sizeof(cache), "%s/.cache", home);
        snprintf(pocl, sizeof(pocl), "%.*s/pocl", PATH_MAX - 8, cache);
        if (*cache) {
                (void)mkdir(cache, 0700);
                (void)mkdir(pocl, 0700);
        }
        for (size_t i = 0; i < array_size(names); i++)
                allow_below(r, cache, names[i]);
        /* NVIDIA's. Without it each program that comes from our cache is translated anew. */
        if (home && *home == '/' && access("/dev/nvidiactl", F_OK) == 0) {
                snprintf(nv, sizeof(nv), "%s/.nv", home);
                (void)mkdir(nv, 0700);
        }
        const char *pocl_dir = getenv("POCL_CACHE_DIR"), *cuda = getenv("CUDA_CACHE_PATH");
        if (!cuda)
                allow_below(r, home, ".nv");
        if (pocl_dir) {
                (void)mkdir(pocl_dir, 0700);
                allow(r, pocl_dir, r->handled);
        }
        if (cuda) {
                (void)mkdir(cuda, 0700);
                allow(r, cuda, r->handled);
        }
}

/* Accelerators: the memory and the files that --almaif names. */
static void allow_accelerators(const struct rules *r, const char *text)
{
        if (!*text)
                return;
        allow(r, "/dev/mem", r->handled);
        while ((text = strchr(text, '/'))) {
                char path[PATH_MAX];
                size_t n = strcspn(text, ",@ ;\t\n");
                snprintf(path, sizeof(path), "%.*s", (int)n, text);
                allow(r, path, r->handled);
                text += n;
        }
}

static void allow_all_needed(const struct rules *r, const struct config_options *o,
                             const char *scratch_dir, const char *cache_dir)
{
        static const char *const read[] = { "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin",
                                            "/etc", "/opt", "/proc", "/sys", "/nix/store",
                                            "/var/lib/nvidia",
                                            /* Of /run, where secrets of services are, too. */
                                            "/run/opengl-driver*", "/run/nvidia*",
                                            "/run/systemd/resolve", "/run/NetworkManager",
                                            "/run/resolvconf", "/run/connman" };
        static const char *const devices[] = { "/dev/null",   "/dev/zero",    "/dev/full",
                                               "/dev/random", "/dev/urandom", "/dev/dri",
                                               "/dev/kfd",    "/dev/nvidia*", "/dev/nvhost*",
                                               "/dev/nvmap",  "/dev/mali*",   "/dev/accel",
                                               "/dev/uio*",   "/dev/xdma*",   "/dev/dxg",
                                               "/dev/udmabuf" };
        char own[PATH_MAX];
        static const char *const fabrics[] = { "/dev/infiniband", "/dev/hfi1*" };
        const char *named = config_option_text(o, CONFIG_fabric);
        bool fabric = strcmp(named, "off") != 0;
        if (!strcmp(named, "shm"))
                allow(r, "/dev/shm", r->handled);
        for (size_t i = 0; fabric && i < array_size(fabrics); i++)
                allow_matching(r, fabrics[i], r->handled);
        for (size_t i = 0; i < array_size(read); i++)
                allow_matching(r, read[i], ACCESS_READ);
        for (size_t i = 0; i < array_size(devices); i++)
                allow_matching(r, devices[i], r->handled);
        /* All sessions' drivers share it; where none needs it, it is nobody's. */
        if (!access("/dev/kfd", F_OK) || !access("/dev/nvidiactl", F_OK))
                allow(r, "/dev/shm", r->handled);
        allow(r, "/proc/self", ACCESS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE);
        ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 4);
        if (n > 0) { /* bin/spancld: what was installed beside it */
                own[n] = 0;
                *strrchr(own, '/') = 0;
                char *slash = strrchr(own, '/');
                if (slash && slash > own)
                        *slash = 0;
                allow(r, own, ACCESS_READ);
        }
        const char *vendors = getenv("OCL_ICD_VENDORS");
        allow_drivers(r, vendors ? vendors : "/etc/OpenCL/vendors");
        if (vendors)
                allow(r, vendors, ACCESS_READ);
        allow_list(r, getenv("OCL_ICD_FILENAMES"));
        allow_list(r, getenv("LD_LIBRARY_PATH"));
        allow_list(r, getenv("LD_PRELOAD"));
        allow_list(r, config_option_text(o, CONFIG_sandbox_read));
        allow_accelerators(r, config_option_text(o, CONFIG_almaif));
        allow(r, scratch_dir, r->handled);
        allow_parent(r, scratch_dir);
        allow_caches(r, cache_dir);
}

/* False: it failed. Kernels without Landlock are told of, not refused. */
static bool shut_files(const struct config_options *o, const char *scratch_dir,
                       const char *cache_dir, bool *ret_shut)
{
        /* The members that later kernels have added stand behind the first. */
        struct {
                uint64_t fs, net, scoped;
        } attr = { 0 };
        long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
        *ret_shut = false;
        if (abi < 1) {
                log_info(LOG, "this kernel has no Landlock: sessions can read what their user can");
                return true;
        }
        attr.fs = ACCESS_ALL | (abi >= 2 ? ACCESS_REFER : 0) | (abi >= 3 ? ACCESS_TRUNCATE : 0) |
                  (abi >= 5 ? ACCESS_IOCTL_DEV : 0);
        attr.scoped = abi >= 6 ? 3 : 0; /* abstract sockets and signals of others */
        size_t size = abi >= 6 ? sizeof(attr) : sizeof(attr.fs);
        struct rules r = { .handled = attr.fs };
        r.fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
        if (r.fd < 0) {
                log_error(LOG, "Landlock: %s", strerror(errno));
                return false;
        }
        allow_all_needed(&r, o, scratch_dir, cache_dir);
        bool ok = syscall(SYS_landlock_restrict_self, r.fd, 0) == 0;
        if (!ok)
                log_error(LOG, "Landlock: %s", strerror(errno));
        close(r.fd);
        *ret_shut = ok;
        return ok;
}

/* ---- system calls --------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#endif

#ifdef ARCH
/* What neither drivers nor compilers have a use for: the host's own affairs, and what kernel faults were
 * often in. */
static const unsigned forbidden[] = {
        SYS_mount,
        SYS_umount2,
        SYS_pivot_root,
        SYS_chroot,
        SYS_swapon,
        SYS_swapoff,
        SYS_reboot,
        SYS_kexec_load,
        SYS_init_module,
        SYS_finit_module,
        SYS_delete_module,
        SYS_bpf,
        SYS_keyctl,
        SYS_add_key,
        SYS_request_key,
        SYS_userfaultfd,
        SYS_setns,
        SYS_unshare,
        SYS_acct,
        SYS_quotactl,
        SYS_settimeofday,
        SYS_clock_settime,
        SYS_sethostname,
        SYS_setdomainname,
        SYS_syslog,
        SYS_vhangup,
        425 /* io_uring_setup */,
        426 /* io_uring_enter */,
        427 /* io_uring_register */,
        428 /* open_tree */,
        429 /* move_mount */,
        430 /* fsopen */,
        442 /* mount_setattr */,
#ifdef SYS_kexec_file_load
        SYS_kexec_file_load,
#endif
#ifdef SYS_iopl
        SYS_iopl,
        SYS_ioperm,
#endif
        /* The last ones only where Landlock does not see to it. */
        SYS_ptrace,
        SYS_process_vm_readv,
        SYS_process_vm_writev,
};

/* What peers and names are found over. The services of the host that listen on Unix sockets would do a lot for our user,
 * and Landlock does not keep anybody from connecting. */
static const unsigned families[] = { AF_INET, AF_INET6, AF_NETLINK, AF_UNIX };

enum { OF_LANDLOCK = 3, OF_SOCKET = 2 + array_size(families) };

/* `local`: peers may be found over Unix sockets. */
static bool shut_calls(bool landlock, bool local)
{
        struct sock_filter code[array_size(forbidden) + 8 + OF_SOCKET];
        unsigned short n = 0;
        size_t count = array_size(forbidden) - (landlock ? OF_LANDLOCK : 0);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                 offsetof(struct seccomp_data, arch));
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                 offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
        /* The other numbers for the same calls (x32). */
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000,
                                                 (uint8_t)count + OF_SOCKET + 1, 0);
#endif
        for (size_t i = 0; i < count; i++)
                code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, forbidden[i],
                                                         (uint8_t)(count - i + OF_SOCKET), 0);
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0,
                                                 OF_SOCKET - 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                 offsetof(struct seccomp_data, args));
        for (size_t i = 0; i < array_size(families); i++) {
                unsigned family = families[i] == AF_UNIX && !local ? AF_INET : families[i];
                unsigned left = array_size(families) - 1 - i;
                code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, family,
                                                         (uint8_t)left, !left);
        }
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
        struct sock_fprog program = { .len = n, .filter = code };
        /* Kernels before 5.16 also keep the processor from loading ahead of stores, which makes it slower, unless they are told
         * not to (seccomp(2), since 4.17). What could be learnt by that is in this process, and kernels of its only client
         * may read there anyway where the device is a CPU. */
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                    &program) == 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0)
                return true;
        log_info(LOG, "this kernel has no seccomp: %s", strerror(errno));
        return errno == EINVAL;
}
#else
static bool shut_calls(bool landlock, bool local)
{
        (void)landlock, (void)local;
        return true;
}
#endif

/* ---- the whole ------------------------------------------------------------------------------ */

static void limit(int resource, rlim_t value)
{
        struct rlimit r = { value, value };
        if (setrlimit((__rlimit_resource_t)resource, &r) < 0)
                log_warn(LOG, "a limit can't be set: %s", strerror(errno));
}

bool sandbox_enter(const struct config_options *o, const char *scratch_dir, const char *cache_dir)
{
        uint64_t memory = config_option_number(o, CONFIG_session_memory);
        limit(RLIMIT_CORE, 0); /* a session's data is not for files */
        if (memory)
                limit(RLIMIT_DATA, (rlim_t)memory << 20);
        if (!config_option_flag(o, CONFIG_sandbox))
                return true;
        bool landlock;
        /* Temporary files, compilers' for instance, are the session's own. */
        setenv("TMPDIR", scratch_dir, 1);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
                log_error(LOG, "no-new-privs: %s", strerror(errno));
                return false;
        }
        bool local = false;
        for (size_t i = 0; i < o->list_count; i++)
                local |= o->list[i].id == CONFIG_socket;
        return shut_files(o, scratch_dir, cache_dir, &landlock) && shut_calls(landlock, local);
}

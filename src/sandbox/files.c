#include "sandbox/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/log.h"
#include "base/mem.h"

#define LOG "sandbox"

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
                if (*e->d_name == '.') /* "..": the folder of that is not ours to allow */
                        continue;
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
                (void)!folder_make(cache_dir);
                allow(r, cache_dir, r->handled);
        }
        if (base && *base == '/')
                snprintf(cache, sizeof(cache), "%s", base);
        else if (home && *home == '/')
                snprintf(cache, sizeof(cache), "%s/.cache", home);
        snprintf(pocl, sizeof(pocl), "%.*s/pocl", PATH_MAX - 8, cache);
        if (*cache) {
                (void)!folder_make(pocl);
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
                                            "/etc", "/opt", "/proc", "/nix/store",
                                            "/var/lib/nvidia",
                                            /* Of /sys, which has interfaces for debugging, too. */
                                            "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices",
                                            "/sys/fs/cgroup", "/sys/kernel/mm", "/sys/module",
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
        allow_caches(r, cache_dir);
}

/* A set of rules that allows nothing yet. False: the log says why; `fd` -1: this kernel has no Landlock. */
static bool begin(struct rules *r)
{
        /* The members that later kernels have added stand behind the first. */
        struct {
                uint64_t fs, net, scoped;
        } attr = { 0 };
        long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
        r->fd = -1;
        if (abi < 1)
                return true;
        attr.fs = ACCESS_ALL | (abi >= 2 ? ACCESS_REFER : 0) | (abi >= 3 ? ACCESS_TRUNCATE : 0) |
                  (abi >= 5 ? ACCESS_IOCTL_DEV : 0);
        attr.scoped = abi >= 6 ? 3 : 0; /* abstract sockets and signals of others */
        size_t size = abi >= 6 ? sizeof(attr) : sizeof(attr.fs);
        r->handled = attr.fs;
        r->fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
        if (r->fd < 0)
                log_error(LOG, "Landlock: %s", strerror(errno));
        return r->fd >= 0;
}

static bool enforce(struct rules *r)
{
        bool ok = syscall(SYS_landlock_restrict_self, r->fd, 0) == 0;
        if (!ok)
                log_error(LOG, "Landlock: %s", strerror(errno));
        close(r->fd);
        return ok;
}

bool files_restrict(const struct config_options *o, const char *scratch_dir, const char *cache_dir,
                    bool *ret_landlock)
{
        struct rules r;
        *ret_landlock = false;
        if (!begin(&r))
                return false;
        if (r.fd < 0) {
                log_info(LOG, "this kernel has no Landlock: sessions can read what their user can");
                return true;
        }
        allow_all_needed(&r, o, scratch_dir, cache_dir);
        *ret_landlock = enforce(&r);
        return *ret_landlock;
}

/* What names are resolved with, and what OpenSSL reads. */
static const char *const resolves[] = { "/etc/hosts",         "/etc/resolv.conf",
                                        "/etc/nsswitch.conf", "/etc/host.conf",
                                        "/etc/gai.conf",      "/etc/mdns.allow",
                                        "/etc/ld.so.cache",   "/etc/ssl/openssl.cnf" };
static unsigned readable; /* a bit for each: nothing but a rule can keep us from it */

static bool is_denied(const char *path)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
                close(fd);
        return fd < 0 && errno == EACCES;
}

bool files_restrict_dialler(void)
{
        static const char *const read[] = { "/usr/lib",
                                            "/usr/lib32",
                                            "/usr/lib64",
                                            "/usr/local/lib",
                                            "/lib",
                                            "/lib32",
                                            "/lib64",
                                            "/nix/store",
                                            "/etc/crypto-policies",
                                            "/dev/null",
                                            "/dev/urandom",
                                            "/run/systemd/resolve",
                                            "/run/NetworkManager",
                                            "/run/resolvconf",
                                            "/run/connman" };
        const uint64_t access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
        struct rules r;
        if (!begin(&r))
                return false;
        if (r.fd < 0)
                return true;
        for (size_t i = 0; i < array_size(read); i++)
                allow(&r, read[i], access);
        for (size_t i = 0; i < array_size(resolves); i++)
                allow(&r, resolves[i], access);
        allow_list(&r, getenv("LD_LIBRARY_PATH"));
        if (!enforce(&r))
                return false;
        for (size_t i = 0; i < array_size(resolves); i++)
                readable |= is_denied(resolves[i]) ? 0 : 1u << i;
        return true;
}

bool files_outdated(void)
{
        for (size_t i = 0; i < array_size(resolves); i++)
                if (readable & 1u << i && is_denied(resolves[i]))
                        return true;
        return false;
}

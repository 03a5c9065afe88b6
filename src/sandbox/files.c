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

#include "base/log.h"
#include "base/mem.h"
#include "os/folder.h"

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
#define ACCESS_ALL  ((1ull << 13) - 1)
#define ACCESS_MAKE (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | ACCESS_TRUNCATE)

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

static void allow_paths(const struct rules *r, const struct paths *p)
{
        const uint64_t access[] = {
                [PATH_READ] = ACCESS_READ,
                [PATH_READ_ONLY] = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
                [PATH_NAMED] = ACCESS_READ,
                /* CUDA opens a thread's name as a new file. */
                [PATH_SELF] = ACCESS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE,
                [PATH_DEVICE] = r->handled,
                [PATH_MEMORY] = r->handled,
                [PATH_WRITE] = r->handled,
        };
        for (size_t i = 0; i < p->count; i++) {
                const struct path *path = &p->list[i];
                bool all = p->all_own && path->use == PATH_SELF;
                allow(r, all ? "/proc" : path->name, access[path->use]);
        }
}

/* Start a set of rules for these kinds of access, which allows none yet. False: the log says why; `fd` -1: this kernel
 * has no Landlock. */
static bool begin(struct rules *r, uint64_t kinds)
{
        /* Later kernels have added members behind the first. */
        struct {
                uint64_t fs, net, scoped;
        } attr = { 0 };
        long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
        r->fd = -1;
        if (abi < 1)
                return true;
        attr.fs = ACCESS_ALL | (abi >= 2 ? ACCESS_REFER : 0) | (abi >= 3 ? ACCESS_TRUNCATE : 0) |
                  (abi >= 5 ? ACCESS_IOCTL_DEV : 0);
        attr.fs &= kinds;
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

bool files_restrict(const struct paths *p)
{
        struct rules r;
        if (!begin(&r, UINT64_MAX))
                return false;
        if (r.fd < 0) {
                log_info(LOG, "this kernel has no Landlock: sessions can read what their user can");
                return true;
        }
        allow_paths(&r, p);
        return enforce(&r);
}

/* The files of name resolution. OpenSSL reads the last one. */
static const char *const resolves[] = { "/etc/hosts",         "/etc/resolv.conf",
                                        "/etc/nsswitch.conf", "/etc/host.conf",
                                        "/etc/gai.conf",      "/etc/mdns.allow",
                                        "/etc/ld.so.cache",   "/etc/ssl/openssl.cnf" };
static unsigned readable; /* a bit for each: then only a rule can deny it */

static bool is_denied(const char *path)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
                close(fd);
        return fd < 0 && errno == EACCES;
}

static const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;

static void allow_all(const struct rules *r, const char *const *names)
{
        for (; *names; names++)
                allow(r, *names, reading);
}

static void allow_resolving(const struct rules *r)
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
                                            "/run/connman",
                                            NULL };
        const char *libraries = getenv("LD_LIBRARY_PATH");
        char path[PATH_MAX];
        allow_all(r, read);
        for (size_t i = 0; i < array_size(resolves); i++)
                allow(r, resolves[i], reading);
        while (paths_take(&libraries, path))
                allow(r, path, reading);
}

static bool enforce_resolving(struct rules *r)
{
        if (!enforce(r))
                return false;
        for (size_t i = 0; i < array_size(resolves); i++)
                readable |= is_denied(resolves[i]) ? 0 : 1u << i;
        return true;
}

bool files_restrict_dialler(void)
{
        struct rules r;
        if (!begin(&r, UINT64_MAX))
                return false;
        if (r.fd < 0)
                return true;
        allow_resolving(&r);
        return enforce_resolving(&r);
}

bool files_restrict_streams(const char *const *files, const char *const *folders, bool network)
{
        /* Those of authorities, without the keys that /etc/ssl has, too. */
        static const char *const certificates[] = { "/etc/ssl/certs",
                                                    "/usr/share/ca-certificates",
                                                    "/usr/local/share/ca-certificates",
                                                    "/etc/ca-certificates",
                                                    "/etc/pki/ca-trust",
                                                    "/etc/pki/tls/certs",
                                                    NULL };
        struct rules r;
        if (!begin(&r, UINT64_MAX))
                return false;
        if (r.fd < 0) {
                log_info(LOG,
                         "this kernel has no Landlock: media-io can use all files of its user");
                return true;
        }
        allow_all(&r, files);
        for (; *folders; folders++)
                allow(&r, *folders, ACCESS_MAKE);
        if (!network)
                return enforce(&r);
        allow_all(&r, certificates);
        allow_resolving(&r);
        return enforce_resolving(&r);
}

bool files_deny_writing(void)
{
        struct rules r;
        if (!begin(&r, ~(uint64_t)(ACCESS_READ | ACCESS_IOCTL_DEV)))
                return false;
        return r.fd < 0 || enforce(&r);
}

bool files_outdated(void)
{
        for (size_t i = 0; i < array_size(resolves); i++)
                if (readable & 1u << i && is_denied(resolves[i]))
                        return true;
        return false;
}

#include "sandbox/paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/folder.h"

#define LOG "sandbox"

struct finding {
        struct paths *paths;
        bool failed; /* for lack of memory */
};

static void add(struct finding *f, const char *name, enum path_use use)
{
        struct paths *p = f->paths;
        if (access(name, F_OK) < 0 || f->failed)
                return;
        struct path *list = mem_realloc(p->list, (p->count + 1) * sizeof(*list));
        char *copy = mem_strdup(name);
        if (list)
                p->list = list;
        f->failed = !list || !copy;
        if (f->failed)
                mem_free(copy);
        else
                list[p->count++] = (struct path){ copy, use };
}

static void add_matching(struct finding *f, const char *pattern, enum path_use use)
{
        glob_t found;
        if (glob(pattern, 0, NULL, &found) == 0)
                for (size_t i = 0; i < found.gl_pathc; i++)
                        add(f, found.gl_pathv[i], use);
        globfree(&found);
}

static void add_folder_of(struct finding *f, const char *file)
{
        char path[PATH_MAX];
        if (!realpath(file, path))
                return;
        char *slash = strrchr(path, '/');
        if (slash > path)
                *slash = 0;
        add(f, path, PATH_READ);
}

bool paths_take(const char **list, char ret[PATH_MAX])
{
        bool found = false;
        while (!found && *list && **list) {
                size_t n = strcspn(*list, ":");
                found = n < PATH_MAX && **list == '/';
                if (found)
                        snprintf(ret, PATH_MAX, "%.*s", (int)n, *list);
                *list += n + ((*list)[n] == ':');
        }
        return found;
}

static void add_list(struct finding *f, const char *list)
{
        char path[PATH_MAX];
        while (paths_take(&list, path))
                add(f, path, PATH_NAMED);
}

/* Add the folders of the libraries that a folder's ICD files name, wherever they are. */
static void add_drivers(struct finding *f, const char *folder)
{
        char path[PATH_MAX], line[PATH_MAX];
        DIR *dir = opendir(folder);
        for (struct dirent *e; dir && (e = readdir(dir));) {
                if (*e->d_name == '.') /* ".." is skipped: that folder must not be added */
                        continue;
                snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
                add_folder_of(f, path); /* it may be a link */
                FILE *file = strstr(e->d_name, ".icd") ? fopen(path, "re") : NULL;
                if (file && fgets(line, sizeof(line), file)) {
                        line[strcspn(line, "\r\n")] = 0;
                        if (*line == '/')
                                add_folder_of(f, line);
                }
                if (file)
                        fclose(file);
        }
        if (dir)
                closedir(dir);
}

/* Return true if a server of root may give sessions this folder. Another user who owns a folder
 * above it could replace it with a link. */
static bool is_trusted(const char *path)
{
        char part[PATH_MAX];
        struct stat st;
        if (getuid())
                return true; /* a link then leads no further than this user may go */
        snprintf(part, sizeof(part), "%s", path);
        for (char *p = part; *p;) {
                p += 1 + strcspn(p + 1, "/");
                char kept = *p;
                *p = 0;
                if (lstat(part, &st) < 0 || (st.st_uid && st.st_uid != geteuid()))
                        return false;
                *p = kept;
        }
        return true;
}

/* Add a cache that this user may write to. Links in its name are resolved now, because later this
 * process may be root again. */
static void add_cache(struct finding *f, const char *path)
{
        char real[PATH_MAX];
        if (*path != '/' || !realpath(path, real))
                return;
        if (is_trusted(path) && is_trusted(real) &&
            !faccessat(AT_FDCWD, real, W_OK | X_OK, AT_EACCESS))
                add(f, real, PATH_WRITE);
        else
                log_warn(LOG,
                         "%s is no cache for sessions: another user owns it or a folder above it",
                         path);
}

static void add_below(struct finding *f, const char *base, const char *name)
{
        char path[PATH_MAX];
        if (!base || *base != '/')
                return;
        snprintf(path, sizeof(path), "%s/%s", base, name);
        add_cache(f, path);
}

/* Add the folders where drivers keep compiled programs. Missing folders are made now, because
 * later they can't be. */
static void add_caches(struct finding *f, const char *cache_dir)
{
        static const char *const names[] = { "pocl", "mesa_shader_cache", "mesa_shader_cache_db",
                                             "neo_compiler_cache", "rusticl" };
        const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        char cache[PATH_MAX] = "", pocl[PATH_MAX], nv[PATH_MAX];
        if (cache_dir) {
                (void)!folder_make(cache_dir);
                add_cache(f, cache_dir);
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
                add_below(f, cache, names[i]);
        /* NVIDIA's folder. Without it the driver translates each program of the engine's cache
         * anew. */
        if (home && *home == '/' && access("/dev/nvidiactl", F_OK) == 0) {
                snprintf(nv, sizeof(nv), "%s/.nv", home);
                (void)mkdir(nv, 0700);
        }
        const char *pocl_dir = getenv("POCL_CACHE_DIR"), *cuda = getenv("CUDA_CACHE_PATH");
        if (!cuda)
                add_below(f, home, ".nv");
        if (pocl_dir) {
                (void)mkdir(pocl_dir, 0700);
                add_cache(f, pocl_dir);
        }
        if (cuda) {
                (void)mkdir(cuda, 0700);
                add_cache(f, cuda);
        }
}

/* Add the memory and the files of accelerators that --almaif names. */
static void add_accelerators(struct finding *f, const char *text)
{
        if (!*text)
                return;
        add(f, "/dev/mem", PATH_DEVICE);
        while ((text = strchr(text, '/'))) {
                char path[PATH_MAX];
                size_t n = strcspn(text, ",@ ;\t\n");
                snprintf(path, sizeof(path), "%.*s", (int)n, text);
                add(f, path, PATH_DEVICE);
                text += n;
        }
}

/* Add the folders installed beside bin/spancld, but not their parent, which may be a user's home. */
static void add_installed(struct finding *f)
{
        static const char *const beside[] = { "bin",     "lib",   "lib64",
                                              "libexec", "share", "etc/vendors" };
        char own[PATH_MAX], path[PATH_MAX + 16];
        ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
        own[n > 0 ? n : 0] = 0;
        char *end = strstr(own, "/bin/spancld");
        if (!end || strchr(end + 5, '/'))
                return;
        *end = 0;
        for (size_t i = 0; i < array_size(beside); i++) {
                snprintf(path, sizeof(path), "%s/%s", own, beside[i]);
                add(f, path, PATH_READ);
        }
}

/* Add the file that LeakSanitizer reads when a worker ends and has found a leak. Without it the
 * worker would end with the status of a leak, whatever it found. */
static void add_suppressions(struct finding *f)
{
#ifdef __SANITIZE_ADDRESS__
        const char *options = getenv("LSAN_OPTIONS"), *key = "suppressions=";
        const char *name = options ? strstr(options, key) : NULL;
        char path[PATH_MAX];
        if (name && paths_take(&(const char *){ name + strlen(key) }, path))
                add(f, path, PATH_READ);
#else
        (void)f;
#endif
}

static void find_all(struct finding *f, const struct config_options *o,
                     const struct sandbox_folders *folders)
{
        static const char *const read[] = { "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin",
                                            "/etc", "/opt", "/proc", "/nix/store",
                                            "/var/lib/nvidia",
                                            /* Only these parts of /sys, because others are
                                             * interfaces for debugging. */
                                            "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices",
                                            "/sys/fs/cgroup", "/sys/kernel/mm", "/sys/module",
                                            /* Only these parts of /run, because others hold
                                             * secrets of services. */
                                            "/run/opengl-driver*", "/run/nvidia*",
                                            "/run/systemd/resolve", "/run/NetworkManager",
                                            "/run/resolvconf", "/run/connman" };
        static const char *const devices[] = { "/dev/null",   "/dev/zero",    "/dev/full",
                                               "/dev/random", "/dev/urandom", "/dev/dri",
                                               "/dev/kfd",    "/dev/nvidia*", "/dev/nvhost*",
                                               "/dev/nvmap",  "/dev/mali*",   "/dev/accel",
                                               "/dev/uio*",   "/dev/xdma*",   "/dev/dxg",
                                               "/dev/udmabuf" };
        static const char *const fabrics[] = { "/dev/infiniband", "/dev/hfi1*" };
        const char *named = config_option_text(o, CONFIG_fabric);
        bool fabric = strcmp(named, "off") != 0;
        if (!strcmp(named, "shm"))
                add(f, "/dev/shm", PATH_MEMORY);
        for (size_t i = 0; fabric && i < array_size(fabrics); i++)
                add_matching(f, fabrics[i], PATH_DEVICE);
        for (size_t i = 0; i < array_size(read); i++)
                add_matching(f, read[i], PATH_READ);
        for (size_t i = 0; i < array_size(devices); i++)
                add_matching(f, devices[i], PATH_DEVICE);
        /* Without namespaces all sessions share it, so it is added only where a driver needs it. */
        if (!access("/dev/kfd", F_OK) || !access("/dev/nvidiactl", F_OK))
                add(f, "/dev/shm", PATH_MEMORY);
        add(f, "/proc/self", PATH_SELF);
        add_installed(f);
        const char *vendors = getenv("OCL_ICD_VENDORS");
        add_drivers(f, vendors ? vendors : "/etc/OpenCL/vendors");
        if (vendors)
                add(f, vendors, PATH_NAMED);
        add_list(f, getenv("OCL_ICD_FILENAMES"));
        add_list(f, getenv("LD_LIBRARY_PATH"));
        add_list(f, getenv("LD_PRELOAD"));
        add_list(f, config_option_text(o, CONFIG_sandbox_read));
        add_accelerators(f, config_option_text(o, CONFIG_almaif));
        add_suppressions(f);
        add(f, folders->scratch, PATH_WRITE);
        add_caches(f, folders->programs);
        if (folders->uploads)
                add_cache(f, folders->uploads);
}

int paths_find(struct paths *p, const struct config_options *o,
               const struct sandbox_folders *folders)
{
        struct finding f = { .paths = p };
        find_all(&f, o, folders);
        if (!f.failed)
                return 0;
        paths_fini(p);
        return SP_E_NOMEM;
}

int paths_find_cuda(struct paths *p)
{
        static const char *const read[] = { "/usr",         "/lib",
                                            "/lib64",       "/etc/ld.so.cache",
                                            "/nix/store",   "/run/opengl-driver*",
                                            "/run/nvidia*", "/proc",
                                            "/sys/bus",     "/sys/devices",
                                            "/sys/module" };
        /* Within a session's walls no pattern finds the nodes, because /dev can't be listed there. */
        static const char
                *const devices[] = { "/dev/null",
                                     "/dev/zero",
                                     "/dev/nvidiactl",
                                     "/dev/nvidia-uvm",
                                     "/dev/nvidia-uvm-tools",
                                     "/dev/nvidia-modeset",
                                     "/dev/nvidia-caps" /* a folder, for parts of GPUs (MIG) */ };
        enum { GPUS_MAX = 32 }; /* NV_MAX_DEVICES of NVIDIA's kernel modules */
        struct finding f = { .paths = p };
        for (size_t i = 0; i < array_size(read); i++)
                add_matching(&f, read[i], PATH_READ);
        for (size_t i = 0; i < array_size(devices); i++)
                add(&f, devices[i], PATH_DEVICE);
        for (int i = 0; i < GPUS_MAX; i++) {
                char node[24];
                snprintf(node, sizeof(node), "/dev/nvidia%d", i);
                add(&f, node, PATH_DEVICE);
        }
        add(&f, "/proc/self", PATH_SELF);
        add_list(&f, getenv("LD_LIBRARY_PATH"));
        if (!f.failed)
                return 0;
        paths_fini(p);
        return SP_E_NOMEM;
}

int paths_add(struct paths *p, const char *const *names, enum path_use use)
{
        struct finding f = { .paths = p };
        for (; *names; names++)
                add(&f, *names, use);
        return f.failed ? SP_E_NOMEM : 0;
}

void paths_fini(struct paths *p)
{
        for (size_t i = 0; i < p->count; i++)
                mem_free(p->list[i].name);
        mem_free(p->list);
        *p = (struct paths){ 0 };
}

#include "sandbox/sandbox.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/process/rights.h"
#include "sandbox/calls.h"
#include "sandbox/files.h"
#include "sandbox/limits.h"
#include "sandbox/namespaces.h"
#include "sandbox/paths.h"
#include "sandbox/root.h"
#include "sandbox/user.h"
#include "transport/fabric.h"

#define LOG "sandbox"

bool worker_needs_network(const struct config_options *o)
{
        return fabric_needs_network(config_option_text(o, CONFIG_fabric));
}

/* Enter a root folder and a user of the session's own, as far as the host allows. */
static bool move(struct user *u, const struct config_options *o, const struct paths *p,
                 const char *scratch_dir)
{
        if (!user_take_up())
                return false;
        user_choose(u, o);
        bool root = namespaces_outside() && root_change(p, scratch_dir, u->own ? u->uid : 0);
        if (!root && u->own) { /* the session's own user would not get its files */
                *u = (struct user){ 0 };
                (void)root_change(p, scratch_dir, 0);
        }
        limits_set(o, u->own || namespaces_of_users());
        return user_become(u, o, p);
}

/* Return true if processes of the session may make a Unix socket. CUDA's library binds one when it decodes, and these
 * processes inherit the worker's filter. A hostile session could also bind an abstract name that a service of the host
 * uses. So the worker needs a network namespace of its own, which separates abstract names. */
static bool decodes_by_cuda(const struct config_options *o)
{
        return !worker_needs_network(o) && namespaces_outside() &&
               strstr(config_option_text(o, CONFIG_media), "device=cuda");
}

static bool restrict_calls(const struct config_options *o, int *ret_refusals)
{
        static const int internet[] = { AF_INET, AF_INET6, AF_NETLINK }; /* for a fabric */
        static const int local[] = { AF_UNIX };
        struct calls_params calls = { .allowed = config_option_text(o, CONFIG_sandbox_allow) };
        if (worker_needs_network(o)) {
                calls.families = internet;
                calls.family_count = array_size(internet);
        } else if (decodes_by_cuda(o)) {
                calls.families = local;
                calls.family_count = array_size(local);
                calls.unconnected = true; /* so it can listen, but reaches no socket of others */
        }
        return calls_restrict(&calls, ret_refusals);
}

bool sandbox_enter(struct user *u, const struct config_options *o,
                   const struct sandbox_folders *folders, int *ret_refusals)
{
        struct paths paths = { 0 };
        if (ret_refusals)
                *ret_refusals = -1;
        if (!config_option_flag(o, CONFIG_sandbox)) {
                limits_set(o, false);
                return user_take_up() && user_become(u, o, &paths);
        }
        /* Temporary files, such as compilers', go to the session's own folder. */
        setenv("TMPDIR", folders->scratch, 1);
        if (paths_find(&paths, o, folders) < 0)
                return false;
        bool ok = move(u, o, &paths, folders->scratch);
        if (ok && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
                log_error(LOG, "no-new-privs: %s", strerror(errno));
                ok = false;
        }
        /* CUDA's library gives up if it can't name its thread, by a file in /proc. No rule for the worker's files covers
         * those of a process that it starts. */
        paths.all_own = decodes_by_cuda(o) && namespaces_have_proc();
        ok = ok && files_restrict(&paths);
        paths_fini(&paths);
        return ok && restrict_calls(o, ret_refusals);
}

/* Drop root's powers for good. Other processes of this user, such as workers, can then not inspect this one. */
static bool drop_powers(void)
{
        (void)prctl(PR_SET_DUMPABLE, 0);
        user_drop_powers();
        bool ok = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
        if (!ok)
                log_error(LOG, "no-new-privs: %s", strerror(errno));
        return ok;
}

bool sandbox_enter_dialler(const struct config_options *o)
{
        static const struct rlimit none;
        (void)setrlimit(RLIMIT_CORE, &none); /* core files must not contain tokens of links */
        if (!config_option_flag(o, CONFIG_sandbox))
                return true;
        return drop_powers() && files_restrict_dialler();
}

bool sandbox_enter_allocator(const struct config_options *o)
{
        static const struct rlimit none;
        static const int local[] = { AF_UNIX };
        const struct calls_params calls = { .families = local,
                                            .family_count = array_size(local),
                                            .unconnected = true,
                                            .allowed =
                                                    config_option_text(o, CONFIG_sandbox_allow) };
        struct paths paths = { 0 };
        (void)setrlimit(RLIMIT_CORE, &none);
        if (!config_option_flag(o, CONFIG_sandbox))
                return true;
        /* CUDA's library listens on a Unix socket with an abstract name. Other processes of the host can't connect to
         * it if this process has a network namespace of its own, which root can make. */
        (void)unshare(CLONE_NEWNET);
        bool ok = drop_powers() && paths_find_cuda(&paths) == 0 && files_restrict(&paths);
        paths_fini(&paths);
        return ok && calls_restrict(&calls, NULL);
}

/* The files that the driver of a decoding device opens after its device: further descriptors of GPUs, and libraries.
 * Within a session's sandbox these rights never exceed the session's. */
static bool find_decoding(struct paths *p)
{
        static const char *const nodes[] = { "/dev/dri", NULL };
        static const char *const read[] = { "/sys/class", "/sys/dev", NULL };
        if (paths_find_cuda(p) < 0 || paths_add(p, nodes, PATH_DEVICE) < 0 ||
            paths_add(p, read, PATH_READ) < 0)
                return false;
        for (size_t i = 0; i < p->count; i++) /* libraries are not executed */
                if (p->list[i].use == PATH_READ)
                        p->list[i].use = PATH_READ_ONLY;
        return true;
}

bool sandbox_enter_media(bool own, bool device)
{
        static const struct rlimit none, few = { 32, 32 }, more = { 512, 512 };
        static const struct calls_params calls = { .allowed = "" };
        struct paths paths = { 0 };
        (void)setrlimit(RLIMIT_CORE, &none);
        if (!device) /* drivers make files in memory */
                (void)setrlimit(RLIMIT_FSIZE, &none);
        (void)setrlimit(RLIMIT_NOFILE, device ? &more : &few);
        if (own)
                (void)rights_become_nobody();
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
                log_error(LOG, "no-new-privs: %s", strerror(errno));
                return false;
        }
        bool ok = (!device || find_decoding(&paths)) && files_restrict(&paths);
        paths_fini(&paths);
        return ok && (!own || calls_restrict(&calls, NULL));
}

/* Limit the memory of this process, and of each that it forks. */
static void limit_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which map far more */
        static const struct rlimit memory = { 1 << 30, 1 << 30 };
        (void)setrlimit(RLIMIT_DATA, &memory);
#endif
}

static void limit_files(uint64_t bytes)
{
        const struct rlimit limit = { bytes, bytes };
        (void)setrlimit(RLIMIT_FSIZE, &limit);
}

bool sandbox_enter_stream(uint64_t bytes_max)
{
        limit_files(bytes_max);
        return files_deny_writing();
}

void sandbox_deny_descriptors(void)
{
        static const struct rlimit standard = { 3, 3 };
        (void)setrlimit(RLIMIT_NOFILE, &standard);
}

bool sandbox_enter_streams(const struct sandbox_streams *streams)
{
        static const struct rlimit none, descriptors = { 8192, 8192 };
        const bool network = streams->network;
        static const int internet[] = { AF_INET, AF_INET6, AF_NETLINK };
        const struct calls_params calls = { .families = internet,
                                            .family_count = network ? array_size(internet) : 0,
                                            .allowed = "" };
        (void)setrlimit(RLIMIT_CORE, &none);
        limit_files(streams->bytes_max);
        (void)setrlimit(RLIMIT_NOFILE, &descriptors);
        limit_memory();
        return drop_powers() && files_restrict_streams(streams->files, streams->folders, network) &&
               calls_restrict(&calls, NULL);
}

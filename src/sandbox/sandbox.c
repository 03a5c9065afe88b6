#include "sandbox/sandbox.h"

#include <errno.h>
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

static bool restrict_calls(const struct config_options *o, int *ret_refusals)
{
        static const int internet[] = { AF_INET, AF_INET6, AF_NETLINK }; /* for a fabric */
        const struct calls_params calls = {
                .families = internet,
                .family_count = worker_needs_network(o) ? array_size(internet) : 0,
                .allowed = config_option_text(o, CONFIG_sandbox_allow),
        };
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
        ok = ok && files_restrict(&paths);
        paths_fini(&paths);
        return ok && restrict_calls(o, ret_refusals);
}

bool sandbox_enter_dialler(const struct config_options *o)
{
        static const struct rlimit none;
        (void)setrlimit(RLIMIT_CORE, &none); /* core files must not contain tokens of links */
        if (!config_option_flag(o, CONFIG_sandbox))
                return true;
        /* A worker of the same user can then not inspect the dialler. */
        (void)prctl(PR_SET_DUMPABLE, 0);
        user_drop_powers();
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
                log_error(LOG, "no-new-privs: %s", strerror(errno));
                return false;
        }
        return files_restrict_dialler();
}

bool sandbox_enter_media(bool own)
{
        static const struct rlimit none, files = { 32, 32 };
        static const struct calls_params calls = { .allowed = "" };
        static const struct paths paths; /* none */
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)setrlimit(RLIMIT_FSIZE, &none);
        (void)setrlimit(RLIMIT_NOFILE, &files);
        if (own)
                (void)rights_become_nobody();
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
                log_error(LOG, "no-new-privs: %s", strerror(errno));
                return false;
        }
        return files_restrict(&paths) && (!own || calls_restrict(&calls, NULL));
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
        /* A worker of the same user can then not read the URLs. */
        (void)prctl(PR_SET_DUMPABLE, 0);
        user_drop_powers();
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
                log_error(LOG, "no-new-privs: %s", strerror(errno));
                return false;
        }
        return files_restrict_streams(streams->files, streams->folders, network) &&
               calls_restrict(&calls, NULL);
}

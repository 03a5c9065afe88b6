#include "daemon/upkeep/caches.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/variables.h"
#include "daemon/client_limits.h"
#include "daemon/system/tree.h"
#include "os/folder.h"
#include "transport/keys.h"

#define LOG "cache"

enum {
        CLIENT_PATH_MAX = PATH_MAX - KEYS_HEX - 32,
        FILE_LEAST = 4096, /* bytes that any file counts while sessions write */
};

static bool base_folder(const struct config_options *o, char ret[PATH_MAX])
{
        const char *folder =
                config_cache_folder(config_option_text(o, CONFIG_cache), ret, CLIENT_PATH_MAX);
        if (!folder || !*folder || strlen(folder) >= CLIENT_PATH_MAX)
                return false;
        if (folder != ret)
                snprintf(ret, PATH_MAX, "%s", folder);
        return true;
}

/* Find the folder that contains the clients' folders. False: there is none. */
static bool clients_folder(const struct config_options *o, char ret[PATH_MAX])
{
        if (!base_folder(o, ret))
                return false;
        strcat(ret, "-clients");
        return true;
}

/* Find the folder of the drivers that compile for `owner`. It is never inside a folder that a
 * session may write to, because a session could replace it with a link. --cache-size bounds it.
 * False: there is none. */
static bool drivers_folder(const struct config_options *o, const char *owner, char ret[PATH_MAX])
{
        if (!*owner ? !base_folder(o, ret) : !clients_folder(o, ret))
                return false;
        strcat(ret, *owner ? "/" : "-drivers");
        strncat(ret, owner, KEYS_HEX);
        return true;
}

/* Find the folder of all clients' uploads, or of one client's. It is in none of the folders of compiled programs,
 * because their limit does not apply to it. False: there is none. */
static bool uploads_folder(const struct config_options *o, const char *owner, char ret[PATH_MAX])
{
        if (!base_folder(o, ret))
                return false;
        strcat(ret, *owner ? "-uploads/" : "-uploads");
        strncat(ret, owner, KEYS_HEX);
        return true;
}

static bool make(const char *folder)
{
        return folder_make(folder) == 0 && folder_takes_files(folder);
}

/* Make the folder of what the client sends. The token is no key: its clients would learn of each other's data. */
static void use_uploads(const struct config_options *o, const char *owner, char ret[PATH_MAX])
{
        ret[0] = 0;
        if (!*owner || !strcmp(owner, KEYS_PSK_TOKEN) ||
            !config_option_number(o, CONFIG_upload_cache))
                return;
        if (!uploads_folder(o, owner, ret) || !make(ret)) {
                log_info(LOG, "data that clients send is not kept: '%s' can't be written to (%s)",
                         ret, strerror(errno));
                ret[0] = 0;
        }
}

void caches_use(const struct config_options *o, const char *owner, const char *scratch_dir,
                struct caches *ret)
{
        char own[PATH_MAX] = "", drivers[PATH_MAX], nv[PATH_MAX];
        bool named = base_folder(o, own) && drivers_folder(o, owner, drivers);
        /* For this host's sessions SpanCL's files are in the folder that clients' own processes
         * use. */
        if (named && *owner)
                snprintf(own, sizeof(own), "%.*s/spancl", PATH_MAX - 8, drivers);
        if (!named || !make(drivers) || !make(own)) {
                log_info(LOG,
                         "what is compiled for sessions is not kept: '%s' can't be written to (%s)",
                         named ? own : config_option_text(o, CONFIG_cache), strerror(errno));
                snprintf(own, sizeof(own), "%s", scratch_dir);
                snprintf(drivers, sizeof(drivers), "%s", scratch_dir);
        }
        setenv("XDG_CACHE_HOME", drivers, 1);
        if (*owner) /* else the administrator has named a folder for this user */
                unsetenv("POCL_CACHE_DIR");
        snprintf(nv, sizeof(nv), "%.*s/nv", PATH_MAX - 8, drivers);
        setenv("CUDA_CACHE_PATH", nv, *owner != 0);
        ret->programs[0] = 0;
        if (config_option_number(o, CONFIG_cache_size))
                snprintf(ret->programs, PATH_MAX, "%s", own);
        use_uploads(o, owner, ret->uploads);
}

static void trim(const char *folder, uint64_t limit_bytes, unsigned grace_s)
{
        uint64_t removed = tree_trim(folder, limit_bytes, grace_s);
        if (removed)
                log_info(
                        LOG,
                        "%s: %llu KiB are removed to keep %llu MiB (--cache-size, --client-cache, --upload-cache)",
                        folder, (unsigned long long)removed >> 10,
                        (unsigned long long)limit_bytes >> 20);
}

/* A trim of all clients' folders. */
struct trimming {
        const struct config_options *options;
        const char *clients, *folder;
        bool uploads;
        unsigned grace_s;
};

static uint64_t uploads_bytes(const struct config_options *o)
{
        return config_option_number(o, CONFIG_upload_cache) << 20;
}

static void trim_client(void *user, const char *name)
{
        const struct trimming *t = user;
        char one[PATH_MAX + NAME_MAX + 2];
        snprintf(one, sizeof(one), "%s/%s", t->folder, name);
        if (name[0] != '.')
                trim(one,
                     t->uploads ? uploads_bytes(t->options)
                                : client_cache_bytes(t->options, t->clients, name),
                     t->grace_s);
}

void caches_trim(const struct config_options *o, const char *clients, const char *owner,
                 unsigned grace_s)
{
        char folder[PATH_MAX];
        uint64_t limit = client_cache_bytes(o, clients, owner ? owner : "");
        struct trimming all = { o, clients, folder, false, grace_s };
        if ((!owner || !*owner) && base_folder(o, folder))
                trim(folder, limit, grace_s);
        if (drivers_folder(o, owner ? owner : "", folder))
                trim(folder, limit, grace_s);
        if (!owner && clients_folder(o, folder))
                (void)folder_names(folder, trim_client, &all);
        all.uploads = true;
        if (!owner && uploads_folder(o, "", folder))
                (void)folder_names(folder, trim_client, &all);
        else if (owner && *owner && uploads_folder(o, owner, folder))
                trim(folder, uploads_bytes(o), grace_s);
}

bool caches_are_over(const struct config_options *o, const char *owner, uint64_t limit_bytes)
{
        char folder[PATH_MAX];
        uint64_t uploads = limit_bytes + uploads_bytes(o);
        if (*owner && uploads_folder(o, owner, folder) &&
            tree_measure(folder, uploads, FILE_LEAST) > uploads)
                return true;
        return (!*owner && base_folder(o, folder) &&
                tree_measure(folder, limit_bytes, FILE_LEAST) > limit_bytes) ||
               (drivers_folder(o, owner, folder) &&
                tree_measure(folder, limit_bytes, FILE_LEAST) > limit_bytes);
}

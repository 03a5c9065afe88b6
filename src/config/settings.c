#include "config/settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/files.h"
#include "config/lines.h"
#include "config/nearest.h"
#include "config/variables.h"
#include "os/once.h"
#include "os/ownership.h"
#include "os/process/environment.h"

enum {
        TEXT_MAX = 2 * CONFIG_FILE_MAX, /* of all files and their names */
        FAULTS_MAX = 16,
        PROFILE_MAX = 64, /* the name */
};

static struct {
        struct config_setting settings[CONFIG_COUNT];
        char text[TEXT_MAX];
        size_t used;
        char faults[FAULTS_MAX][CONFIG_REASON_MAX];
        size_t fault_count; /* all, also those for which there is no place */
} all;

static struct once once = ONCE_INIT;

__attribute__((format(printf, 1, 2))) static void fault(const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        if (all.fault_count < FAULTS_MAX)
                vsnprintf(all.faults[all.fault_count], CONFIG_REASON_MAX, fmt, ap);
        va_end(ap);
        all.fault_count++;
}

/* ---- one file ------------------------------------------------------------------------------- */

static void take_line(const char *file, const struct config_line *line, bool is_profile)
{
        if (!line->key) {
                fault("%s:%u is ignored: a line is SPANCL_NAME=value, or begins with #", file,
                      line->number);
                return;
        }
        enum config_id id = config_find(CONFIG_CLIENT, line->key, strlen(line->key));
        if (id == CONFIG_COUNT) {
                const char *near = config_nearest(CONFIG_CLIENT, line->key);
                fault("%s:%u is ignored: there is no setting '%.64s'%s%s", file, line->number,
                      line->key, near ? "; is it " : "", near ? near : "");
                return;
        }
        if (is_profile && id == CONFIG_profile) {
                fault("%s:%u is ignored: a profile does not name another one", file, line->number);
                return;
        }
        all.settings[id] = (struct config_setting){ line->value, file, line->number };
}

/* False: there is no such file. */
static bool take_file(const char *path, bool is_profile)
{
        char reason[CONFIG_REASON_MAX];
        size_t size = strlen(path) + 1;
        if (all.used + size + 1 >= TEXT_MAX) {
                fault("%s is ignored: the files before it are too large", path);
                return true;
        }
        char *name = all.text + all.used, *text = name + size;
        memcpy(name, path, size);
        int r = config_file_read(path, text, TEXT_MAX - all.used - size, reason);
        if (r == SP_E_NOENT)
                return false;
        if (r < 0) {
                /* A user in a sandbox could not act on the message. */
                if (r != SP_E_AUTH || !ownership_is_unmapped(path))
                        fault("%s, so it is ignored", reason);
                return true;
        }
        all.used += size + (size_t)r + 1;
        struct config_line line;
        for (unsigned number = 0; config_lines_next(&text, &number, &line);)
                take_line(name, &line, is_profile);
        return true;
}

/* ---- all files ------------------------------------------------------------------------------ */

static void take_folder(const char *folder)
{
        static char paths[CONFIG_FILES_MAX][CONFIG_PATH_MAX];
        char path[CONFIG_PATH_MAX];
        snprintf(path, sizeof(path), "%s/" CONFIG_CLIENT_FILE, folder);
        (void)take_file(path, false);
        snprintf(path, sizeof(path), "%s/" CONFIG_CLIENT_FILE ".d", folder);
        size_t count = config_folder_list(path, paths);
        if (count > CONFIG_FILES_MAX) {
                fault("%s is ignored: it has more than %d files", path, CONFIG_FILES_MAX);
                return;
        }
        for (size_t i = 0; i < count; i++)
                (void)take_file(paths[i], false);
}

bool config_profile_path(const char *folder, const char *name, char *ret, size_t size)
{
        size_t n =
                strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_");
        if (!n || name[n] || *name == '.' || n > PROFILE_MAX)
                return false;
        return (size_t)snprintf(ret, size, "%s/profiles/%s.conf", folder, name) < size;
}

static void take_profile(const char *system_folder, const char *user_folder)
{
        const char *name = environment_get(config_entry(CONFIG_profile)->name);
        const char *folders[] = { user_folder, system_folder };
        char path[CONFIG_PATH_MAX];
        if (!name)
                name = all.settings[CONFIG_profile].value;
        if (!name || !*name)
                return;
        for (int i = 0; i < 2; i++) {
                if (!folders[i])
                        continue;
                if (!config_profile_path(folders[i], name, path, sizeof(path))) {
                        fault("%s: '%.64s' is not allowed: it takes letters, digits, '.', '-' and "
                              "'_'; no profile is used",
                              config_entry(CONFIG_profile)->name, name);
                        return;
                }
                if (take_file(path, true))
                        return;
        }
        fault("%s: there is no profile '%.64s': %s/profiles/%s.conf does not exist; no profile is used",
              config_entry(CONFIG_profile)->name, name, user_folder ? user_folder : system_folder,
              name);
}

static void read_folders(const char *system_folder, const char *user_folder)
{
        memset(all.settings, 0, sizeof(all.settings));
        all.used = all.fault_count = 0;
        if (system_folder)
                take_folder(system_folder);
        if (user_folder)
                take_folder(user_folder);
        if (system_folder || user_folder)
                take_profile(system_folder, user_folder);
}

static void read_all(void)
{
        char user[CONFIG_PATH_MAX];
        bool has = config_user_folder(user, sizeof(user) - CONFIG_NAME_ROOM) == 0;
        read_folders(CONFIG_SYSTEM_FOLDER, has ? user : NULL);
}

void config_settings_read(const char *system_folder, const char *user_folder)
{
        once_run(&once, read_all); /* not later */
        read_folders(system_folder, user_folder);
}

const struct config_setting *config_setting(enum config_id id)
{
        once_run(&once, read_all);
        return &all.settings[id];
}

void config_settings_faults(void (*out)(void *user, const char *text), void *user)
{
        once_run(&once, read_all);
        for (size_t i = 0; i < all.fault_count && i < FAULTS_MAX; i++)
                out(user, all.faults[i]);
        if (all.fault_count > FAULTS_MAX)
                out(user, "further faults of configuration files are not shown");
}

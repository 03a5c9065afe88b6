#include "cli/use.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/options.h"
#include "config/files.h"
#include "config/lines.h"
#include "config/servers.h"
#include "config/settings.h"
#include "config/variables.h"

/* This user's file. */
struct own_file {
        char folder[CONFIG_PATH_MAX];
        char path[CONFIG_PATH_MAX + 16];
        char reason[CONFIG_REASON_MAX];
};

static int find_file(struct own_file *f)
{
        int r = config_user_folder(f->folder, sizeof(f->folder) - CONFIG_NAME_ROOM);
        if (r < 0)
                fprintf(stderr,
                        "spancl: this user has no folder for configuration: HOME is unset\n");
        else
                snprintf(f->path, sizeof(f->path), "%s/" CONFIG_CLIENT_FILE, f->folder);
        return r;
}

/* Return true if the line sets one of the variables that `use` chooses. */
static bool chooses(const char *line, size_t n)
{
        char copy[256], *text = copy;
        unsigned number = 0;
        struct config_line l;
        snprintf(copy, sizeof(copy), "%.*s", (int)n, line);
        return config_lines_next(&text, &number, &l) && l.key &&
               (!strcmp(l.key, config_entry(CONFIG_servers)->name) ||
                !strcmp(l.key, config_entry(CONFIG_profile)->name));
}

/* Copy the other lines of the file, and add one. */
static int edit(const char *old, enum config_id id, const char *value, struct buf *b)
{
        int r = 0;
        while (*old && !r) {
                size_t n = strcspn(old, "\n");
                if (!chooses(old, n)) {
                        r = buf_put(b, old, n);
                        if (!r)
                                r = buf_put(b, "\n", 1);
                }
                old += n + (old[n] == '\n');
        }
        const char *const parts[] = { config_entry(id)->name, "=", value, "\n" };
        for (size_t i = 0; i < array_size(parts) && !r; i++)
                r = buf_put(b, parts[i], strlen(parts[i]));
        return r;
}

/* Make the choice in client.conf. */
static int choose(struct own_file *f, enum config_id id, const char *value)
{
        static char old[CONFIG_FILE_MAX];
        auto_clean(buf_fini) struct buf b = { 0 };
        int r = config_file_read(f->path, old, sizeof(old), f->reason);
        if (r == SP_E_NOENT)
                old[0] = 0;
        else if (r < 0)
                return r;
        r = edit(old, id, value, &b);
        if (r < 0)
                snprintf(f->reason, sizeof(f->reason), "%s", status_text(r));
        else
                r = config_file_write(f->path, b.data, b.size, f->reason);
        return r;
}

/* Print the servers that programs see now. */
static int show(void)
{
        const char *list = config_text(CONFIG_servers);
        char place[CONFIG_PATH_MAX + 64];
        config_place(CONFIG_servers, place, sizeof(place));
        if (config_is_set(CONFIG_servers))
                printf("Programs see the devices of %s (%s).\n", list, place);
        else
                printf("Programs see no server's devices, except those of %s if one is there.\n",
                       list);
        options_faults();
        return 0;
}

/* Print a warning if the environment, or another file than `path`, sets the variable. */
static void warn_overridden(enum config_id id, const char *path)
{
        struct config_origin o = config_origin(id);
        char place[CONFIG_PATH_MAX + 64];
        config_place(id, place, sizeof(place));
        if (o.kind == CONFIG_ENVIRONMENT || (o.kind == CONFIG_FILE && strcmp(o.file, path) != 0))
                fprintf(stderr, "spancl: %s overrides %s\n", place, path);
}

/* Print the result of a choice of `id`, as programs will read it. */
static int report(struct own_file *f, int r, enum config_id id)
{
        if (r < 0) {
                fprintf(stderr, "spancl: %s\n", f->reason);
                return 1;
        }
        config_settings_read(CONFIG_SYSTEM_FOLDER, f->folder);
        (void)show();
        warn_overridden(id, f->path);
        /* A profile need not name servers, so another file may. */
        if (id == CONFIG_profile && config_origin(CONFIG_servers).kind == CONFIG_ENVIRONMENT)
                warn_overridden(CONFIG_servers, "the profile");
        return 0;
}

static bool are_servers(const char *list)
{
        struct server_spec *specs;
        size_t count;
        if (list[strcspn(list, "\r\n")] || options_servers(list, "use", &specs, &count) < 0)
                return false;
        config_servers_free(specs, count);
        return true;
}

/* "a", "b" as "a b"; the caller frees it with mem_free. */
static char *join(int argc, char **argv)
{
        size_t n = 1, at = 0;
        for (int i = 0; i < argc; i++)
                n += strlen(argv[i]) + 1;
        char *list = mem_zalloc(n);
        for (int i = 0; list && i < argc; i++)
                at += (size_t)sprintf(list + at, "%s%s", i ? " " : "", argv[i]);
        return list;
}

/* Write the profile, with this list of servers alone. */
static int write_profile(struct own_file *f, const char *path, const char *list)
{
        auto_clean(buf_fini) struct buf b = { 0 };
        int r = edit("", CONFIG_servers, list, &b);
        if (r < 0)
                snprintf(f->reason, sizeof(f->reason), "%s", status_text(r));
        return r < 0 ? r : config_file_write(path, b.data, b.size, f->reason);
}

/* Check that the profile can be read: this user's, or else the system's. SP_E_NOENT: there is none. */
static int check_profile(struct own_file *f, const char *own, const char *shared)
{
        static char text[CONFIG_FILE_MAX];
        int r = config_file_read(own, text, sizeof(text), f->reason);
        if (r == SP_E_NOENT)
                r = config_file_read(shared, text, sizeof(text), f->reason);
        return r < 0 ? r : 0;
}

static int use_profile(struct own_file *f, const char *name, int argc, char **argv)
{
        char path[CONFIG_PATH_MAX], shared[CONFIG_PATH_MAX];
        if (!config_profile_path(f->folder, name, path, sizeof(path)) ||
            !config_profile_path(CONFIG_SYSTEM_FOLDER, name, shared, sizeof(shared))) {
                fprintf(stderr,
                        "spancl: '%s' is no name of a profile: letters, digits, '.', '-' and '_'\n",
                        name);
                return 2;
        }
        int r;
        if (argc) {
                char *list = join(argc, argv);
                if (!list || !are_servers(list)) {
                        mem_free(list);
                        return 2;
                }
                r = write_profile(f, path, list);
                mem_free(list);
        } else if ((r = check_profile(f, path, shared)) == SP_E_NOENT) {
                fprintf(stderr,
                        "spancl: there is no profile '%s'; `spancl use @%s HOST...` writes %s\n",
                        name, name, path);
                return 1;
        }
        if (!r)
                r = choose(f, CONFIG_profile, name);
        return report(f, r, CONFIG_profile);
}

static int use_servers(struct own_file *f, const char *list)
{
        return report(f, choose(f, CONFIG_servers, list), CONFIG_servers);
}

/* Return true if the list has this server. */
static bool has(const char *list, const char *server)
{
        size_t n = strlen(server);
        for (const char *p = list; (p = strstr(p, server)); p += n)
                if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ' '))
                        return true;
        return false;
}

int use_also(const char *server)
{
        struct own_file f;
        if (find_file(&f) < 0)
                return 1;
        const char *before = config_setting(CONFIG_servers)->value;
        char *both[] = { (char *)(uintptr_t)before, (char *)(uintptr_t)server };
        bool more = before && *before && !has(before, server);
        char *list = more ? join(2, both) : join(1, before && *before ? both : both + 1);
        if (!list) {
                fprintf(stderr, "spancl: out of memory\n");
                return 1;
        }
        int r = use_servers(&f, list);
        mem_free(list);
        return r;
}

int command_use(int argc, char **argv)
{
        struct own_file f;
        bool none = argc == 1 && !strcmp(argv[0], "--none");
        if (argc && *argv[0] == '-' && !none)
                return command_usage("use");
        if (!argc)
                return show();
        if (find_file(&f) < 0)
                return 1;
        if (none)
                return use_servers(&f, "");
        if (*argv[0] == '@')
                return use_profile(&f, argv[0] + 1, argc - 1, argv + 1);
        char *list = join(argc, argv);
        int r = list && are_servers(list) ? use_servers(&f, list) : 2;
        mem_free(list);
        return r;
}

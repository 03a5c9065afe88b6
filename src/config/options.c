#include "config/options.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "config/files.h"
#include "config/lines.h"
#include "config/nearest.h"

static void free_text(char **text)
{
        mem_free(*text);
}

bool config_is_address(enum config_id id)
{
        return id == CONFIG_listen || id == CONFIG_socket;
}

bool config_options_have_address(const struct config_options *o)
{
        for (size_t i = 0; i < o->list_count; i++)
                if (config_is_address(o->list[i].id))
                        return true;
        return false;
}

static int add_to_list(struct config_options *o, enum config_id id, const char *value)
{
        void *more = mem_realloc(o->list, (o->list_count + 1) * sizeof(*o->list));
        if (!more)
                return SP_E_NOMEM;
        o->list = more;
        o->list[o->list_count].id = id;
        o->list[o->list_count].value = value;
        o->list_count++;
        return 0;
}

/* The option that `arg` begins with; CONFIG_COUNT if none. *ret_value: behind '=', or NULL. */
static enum config_id find_option(const char *arg, const char **ret_value)
{
        size_t n = strcspn(arg, "=");
        *ret_value = arg[n] ? arg + n + 1 : NULL;
        return config_find(CONFIG_SERVER, arg, n);
}

static int unknown_option(const char *arg, char **ret_error)
{
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(arg, "="), arg);
        const char *near = *arg == '-' ? config_nearest(CONFIG_SERVER, name) : NULL;
        return config_fail(ret_error, "unknown option '%s'; %s%s%s--help lists all", arg,
                           near ? "is it " : "", near ? near : "", near ? "? " : "");
}

int config_options_parse(int argc, char **argv, struct config_options *ret, char **ret_error)
{
        *ret = (struct config_options){ 0 };
        for (int i = 1; i < argc; i++) {
                const char *value;
                enum config_id id = find_option(argv[i], &value);
                if (id == CONFIG_COUNT)
                        return unknown_option(argv[i], ret_error);
                const struct config_entry *e = config_entry(id);
                if (e->kind == CONFIG_FLAG) {
                        value = value ? value : "1";
                } else if (!value && *e->value == '[') {
                        const char *last = strrchr(e->allowed, '|');
                        value = last ? last + 1 : e->allowed;
                } else if (!value) {
                        if (i + 1 == argc)
                                return config_fail(ret_error, "%s needs a value: %s", e->name,
                                                   e->value);
                        value = argv[++i];
                }
                int r = config_check(id, value, ret_error);
                if (!r && e->kind == CONFIG_LIST)
                        r = add_to_list(ret, id, value);
                if (r < 0)
                        return r;
                ret->values[id] = value;
        }
        return 0;
}

void config_options_fini(struct config_options *o)
{
        mem_free(o->list);
        *o = (struct config_options){ 0 };
}

/* ---- the file ------------------------------------------------------------------------------- */

enum { FILE_OPTIONS_MAX = 512 };

/* Options that make no sense in a file. */
static bool is_for_command_line(enum config_id id)
{
        return id == CONFIG_config || id == CONFIG_ready_fd || id == CONFIG_help ||
               id == CONFIG_version || id == CONFIG_print_dns || id == CONFIG_print_avahi;
}

/* Check one line, and find its option. */
static int check_line(const struct config_line *line, enum config_id *ret, char **ret_error)
{
        char option[64];
        const char *equals;
        if (!line->key)
                return config_fail(ret_error, "a line is name=value, or begins with #");
        snprintf(option, sizeof(option), "--%.60s", line->key);
        enum config_id id = find_option(option, &equals);
        if (id == CONFIG_COUNT || is_for_command_line(id)) {
                const char *near = config_nearest(CONFIG_SERVER, option);
                return id != CONFIG_COUNT
                               ? config_fail(ret_error, "only the command line takes %s", option)
                               : config_fail(ret_error, "there is no option '%.60s'%s%s", line->key,
                                             near ? "; is it " : "", near ? near + 2 : "");
        }
        *ret = id;
        return config_check(id, line->value, ret_error);
}

/* Append the line's option to the arguments. */
static int add_line(struct config_command_line *c, const struct config_line *line,
                    enum config_id id, size_t *at, size_t size)
{
        if (c->argc == FILE_OPTIONS_MAX)
                return SP_E_LIMIT;
        char *to = c->text + *at;
        size_t n = (size_t)snprintf(to, size - *at, "%s=%s", config_entry(id)->name, line->value);
        if (n >= size - *at)
                return SP_E_LIMIT;
        c->argv[c->argc++] = to;
        *at += n + 1;
        return 0;
}

/* Note that the line does not count. */
static int override_line(struct config_command_line *c, const char *path,
                         const struct config_line *line)
{
        char text[CONFIG_PATH_MAX + 128];
        const char *before = c->overridden ? c->overridden : "";
        snprintf(text, sizeof(text), "%s%s:%u: %.64s", *before ? ", " : "", path, line->number,
                 line->key);
        size_t n = strlen(before);
        char *all = mem_realloc(c->overridden, n + strlen(text) + 1);
        if (!all)
                return SP_E_NOMEM;
        strcpy(all + n, text);
        c->overridden = all;
        return 0;
}

static int take_lines(const struct config_options *given, const char *path, char *text,
                      struct config_command_line *c, size_t size, char **ret_error)
{
        struct config_line line;
        size_t at = 0;
        int r = 0;
        for (unsigned number = 0; !r && config_lines_next(&text, &number, &line);) {
                enum config_id id = CONFIG_COUNT;
                char *error = NULL;
                r = check_line(&line, &id, &error);
                if (!r)
                        r = config_is_address(id) && config_options_have_address(given)
                                    ? override_line(c, path, &line)
                                    : add_line(c, &line, id, &at, size);
                if (error || r == SP_E_LIMIT)
                        r = config_fail(ret_error, "%s:%u: %s", path, number,
                                        error ? error : "too many options");
                mem_free(error);
        }
        return r;
}

int config_options_file(const struct config_options *given, int argc, char **argv,
                        struct config_command_line *ret, char **ret_error)
{
        static char none[] = "--config=";
        const char *path = config_option_text(given, CONFIG_config);
        char reason[CONFIG_REASON_MAX];
        *ret = (struct config_command_line){ 0 };
        auto_clean(free_text) char *text = mem_alloc(CONFIG_FILE_MAX);
        size_t size =
                3 * CONFIG_FILE_MAX; /* "--" comes before each line, and a line has some bytes */
        ret->argv = mem_zalloc((size_t)(FILE_OPTIONS_MAX + argc + 1) * sizeof(*ret->argv));
        ret->text = mem_alloc(size);
        if (!text || !ret->argv || !ret->text)
                return SP_E_NOMEM;
        ret->argv[ret->argc++] = argv[0];
        int r = *path ? config_file_read(path, text, CONFIG_FILE_MAX, reason) : SP_E_NOENT;
        if (r == SP_E_NOENT && *path && given->values[CONFIG_config])
                return config_fail(ret_error, "%s does not exist", path);
        if (r < 0 && r != SP_E_NOENT)
                return config_fail(ret_error, "%s", reason);
        if (r >= 0)
                r = take_lines(given, path, text, ret, size, ret_error);
        if (r < 0 && r != SP_E_NOENT)
                return r;
        for (int i = 1; i < argc; i++)
                ret->argv[ret->argc++] = argv[i];
        ret->argv[ret->argc++] = none;
        return 0;
}

void config_command_line_fini(struct config_command_line *c)
{
        mem_free(c->argv);
        mem_free(c->text);
        mem_free(c->overridden);
        *c = (struct config_command_line){ 0 };
}

const char *config_option_text(const struct config_options *o, enum config_id id)
{
        return o && o->values[id] ? o->values[id] : config_entry(id)->fallback;
}

uint64_t config_option_number(const struct config_options *o, enum config_id id)
{
        uint64_t v = 0;
        (void)config_convert(id, config_option_text(o, id), &v);
        return v;
}

bool config_option_flag(const struct config_options *o, enum config_id id)
{
        return config_option_number(o, id) != 0;
}

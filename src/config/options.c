#include "config/options.h"

#include <string.h>

#include "base/mem.h"

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
        for (enum config_id id = 0; id < CONFIG_COUNT; id++) {
                const struct config_entry *e = config_entry(id);
                if (e->side == CONFIG_SERVER && strlen(e->name) == n && !memcmp(e->name, arg, n))
                        return id;
        }
        return CONFIG_COUNT;
}

int config_options_parse(int argc, char **argv, struct config_options *ret, char **ret_error)
{
        *ret = (struct config_options){ 0 };
        for (int i = 1; i < argc; i++) {
                const char *value;
                enum config_id id = find_option(argv[i], &value);
                if (id == CONFIG_COUNT)
                        return config_fail(ret_error, "unknown option '%s'; --help lists all",
                                           argv[i]);
                const struct config_entry *e = config_entry(id);
                if (e->kind == CONFIG_FLAG) {
                        if (value)
                                return config_fail(ret_error, "%s takes no value", e->name);
                        value = "1";
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

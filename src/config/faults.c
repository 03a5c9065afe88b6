#include "config/faults.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "config/nearest.h"
#include "config/servers.h"
#include "config/settings.h"
#include "config/variables.h"
#include "os/process/environment.h"

enum { TEXT_MAX = 1400 };

struct sink {
        void (*out)(void *user, const char *text);
        void *user;
};

static void check_value(const struct sink *to, enum config_id id)
{
        char text[TEXT_MAX], *error = NULL;
        const struct config_entry *e = config_entry(id);
        struct config_origin origin = config_origin(id);
        if (!config_check(id, config_text(id), &error))
                return;
        const bool filter = e->kind == CONFIG_FILTER;
        size_t n = 0;
        if (origin.kind == CONFIG_FILE)
                n = (size_t)snprintf(text, sizeof(text), "%s:%u: ", origin.file, origin.line);
        if (n < sizeof(text))
                snprintf(text + n, sizeof(text) - n, "%s; SpanCL %s%s", error ? error : e->name,
                         filter ? "has no devices" : "uses ", filter ? "" : e->fallback);
        to->out(to->user, text);
        mem_free(error);
}

/* Return true for a variable of the client, and for a name that does not begin as those do. */
static bool known(const char *name)
{
        return strncmp(name, "SPANCL_", 7) != 0 ||
               config_find(CONFIG_CLIENT, name, strlen(name)) != CONFIG_COUNT;
}

/* "POCL_REMOTE3_PARAMETERS" counts only if those with lower numbers exist. */
static void check_gap(const struct sink *to, const char *name, const char *kind)
{
        char before[64], text[256];
        unsigned number;
        int end = 0;
        size_t n = strlen(kind);
        if (strncmp(name, kind, n) != 0 ||
            sscanf(name + n, "%4u_PARAMETERS%n", &number, &end) != 1 || !end ||
            name[n + (size_t)end])
                return;
        for (unsigned i = 0; i < number; i++) {
                snprintf(before, sizeof(before), "%s%u_PARAMETERS", kind, i);
                const char *value = environment_get(before);
                if (value && *value)
                        continue;
                snprintf(text, sizeof(text), "%.64s is ignored, because %s is unset", name, before);
                to->out(to->user, text);
                return;
        }
}

static void check_name(const struct sink *to, const char *name)
{
        char text[256];
        if (!known(name)) {
                const char *near = config_nearest(CONFIG_CLIENT, name);
                snprintf(text, sizeof(text),
                         "the variable %.64s is ignored, as SpanCL has none of that name%s%s", name,
                         near ? "; is it " : "", near ? near : "");
                to->out(to->user, text);
        }
        if (!config_overrides_pocl(CONFIG_servers))
                check_gap(to, name, "POCL_REMOTE");
        if (!config_overrides_pocl(CONFIG_client_almaif))
                check_gap(to, name, "POCL_ALMAIF");
}

void config_faults(void (*out)(void *user, const char *text), void *user)
{
        const struct sink to = { out, user };
        config_settings_faults(out, user);
        for (enum config_id id = 0; id < CONFIG_COUNT; id++)
                if (config_entry(id)->side == CONFIG_CLIENT)
                        check_value(&to, id);
        for (char **v = environment_all(); *v; v++) {
                char name[128];
                size_t n = strcspn(*v, "=");
                if (n < sizeof(name) && !memchr(*v, '\n', n)) {
                        snprintf(name, sizeof(name), "%.*s", (int)n, *v);
                        if (environment_get(name))
                                check_name(&to, name);
                }
        }
}

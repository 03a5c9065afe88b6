#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "config/faults.h"
#include "config/servers.h"
#include "config/variables.h"

static int add_server(char **servers, const char *one)
{
        size_t have = *servers ? strlen(*servers) + 1 : 0, n = have + strlen(one) + 1;
        char *more = mem_realloc(*servers, n);
        if (!more)
                return SP_E_NOMEM;
        if (have)
                more[have - 1] = ' ';
        memcpy(more + have, one, n - have);
        *servers = more;
        return 0;
}

/* Where the next value of the option goes. */
static const char **place_of(const struct option_value *v)
{
        size_t i = v->ret_count ? (*v->ret_count)++ : 0;
        return &v->ret[i < OPTIONS_REPEATED ? i : OPTIONS_REPEATED - 1];
}

/* Take an option with a value. 1, 0, negative: as take. */
static int take_value(int argc, char **argv, int *i, const struct option_value *v)
{
        const char *arg = argv[*i];
        size_t n = strlen(v->name);
        bool joined = !strncmp(arg, v->name, n) && arg[n] == '=';
        if (!joined && strcmp(arg, v->name) != 0 && (!v->brief || strcmp(arg, v->brief) != 0))
                return 0;
        if (v->ret_given)
                *v->ret_given = true;
        if (joined) {
                *place_of(v) = arg + n + 1;
                return 1;
        }
        if (v->ret_given && (*i + 1 == argc || argv[*i + 1][0] == '-'))
                return 1;
        if (*i + 1 == argc) {
                fprintf(stderr, "spancl: %s needs a value\n", arg);
                return SP_E_INVAL;
        }
        *place_of(v) = argv[++*i];
        return 1;
}

/* Take an option. 1: argv[*i] was one; 0: it was none; negative: an error, which was printed. */
static int take(int argc, char **argv, int *i, const char *const *flags, bool *ret_flags,
                const struct option_value *values, char **servers)
{
        const char *arg = argv[*i], *value = NULL;
        for (size_t f = 0; flags && flags[f]; f++) {
                if (!strcmp(arg, flags[f])) {
                        ret_flags[f] = true;
                        return 1;
                }
        }
        for (const struct option_value *v = values; v && v->name; v++) {
                int r = take_value(argc, argv, i, v);
                if (r)
                        return r;
        }
        if (!strncmp(arg, "--server=", 9)) {
                value = arg + 9;
        } else if (!strcmp(arg, "--server")) {
                if (*i + 1 == argc) {
                        fprintf(stderr, "spancl: --server needs a server\n");
                        return SP_E_INVAL;
                }
                value = argv[++*i];
        } else if (!strncmp(arg, "--", 2)) {
                fprintf(stderr, "spancl: unknown option '%s'; spancl --help lists all\n", arg);
                return SP_E_INVAL;
        } else {
                return 0;
        }
        int r = add_server(servers, value);
        if (r < 0)
                fprintf(stderr, "spancl: out of memory\n");
        return r < 0 ? r : 1;
}

int options_take(int argc, char **argv, const char *const *flags, bool *ret_flags,
                 char **ret_servers)
{
        return options_take_values(argc, argv, flags, ret_flags, NULL, ret_servers);
}

int options_take_values(int argc, char **argv, const char *const *flags, bool *ret_flags,
                        const struct option_value *values, char **ret_servers)
{
        char *servers = NULL;
        int i = 0, r = 0;
        for (; i < argc; i++) {
                if (!strcmp(argv[i], "--")) {
                        i++;
                        break;
                }
                r = take(argc, argv, &i, flags, ret_flags, values, &servers);
                if (r <= 0)
                        break;
        }
        if (r < 0) {
                mem_free(servers);
                return r;
        }
        *ret_servers = servers;
        return i;
}

int options_servers(const char *text, const char *origin, struct server_spec **ret,
                    size_t *ret_count)
{
        char *error = NULL;
        int r = text ? config_servers_parse(text, origin, ret, ret_count, &error)
                     : config_servers(ret, ret_count, &error);
        if (r < 0)
                fprintf(stderr, "spancl: %s\n", error ? error : status_text(r));
        mem_free(error);
        return r;
}

void options_hint(const struct queried *at)
{
        if (at->count && at->servers[0].implied)
                fprintf(stderr,
                        "spancl: no server is configured, so %s was tried. Start spancld there, or choose servers: "
                        "`spancl use HOST`, --server HOST, or SPANCL_SERVERS=\"HOST HOST\" (spancl --help)\n",
                        at->servers[0].name);
}

int options_timeout(void)
{
        return (int)config_number(CONFIG_connect_timeout);
}

void options_refuse(const char *command, const char *arg)
{
        if (*arg == '-')
                fprintf(stderr, "spancl: unknown option '%s'; spancl --help lists all\n", arg);
        else
                fprintf(stderr, "spancl: %s takes no '%s'; a server is named by --server %s\n",
                        command, arg, arg);
}

int options_query(const char *name, int argc, char **argv, const char *const *flags,
                  bool *ret_flags, struct queried *ret)
{
        char *text = NULL;
        int i = options_take(argc, argv, flags, ret_flags, &text);
        if (i < 0)
                return i;
        int r = 0;
        if (i < argc) {
                options_refuse(name, argv[i]);
                r = SP_E_INVAL;
        }
        ret->timeout_ms = options_timeout();
        if (!r)
                r = options_servers(text, "--server", &ret->servers, &ret->count);
        mem_free(text);
        return r;
}

static void print_fault(void *user, const char *text)
{
        (void)user;
        fprintf(stderr, "spancl: %s\n", text);
}

void options_faults(void)
{
        config_faults(print_fault, NULL);
}

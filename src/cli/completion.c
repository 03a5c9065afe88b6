#include "cli/completion.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/document.h"
#include "config/document.h"
#include "config/entries.h"
#include "config/server_spec.h"

/* ---- the arguments of both programs --------------------------------------------------------- */

/* The kinds of values that a shell completes. */
enum kind {
        KIND_NONE,
        KIND_WORDS,
        KIND_FILES,
        KIND_DIRS,
        KIND_HOSTS,
        KIND_PROGRAM, /* a program and its arguments */
        KIND_COUNT
};

enum { WORDS_MAX = 256, BRIEF_MAX = 256, VERBS_MAX = 24, OPTIONS_MAX = CONFIG_COUNT + 16 };

struct option {
        char name[32], value[32]; /* of an argument without name, name is "" */
        char brief[BRIEF_MAX];
        char words[WORDS_MAX]; /* the words of KIND_WORDS, separated by blanks */
        enum kind kind;
        bool repeats;
        bool general;  /* no command is needed before it */
        bool optional; /* its value may be missing */
};

struct verb {
        char name[32], brief[BRIEF_MAX];
        const struct option *options[ARGUMENTS_MAX]; /* the general ones are not among them */
        size_t option_count;
        struct option place; /* its first argument without a name; else of KIND_NONE */
};

struct model {
        const char *program;
        bool general; /* commands take the general options, too */
        struct verb verbs[VERBS_MAX];
        size_t verb_count;
        struct option options[OPTIONS_MAX];
        size_t option_count;
};

static bool one_of(const char *value, const char *const *names)
{
        for (; *names; names++)
                if (!strcmp(value, *names))
                        return true;
        return false;
}

static enum kind kind_of(const char *value)
{
        static const char *const names[KIND_COUNT][4] = {
                [KIND_WORDS] = { "DOCUMENT" },   [KIND_FILES] = { "FILE", "PATH" },
                [KIND_DIRS] = { "DIR", "DIRS" }, [KIND_HOSTS] = { "HOST", "S", "[SESSION|HOST]" },
                [KIND_PROGRAM] = { "PROGRAM" },
        };
        for (enum kind k = KIND_WORDS; k < KIND_COUNT; k++)
                if (one_of(value, names[k]))
                        return k;
        return KIND_NONE;
}

/* Take the first sentence of a text, or its part before a colon or semicolon, without marks. */
static void take_brief(const char *text, char ret[BRIEF_MAX])
{
        size_t n = 0, depth = 0;
        for (; *text && n + 1 < BRIEF_MAX; text++) {
                if (!depth && strchr(".:;", *text) && (!text[1] || text[1] == ' '))
                        break;
                depth += *text == '(';
                depth -= depth && *text == ')';
                if (*text != '`')
                        ret[n++] = *text;
        }
        ret[n] = 0;
}

/* Take the words of "auto|off", and those of "PROVIDER|off|auto" that a user writes as they are. */
static void take_words(const char *text, char ret[WORDS_MAX])
{
        size_t used = 0;
        while (*text) {
                size_t n = strcspn(text, "|");
                if (!isupper((unsigned char)*text) && used + n + 2 < WORDS_MAX)
                        used += (size_t)sprintf(ret + used, "%s%.*s", used ? " " : "", (int)n,
                                                text);
                text += n + (text[n] == '|');
        }
}

static struct option *add_option(struct model *m, const char *name, const char *value,
                                 const char *doc)
{
        assert(m->option_count < OPTIONS_MAX);
        struct option *o = &m->options[m->option_count++];
        snprintf(o->name, sizeof(o->name), "%s", name);
        snprintf(o->value, sizeof(o->value), "%s", value);
        take_brief(doc, o->brief);
        o->kind = kind_of(value);
        o->optional = *value == '[';
        return o;
}

static const struct option *find_option(const struct model *m, const char *name)
{
        for (size_t i = 0; i < m->option_count; i++)
                if (!strcmp(m->options[i].name, name))
                        return &m->options[i];
        return NULL;
}

static void add_verb(struct model *m, const char *name, size_t n, const char *arguments,
                     const char *doc)
{
        struct argument list[ARGUMENTS_MAX];
        struct verb *v = NULL;
        for (size_t i = 0; i < m->verb_count; i++)
                if (strlen(m->verbs[i].name) == n && !memcmp(m->verbs[i].name, name, n))
                        v = &m->verbs[i];
        if (!v) {
                assert(m->verb_count < VERBS_MAX);
                v = &m->verbs[m->verb_count++];
                snprintf(v->name, sizeof(v->name), "%.*s", (int)n, name);
                take_brief(doc, v->brief);
        }
        size_t count = arguments_of(arguments, list);
        for (size_t i = 0; i < count; i++) {
                const struct option *o = find_option(m, list[i].option);
                if (*list[i].option && o && !o->general && v->option_count < ARGUMENTS_MAX)
                        v->options[v->option_count++] = o;
                if (*list[i].option || *v->place.value)
                        continue;
                snprintf(v->place.value, sizeof(v->place.value), "%s", list[i].value);
                v->place.kind = kind_of(list[i].value);
                if (v->place.kind == KIND_WORDS)
                        document_names(v->place.words, WORDS_MAX);
        }
}

static void model_spancl(struct model *m)
{
        const struct command *c;
        m->program = "spancl";
        for (const struct argument_option *a = argument_options; a->name; a++) {
                struct option *o = add_option(m, a->name, a->value, a->doc);
                o->repeats = !strcmp(a->name, "--server");
                o->general = !strcmp(a->name, "--help") || !strcmp(a->name, "--version");
        }
        for (size_t i = 0; (c = command_at(i)); i++)
                add_verb(m, c->name, strlen(c->name), c->arguments, c->help);
}

static void model_spancld(struct model *m)
{
        m->program = "spancld";
        m->general = true;
        for (enum config_id id = 0; id < CONFIG_COUNT; id++) {
                const struct config_entry *e = config_entry(id);
                if (e->side != CONFIG_SERVER)
                        continue;
                struct option *o = add_option(m, e->name, e->value, e->doc);
                o->repeats = e->kind == CONFIG_LIST;
                o->general = true;
                take_words(e->kind == CONFIG_CHOICE ? e->allowed : e->value, o->words);
                if (*o->words)
                        o->kind = KIND_WORDS;
        }
        for (const struct argument_option *a = argument_options; a->name; a++)
                if (!find_option(m, a->name))
                        add_option(m, a->name, a->value, a->doc);
        add_option(m, "--nano", "NAME", "make the key of a device with the nano client");
        for (const struct config_note *n = config_commands; n->name; n++) {
                size_t size = strcspn(n->name, " ");
                add_verb(m, n->name, size, n->name + size, n->doc);
        }
}

static const struct model *model_of(enum completion_program program)
{
        static struct model models[2];
        struct model *m = &models[program];
        if (!m->program && program == COMPLETION_SPANCL)
                model_spancl(m);
        else if (!m->program)
                model_spancld(m);
        return m;
}

/* Print a text for the inside of single quotes. `escape`: characters that get a backslash. The
 * quotes themselves are `quote`. */
static void put_quoted(FILE *to, const char *text, const char *escape, const char *quote)
{
        for (; *text; text++) {
                if (*text == '\'') {
                        fputs(quote, to);
                        continue;
                }
                if (strchr(escape, *text))
                        fputc('\\', to);
                fputc(*text, to);
        }
}

/* Print the lines of a script. In each, %s is the program. */
static void put_lines(FILE *to, const struct model *m, const char *const *lines)
{
        for (; *lines; lines++) {
                const char *p = *lines, *mark;
                for (; (mark = strstr(p, "%s")); p = mark + 2)
                        fprintf(to, "%.*s%s", (int)(mark - p), p, m->program);
                fprintf(to, "%s\n", p);
        }
}

/* ---- bash ----------------------------------------------------------------------------------- */

static_assert(CONFIG_PORT == 7777, "bash_hosts leaves this port out");

static const char *const bash_hosts[] = {
        "",
        "# The servers that this user knows. The usual port is left out, as bash splits words at a colon.",
        "_spancl_hosts()",
        "{",
        "        sed -n 's/^[0-9a-f]\\{64\\} \\([^*[:space:]][^[:space:]]*\\).*/\\1/; t name; d",
        "                :name s/:7777$//; p' \\",
        "                \"${SPANCL_KEYS:-${XDG_CONFIG_HOME:-$HOME/.config}/spancl}/servers\" 2>/dev/null",
        "}",
        NULL,
};

static const char *const bash_begin[] = {
        "",
        "_%s()",
        "{",
        "        local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}",
        "        local verb='' kind='' words=''",
        NULL,
};

static const char *const bash_previous[] = {
        "        [ \"$COMP_CWORD\" -gt 1 ] && verb=${COMP_WORDS[1]}",
        "        # bash splits --option=value at the equals sign.",
        "        if [ \"$cur\" = = ]; then",
        "                cur=",
        "        elif [ \"$prev\" = = ]; then",
        "                prev=${COMP_WORDS[COMP_CWORD - 2]}",
        "        fi",
        "        case $prev in",
        NULL,
};

static const char *const bash_program[] = {
        "        # Behind the options of `run` are a program and its arguments.",
        "        if [ \"$kind\" = program ]; then",
        "                local i=2",
        "                while [ \"$i\" -lt \"$COMP_CWORD\" ] && [[ ${COMP_WORDS[i]} = -?* && ${COMP_WORDS[i]} != -- ]]; do",
        "                        if [ \"${COMP_WORDS[i + 1]}\" = = ]; then",
        "                                i=$((i + 3))",
        "                        elif [[ $valued = *\" ${COMP_WORDS[i]} \"* ]]; then",
        "                                i=$((i + 2))",
        "                        else",
        "                                i=$((i + 1))",
        "                        fi",
        "                        while [ \"${COMP_WORDS[i]}\" = : ]; do",
        "                                i=$((i + 2))",
        "                        done",
        "                done",
        "                [ \"${COMP_WORDS[i]}\" = -- ] && [ \"$i\" -lt \"$COMP_CWORD\" ] && i=$((i + 1))",
        "                if [ \"$i\" -lt \"$COMP_CWORD\" ] || [ \"${cur#-}\" = \"$cur\" ]; then",
        "                        if declare -F _command_offset >/dev/null; then",
        "                                _command_offset \"$i\"",
        "                        elif [ \"$i\" -lt \"$COMP_CWORD\" ]; then",
        "                                mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")",
        "                        else",
        "                                mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")",
        "                        fi",
        "                        return",
        "                fi",
        "        fi",
        NULL,
};

static const char *const bash_values[] = {
        "        [ \"${cur#-}\" = \"$cur\" ] || kind=",
        "        case $kind in",
        "        files)",
        "                compopt -o filenames 2>/dev/null",
        "                mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")",
        "                ;;",
        "        dirs)",
        "                compopt -o filenames 2>/dev/null",
        "                mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")",
        "                ;;",
        NULL,
};

static const char *const bash_servers[] = {
        "        hosts) mapfile -t COMPREPLY < <(compgen -A hostname -W \"$(_spancl_hosts)\" -- \"$cur\") ;;",
        NULL,
};

static const char *const bash_end[] = {
        "        *) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\") ;;",
        "        esac",
        "}",
        "complete -F _%s %s",
        NULL,
};

static const char *const bash_kinds[KIND_COUNT] = {
        [KIND_NONE] = "",
        [KIND_WORDS] = "",
        [KIND_FILES] = "kind=files ",
        [KIND_DIRS] = "kind=dirs ",
        [KIND_HOSTS] = "kind=hosts ",
        [KIND_PROGRAM] = "kind=program ",
};

static void bash_verb(FILE *to, const struct model *m, const struct verb *v)
{
        const char *blank = *v->place.words ? " " : "";
        fprintf(to, "                %s) %swords=\"%s", v->name, bash_kinds[v->place.kind],
                v->place.words);
        for (size_t i = 0; i < v->option_count; i++, blank = " ")
                fprintf(to, "%s%s", blank, v->options[i]->name);
        fprintf(to, "%s\" ;;\n", !m->general ? "" : *blank ? " $general" : "$general");
}

static void bash_verbs(FILE *to, const struct model *m)
{
        fputs("                case $verb in\n                '') words=\"", to);
        for (size_t i = 0; i < m->verb_count; i++)
                fprintf(to, "%s ", m->verbs[i].name);
        fputs("$general\" ;;\n", to);
        for (size_t i = 0; i < m->verb_count; i++)
                bash_verb(to, m, &m->verbs[i]);
        if (m->general)
                fputs("                *) words=$general ;;\n", to);
        fputs("                esac\n", to);
}

/* The options that a value follows; -o is --output. */
static void bash_valued(FILE *to, const struct model *m)
{
        fputs("        local valued=' -o", to);
        for (size_t i = 0; i < m->option_count; i++)
                if (*m->options[i].value && !m->options[i].optional)
                        fprintf(to, " %s", m->options[i].name);
        fputs(" '\n", to);
}

static void bash_general(FILE *to, const struct model *m)
{
        const char *begin = "        local general='";
        for (size_t i = 0; i < m->option_count; i++) {
                if (!m->options[i].general)
                        continue;
                fprintf(to, "%s%s", begin, m->options[i].name);
                begin = " ";
        }
        fputs("'\n", to);
}

void completion_bash(FILE *to, enum completion_program program)
{
        const struct model *m = model_of(program);
        fputs("# Completion for bash, printed by `spancl document`.\n", to);
        if (program == COMPLETION_SPANCL)
                put_lines(to, m, bash_hosts);
        put_lines(to, m, bash_begin);
        bash_general(to, m);
        put_lines(to, m, bash_previous);
        for (size_t i = 0; i < m->option_count; i++) {
                const struct option *o = &m->options[i];
                if (*o->value && !o->optional && (o->general || !m->general))
                        fprintf(to, "        %s) %swords='%s' ;;\n", o->name, bash_kinds[o->kind],
                                o->words);
        }
        fputs("        *)\n", to);
        bash_verbs(to, m);
        fputs("                ;;\n        esac\n        COMPREPLY=()\n", to);
        for (size_t i = 0; i < m->option_count; i++)
                if (m->options[i].optional && !m->general)
                        fprintf(to, "        [ \"$prev\" = %s ] && %s\n", m->options[i].name,
                                bash_kinds[m->options[i].kind]);
        if (program == COMPLETION_SPANCL) {
                bash_valued(to, m);
                put_lines(to, m, bash_program);
        }
        put_lines(to, m, bash_values);
        if (program == COMPLETION_SPANCL)
                put_lines(to, m, bash_servers);
        put_lines(to, m, bash_end);
}

/* ---- zsh ------------------------------------------------------------------------------------ */

static const char *const zsh_hosts[] = {
        "",
        "# The servers that this user knows, and other hosts.",
        "_spancl_hosts()",
        "{",
        "        local file=${SPANCL_KEYS:-${XDG_CONFIG_HOME:-$HOME/.config}/spancl}/servers",
        "        local -a known",
        "        [[ -r $file ]] &&",
        "                known=(${(f)\"$(sed -n 's/^[0-9a-f]\\{64\\} \\([^*[:space:]][^[:space:]]*\\).*/\\1/p' $file)\"})",
        "        compadd -a known",
        "        _hosts",
        "}",
        NULL,
};

static const char *const zsh_kinds[KIND_COUNT] = {
        [KIND_FILES] = "_files",
        [KIND_DIRS] = "_directories",
        [KIND_HOSTS] = "_spancl_hosts",
        [KIND_PROGRAM] = "_normal",
};

static void zsh_action(FILE *to, const struct option *o)
{
        fputc(':', to);
        put_quoted(to, o->value, ":\\[]", "");
        fputc(':', to);
        if (o->kind == KIND_WORDS)
                fprintf(to, "(%s)", o->words);
        else if (zsh_kinds[o->kind])
                fputs(zsh_kinds[o->kind], to);
        fputc('\'', to);
}

/* Print an option as an argument of _arguments. The options of spancl but --server take no equals
 * sign. */
static void zsh_option(FILE *to, const struct model *m, const struct option *o)
{
        bool equals = *o->value && (m->general || o->repeats);
        fprintf(to, " \\\n                '%s%s%s[", o->repeats ? "*" : "", o->name,
                equals ? "=" : "");
        put_quoted(to, o->brief, "\\[]", "'\\''");
        fputc(']', to);
        if (o->optional)
                fputc(':', to);
        if (*o->value)
                zsh_action(to, o);
        else
                fputc('\'', to);
}

static void zsh_verb(FILE *to, const struct model *m, const struct verb *v)
{
        fprintf(to,
                "        %s)\n                shift words\n                (( CURRENT-- ))\n"
                "                _arguments",
                v->name);
        for (size_t i = 0; i < v->option_count; i++)
                zsh_option(to, m, v->options[i]);
        if (v->place.kind != KIND_NONE) {
                fprintf(to, " \\\n                '%s",
                        v->place.kind == KIND_PROGRAM ? "(-)*:" : "1");
                zsh_action(to, &v->place);
        }
        if (m->general)
                fputs(" \\\n                \"${options[@]}\"", to);
        fputs("\n                ;;\n", to);
}

void completion_zsh(FILE *to, enum completion_program program)
{
        static const char *const begin[] = { "", "_%s()", "{", "        local ret=1", NULL };
        static const char *const middle[] = {
                "        if (( CURRENT == 2 )); then",
                "                _describe -t commands command commands && ret=0",
                "                _arguments \"${options[@]}\" && ret=0",
                "                return ret",
                "        fi",
                "        case $words[2] in",
                NULL,
        };
        static const char *const end[] = {
                "        *) _arguments \"${options[@]}\" ;;",
                "        esac",
                "}",
                "",
                "_%s \"$@\"",
                NULL,
        };
        const struct model *m = model_of(program);
        fprintf(to, "#compdef %s\n# Completion for zsh, printed by `spancl document`.\n",
                m->program);
        if (program == COMPLETION_SPANCL)
                put_lines(to, m, zsh_hosts);
        put_lines(to, m, begin);
        fputs("        local -a options=(", to);
        for (size_t i = 0; i < m->option_count; i++)
                if (m->options[i].general)
                        zsh_option(to, m, &m->options[i]);
        fputs(")\n        local -a commands=(", to);
        for (size_t i = 0; i < m->verb_count; i++) {
                fprintf(to, " \\\n                '%s:", m->verbs[i].name);
                put_quoted(to, m->verbs[i].brief, "\\", "'\\''");
                fputc('\'', to);
        }
        fputs(")\n", to);
        put_lines(to, m, middle);
        for (size_t i = 0; i < m->verb_count; i++)
                zsh_verb(to, m, &m->verbs[i]);
        put_lines(to, m, end);
}

/* ---- fish ----------------------------------------------------------------------------------- */

static const char *const fish_hosts[] = {
        "",
        "# The servers that this user knows, and other hosts.",
        "function __spancl_hosts",
        "        set -l folder $HOME/.config/spancl",
        "        test -n \"$XDG_CONFIG_HOME\"; and set folder $XDG_CONFIG_HOME/spancl",
        "        test -n \"$SPANCL_KEYS\"; and set folder $SPANCL_KEYS",
        "        test -r $folder/servers",
        "        and string replace -rf '^[0-9a-f]{64} ([^*\\s]\\S*).*' '$1' <$folder/servers",
        "        __fish_print_hostnames",
        "end",
        "",
        "# A program and its arguments, behind the options of `run`.",
        "function __spancl_program",
        "        set -l words (string escape -- (commandline -opc)[3..]) (commandline -ct)",
        "        while string match -qr -- '^(--(server|output|json|ring|html)|-o)' $words[1]",
        "                contains -- $words[1] --server --output --ring --html -o; and set -e words[1]",
        "                set -e words[1]",
        "        end",
        "        test \"$words[1]\" = --; and set -e words[1]",
        "        set -q words[1]; and not string match -q -- '-*' $words[1]; and complete -C \"$words\"",
        "end",
        NULL,
};

static const char *const fish_kinds[KIND_COUNT] = {
        [KIND_DIRS] = "(__fish_complete_directories)",
        [KIND_HOSTS] = "(__spancl_hosts)",
        [KIND_PROGRAM] = "(__spancl_program)",
};

/* Print the values that an option or argument takes. */
static void fish_values(FILE *to, const struct option *o)
{
        if (o->kind == KIND_FILES)
                fputs(" -F", to);
        else if (o->kind == KIND_WORDS)
                fprintf(to, " -a '%s'", o->words);
        else if (fish_kinds[o->kind])
                fprintf(to, " -a '%s'", fish_kinds[o->kind]);
}

/* Print an option; `condition` is a command of fish, or "" for none. */
static void fish_option(FILE *to, const struct model *m, const char *condition,
                        const struct option *o)
{
        fprintf(to, "complete -c %s", m->program);
        if (*condition)
                fprintf(to, " -n '%s'", condition);
        fprintf(to, " -l %s", o->name + 2);
        if (*o->value && !o->optional) {
                fputs(o->kind == KIND_FILES ? " -r" : " -x", to);
                fish_values(to, o);
        }
        fputs(" -d '", to);
        put_quoted(to, o->brief, "\\", "\\'");
        fputs("'\n", to);
        if (!o->optional)
                return;
        /* The value is a word of its own. */
        fprintf(to, "complete -c %s -n 'test (commandline -opc)[-1] = %s'", m->program, o->name);
        fish_values(to, o);
        fputc('\n', to);
}

void completion_fish(FILE *to, enum completion_program program)
{
        const struct model *m = model_of(program);
        fputs("# Completion for fish, printed by `spancl document`.\n", to);
        if (program == COMPLETION_SPANCL)
                put_lines(to, m, fish_hosts);
        fprintf(to, "\ncomplete -c %s -f\n", m->program);
        for (size_t i = 0; i < m->option_count; i++)
                if (m->options[i].general)
                        fish_option(to, m, m->general ? "" : "__fish_use_subcommand",
                                    &m->options[i]);
        for (size_t i = 0; i < m->verb_count; i++) {
                const struct verb *v = &m->verbs[i];
                char condition[64];
                fprintf(to, "complete -c %s -n __fish_use_subcommand -a %s -d '", m->program,
                        v->name);
                put_quoted(to, v->brief, "\\", "\\'");
                fputs("'\n", to);
                snprintf(condition, sizeof(condition), "__fish_seen_subcommand_from %s", v->name);
                for (size_t k = 0; k < v->option_count; k++)
                        fish_option(to, m, condition, v->options[k]);
                if (v->place.kind == KIND_NONE)
                        continue;
                fprintf(to, "complete -c %s -n '%s'", m->program, condition);
                fish_values(to, &v->place);
                fputc('\n', to);
        }
}

#include "cli/page.h"

#include <ctype.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "config/document.h"
#include "config/entries.h"

enum { COLUMNS = 78 };

/* The roff of one character outside of a font change. */
static const char *escaped(char c, char own[2])
{
        switch (c) {
        case '\\':
                return "\\e";
        case '-':
                return "\\-";
        case '\'':
                return "\\(aq";
        case '`':
                return "\\(ga";
        case '^':
                return "\\(ha";
        case '~':
                return "\\(ti";
        default:
                own[0] = c;
                own[1] = 0;
                return own;
        }
}

/* Print without line breaks, for tags and lines of commands. */
static void put_line(FILE *to, const char *text)
{
        char own[2];
        for (; *text; text++)
                fputs(escaped(*text, own), to);
}

/* Convert one word of Markdown: text between backquotes is bold. Returns its length in roff. */
static size_t convert(const char *word, size_t n, bool *bold, char *ret, size_t size)
{
        size_t used = 0;
        char own[2];
        for (size_t i = 0; i < n; i++) {
                const char *one = word[i] != '`' ? escaped(word[i], own) : *bold ? "\\fR" : "\\fB";
                if (word[i] == '`')
                        *bold = !*bold;
                if (used + strlen(one) < size)
                        used += (size_t)sprintf(ret + used, "%s", one);
        }
        return used;
}

/* Return true if a sentence ends with this word. "..." stands for words that are left out. */
static bool ends_sentence(const char *word, size_t n)
{
        while (n && strchr("`)", word[n - 1]))
                n--;
        return n && strchr(".?", word[n - 1]) && (n < 2 || word[n - 2] != '.');
}

/* Return true if roff would take this word, at the end of a line, for the end of a sentence. */
static bool seems_to_end(const char *word, size_t n)
{
        while (n && strchr("`)]", word[n - 1]))
                n--;
        return n && strchr(".?!", word[n - 1]);
}

/* Print Markdown as filled text. Each sentence begins on a line of its own, which is how roff knows
 * where it may widen the space. */
static void put_text(FILE *to, const char *text)
{
        bool bold = false, fresh = false;
        size_t column = 0;
        for (const char *p = text + strspn(text, " "); *p;) {
                char word[512] = "";
                size_t n = strcspn(p, " "), width = convert(p, n, &bold, word, sizeof(word));
                if (column && (fresh || column + 1 + width > COLUMNS)) {
                        fputc('\n', to);
                        column = 0;
                }
                /* A dot at the begin of a line would be a request; so would an apostrophe, but that
                 * is escaped. */
                column += (size_t)fprintf(to, "%s%s%s", column ? " " : "",
                                          !column && *word == '.' ? "\\&" : "", word);
                fresh = ends_sentence(p, n);
                if (!fresh && seems_to_end(p, n))
                        fputs("\\&", to);
                p += n;
                p += strspn(p, " ");
        }
        fputs(bold ? "\\fR\n" : "\n", to);
}

/* Print a fragment of a help text as a sentence. */
static void put_sentence(FILE *to, const char *fragment)
{
        char text[1024];
        snprintf(text, sizeof(text), "%s.", fragment);
        text[0] = (char)toupper((unsigned char)text[0]);
        put_text(to, text);
}

static void put_head(FILE *to, const char *name, const char *section, const char *what)
{
        fputs(".\\\" Printed by `spancl document`; the source has no such file.\n", to);
        fprintf(to, ".TH %s %s %s \"SpanCL %s\" \"SpanCL\"\n", name, section, SPANCL_DATE,
                SPANCL_VERSION);
        fputs(".SH NAME\n", to);
        for (const char *p = name; *p; p++)
                fputc(tolower((unsigned char)*p), to);
        fprintf(to, " \\- %s\n", what);
}

static void put_section(FILE *to, const char *title)
{
        fprintf(to, ".SH %s\n", title);
}

/* Print the tag of an item; the text follows. */
static void put_tag(FILE *to, const char *name, const char *value)
{
        fputs(".TP\n\\fB", to);
        put_line(to, name);
        fputs("\\fR", to);
        if (*value) {
                fputs(" \\fI", to);
                put_line(to, value);
                fputs("\\fR", to);
        }
        fputc('\n', to);
}

static void put_options(FILE *to, const char *arguments)
{
        struct argument list[ARGUMENTS_MAX];
        size_t n = arguments_of(arguments, list);
        for (size_t i = 0; i < n; i++) {
                if (!*list[i].option)
                        continue;
                put_tag(to, list[i].option, list[i].value);
                put_sentence(to, argument_doc(list[i].option));
        }
}

/* Print the entries of config/config.def that have this side. */
static void put_entries(FILE *to, enum config_side side)
{
        for (enum config_id id = 0; id < CONFIG_COUNT; id++) {
                const struct config_entry *e = config_entry(id);
                char line[512], allowed[256];
                if (e->side != side)
                        continue;
                put_tag(to, e->name, e->value);
                put_text(to, e->doc);
                if (config_is_limited(id)) {
                        config_allowed(id, allowed, sizeof(allowed));
                        snprintf(line, sizeof(line), "Allowed: %s.", allowed);
                        put_text(to, line);
                }
                if (*e->fallback && e->kind != CONFIG_FLAG) {
                        snprintf(line, sizeof(line), "Default: `%s`.", e->fallback);
                        put_text(to, line);
                }
        }
}

static void put_notes(FILE *to, const struct config_note *notes)
{
        for (const struct config_note *n = notes; n->name; n++) {
                put_tag(to, n->name, "");
                put_text(to, n->doc);
        }
}

static void put_references(FILE *to, const char *pages)
{
        put_section(to, "SEE ALSO");
        fputs(pages, to);
        fputs(".PP\n", to);
        put_text(to, "The files of docs/ that this page names are in the source of SpanCL.");
}

static void put_synopsis(FILE *to, const char *program, const char *arguments)
{
        fprintf(to, "\\fB%s\\fR\n", program);
        put_text(to, arguments);
}

static void put_example(FILE *to, const char *command, const char *what)
{
        fputs(".TP\n\\fB", to);
        put_line(to, command);
        fputs("\\fR\n", to);
        put_text(to, what);
}

void page_spancl(FILE *to)
{
        const struct command *c;
        put_head(to, "SPANCL", "1", "query OpenCL servers, and run programs on their devices");
        put_section(to, "SYNOPSIS");
        put_synopsis(to, "spancl", "COMMAND [ARGUMENTS]");
        fputs(".PP\n", to);
        put_synopsis(to, "spancl", "--help | --version");
        put_section(to, "DESCRIPTION");
        put_text(to,
                 "SpanCL makes the OpenCL devices of other machines local OpenCL devices. spancl "
                 "queries the servers, which are processes of spancld, and runs programs on their "
                 "devices.");
        fputs(".PP\n", to);
        put_text(to, command_servers_help);
        put_section(to, "COMMANDS");
        for (size_t i = 0; (c = command_at(i)); i++) {
                fprintf(to, ".SS %s\n", c->name);
                fprintf(to, "\\fBspancl %s\\fR\n", c->name);
                put_text(to, c->arguments);
                fputs(".PP\n", to);
                put_sentence(to, c->help);
                put_options(to, c->arguments);
        }
        put_section(to, "OPTIONS");
        put_tag(to, "--help", "");
        put_sentence(to, argument_doc("--help"));
        put_tag(to, "--version", "");
        put_sentence(to, argument_doc("--version"));
        put_section(to, "ENVIRONMENT");
        put_text(to,
                 "spancl takes the variables of the OpenCL library, among them `SPANCL_SERVERS`, "
                 "`SPANCL_KEYS` and `SPANCL_CONNECT_TIMEOUT`.");
        fputs(".BR spancl (7)\ndescribes all of them.\n", to);
        put_section(to, "EXIT STATUS");
        put_tag(to, "0", "");
        put_text(to, "The command has done all of its work.");
        put_tag(to, "1", "");
        put_text(to, "It failed, for example because a server did not answer.");
        put_tag(to, "2", "");
        put_text(to, "The arguments or a variable are wrong.");
        fputs(".PP\n", to);
        put_text(
                to,
                "`spancl run` becomes the program, whose status it has. Status 127 means that there "
                "is no such program, and 126 that it could not be started.");
        put_section(to, "EXAMPLES");
        put_example(to, "spancl run --server gpu1 --server gpu2 -- clinfo -l",
                    "List the devices of two servers with the program clinfo.");
        put_example(to, "spancl pair gpu1",
                    "Become a client of the server on gpu1. `spancld pair` shows a code there.");
        put_references(to, ".BR spancl (7),\n.BR spancld (8)\n");
}

void page_variables(FILE *to)
{
        put_head(to, "SPANCL", "7", "environment variables of programs that use SpanCL");
        put_section(to, "DESCRIPTION");
        put_text(
                to,
                "SpanCL is an OpenCL platform whose devices are those of other machines. The OpenCL "
                "loader finds it by itself. These variables configure it in each program that uses "
                "OpenCL. A variable that is empty counts as unset. `spancl config` prints all "
                "of them with their values.");
        put_section(to, "ENVIRONMENT");
        put_entries(to, CONFIG_CLIENT);
        put_notes(to, config_pocl);
        put_section(to, "FILES");
        put_notes(to, config_client_files);
        put_references(to, ".BR spancl (1),\n.BR spancld (8)\n");
}

void page_spancld(FILE *to)
{
        put_head(to, "SPANCLD", "8", "lend the OpenCL devices of this host to SpanCL clients");
        put_section(to, "SYNOPSIS");
        put_synopsis(to, "spancld", "[OPTIONS]");
        for (const struct config_note *n = config_commands; n->name; n++) {
                fputs(".PP\n", to);
                put_synopsis(to, "spancld", n->name);
        }
        put_section(to, "DESCRIPTION");
        put_text(to,
                 "spancld is a server. Each session of a client runs in a process of its own, in a "
                 "sandbox, on the OpenCL implementations of this host.");
        put_section(to, "COMMANDS");
        put_notes(to, config_commands);
        put_section(to, "OPTIONS");
        put_text(
                to,
                "An option and its value are two arguments, or one with an equals sign between them.");
        put_entries(to, CONFIG_SERVER);
        put_section(to, "FILES");
        put_notes(to, config_server_files);
        put_references(to, ".BR spancl (1),\n.BR spancl (7)\n");
}

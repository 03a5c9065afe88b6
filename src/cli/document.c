#include "cli/document.h"

#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/options.h"
#include "cli/page.h"
#include "config/absent.h"
#include "config/document.h"
#include "config/files.h"
#include "config/variables.h"
#include "proto/wire.h"

static void print(void *user, const char *text)
{
        (void)user;
        fputs(text, stdout);
}

/* Parse the arguments. 1: --markdown; 0: none; -1: something else. */
static int wants_markdown(const char *command, int argc, char **argv)
{
        if (argc == 1 && !strcmp(argv[0], "--markdown"))
                return 1;
        if (!argc)
                return 0;
        command_usage(command);
        return -1;
}

static void describe_origin(enum config_id id, char *ret, size_t size)
{
        struct config_origin o = config_origin(id);
        if (o.kind == CONFIG_FILE)
                snprintf(ret, size, "%s:%u", o.file, o.line);
        else
                snprintf(ret, size, "%s",
                         o.kind == CONFIG_ENVIRONMENT && config_is_set(id) ? "environment"
                                                                           : "default");
}

static int print_variables(void)
{
        int wrong = 0;
        for (enum config_id id = 0; id < CONFIG_COUNT; id++) {
                const struct config_entry *e = config_entry(id);
                if (e->side != CONFIG_CLIENT)
                        continue;
                char *error = NULL;
                bool ok = !config_check(id, config_text(id), &error);
                char origin[CONFIG_PATH_MAX + 16];
                describe_origin(id, origin, sizeof(origin));
                printf("%s=%s  (%s)%s%s\n", e->name, config_text(id), origin, ok ? "" : "  WRONG: ",
                       ok      ? ""
                       : error ? error
                               : "out of memory");
                wrong += !ok;
                mem_free(error);
        }
        return wrong;
}

/* Print the value of each variable as an object, then the servers that follow from them. */
static int print_json(void)
{
        struct json_writer w = { .to = stdout };
        struct server_spec *specs = NULL;
        size_t count = 0;
        int wrong = 0;
        for (enum config_id id = 0; id < CONFIG_COUNT; id++) {
                const struct config_entry *e = config_entry(id);
                if (e->side != CONFIG_CLIENT)
                        continue;
                char *error = NULL, origin[CONFIG_PATH_MAX + 16];
                bool ok = !config_check(id, config_text(id), &error);
                describe_origin(id, origin, sizeof(origin));
                json_begin(&w, NULL, '{');
                json_put_text(&w, "variable", e->name);
                json_put_text(&w, "value", config_text(id));
                json_put_text(&w, "default", e->fallback);
                json_put_text(&w, "origin", origin);
                json_put_text(&w, "error", ok ? NULL : error ? error : "out of memory");
                json_end(&w, '}');
                json_line(&w);
                wrong += !ok;
                mem_free(error);
        }
        if (options_servers(NULL, NULL, &specs, &count) < 0)
                return 2;
        for (size_t i = 0; i < count; i++) {
                json_begin(&w, NULL, '{');
                json_put_text(&w, "server", specs[i].name);
                json_put_text(&w, "address",
                              specs[i].in_process ? specs[i].backend : specs[i].address);
                json_put_text(&w, "devices", specs[i].devices ? specs[i].devices : "");
                json_end(&w, '}');
                json_line(&w);
        }
        config_servers_free(specs, count);
        return wrong ? 2 : 0;
}

/* Print the options of the server that this system has no counterpart of, if there are any. */
static void print_absent(void)
{
        const char *begin = "Off on this system, and refused by spancld: ";
        for (enum config_id id = 0; id < CONFIG_COUNT; id++) {
                if (config_entry(id)->side != CONFIG_SERVER || !config_is_absent(id))
                        continue;
                printf("%s%s", begin, config_entry(id)->name);
                begin = ", ";
        }
        if (*begin == ',')
                printf("\n");
}

int command_config(int argc, char **argv)
{
        if (argc == 1 && !strcmp(argv[0], "--json"))
                return print_json();
        int markdown = wants_markdown("config", argc, argv);
        if (markdown < 0)
                return 2;
        if (markdown) {
                config_document(print, NULL);
                return 0;
        }
        struct server_spec *specs;
        size_t count;
        int wrong = print_variables();
        if (options_servers(NULL, NULL, &specs, &count) < 0)
                return 2;
        printf("\nServers:\n");
        for (size_t i = 0; i < count; i++) {
                const struct server_spec *s = &specs[i];
                printf("  %s: %s, devices %s", s->name, s->in_process ? s->backend : s->address,
                       s->devices ? s->devices : "all");
                if (s->peer_host && s->peer_port)
                        printf(", other servers reach it at %s port %u", s->peer_host,
                               s->peer_port);
                printf("\n");
        }
        config_servers_free(specs, count);
        printf("\nOptions of spancld: spancld --help\n");
        print_absent();
        return wrong ? 2 : 0;
}

int command_protocol(int argc, char **argv)
{
        if (wants_markdown("protocol", argc, argv) < 0)
                return 2;
        printf("# The protocol\n\n"
               "Generated by `spancl protocol --markdown`; the sources are src/proto/frame.h, "
               "src/proto/wire.h and src/proto/schema.\n"
               "This is version %d. All numbers are little-endian.\n\n",
               WIRE_VERSION);
        fputs("## Connections\n\n"
              "A connection is an ordered byte stream. Each side first sends the 8 bytes `SPANCL\\r\\n` "
              "and one HELLO frame, with the message `hello` from the side that connected and "
              "`hello_reply` from the other; nothing follows before the answer. Then lane 0 of a "
              "session carries DATA, ACK and PROBE frames, the other lanes BULK frames. If both hellos said feature "
              "4 (checksums), all that follows them goes in records of 1 to 131072 bytes (transport/checked.h), each behind a "
              "header of 12 bytes: u32 size, u32 CRC-32C of the bytes, u32 CRC-32C of the record's number in this direction "
              "(u64, from 0 on), size and the former.\n\n"
              "## Frames\n\n"
              "A frame is a header of 24 bytes and its payload.\n\n"
              "| offset | field | meaning |\n|---|---|---|\n"
              "| 0 | u32 size | bytes behind the header; a multiple of 8 except for BULK |\n"
              "| 4 | u8 type | 1 HELLO, 2 DATA, 3 ACK, 4 BULK, 5 PROBE |\n"
              "| 5 | u8 flags | BULK: 1 if it is packed; PROBE: 2 if it asks for the receiver's PROBE frames; else 0 |\n"
              "| 6 | u16 count | DATA: messages in the frame, at least 1; packed: 8-byte words that it "
              "holds; PROBE: lane; else 0 |\n"
              "| 8 | u64 seq | DATA: number of the first message; BULK: transfer; PROBE: of lane 0 the "
              "number of the next message, of others how many bytes of the lane were sent; HELLO: CRC-32C of the whole "
              "exchange, with 0 in this place; else 0 |\n"
              "| 16 | u64 ack | DATA, ACK, PROBE: every message below it was received; BULK: offset of the "
              "first byte in the transfer |\n\n"
              "Messages are numbered from 0 in each direction. A receiver skips those that it has "
              "(they are sent again after a connection was lost) and treats a gap as an error.\n\n"
              "## Encoding of messages\n\n"
              "A message is u16 id, u16 zero, u32 size in bytes (this header included, a multiple of "
              "8), and its fields in the order of the tables below, in slots of 8 bytes:\n\n"
              "- U64, S64, id: one slot. The top byte of an id is its type.\n"
              "- U64 array, id array: a slot with the count, then one slot each.\n"
              "- bytes, text, info block, kernel arguments: a slot with the size in bytes, then the "
              "bytes, padded with zeros to a multiple of 8. src/proto/info.h and src/proto/args.h "
              "define what is in the latter two.\n\n",
              stdout);
        wire_document(print, NULL);
        return 0;
}

/* The names are those of the files in a build; packaging/CMakeLists.txt installs them. */
static const struct {
        const char *name;
        void (*page)(FILE *to);
        void (*completion)(FILE *to, enum completion_program program);
        enum completion_program program;
} documents[] = {
        { "spancl.1", page_spancl },
        { "spancl.7", page_variables },
        { "spancld.8", page_spancld },
        { "spancl.bash", NULL, completion_bash, COMPLETION_SPANCL },
        { "spancld.bash", NULL, completion_bash, COMPLETION_SPANCLD },
        { "_spancl", NULL, completion_zsh, COMPLETION_SPANCL },
        { "_spancld", NULL, completion_zsh, COMPLETION_SPANCLD },
        { "spancl.fish", NULL, completion_fish, COMPLETION_SPANCL },
        { "spancld.fish", NULL, completion_fish, COMPLETION_SPANCLD },
};

void document_names(char *text, size_t size)
{
        size_t used = 0;
        for (size_t i = 0; i < array_size(documents) && used < size; i++)
                used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "",
                                         documents[i].name);
}

int command_document(int argc, char **argv)
{
        if (argc > 1) {
                fprintf(stderr, "Usage: spancl document [DOCUMENT]\n");
                return 2;
        }
        size_t i = 0;
        for (; i < array_size(documents); i++) {
                if (!argc)
                        puts(documents[i].name);
                else if (!strcmp(argv[0], documents[i].name))
                        break;
        }
        if (argc && i == array_size(documents)) {
                fprintf(stderr, "spancl: no document '%s'; spancl document lists all\n", argv[0]);
                return 2;
        }
        if (argc && documents[i].page)
                documents[i].page(stdout);
        else if (argc)
                documents[i].completion(stdout, documents[i].program);
        if (fflush(stdout)) {
                perror("spancl: standard output");
                return 1;
        }
        return 0;
}

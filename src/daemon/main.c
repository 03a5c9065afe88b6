/* spancld: lends the OpenCL devices of this host to SpanCL clients. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/media/sink_names.h"
#include "backend/media/source_names.h"
#include "base/journal.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/paragraph.h"
#include "config/absent.h"
#include "config/document.h"
#include "config/options.h"
#include "daemon/allocator/allocator.h"
#include "daemon/client_limits.h"
#include "daemon/clients.h"
#include "daemon/dialler/dialler.h"
#include "daemon/exporter/exporter.h"
#include "daemon/print_records.h"
#include "daemon/sensors/sensors.h"
#include "daemon/supervisor/gate.h"
#include "daemon/supervisor/reserving.h"
#include "daemon/supervisor/supervisor.h"
#include "daemon/system/birth.h"
#include "daemon/system/lifetime.h"
#include "daemon/system/sandbox_test.h"
#include "daemon/system/service.h"
#include "daemon/system/zygote.h"
#include "daemon/upkeep/meter.h"
#include "daemon/worker/worker.h"
#include "os/file.h"
#include "os/file_info.h"
#include "os/process/process.h"
#include "os/thread.h"
#include "sandbox/calls.h"
#include "transport/tls.h"

static void print_help(void)
{
        enum { INDENT = 6 };
        printf("Usage: spancld [OPTIONS]\n"
               "       spancld COMMAND\n"
               "Lends the OpenCL devices of this host to SpanCL clients.\n");
        for (const struct config_note *n = config_commands; n->name; n++) {
                printf("\n  %s\n", n->name);
                paragraph_print(stdout, INDENT, n->doc);
        }
        for (enum config_id id = 0; id < CONFIG_COUNT; id++) {
                const struct config_entry *e = config_entry(id);
                if (e->side != CONFIG_SERVER || config_is_absent(id))
                        continue;
                printf("\n  %s%s%s\n", e->name, *e->value ? " " : "", e->value);
                paragraph_print(stdout, INDENT, e->doc);
                if (config_is_limited(id)) {
                        char allowed[256];
                        config_allowed(id, allowed, sizeof(allowed));
                        printf("      Allowed: %s\n", allowed);
                }
                if (*e->fallback && e->kind != CONFIG_FLAG)
                        printf("      Default: %s\n", e->fallback);
        }
}

/* Return true if this system has a counterpart of each option that is given. */
static bool has_all(const struct config_options *o)
{
        enum config_id id = 0;
        while (id < CONFIG_COUNT && !(o->values[id] && config_is_absent(id)))
                id++;
        for (size_t i = 0; i < o->list_count && id == CONFIG_COUNT; i++)
                if (config_is_absent(o->list[i].id))
                        id = o->list[i].id;
        if (id < CONFIG_COUNT)
                fprintf(stderr,
                        "spancld: this system has no counterpart of %s; docs/PLATFORMS.md says what it lacks\n",
                        config_entry(id)->name);
        return id == CONFIG_COUNT;
}

/* The part that this process plays: the supervisor, unless a member is set. */
struct part {
        const char *nano; /* a device's name, for `spancld pair --nano`; "": it is missing */
        bool pair, rotate, zygote, dialler, local, exporter, sensors, allocator, sandbox_test;
        int clients;                     /* the number of `words`, and 1 */
        char **words;                    /* the arguments of `spancld clients` */
        const char *scratch_dir, *owner; /* a worker's */
        const char *memory, *tasks;      /* the meter's limits */
};

/* Return true if standard error is systemd's journal: JOURNAL_STREAM has its device and inode. */
static bool is_journal(void)
{
        const char *text = getenv("JOURNAL_STREAM");
        char own[64];
        struct file_info f;
        if (!text || !file_info_of(FILE_STDERR, &f))
                return false;
        snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)f.device,
                 (unsigned long long)f.number);
        return !strcmp(text, own);
}

/* Choose the form of the log. Other processes than these write to the supervisor, which writes their
 * lines in this form. */
static void choose_format(const struct config_options *o, const struct part *part)
{
        uint64_t wanted = config_option_number(o, CONFIG_log_format);
        if (part->pair || part->clients || part->sandbox_test || part->zygote || part->dialler ||
            part->exporter || part->sensors || part->allocator || part->scratch_dir)
                return;
        log_format = wanted ? (enum log_format)wanted : is_journal() ? LOG_JOURNAL : LOG_TEXT;
        if (log_format == LOG_JOURNAL && journal_open(JOURNAL_SOCKET))
                log_format = LOG_NATIVE;
}

static void warn_of_users(const struct config_options *o, enum config_id id, const char *option)
{
        if (media_urls_have_users(o, id))
                log_warn("config",
                         "a URL of %s has a name or password (`@`), which other users of this "
                         "host, and hostile sessions, may be able to read",
                         option);
}

static int run(struct config_options *o, const struct config_command_line *line,
               const struct part *part)
{
        if (config_option_flag(o, CONFIG_help)) {
                print_help();
                return 0;
        }
        if (config_option_flag(o, CONFIG_version)) {
                printf("spancld %s\n", SPANCL_VERSION);
                return 0;
        }
        if (!has_all(o))
                return 2;
        if (*config_option_text(o, CONFIG_print_dns))
                return print_dns(o);
        if (config_option_flag(o, CONFIG_print_avahi))
                return print_avahi(o);
        choose_format(o, part);
        log_threshold = (enum log_level)config_option_number(o, CONFIG_log);
        transport_timeout_ms = (unsigned)config_option_number(o, CONFIG_link_timeout);
        transport_multipath = config_option_number(o, CONFIG_multipath) == 1;
        tls_by_kernel = config_option_number(o, CONFIG_ktls) == 0;
        /* Read the quota of CPU time before a sandbox hides it. Processes that are forked inherit it. */
        (void)thread_cores();
        char wrong[160];
        if (!calls_known(config_option_text(o, CONFIG_sandbox_allow), wrong, sizeof(wrong))) {
                fprintf(stderr, "spancld: --sandbox-allow: %s\n", wrong);
                return 2;
        }
        if (!client_memory_check(config_option_text(o, CONFIG_client_memory))) {
                fprintf(stderr,
                        "spancld: --client-memory takes MIB and DEVICE=MIB, separated by commas, not %s\n",
                        config_option_text(o, CONFIG_client_memory));
                return 2;
        }
        if (!client_time_check(config_option_text(o, CONFIG_client_time))) {
                fprintf(stderr,
                        "spancld: --client-time takes SECONDS[/WINDOW] and DEVICE=SECONDS[/WINDOW], "
                        "separated by commas, not %s\n",
                        config_option_text(o, CONFIG_client_time));
                return 2;
        }
        if (!reserving_check(config_option_text(o, CONFIG_reserve))) {
                fprintf(stderr,
                        "spancld: --reserve takes DEVICE=user:NAME and DEVICE=token, separated by "
                        "commas, not %s\n",
                        config_option_text(o, CONFIG_reserve));
                return 2;
        }
        if (!media_sources_check(o, wrong, sizeof(wrong))) {
                fprintf(stderr, "spancld: --media-source: %s\n", wrong);
                return 2;
        }
        if (!media_sinks_check(o, wrong, sizeof(wrong))) {
                fprintf(stderr, "spancld: --media-sink: %s\n", wrong);
                return 2;
        }
        if (config_option_flag(o, CONFIG_lttng) && config_option_flag(o, CONFIG_sandbox)) {
                fprintf(stderr,
                        "spancld: --lttng needs --sandbox 0, because each session would hold a "
                        "connection to LTTng's session daemon\n");
                return 2;
        }
        if (part->nano)
                return gate_nano(o, part->nano);
        if (part->pair)
                return part->rotate ? gate_rotate(o) : gate_show_code(o);
        if (part->clients)
                return clients_main(o, part->clients - 1, part->words);
        if (part->sandbox_test)
                return sandbox_test(o);
        if (part->zygote)
                return zygote_main(o);
        if (part->dialler)
                return dialler_main(o, part->local);
        if (part->exporter)
                return exporter_main();
        if (part->sensors)
                return sensors_main(o);
        if (part->allocator)
                return allocator_main(o);
        if (part->memory)
                return meter_main(o, part->memory, part->tasks);
        if (!part->scratch_dir) {
                if (line->overridden)
                        log_warn("config", "the addresses of the command line replace %s",
                                 line->overridden);
                warn_of_users(o, CONFIG_media_source, "--media-source");
                warn_of_users(o, CONFIG_media_sink, "--media-sink");
                return supervisor_main(o, line->argc, line->argv);
        }
        return birth(o, process_parent())
                       ? lifetime_end(worker_main(o, part->scratch_dir, part->owner))
                       : 1;
}

/* Parse the command line, then the same with the options of a file, which the other processes get. */
static int read_options(int argc, char **argv, struct config_options *ret,
                        struct config_command_line *ret_line, char **ret_error)
{
        int r = config_options_parse(argc, argv, ret, ret_error);
        if (!r && !config_option_flag(ret, CONFIG_help) && !config_option_flag(ret, CONFIG_version))
                r = config_options_file(ret, argc, argv, ret_line, ret_error);
        if (r < 0 || !ret_line->argv)
                return r;
        config_options_fini(ret);
        return config_options_parse(ret_line->argc, ret_line->argv, ret, ret_error);
}

/* Take the arguments of `spancld clients`. The options of the server follow them. */
static void take_words(struct part *part, int *argc, char ***argv)
{
        int n = 1;
        while (1 + n < *argc &&
               (strncmp((*argv)[1 + n], "--", 2) != 0 || !strcmp((*argv)[1 + n], "--json")))
                n++;
        part->clients = n;
        part->words = *argv + 1;
        memmove(part->words, *argv + 2, (size_t)(n - 1) * sizeof(**argv));
        (*argv)[n] = (*argv)[0];
        *argc -= n;
        *argv += n;
}

static int run_part(int argc, char **argv)
{
        /* The supervisor starts the other processes with its own options and, in front of them:
         *   a worker   "--worker SCRATCH_DIR OWNER"
         *   the zygote, from which workers are forked   "--zygote"
         *   the dialler, which makes links to other servers   "--dialler LOCAL"
         *   the exporter, which serves metrics   "--exporter"
         *   the sensors, which read the devices' state   "--sensors"
         *   the allocator, which makes device memory that workers share   "--allocator"
         *   the meter, which measures sessions   "--meter MEMORY TASKS" */
        static char help[] = "--help", version[] = "--version";
        struct part part = { 0 };
        if (argc >= 4 && !strcmp(argv[1], "--worker")) {
                part.scratch_dir = argv[2];
                part.owner = argv[3];
                argc -= 3;
                argv += 3;
        } else if (argc >= 4 && !strcmp(argv[1], "--meter")) {
                part.memory = argv[2];
                part.tasks = argv[3];
                argc -= 3;
                argv += 3;
        } else if (argc >= 2 && !strcmp(argv[1], "--zygote")) {
                part.zygote = true;
                argc--;
                argv++;
        } else if (argc >= 3 && !strcmp(argv[1], "--dialler")) {
                part.dialler = true;
                part.local = *argv[2] == '1';
                argc -= 2;
                argv += 2;
        } else if (argc >= 2 && !strcmp(argv[1], "--sensors")) {
                part.sensors = true;
                argc--;
                argv++;
        } else if (argc >= 2 && !strcmp(argv[1], "--allocator")) {
                part.allocator = true;
                argc--;
                argv++;
        } else if (argc >= 2 && !strcmp(argv[1], "--exporter")) {
                part.exporter = true;
                argc--;
                argv++;
        } else if (argc >= 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))) {
                argv[1] = help;
        } else if (argc >= 2 && (!strcmp(argv[1], "-v") || !strcmp(argv[1], "-V"))) {
                argv[1] = version;
        } else if (argc >= 2 && !strcmp(argv[1], "sandbox-test")) {
                part.sandbox_test = true;
                argc--;
                argv++;
        } else if (argc >= 2 && !strcmp(argv[1], "clients")) {
                take_words(&part, &argc, &argv);
        } else if (argc >= 2 && !strcmp(argv[1], "pair")) {
                part.pair = true;
                argc--;
                argv++;
                if (argc >= 2 && !strcmp(argv[1], "--rotate")) {
                        part.rotate = true;
                        argc--;
                        argv++;
                } else if (argc >= 2 && !strcmp(argv[1], "--nano")) {
                        const int named = argc >= 3 && *argv[2] != '-';
                        part.nano = named ? argv[2] : "";
                        argc -= 1 + named;
                        argv += 1 + named;
                } else if (argc >= 2 && !strncmp(argv[1], "--nano=", 7)) {
                        part.nano = argv[1] + 7;
                        argc--;
                        argv++;
                }
        }
        /* They stay until the process ends, because the janitor may be a thread that still reads them. */
        static struct config_options o;
        static struct config_command_line line;
        char *error = NULL;
        int r = read_options(argc, argv, &o, &line, &error);
        if (r < 0) {
                fprintf(stderr, "spancld: %s\n", error ? error : status_text(r));
                mem_free(error);
                r = 2;
        } else {
                r = run(&o, &line, &part);
        }
        return r;
}

int main(int argc, char **argv)
{
        int status;
        return service_handle(argc, argv, run_part, &status) ? status : run_part(argc, argv);
}

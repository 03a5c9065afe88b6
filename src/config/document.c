#include "config/document.h"

#include <stdio.h>

#include "config/entries.h"

static void document_side(enum config_side side, void (*out)(void *user, const char *text),
                          void *user)
{
        for (enum config_id id = 0; id < CONFIG_COUNT; id++) {
                const struct config_entry *e = config_entry(id);
                if (e->side != side)
                        continue;
                char line[512], allowed[256];
                bool valued = *e->value && side == CONFIG_SERVER;
                snprintf(line, sizeof(line), "\n### `%s%s%s`\n\n", e->name, valued ? " " : "",
                         valued ? e->value : "");
                out(user, line);
                out(user, e->doc);
                out(user, "\n");
                if (config_is_limited(id)) {
                        config_allowed(id, allowed, sizeof(allowed));
                        snprintf(line, sizeof(line), "\nAllowed: %s.\n", allowed);
                        out(user, line);
                }
                if (*e->fallback && e->kind != CONFIG_FLAG) {
                        snprintf(line, sizeof(line), "\nDefault: `%s`.\n", e->fallback);
                        out(user, line);
                }
        }
}

const struct config_note config_pocl[] = {
        { "POCL_REMOTE<n>_PARAMETERS",
          "PoCL's variables, for n = 0, 1, ... up to the first that is unset: "
          "`host[:port]/index[#peer-host]`. SpanCL reads them if SPANCL_SERVERS is unset. Entries "
          "for the same host become one server with several devices. The default of `port` is "
          "7777, not PoCL's own port." },
        { "POCL_DISCOVERY",
          "PoCL's variable for discovery, if SPANCL_DISCOVERY is unset. Any value but `0` stands for "
          "`mdns`; with POCL_REMOTE_SEARCH_DOMAINS also for `dns`, with POCL_REMOTE_DHT_BOOTSTRAP or "
          "POCL_REMOTE_DHT_KEY also for `dht`." },
        { "POCL_REMOTE_SEARCH_DOMAINS, POCL_REMOTE_DHT_BOOTSTRAP, POCL_REMOTE_DHT_PORT, "
          "POCL_REMOTE_DHT_KEY",
          "PoCL's variables for the sources, if SPANCL_SEARCH_DOMAINS, SPANCL_DHT_BOOTSTRAP, "
          "SPANCL_DHT_PORT or SPANCL_DHT_KEY is unset." },
        { "POCL_ALMAIF<n>_PARAMETERS",
          "The same for accelerators, if SPANCL_ALMAIF is unset: `ADDRESS,FILE,KERNEL,...`. "
          "`ADDRESS` is a physical address; SpanCL loads `FILE.img` if it exists; each `KERNEL` is "
          "the number of a kernel. `0xE,KERNEL,...` is an emulator in this process (`emu:`). "
          "`0xA,FILE,KERNEL,...` is the XRT kernel of that name in `FILE.xclbin` on the first "
          "card. SpanCL refuses 0xB (OpenASIP's simulator), 0xF (a database of bitstreams) and "
          "POCL_ALMAIF_EXTERNALREGION with a message that names the alternative." },
        { NULL, NULL },
};

const struct config_note config_commands[] = {
        { "pair [--keys DIR]",
          "Shows a code with which a client of another host pairs with this server (spancl pair)." },
        { "pair --rotate [--keys DIR]",
          "Makes a new key for this server; clients that know the old one accept it." },
        { "pair --nano NAME [--keys DIR]",
          "Makes the key of a device with the nano client, and prints it (docs/NANO.md)." },
        { "clients [list] [--json] [--keys DIR]",
          "Lists the clients that may use this server: name, user and host as they were when it was paired, the "
          "time of the last connection, fingerprint, limits. docs/JSON.md has the keys of --json." },
        { "clients remove CLIENT [--keys DIR]",
          "Removes a client. It can connect no more, and its sessions end. CLIENT is a name, a fingerprint, or the "
          "first eight or more letters of one." },
        { "clients rename CLIENT NAME [--keys DIR]",
          "Gives a client another name, which the log shows." },
        { "clients limits CLIENT [KEY=VALUE]... [--keys DIR]",
          "Sets a client's limits for its next sessions, such as `devices=gpu` (docs/SECURITY.md). Without a value: "
          "removes that limit. Without limits: prints them." },
        { "clients reserve CLIENT DEVICE[:UNTIL]... [--keys DIR]",
          "Reserves devices for a client: new sessions of all others do not get them; sessions that exist go on. DEVICE is "
          "a number of --devices, which `spancl top` shows. UNTIL is a date in UTC such as `2026-11-27T18:00Z`, or a "
          "duration such as `90min`, `8h` and `3d`; without it the reservation has no end." },
        { "clients release CLIENT [DEVICE]... [--keys DIR]",
          "Ends reservations of a client: those of the devices, or all." },
        { "sandbox-test [OPTIONS]",
          "Attacks the sandbox that a session has on this host with these options. Its targets are "
          "files and processes of its own. Exit status 1: an attack succeeded." },
        { NULL, NULL },
};

const struct config_note config_client_files[] = {
        { "~/.config/spancl/client.conf",
          "This user's variables, one a line: `SPANCL_NAME=value`. Lines that begin with # are comments. "
          "The environment overrides the file, also with an empty value, which means the default. `spancl use` "
          "writes the file, and `spancl config` shows the origin of each value. XDG_CONFIG_HOME replaces "
          "`.config`. A program with more rights than its user (setuid) reads neither this user's files nor the "
          "environment." },
        { "~/.config/spancl/client.conf.d/*.conf",
          "More such files, in the order of their names. A later file overrides an earlier one." },
        { "~/.config/spancl/profiles/NAME.conf",
          "The same for one profile (SPANCL_PROFILE). It overrides client.conf." },
        { "/etc/spancl/client.conf",
          "The same for all users, also with client.conf.d and profiles. The user's files override it. SpanCL "
          "ignores a file, with a message, if other users than root and this user can write it; a group that has the "
          "user's name and no other member does not count as others. In a user namespace (Flatpak) it ignores files of "
          "users from outside without a message." },
        { NULL, NULL },
};

const struct config_note config_server_files[] = {
        { "/etc/spancl/spancld.conf",
          "Options of the packaged service (spancld.service), which names this file. Any other spancld reads it "
          "only with `--config`. One option a line: `name=value` without the dashes; 1 or 0 for an option that "
          "takes no value. Lines that begin with # are comments. The command line overrides the file. spancld does "
          "not start if a line is wrong, or if other users than root and its own can write the file. See --config." },
        { NULL, NULL },
};

static void document_notes(const struct config_note *n, void (*out)(void *user, const char *text),
                           void *user)
{
        for (; n->name; n++) {
                out(user, "\n### `");
                out(user, n->name);
                out(user, "`\n\n");
                out(user, n->doc);
                out(user, "\n");
        }
}

void config_document(void (*out)(void *user, const char *text), void *user)
{
        out(user,
            "# Configuration\n\n"
            "Generated by `spancl config --markdown`; the source is src/config/config.def.\n\n"
            "## Environment variables of programs that use SpanCL\n");
        document_side(CONFIG_CLIENT, out, user);
        document_notes(config_pocl, out, user);
        out(user, "\n## Configuration files of programs that use SpanCL\n");
        document_notes(config_client_files, out, user);
        out(user, "\n## Options of spancld\n");
        document_side(CONFIG_SERVER, out, user);
        out(user, "\n## Configuration file of spancld\n");
        document_notes(config_server_files, out, user);
}

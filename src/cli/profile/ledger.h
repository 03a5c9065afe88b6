/* The file of SPANCL_PROFILE_FILE, read: core/profile/profile.h says what it counts. The program that wrote it may be
 * anyone's: all is bounded and checked, and names have no control characters. No state. */
#ifndef SPANCL_CLI_PROFILE_LEDGER_H
#define SPANCL_CLI_PROFILE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

enum {
        LEDGER_NAME_MAX = 128,
        LEDGER_LINE_MAX = 512,
        LEDGER_ENTRIES_MAX = 4096, /* of a kind */
        LEDGER_SERVERS = 320,      /* a wait with this number is for several servers */
};

/* The kinds of waits: core/profile/profile.h. */
enum ledger_kind {
        LEDGER_FINISH,
        LEDGER_EVENTS,
        LEDGER_BLOCKING,
        LEDGER_TAKEN,
        LEDGER_ROOM,
        LEDGER_ANSWER,
        LEDGER_OTHER,
        LEDGER_KINDS
};

struct ledger_file_server {
        uint64_t index, round_trip_ns, messages, sent, received;
        char name[LEDGER_NAME_MAX];
};

struct ledger_file_wait {
        uint64_t server;
        enum ledger_kind kind;
        uint64_t calls, waits, ns, device_ns, link_ns, server_ns;
};

struct ledger_file_row {
        bool kernel;
        uint64_t server, count, bytes, timed, device_ns, wait_ns;
        char name[LEDGER_NAME_MAX];
};

struct ledger_file_move {
        uint64_t id, size;
        bool from_host;
        uint64_t from, to, count, bytes;
};

/* The energy that the program has used of a device. */
struct ledger_file_energy {
        uint64_t server, device, energy_uj;
        char name[LEDGER_NAME_MAX];
};

struct ledger_file {
        uint64_t wall_ns, calls, call_ns, waits, wait_ns;
        struct ledger_file_server *servers;
        struct ledger_file_wait *all_waits;
        struct ledger_file_row *rows;
        struct ledger_file_move *moves;
        struct ledger_file_energy *energies; /* of devices whose drivers count it */
        size_t server_count, wait_count, row_count, move_count, energy_count;
};

/* Read it. SP_E_PROTO: it is no such file, or it is incomplete. SP_E_LIMIT: it has too many lines. SP_E_NOMEM. */
SP_NODISCARD int ledger_read(FILE *from, struct ledger_file *ret);
void ledger_fini(struct ledger_file *l);

/* The name of a server; "?": the file has none of this number. */
const char *ledger_server_name(const struct ledger_file *l, uint64_t index);
/* The name of a kind of wait in the file. */
const char *ledger_kind_name(enum ledger_kind kind);

#endif

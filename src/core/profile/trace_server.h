/* The records of a server, as rows of the timeline: its threads, and for an observer (`spancl trace --attach`) the
 * queues of its devices. The server may be hostile. Unknown probes and spans that end before they begin are left out,
 * and so are threads, records and commands beyond the bounds. No state. */
#ifndef SPANCL_CORE_PROFILE_TRACE_SERVER_H
#define SPANCL_CORE_PROFILE_TRACE_SERVER_H

#include "core/profile/journal.h"

enum {
        TRACE_SERVER_RECORDS = 1 << 20, /* of one server */
        TRACE_SERVER_COMMANDS = 1 << 16,
        TRACE_SERVER_DEVICES = 64,
        TRACE_SERVER_NAME = 64,
        TRACE_SERVER_BEGUN = 512,
};

struct trace_server {
        const char *name;
        unsigned index;            /* gives the numbers of its processes */
        int64_t offset_ns;         /* its clock is so far ahead of this side's */
        uint64_t begin_ns, end_ns; /* of this side's clock: older and newer records are not taken */
        uint64_t by_server;        /* counts commands whose times are not of their device */
        struct journal_gaps gaps;  /* counts what is lost or left out */
        bool skips_older;          /* records that begin before `begin_ns` are not missed */
        /* Return true if the timeline has the call of a command. NULL: it has no calls. */
        bool (*has_call)(void *user, uint64_t event);
        void *user;
        uint64_t begun
                [TRACE_SERVER_BEGUN]; /* the newest commands whose arrows begin at this server */
};

/* Put the threads of an answer to trace_query, whose records are well formed (info_check), into the timeline. */
void trace_server_put(struct timeline *out, struct trace_server *s, struct bytes info);

/* The same for the commands that an observer gets. */
void trace_server_put_commands(struct timeline *out, struct trace_server *s, struct bytes info);

#endif

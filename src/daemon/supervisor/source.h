/* The sources of events that the supervisor's loop waits for. */
#ifndef SPANCL_DAEMON_SOURCE_H
#define SPANCL_DAEMON_SOURCE_H

enum source_kind {
        SOURCE_LISTENER,
        SOURCE_SIGNALS,
        SOURCE_PENDING,
        SOURCE_WORKER,
        SOURCE_WORKER_LOG,
        SOURCE_ZYGOTE,
        SOURCE_ZYGOTE_LOG,
        SOURCE_CALLS,
        SOURCE_METER,
        SOURCE_EXPORTER,
        SOURCE_HELPER_LOG,
        SOURCE_CLIENTS,
};

/* The source of an event: the first member of each struct that an event names. */
struct source {
        enum source_kind kind;
};

#endif

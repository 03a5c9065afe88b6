/* The tables of `spancl top`, made of the newest snapshots of some servers. No I/O; one owner. */
#ifndef SPANCL_CLI_TOP_TABLE_H
#define SPANCL_CLI_TOP_TABLE_H

#include "cli/stats_query.h"

/* A server with its newest snapshots. */
struct top_server {
        const struct server_spec *spec;
        struct snapshot old, now;        /* zeroed: none */
        bool asked, reachable;           /* reachable: the newest query was answered */
        char text[STATS_QUERY_TEXT_MAX]; /* why not */
};

enum { TOP_TEXT = 64 };

/* The columns of the table of sessions. */
enum top_column {
        TOP_PROGRAM,
        TOP_USER,
        TOP_HOST,
        TOP_DEVICE,
        TOP_BUSY,
        TOP_MEMORY,
        TOP_QUEUE,
        TOP_SENT,
        TOP_RECEIVED,
        TOP_TRIP,
        TOP_AGE,
        TOP_SERVER,
        TOP_WORKER,
        TOP_COLUMNS,
};

struct top_view {
        int width, height;
        enum top_column sort;
        size_t first; /* the first line that is shown; top_lines limits it */
        bool colours, help;
};

/* The column that a key sorts by; TOP_COLUMNS: none. */
enum top_column top_key(int key);

/* Append the lines of the screen; each is at most as wide as the view. SP_E_NOMEM. */
SP_NODISCARD int top_lines(const struct top_server *servers, size_t count, struct top_view *v,
                           struct buf *out);

/* Print a server as one plain table: its devices, sessions and their links. */
void top_print(const struct top_server *t);

#endif

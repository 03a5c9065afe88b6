/* systemd's journal in its own protocol: each entry is a datagram of KEY=VALUE lines to a Unix socket. Thread-safe.
 * Source: systemd.io/JOURNAL_NATIVE_PROTOCOL. */
#ifndef SPANCL_BASE_JOURNAL_H
#define SPANCL_BASE_JOURNAL_H

#include <stdbool.h>

#include "base/log.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* Send entries to this socket from now on. Call this once, before other threads start. Return false if nobody
 * listens there. */
bool journal_open(const char *path);

/* Compose the entry of a line: MESSAGE, PRIORITY (syslog(3)), SYSLOG_IDENTIFIER, SPANCL_COMPONENT, and SPANCL_CLIENT
 * if the line is about one. Values end at their first newline. Returns its size. */
size_t journal_compose(const struct log_line *line, char out[LOG_LINE_MAX]);

/* Send an entry. Does not block. Return false if the journal does not take it now. */
bool journal_send(const char *entry, size_t size);

#endif

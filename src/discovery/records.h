/* The records of one source, as its lines say: at most RECORDS_MAX. No locks: one owner. Zeroed
 * memory is a valid, empty set. */
#ifndef SPANCL_DISCOVERY_RECORDS_H
#define SPANCL_DISCOVERY_RECORDS_H

#include "base/bytes.h"
#include "discovery/discovered.h"

enum { RECORDS_MAX = 1024 };

struct records {
        struct discovered *list;
        size_t count, cap;
        bool settled; /* the source has said so */
        /* The beginning of a line. */
        char line[DISCOVERED_LINE_MAX];
        size_t line_size;
        bool too_long; /* the rest of a line is passed over */
        /* Each is logged once. */
        bool logged_bad, logged_full;
};

/* Take the bytes that a source has written: whole lines, and pieces of them. `name` names the source
 * in log lines. Lines that are not right are passed over; the first one is logged, and so is the
 * first record that has no room. Returns true if the set has changed. SP_E_NOMEM counts as full. */
bool records_feed(struct records *r, const char *name, const char *data, size_t size);

void records_fini(struct records *r);

#endif

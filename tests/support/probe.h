/* A client of a server without OpenCL: one session over real connections, driven by the test. */
#ifndef SPANCL_TEST_PROBE_H
#define SPANCL_TEST_PROBE_H

#include "loop/dial.h"
#include "loop/link.h"
#include "session/session.h"

struct server_loop;

struct probe {
        const char *address;       /* or: */
        struct server_loop *local; /* in process */
        bool share;                /* ask for shared memory */
        uint64_t id[2], key[2];
        struct session *session;
        struct link lanes[SESSION_LANES];
        struct dial_reply reply;
        /* Received messages. */
        unsigned clocks;
        uint64_t event;
        int64_t event_status;
        unsigned peers_lost;
        bool closed;
        char close_text[256];
        uint8_t *data; /* of bulk data that comes or goes */
        size_t size, arrived;
        struct session_bulk bulk;
};

/* A session of its own with random id and key; not connected yet. */
void probe_init(struct probe *p, const char *address);
void probe_fini(struct probe *p);

/* Close a lane by a reset, as a client that comes back does. */
void probe_drop(struct probe *p, unsigned lane);

/* Attach a lane; returns the result of loop_connect. */
int probe_attach(struct probe *p, unsigned lane);

/* Send and receive until done(p) or nothing comes for `timeout_ms`: 0, SP_E_TIMEOUT or what broke. */
int probe_drive(struct probe *p, bool (*done)(const struct probe *p), int timeout_ms);

/* One clock_query and its answer: 0 when the session works. */
int probe_ping(struct probe *p);

/* Create queue and buffer number `n` on device 0, write `size` bytes of a pattern / read them back as
 * command `event` and compare. For tests that do something in between. */
int probe_create(struct probe *p, unsigned n, size_t size);
int probe_write(struct probe *p, unsigned n, uint64_t event, size_t size, unsigned seed);
bool probe_read(struct probe *p, unsigned n, uint64_t event, size_t size, unsigned seed);

/* Write `size` bytes to a buffer of device 0 and read them back; true: they are the same. Uses lane 1,
 * which must be attached for sizes beyond what goes inline. */
bool probe_echo(struct probe *p, size_t size, unsigned seed);

#endif

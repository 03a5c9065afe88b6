/* One or two engines on the reference backend. Their sessions are joined in memory to sessions of
 * the test, which plays the client. In manual mode commands run when the test says so. */
#ifndef SPANCL_TESTS_WORLD_H
#define SPANCL_TESTS_WORLD_H

#include "backend/reference/reference.h"
#include "base/map.h"
#include "engine/engine.h"
#include "proto/info.h"
#include "support/check.h"

enum { NODES = 2, MIB = 1 << 20 };

#define QUEUE(n)  object_id(OBJECT_QUEUE, n)
#define BUFFER(n) object_id(OBJECT_BUFFER, n)
#define KERNEL(n) object_id(OBJECT_KERNEL, n)
#define EVENT(n)  object_id(OBJECT_EVENT, n)
#define PEER(n)   object_id(OBJECT_PEER, n)
#define PROGRAM   object_id(OBJECT_PROGRAM, 1)
#define WAITS(...)                                                                                \
        {                                                                                         \
                (const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }) / 8, \
        }

/* Bytes that the client sends or expects. */
struct data {
        struct session_bulk bulk;
        uint8_t *bytes;
        size_t size, arrived;
        bool acked;
};

/* One engine, and the client's end of its session. */
struct node {
        struct world *world;
        struct engine *engine;
        struct session *client;
        struct session *dialled; /* to the other node's engine */
        uint64_t token[2];
        int passed;       /* the descriptor that the other engine has passed; -1: none */
        bool far;         /* none can be passed to the other engine */
        bool bulk_cut;    /* bulk lanes between engines stand still */
        struct map done;  /* event → status + 1000 */
        struct map reads; /* transfer → struct data */
        unsigned done_count;
        uint64_t order[64]; /* the first of them, as they were told */
        unsigned peers_lost;
        unsigned orphaned;  /* how often it asked who else has what it lacks */
        uint64_t instead;   /* the client, by this transfer; 0: nobody */
        uint64_t lost_peer; /* but this one first, which is lost */
        uint64_t released;  /* the newest request */
        uint64_t last_times[3];
        size_t last_time_count;
        cl_int answer;
        struct buf info;
        unsigned answers;
        /* Chunks that upload_answer was about, and bits of the first 64 of them that the server has. */
        uint64_t uploads, uploads_held;
        struct session_bulk *uploading; /* becomes ready with the answers */
        bool died;
};

struct world {
        struct node nodes[NODES];
        unsigned count;
        struct data *data[256];
        size_t data_count;
};

/* ---- what the loop does ------------------------------------------------------------------------- */

/* The engines' time, in ns. */
extern uint64_t now_ns;

/* Move at most `budget` bytes of one lane. Returns how many. */
size_t move_lane(struct session *from, struct session *to, unsigned lane, size_t budget,
                 bool *ret_died);

/* Move all messages; no command runs. */
void pump(struct world *w);

/* Let at most `max` commands of node `i` run. */
size_t step(struct world *w, unsigned i, size_t max);

/* Run until nothing happens any more. */
void world_run(struct world *w);

/* Wait for an answer from a thread. */
void await(struct world *w, unsigned *counter, unsigned value);

/* ---- worlds ------------------------------------------------------------------------------------- */

/* `count` engines, single-threaded. */
struct world *world_new(unsigned count);
void world_free(struct world *w);

/* Two engines that know each other: node 0 dials node 1. Peer 1 is node 0, peer 2 node 1. */
struct world *two_servers(size_t size);

/* Settings of engines that are made from now on. */
extern struct engine_limits limits;
extern const char *cache_dir, *upload_dir;

/* SP_E_NOMEM. */
int node_init_on(struct node *n, const struct backend_ops *backend, bool single_threaded,
                 const char *scratch);

int node_init(struct node *n, bool single_threaded, const char *scratch);

struct engine_counts counts(struct world *w, unsigned i);

/* Check that everything is complete, and that only the objects are held. */
void expect_idle(struct world *w);

/* To node i: send(w, i, marker, .event = e, ...). */
#define send(w, i, name, ...)                                                               \
        do {                                                                                \
                assert_int_equal(session_send((w)->nodes[i].client, name, __VA_ARGS__), 0); \
        } while (0)

/* ---- data ----------------------------------------------------------------------------------- */

/* `size` bytes that depend on the seed. They live as long as the world. */
struct data *data_new(struct world *w, size_t size, uint8_t seed);

/* Send bytes as transfer `id`; `ready` of them now. */
struct data *send_data(struct world *w, unsigned i, uint64_t id, struct data *d, size_t ready);

/* Write them to the start of the buffer. */
struct data *write_buffer(struct world *w, unsigned i, uint64_t queue, uint64_t event,
                          uint64_t buffer, size_t size, uint8_t seed);

/* Expect a transfer; its `arrived` counts the bytes. */
struct data *expect_data(struct world *w, unsigned i, uint64_t transfer, size_t size);

/* Read the start of the buffer. */
struct data *read_buffer(struct world *w, unsigned i, uint64_t queue, uint64_t event,
                         uint64_t buffer, size_t size);

/* Check that all of `b` has arrived and equals `a`. */
void expect_same(const struct data *a, const struct data *b);

enum { PENDING = 1 };

/* The status that the client received, or PENDING. */
int status_of(struct world *w, unsigned i, uint64_t event);

/* ---- kernels ------------------------------------------------------------------------------------ */

/* Make a program with kernels 1 (spancl.inc.i32) and 2 (spancl.noop), built for both devices. */
void make_program(struct world *w, unsigned i);

/* Make in-order queue 1 and out-of-order queue 2 on device 0, and in-order queue 3 on device 1. */
void make_objects(struct world *w, unsigned i, size_t size);

/* 3 x 2 pixels of four bytes. */
void make_image(struct world *w, uint64_t image, uint64_t parent);

/* Release all but the images, and check that the engine has nothing left. */
void release_objects(struct world *w, unsigned i);

/* The arguments of kernel 1, 0 for none. */
void put_args(struct buf *b, uint64_t buffer, int32_t by);

/* Add `by` to the first 16 numbers of the buffer; 0 keeps the present arguments. */
void launch_after(struct world *w, unsigned i, uint64_t queue, uint64_t event, uint64_t buffer,
                  int32_t by, struct wire_u64s waits);

void launch(struct world *w, unsigned i, uint64_t queue, uint64_t event, uint64_t buffer,
            int32_t by);

/* Launch without a notification of its completion. */
void launch_unnoticed(struct world *w, uint64_t queue, uint64_t event, uint64_t buffer);

/* A launch without an event object. */
void launch_unnamed(struct world *w, uint64_t event, uint64_t buffer, int32_t by);

/* The data's number at `index`. */
int32_t number(const struct data *d, size_t index);

void fill_zero(struct world *w, unsigned i, uint64_t queue, uint64_t event, uint64_t buffer,
               size_t size);

/* ---- recordings --------------------------------------------------------------------------------- */

#define RECORDING object_id(OBJECT_RECORDING, 1)
enum { SLOT = 50 };

/* Record into slot 0 a fill of buffer 1 and two launches on it. The second launch waits for the
 * first. */
void record(struct world *w, unsigned i);

void run_recording(struct world *w, unsigned i, uint64_t queue, uint64_t event,
                   struct wire_u64s waits);

#endif

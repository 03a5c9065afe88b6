/* A server that sends the nano client anything. The input's first byte chooses the program; records follow
 * (nano_program.h), as record_nano.c writes them of a real server. The client gets a record when it has sent as many
 * bytes as the record says, or when it waits and nothing else comes. Each connection begins with a valid hello; without
 * records left the connections are lost. Calls may fail; the client must end, and write only into its arena and the
 * memory that it was given. */
#include "fuzz/target.h"

#include <string.h>

#include "nano_program.h"
#include "session/hello.h"

enum { ARENA = 3000 * 8, OPENS_MAX = 20 };

static struct {
        const uint8_t *data;
        size_t size, at; /* of the input; the next byte of a record's data */
        size_t left;     /* bytes of this record's data */
        unsigned lane;
        size_t after, sent;
        bool waited;
        unsigned opens, answers[2]; /* bytes of the hello's answer that were received */
        uint64_t now_ms;
} server;

/* The next record, if there is one. */
static bool next_record(void)
{
        const uint8_t *p = server.data + server.at;
        if (server.left)
                return true;
        if (server.size - server.at < NANO_RECORD)
                return false;
        server.lane = p[0] & 1;
        server.after = p[1] | (size_t)p[2] << 8 | (size_t)p[3] << 16;
        server.left = p[4] | (size_t)p[5] << 8;
        server.at += NANO_RECORD;
        if (server.left > server.size - server.at)
                server.left = server.size - server.at;
        return server.left || next_record();
}

static int lane_open(void *user, unsigned lane)
{
        (void)user;
        server.answers[lane] = 0;
        return ++server.opens > OPENS_MAX ? -1 : 0;
}

static int lane_send(void *user, unsigned lane, const void *data, size_t size)
{
        (void)user;
        (void)lane;
        /* All of it is read. */
        const uint8_t *p = data;
        unsigned sum = 0;
        for (size_t i = 0; i < size; i++)
                sum += p[i];
        server.sent += size + (sum & 0);
        return (int)size;
}

/* The answer to the hello. */
static int receive_answer(unsigned lane, void *data, size_t size)
{
        uint64_t room[64];
        struct buf b = { .data = (uint8_t *)room, .cap = sizeof(room) };
        fuzz_check(!hello_put_reply(&b, &(struct wire_hello_reply){ .version = WIRE_VERSION }));
        const size_t left = b.size - server.answers[lane], some = size < left ? size : left;
        memcpy(data, b.data + server.answers[lane], some);
        server.answers[lane] += (unsigned)some;
        return (int)some;
}

static int lane_receive(void *user, unsigned lane, void *data, size_t size)
{
        (void)user;
        int n = receive_answer(lane, data, size);
        if (n)
                return n;
        if (!next_record())
                return -1;
        if (server.lane != lane || (server.sent < server.after && !server.waited))
                return 0;
        n = (int)(size < server.left ? size : server.left);
        memcpy(data, server.data + server.at, (size_t)n);
        server.at += (size_t)n;
        server.left -= (size_t)n;
        server.waited = false;
        return n;
}

static uint64_t lanes_wait(void *user, unsigned timeout_ms)
{
        (void)user;
        server.now_ms += timeout_ms;
        if (timeout_ms && server.waited && server.left) {
                /* It is for a lane that is not there. */
                server.at += server.left;
                server.left = 0;
        }
        server.waited = timeout_ms;
        return server.now_ms;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const struct spancl_nano_transport t = { lane_open, lane_send, lane_receive, lanes_wait,
                                                 NULL };
        if (!size)
                return 0;
        memset(&server, 0, sizeof(server));
        server.data = data;
        server.size = size;
        server.at = 1;
        void *arena = malloc(ARENA);
        fuzz_check(arena);
        nano_program(&t, arena, ARENA, data[0] & 1);
        free(arena);
        return 0;
}

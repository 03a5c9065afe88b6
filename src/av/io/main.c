/* media-io NAME=URL...: the program that reads the sources of --media-source. Standard input is the supervisor's
 * socket, over which it gets a socket of each worker (CONTROL_STREAMS). A worker names a source, and gets the socket of
 * a process with that stream, forked from this one. Workers send requests of fixed size, and see no URL. */
#include <stdio.h>
#include <string.h>

#include "av/io/source.h"
#include "backend/media/source_names.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/control.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/net/socket.h"
#include "os/passing.h"
#include "os/poll.h"
#include "os/process/process.h"
#include "os/signals.h"
#include "sandbox/files.h"
#include "sandbox/sandbox.h"

#define LOG "media-io"

enum { PER_S = 10, BURST = 32 }; /* streams that a caller starts in a second, and at once */

enum { SUPERVISOR = 0, CALLERS_MAX = 4096, STREAMS_MAX = 256, OF_CALLER_MAX = 16 };

struct named {
        char name[AV_NAME_MAX];
        char *url;
};

struct caller {
        int socket; /* -1: none */
        unsigned streams;
        uint64_t due_ns; /* when all its streams so far would have come at their rate */
};

static struct {
        struct named sources[MEDIA_SOURCES_MAX];
        size_t source_count;
        struct caller callers[CALLERS_MAX];
        struct {
                pid_t pid; /* 0: none */
                size_t caller;
        } streams[STREAMS_MAX];
} io;

/* ---- sources -------------------------------------------------------------------------------- */

/* The file of a URL; NULL: it has none. */
static const char *file_of(const char *url)
{
        if (!strncmp(url, "file:", 5))
                return url + 5;
        return *url == '/' ? url : NULL;
}

static const struct named *find_source(const char *name)
{
        for (size_t i = 0; i < io.source_count; i++)
                if (!strcmp(io.sources[i].name, name))
                        return &io.sources[i];
        return NULL;
}

/* Take NAME=URL, as media_sources_check wants it. */
static bool take_source(char *text)
{
        size_t n = media_source_name(text);
        struct named s = { .url = text + n + 1 };
        if (!n || io.source_count == MEDIA_SOURCES_MAX) {
                log_error(LOG, "these are no sources that spancld names");
                return false;
        }
        memcpy(s.name, text, n);
        io.sources[io.source_count++] = s;
        return true;
}

static bool enter_sandbox(void)
{
        const char *files[MEDIA_SOURCES_MAX + 1] = { NULL };
        size_t count = 0;
        bool network = false;
        for (size_t i = 0; i < io.source_count; i++) {
                const char *url = io.sources[i].url, *file = file_of(url);
                if (file)
                        files[count++] = file;
                else if (strncmp(url, "lavfi:", 6) != 0)
                        network = true;
        }
        return sandbox_enter_streams(files, network);
}

/* ---- streams -------------------------------------------------------------------------------- */

/* Collect the processes of streams that have ended. */
static void collect(void)
{
        for (pid_t pid; (pid = process_ended()) > 0;) {
                process_collect(pid, NULL, NULL);
                for (size_t i = 0; i < STREAMS_MAX; i++)
                        if (io.streams[i].pid == pid) {
                                io.streams[i].pid = 0;
                                io.callers[io.streams[i].caller].streams--;
                        }
        }
}

static _Noreturn void be_stream(int socket, const char *url)
{
        const struct av_server server = { .open = source_open, .url = url, .socket = socket };
        process_end_with_parent();
        process_begin_group();
        for (size_t i = 0; i < io.source_count; i++)
                if (io.sources[i].url != url)
                        explicit_bzero(io.sources[i].url, strlen(io.sources[i].url));
        (void)file_close(SUPERVISOR);
        for (size_t i = 0; i < CALLERS_MAX; i++)
                if (io.callers[i].socket >= 0)
                        (void)file_close(io.callers[i].socket);
        process_name("media-io-source");
        av_serve(socket, &server);
        process_exit(0);
}

/* Count one more stream of the caller. False: it starts too many in a short time. */
static bool is_due(struct caller *c)
{
        const uint64_t each_ns = 1000000000ull / PER_S;
        uint64_t now = clock_now_ns();
        c->due_ns = c->due_ns < now ? now : c->due_ns;
        if (c->due_ns > now + BURST * each_ns)
                return false;
        c->due_ns += each_ns;
        return true;
}

/* Fork a process for the source. *ret is the other end of its socket. */
static enum codec_result start(size_t caller, const struct named *source, int *ret)
{
        size_t place = 0;
        int pair[2];
        while (place < STREAMS_MAX && io.streams[place].pid)
                place++;
        if (place == STREAMS_MAX || io.callers[caller].streams >= OF_CALLER_MAX ||
            !is_due(&io.callers[caller]) || !socket_pair_packets(pair))
                return CODEC_NO_MEMORY;
        pid_t pid = process_fork();
        if (!pid) {
                (void)file_close(pair[0]);
                be_stream(pair[1], source->url);
        }
        (void)file_close(pair[1]);
        if (pid < 0) {
                (void)file_close(pair[0]);
                return CODEC_NO_MEMORY;
        }
        io.streams[place].pid = pid;
        io.streams[place].caller = caller;
        io.callers[caller].streams++;
        *ret = pair[0];
        return CODEC_OK;
}

/* Return true if name resolution has files that this process can't read, because they came later, and no stream runs
 * that its end would end. The supervisor starts it anew. */
static bool is_outdated(void)
{
        for (size_t i = 0; i < STREAMS_MAX; i++)
                if (io.streams[i].pid)
                        return false;
        return files_outdated();
}

/* Answer one request of a worker. False: it is gone, or does not keep to the protocol. */
static bool answer(size_t caller)
{
        struct av_request r;
        struct av_reply reply = { .result = CODEC_DAMAGED };
        struct iovec from = { &r, sizeof(r) }, to = { &reply, sizeof(reply) };
        int unused, stream = -1, socket = io.callers[caller].socket;
        ssize_t n = passing_receive(socket, &from, 1, &unused, 0);
        if (n == SP_E_AGAIN)
                return true;
        if (n != sizeof(r) || r.kind != AV_SOURCE || av_request_check(&r, false) < 0)
                return false;
        if (is_outdated())
                process_exit(0);
        const struct named *source = find_source(r.name);
        if (source)
                reply.result = start(caller, source, &stream);
        bool ok = passing_send(socket, &to, 1, &stream, stream >= 0 ? 1 : 0) == sizeof(reply);
        if (stream >= 0)
                (void)file_close(stream);
        return ok;
}

/* ---- the process ---------------------------------------------------------------------------- */

/* Take a worker's socket. False: the supervisor is gone. */
static bool receive_caller(void)
{
        static struct control c; /* static because it is large */
        int r = control_receive(SUPERVISOR, &c);
        if (r < 0)
                return r != SP_E_LINK;
        for (size_t i = 0; i < CALLERS_MAX && c.kind == CONTROL_STREAMS && c.fd >= 0; i++)
                if (io.callers[i].socket < 0 && !io.callers[i].streams) {
                        io.callers[i] = (struct caller){ .socket = c.fd };
                        c.fd = -1;
                }
        control_drop(&c);
        return true;
}

static void run(void)
{
        static struct pollfd fds[CALLERS_MAX + 2];
        static size_t of[CALLERS_MAX + 2];
        static const int ended[] = { SIGCHLD };
        int signals = signals_watch(ended, array_size(ended));
        for (bool more = signals >= 0; more;) {
                nfds_t n = 2;
                fds[0] = (struct pollfd){ .fd = SUPERVISOR, .events = POLLIN };
                fds[1] = (struct pollfd){ .fd = signals, .events = POLLIN };
                for (size_t i = 0; i < CALLERS_MAX; i++)
                        if (io.callers[i].socket >= 0) {
                                of[n] = i;
                                fds[n++] = (struct pollfd){ .fd = io.callers[i].socket,
                                                            .events = POLLIN };
                        }
                if (poll(fds, n, -1) < 0)
                        continue;
                while (signals_next(signals))
                        continue;
                collect();
                for (nfds_t i = 2; i < n; i++)
                        if (fds[i].revents && !answer(of[i])) {
                                (void)file_close(io.callers[of[i]].socket);
                                io.callers[of[i]].socket = -1;
                        }
                if (fds[0].revents)
                        more = receive_caller();
        }
}

int main(int argc, char **argv)
{
        for (size_t i = 0; i < CALLERS_MAX; i++)
                io.callers[i].socket = -1;
        for (int i = 1; i < argc; i++)
                if (!take_source(argv[i]))
                        return 1;
        source_prepare();
        process_begin_group();
        process_end_with_parent();
        if (!enter_sandbox())
                return 1;
        run();
        process_exit(0);
}

/* media-io NAME=URL... --sinks NAME=URL...: the program that reads the sources of --media-source, and writes the
 * sinks of --media-sink. Standard input is the supervisor's socket. Over it the program gets a socket of each worker
 * (CONTROL_STREAMS). A worker names a source or sink, and gets the socket of a process that serves this stream. That
 * process is forked from media-io. Workers send requests of fixed size, and see no URL. media-io itself opens the files
 * of sinks, and reads no stream. */
#include <stdio.h>
#include <string.h>

#include "av/io/outputs.h"
#include "av/io/sink.h"
#include "av/io/source.h"
#include "av/io/url.h"
#include "backend/media/source_names.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pace.h"
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
        struct output sinks[MEDIA_SOURCES_MAX];
        size_t sink_count;
        bool network; /* a source or sink needs it */
        struct caller callers[CALLERS_MAX];
        struct {
                pid_t pid; /* 0: none */
                size_t caller;
                const struct output *sink; /* NULL: it is a source */
                int used; /* of a sink: a pipe; it ends when the sink is complete */
        } streams[STREAMS_MAX];
} io;

/* ---- sources -------------------------------------------------------------------------------- */

static const struct named *find_source(const char *name)
{
        for (size_t i = 0; i < io.source_count; i++)
                if (!strcmp(io.sources[i].name, name))
                        return &io.sources[i];
        return NULL;
}

/* Take a value that media_sinks_check accepts. */
static bool take_sink(char *text)
{
        if (io.sink_count == MEDIA_SOURCES_MAX || !output_take(text, &io.sinks[io.sink_count])) {
                log_error(LOG, "the arguments behind --sinks are not valid");
                return false;
        }
        io.sink_count++;
        return true;
}

static struct output *find_sink(const char *name)
{
        for (size_t i = 0; i < io.sink_count; i++)
                if (!strcmp(io.sinks[i].sink.name, name))
                        return &io.sinks[i];
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
        const char *folders[MEDIA_SOURCES_MAX + 1] = { NULL };
        char protocols[URL_PROTOCOLS_MAX];
        size_t count = 0;
        struct sandbox_streams sandbox = { .files = files, .folders = folders };
        for (size_t i = 0; i < io.source_count; i++) {
                const char *url = io.sources[i].url, *file = url_file(url);
                if (file)
                        files[count++] = file;
                if (url_is_network(url) && !url_protocols(url, protocols))
                        log_warn(LOG,
                                 "the source %s has a URL without SCHEME://, and can't be opened",
                                 io.sources[i].name);
                io.network |= url_is_network(url);
        }
        count = 0;
        for (size_t i = 0; i < io.sink_count; i++) {
                const struct output *o = &io.sinks[i];
                if (!o->sink.path)
                        io.network = true;
                else
                        folders[count++] = o->folder;
                if (o->bytes_max > sandbox.bytes_max)
                        sandbox.bytes_max = o->bytes_max;
        }
        sandbox.network = io.network;
        return sandbox_enter_streams(&sandbox);
}

/* ---- streams -------------------------------------------------------------------------------- */

/* Collect the processes of streams that have ended. */
static void collect(void)
{
        for (pid_t pid; (pid = process_ended()) > 0;) {
                process_collect(pid, NULL, NULL);
                for (size_t i = 0; i < STREAMS_MAX; i++)
                        if (io.streams[i].pid == pid) {
                                if (io.streams[i].used >= 0)
                                        (void)file_close(io.streams[i].used);
                                io.streams[i].pid = 0;
                                io.streams[i].used = -1;
                                io.streams[i].sink = NULL;
                                io.callers[io.streams[i].caller].streams--;
                        }
        }
}

/* Close the descriptors of media-io itself, and clear the URLs of other streams. Returns the socket's new place. */
static int leave(int socket, const char *url)
{
        process_end_with_parent();
        process_begin_group();
        signals_ignore_pipe();
        for (size_t i = 0; i < io.source_count; i++)
                if (io.sources[i].url != url)
                        explicit_bzero(io.sources[i].url, strlen(io.sources[i].url));
        for (size_t i = 0; i < io.sink_count; i++)
                if (io.sinks[i].sink.url != url)
                        output_forget(&io.sinks[i]);
        for (size_t i = 0; i < CALLERS_MAX; i++)
                if (io.callers[i].socket >= 0)
                        (void)file_close(io.callers[i].socket);
        for (size_t i = 0; i < STREAMS_MAX; i++)
                if (io.streams[i].pid && io.streams[i].used >= 0)
                        (void)file_close(io.streams[i].used);
        /* The supervisor's place, so that no descriptor is free among the standard ones. */
        if (!file_put(socket, SUPERVISOR))
                process_exit(1);
        (void)file_close(socket);
        return SUPERVISOR;
}

static _Noreturn void be_source(int socket, const char *url)
{
        socket = leave(socket, url);
        const struct av_server server = { .open = source_open, .url = url, .socket = socket };
        process_name("media-io-source");
        if (sandbox_enter_stream(0))
                av_serve(socket, &server);
        process_exit(0);
}

static _Noreturn void be_sink(int socket, const struct output *o, int file, int used)
{
        socket = leave(socket, o->sink.url);
        const struct av_output output = { .name = o->sink.name,
                                          .format = o->sink.format,
                                          .file = file,
                                          .used = used,
                                          .bytes_max = o->bytes_max };
        const struct av_server server = {
                .open = sink_open, .url = o->sink.url, .socket = socket, .output = &output
        };
        process_name("media-io-sink");
        if (sandbox_enter_stream(o->bytes_max)) {
                av_serve(socket, &server);
                sink_end();
        }
        process_exit(0);
}

/* Count one more stream of the caller. False: it starts too many in a short time. */
static bool is_due(struct caller *c)
{
        const uint64_t each_ns = 1000000000ull / PER_S;
        uint64_t now = clock_now_ns();
        if (pace_next_ns(c->due_ns, BURST * each_ns) > now)
                return false;
        c->due_ns = pace_after(c->due_ns, each_ns, now);
        return true;
}

/* Find a place for one more stream. */
static enum codec_result find_place(size_t caller, size_t *ret)
{
        size_t place = 0;
        while (place < STREAMS_MAX && io.streams[place].pid)
                place++;
        *ret = place;
        return place == STREAMS_MAX || io.callers[caller].streams >= OF_CALLER_MAX ||
                               !is_due(&io.callers[caller])
                       ? CODEC_NO_MEMORY
                       : CODEC_OK;
}

/* Record the process. `used`: its sink's pipe, or -1. */
static void started(size_t place, size_t caller, pid_t pid, int used)
{
        io.streams[place].pid = pid;
        io.streams[place].caller = caller;
        io.streams[place].used = used;
        io.callers[caller].streams++;
}

/* Fork a process for the source. *ret is this side of its socket. */
static enum codec_result start_source(size_t caller, const struct named *source, int *ret)
{
        size_t place;
        int pair[2];
        if (find_place(caller, &place) < 0 || !socket_pair_packets(pair))
                return CODEC_NO_MEMORY;
        pid_t pid = process_fork();
        if (!pid) {
                (void)file_close(pair[0]);
                be_source(pair[1], source->url);
        }
        (void)file_close(pair[1]);
        if (pid < 0) {
                (void)file_close(pair[0]);
                return CODEC_NO_MEMORY;
        }
        started(place, caller, pid, -1);
        *ret = pair[0];
        return CODEC_OK;
}

/* Return true if a process has this sink and has not completed it. */
static bool is_used(const struct output *o)
{
        for (size_t i = 0; i < STREAMS_MAX; i++) {
                struct pollfd p = { .fd = io.streams[i].used };
                if (io.streams[i].pid && io.streams[i].sink == o && poll(&p, 1, 0) == 0)
                        return true;
        }
        return false;
}

/* The same for a sink. Takes `file` over (-1: it has none). */
static enum codec_result fork_sink(size_t caller, size_t place, struct output *o, int file,
                                   int *ret)
{
        int pair[2], used[2];
        if (!socket_pair_packets(pair))
                return CODEC_NO_MEMORY;
        if (!file_pipe(used)) {
                (void)file_close(pair[0]);
                (void)file_close(pair[1]);
                return CODEC_NO_MEMORY;
        }
        pid_t pid = process_fork();
        if (!pid) {
                (void)file_close(pair[0]);
                (void)file_close(used[0]);
                be_sink(pair[1], o, file, used[1]);
        }
        (void)file_close(pair[1]);
        (void)file_close(used[1]);
        if (pid < 0) {
                (void)file_close(pair[0]);
                (void)file_close(used[0]);
                return CODEC_NO_MEMORY;
        }
        started(place, caller, pid, used[0]);
        io.streams[place].sink = o;
        *ret = pair[0];
        return CODEC_OK;
}

static enum codec_result start_sink(size_t caller, struct output *o, int *ret)
{
        size_t place;
        int file = -1;
        enum codec_result r = find_place(caller, &place);
        if (r < 0)
                return r;
        if (o->sink.files <= 1 && is_used(o))
                return CODEC_FORMAT;
        if (o->sink.path) {
                file = output_open(o);
                if (file < 0)
                        return CODEC_FORMAT;
        }
        r = fork_sink(caller, place, o, file, ret);
        if (file >= 0)
                (void)file_close(file);
        return r;
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
        if (n != sizeof(r) || (r.kind != AV_SOURCE && r.kind != AV_SINK) ||
            av_request_check(&r, false) < 0)
                return false;
        if (is_outdated())
                process_exit(0);
        const struct named *source = r.kind == AV_SOURCE ? find_source(r.name) : NULL;
        struct output *sink = r.kind == AV_SINK ? find_sink(r.name) : NULL;
        if (source)
                reply.result = start_source(caller, source, &stream);
        else if (sink)
                reply.result = start_sink(caller, sink, &stream);
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
        bool sinks = false;
        for (int i = 1; i < argc; i++) {
                if (!sinks && !strcmp(argv[i], "--sinks"))
                        sinks = true;
                else if (!(sinks ? take_sink(argv[i]) : take_source(argv[i])))
                        return 1;
        }
        source_prepare();
        outputs_check(io.sinks, io.sink_count);
        process_begin_group();
        process_end_with_parent();
        if (!enter_sandbox())
                return 1;
        run();
        process_exit(0);
}

#include "daemon/worker/worker.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/media/sources.h"
#include "backend/native/allocation.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/control.h"
#include "daemon/system/lifetime.h"
#include "daemon/system/tree.h"
#include "daemon/upkeep/caches.h"
#include "daemon/worker/checkup.h"
#include "daemon/worker/dialling.h"
#include "daemon/worker/observing.h"
#include "daemon/worker/watchdog.h"
#include "loop/server_loop.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/poll.h"
#include "os/signals.h"
#include "os/thread.h"
#include "os/vm.h"
#include "os/wakeup.h"
#include "proto/info.h"
#include "sandbox/sandbox.h"
#include "session/hello.h"
#include "trace/lttng.h"
#include "transport/fabric.h"
#include "transport/keys.h"

#define LOG "worker"

enum {
        OUTPUT_PIPE_SIZE = 1 << 20,
        END_SECONDS = 10, /* for commands to complete after the session's end */
        WORD_SIZE = sizeof(uint64_t),
};

struct worker {
        struct server_loop *loop;
        bool attached;                            /* a connection has come */
        bool unclean;                             /* a failed device or driver ended the session */
        char local_path[WIRE_LOCAL_PATH_MAX + 1]; /* where servers of this host reach the server */
        char identity[KEYS_HEX + 1]; /* the fingerprint of the server's key; "": none */
        int ended_fd;                /* os/wakeup.h: set when the session is over */
        atomic_bool ended;           /* the same, for the thread that was woken */
        char why[128];               /* the session's end, once it has ended */
        struct caches caches;
};

/* Redirect stdout, which kernels print to, into a pipe. Returns the pipe's reading end, or -1. */
static int capture_stdout(void)
{
        int fds[2];
        if (!file_pipe(fds))
                return -1;
        file_widen_pipe(fds[1], OUTPUT_PIPE_SIZE);
        if (!file_never_wait(fds[0]) || !file_put(fds[1], FILE_STDOUT)) {
                (void)file_close(fds[0]);
                (void)file_close(fds[1]);
                return -1;
        }
        (void)file_close(fds[1]);
        setvbuf(stdout, NULL, _IONBF, 0);
        return fds[0];
}

/* Stop collecting stdout: the client does not get the text that drivers printed while they were
 * loaded. */
static void divert_output(int fd)
{
        char text[4096];
        int64_t n;
        while ((n = file_read(fd, text, sizeof(text))) > 0)
                (void)!file_write_all(FILE_STDERR, text, (size_t)n);
}

static void on_ended(void *user, int status, const char *text)
{
        struct worker *w = user;
        snprintf(w->why, sizeof(w->why), "%s", text);
        w->unclean = status == SP_E_LIMIT || status == SP_E_NODEV;
        atomic_store(&w->ended, true);
        wakeup_set(w->ended_fd);
}

static void send_text(enum control_kind kind, const char *text)
{
        if (control_send(CONTROL_FD, kind, bytes_str(text), -1) < 0)
                log_debug(LOG, "the supervisor is gone");
}

/* Send the filter's descriptor to the supervisor and close it here: its holder can allow calls
 * that the filter refuses. */
static void hand_over(int refusals)
{
        if (control_send(CONTROL_FD, CONTROL_CALLS, bytes_str(""), refusals) < 0)
                log_info(LOG, "refused system calls are not logged");
        if (refusals >= 0)
                (void)file_close(refusals);
}

bool worker_shut_in(const struct config_options *o, const char *scratch_dir, const char *owner,
                    struct caches *ret_caches, int *ret_refusals)
{
        struct user user;
        bool known = user_lay_aside(&user, o, scratch_dir);
        caches_use(o, owner, scratch_dir, ret_caches);
        const struct sandbox_folders folders = {
                .scratch = scratch_dir,
                .programs = *ret_caches->programs ? ret_caches->programs : NULL,
                .uploads = *ret_caches->uploads ? ret_caches->uploads : NULL,
        };
        return known && sandbox_enter(&user, o, &folders, ret_refusals);
}

/* Send a message; wait for room if the supervisor takes some time to receive the ones before. Errors as
 * control_send. */
static int send_patiently(enum control_kind kind, struct bytes data)
{
        enum { PATIENCE_MS = 10000 };
        struct pollfd room = { .fd = CONTROL_FD, .events = POLLOUT };
        int r;
        do
                r = control_send(CONTROL_FD, kind, data, -1);
        while (r == SP_E_AGAIN && poll(&room, 1, PATIENCE_MS) > 0);
        return r;
}

/* Send the descriptions of the devices in parts. Returns the number of their bytes, of which some are missing after a
 * failure; 0: there are none. */
static size_t send_devices(struct bytes all)
{
        int r = all.size > WIRE_DESCRIPTION_MAX ? SP_E_LIMIT : 0;
        size_t size = r < 0 ? 0 : all.size, part;
        for (size_t at = 0; at < size && !r; at += part) {
                part = size - at < WIRE_DESCRIPTION_PART ? size - at : WIRE_DESCRIPTION_PART;
                r = send_patiently(CONTROL_DEVICES, bytes_of((const uint8_t *)all.data + at, part));
        }
        if (r < 0 && r != SP_E_LINK)
                log_warn(LOG, "clients can't list the devices without a session: %s",
                         status_text(r));
        return size;
}

/* Return true if the device of this index is a CPU, by the descriptions of all. */
static bool is_cpu(struct bytes all, unsigned index)
{
        struct info_entry e;
        struct bytes type = { 0 };
        while (info_next(&all, &e))
                if (e.key == INFO_DEVICE && !index--)
                        return info_find(e.value, CL_DEVICE_TYPE, &type) &&
                               type.size == WORD_SIZE &&
                               bytes_get_u64(type.data) & CL_DEVICE_TYPE_CPU;
        return false;
}

/* Send the numbers of devices and of bytes that describe them, and the label of each device. */
static void report_ready(struct server_loop *l)
{
        auto_clean(buf_fini) struct buf all = { 0 };
        if (server_loop_describe(l, &all) < 0)
                all.size = 0;
        size_t described = send_devices(bytes_of(all.data, all.size));
        enum { NAME_MAX_SHOWN = 64 };
        char text[CONTROL_MAX / 2], name[NAME_MAX_SHOWN];
        unsigned number, count = server_loop_devices(l);
        size_t n = (size_t)snprintf(text, sizeof(text), "%u %zu", count, described);
        for (unsigned i = 0; i < count && n + sizeof(name) + 16 < sizeof(text); i++)
                if (server_loop_label(l, i, &number, name, sizeof(name)))
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "\n%u %c %s", number,
                                              is_cpu(bytes_of(all.data, all.size), i) ? 'c' : '-',
                                              name);
        int r = send_patiently(CONTROL_READY, bytes_str(text));
        if (r < 0 && r != SP_E_LINK)
                log_warn(LOG, "the supervisor does not learn that this worker is ready: %s",
                         status_text(r));
}

static int open_backend(struct worker *w, const struct config_options *o, const char *scratch_dir)
{
        int output = capture_stdout();
        int mine = output < 0 ? -1 : file_duplicate(output);
        const struct server_loop_params params = {
                .options = o,
                .backend = backend_find(config_option_text(o, CONFIG_backend)),
                .limits = engine_limits_of(o),
                .scratch_dir = scratch_dir,
                .cache_dir = *w->caches.programs ? w->caches.programs : NULL,
                .upload_dir = *w->caches.uploads ? w->caches.uploads : NULL,
                .local_path = w->local_path,
                .connect = dialling_connect,
                .identity = w->identity,
                .output_fd = output,
                .ended = on_ended,
                .user = w,
        };
        int r = params.backend ? server_loop_new(&params, &w->loop) : SP_E_UNSUPP;
        if (mine >= 0) {
                divert_output(mine);
                (void)file_close(mine);
        }
        char text[256];
        const char *devices = config_option_text(o, CONFIG_devices);
        switch (r) {
        case 0:
                report_ready(w->loop);
                return 0;
        case SP_E_NODEV:
                if (*devices)
                        snprintf(
                                text, sizeof(text),
                                "no OpenCL device of this server matches --devices '%.64s'; clinfo -l "
                                "lists what there is",
                                devices);
                else
                        snprintf(
                                text, sizeof(text),
                                "this server has no OpenCL devices: install an OpenCL driver there "
                                "(for its CPU on Debian: apt install pocl-opencl-icd) and check with "
                                "clinfo -l; its log (--log info) says if one can't be loaded");
                break;
        default:
                snprintf(text, sizeof(text), "the devices can't be opened: %s", status_text(r));
        }
        send_text(CONTROL_FAILED, text);
        return r;
}

static int send_links(struct worker *w, uint64_t number)
{
        auto_clean(buf_fini) struct buf links = { 0 }, out = { 0 };
        struct info_entry e;
        int r = server_loop_stats(w->loop, &links);
        if (r == SP_E_TIMEOUT) /* the answer says nothing of this session */
                r = 0;
        struct bytes left = bytes_of(links.data, links.size);
        bool more = !r;
        while (more && !r) {
                const uint8_t *begin = left.data;
                more = info_next(&left, &e);
                size_t size = (size_t)((const uint8_t *)left.data - begin);
                /* Send a packet when it is full. */
                if (out.size > sizeof(number) && (!more || out.size + size > HELLO_LINKS_MAX)) {
                        r = control_send(CONTROL_FD, CONTROL_STATS, bytes_of(out.data, out.size),
                                         -1);
                        out.size = 0;
                }
                if (!r && !out.size)
                        r = buf_put_u64(&out, number);
                if (!r && more)
                        r = buf_put(&out, begin, size);
        }
        return r < 0 ? r
                     : control_send(CONTROL_FD, CONTROL_STATS, bytes_of(out.data, out.size), -1);
}

/* Return the device time of a session, of all devices together. */
static uint64_t device_ns(struct bytes session)
{
        struct info_entry e;
        uint64_t sum = 0;
        while (info_next(&session, &e))
                if (e.key == INFO_USE)
                        sum += info_u64(e.value, INFO_USE_BUSY_NS, 0);
        return sum;
}

/* Send the device time of the session for a sample of the energy; 0: for the last one. */
static void send_use(struct worker *w, uint64_t sample)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        int r = buf_put_u64(&out, sample);
        if (!r)
                r = server_loop_times(w->loop, &out);
        if (r < 0 || control_send(CONTROL_FD, CONTROL_USE, bytes_of(out.data, out.size), -1) < 0)
                log_debug(LOG, "the supervisor does not get the session's device time");
}

/* Answer a sample of the energy. */
static void sample_energy(struct worker *w, struct bytes m)
{
        if (m.size < WORD_SIZE || m.size % (2 * WORD_SIZE) != WORD_SIZE)
                return;
        uint64_t sample = bytes_get_u64(m.data);
        server_loop_use_energy(w->loop, sample,
                               bytes_of((const uint8_t *)m.data + WORD_SIZE, m.size - WORD_SIZE));
        send_use(w, sample);
}

/* Send the session's totals, for the audit line. */
static void send_end(struct worker *w)
{
        auto_clean(buf_fini) struct buf stats = { 0 }, out = { 0 };
        uint64_t totals[AUDIT_TOTALS] = { 0 };
        struct info_entry e;
        int r = server_loop_stats(w->loop, &stats);
        for (struct bytes left = bytes_of(stats.data, stats.size); info_next(&left, &e);) {
                if (e.key == INFO_SESSION) {
                        totals[AUDIT_BUFFERS_PEAK] = info_u64(e.value, INFO_SESSION_PEAK, 0);
                        totals[AUDIT_DEVICE_NS] = device_ns(e.value);
                }
                if (e.key != INFO_LINK)
                        continue;
                totals[AUDIT_SENT] += info_u64(e.value, INFO_LINK_BYTES_SENT, 0) +
                                      info_u64(e.value, INFO_LINK_BULK_SENT, 0);
                totals[AUDIT_RECEIVED] += info_u64(e.value, INFO_LINK_BYTES_RECEIVED, 0) +
                                          info_u64(e.value, INFO_LINK_BULK_RECEIVED, 0);
        }
        for (int i = 0; i < AUDIT_TOTALS && !r; i++)
                r = buf_put_u64(&out, totals[i]);
        if (!r)
                r = buf_put(&out, w->why, strlen(w->why));
        if (r < 0 || control_send(CONTROL_FD, CONTROL_ENDED, bytes_of(out.data, out.size), -1) < 0)
                log_debug(LOG, "the supervisor does not get the session's totals");
}

/* Map the page of the client's account. It stays mapped until the process ends. */
static void use_account(struct worker *w, const struct control *c)
{
        uint64_t address;
        char *end;
        struct account a = { .slot = (unsigned)strtoul((const char *)c->data, &end, 10) };
        a.max = strtoull(end, &end, 10);
        a.timed = strtoul(end, &end, 10) != 0;
        a.builds_max = strtoull(end, &end, 10);
        a.cache_max = strtoull(end, &end, 10);
        bool known = true;
        while (known && *end) {
                known = a.device_count < ACCOUNT_DEVICES;
                struct account_device *d = &a.devices[known ? a.device_count++ : 0];
                d->number = (unsigned)strtoul(end, &end, 10);
                d->column = (unsigned)strtoul(end, &end, 10);
                d->max = strtoull(end, &end, 10);
                d->timed = strtoul(end, &end, 10) != 0;
                known &= d->column < ACCOUNT_DEVICES;
        }
        if (!known || c->fd < 0 || a.slot >= ACCOUNT_SLOTS ||
            vm_map_file(c->fd, 0, sizeof(*a.page), &address) < 0) {
                log_error(LOG, "the account of the client can't be used");
                server_loop_stop(w->loop, "this server can't count what the session uses");
                return;
        }
        a.page = (struct account_page *)(uintptr_t)address;
        server_loop_use_account(w->loop, &a);
}

/* Take the connection of an observer. */
static void take_observer(struct worker *w, struct control *c)
{
        struct conn *conn;
        int hello = hello_size(bytes_of(c->data, c->size));
        size_t number = hello > 0 ? (size_t)hello : c->size, state = number + WORD_SIZE;
        if (!w->attached || c->fd < 0 || state > c->size) {
                control_drop(c);
                return;
        }
        if (conn_import(c->fd, bytes_of(c->data + state, c->size - state), &conn) < 0)
                log_warn(LOG, "an observer's connection was lost on its way here");
        else
                observing_begin(w->loop, conn, bytes_get_u64(c->data + number));
        explicit_bzero(c, sizeof(*c));
}

/* Handle one message of the supervisor. False: the supervisor is gone. */
static bool obey(struct worker *w)
{
        static struct control c; /* static because it is large; only this thread uses it */
        struct conn *conn;
        switch (control_receive(CONTROL_FD, &c)) {
        case 0:
                break;
        case SP_E_LINK:
                return false;
        default:
                return true;
        }
        switch (c.kind) {
        case CONTROL_CONNECTION: {
                bool first = !w->attached;
                int hello = hello_size(bytes_of(c.data, c.size));
                size_t size = hello > 0 ? (size_t)hello : c.size;
                size_t local_path = size + KEYS_HEX, state = local_path + sizeof(w->local_path);
                if (c.size < state) {
                        size = state = c.size;
                } else if (first) { /* later replies to the session's clients have these */
                        memcpy(w->identity, c.data + size, KEYS_HEX);
                        memcpy(w->local_path, c.data + local_path, sizeof(w->local_path));
                        w->attached = true;
                }
                if (c.fd < 0 ||
                    conn_import(c.fd, bytes_of(c.data + state, c.size - state), &conn) < 0)
                        log_warn(LOG, "a connection was lost on its way here");
                else if (server_loop_attach(w->loop, conn, bytes_of(c.data, size)) < 0)
                        log_warn(LOG, "a connection could not be taken");
                else
                        first = false;
                if (first) /* no other connection comes for a session that never began */
                        server_loop_stop(w->loop, "its connection was lost");
                explicit_bzero(&c, sizeof(c));
                break;
        }
        case CONTROL_OBSERVER:
                take_observer(w, &c);
                break;
        case CONTROL_UNOBSERVE:
                if (c.size == WORD_SIZE)
                        observing_drop(bytes_get_u64(c.data));
                break;
        case CONTROL_STATS:
                if (c.size != sizeof(uint64_t) || send_links(w, bytes_get_u64(c.data)) < 0)
                        log_warn(LOG, "the worker can't send the counters of its session");
                break;
        case CONTROL_USE:
                sample_energy(w, bytes_of(c.data, c.size));
                break;
        case CONTROL_ACCOUNT:
                if (!w->attached)
                        use_account(w, &c);
                control_drop(&c);
                break;
        case CONTROL_DIALLER:
                dialling_begin(c.fd);
                break;
        case CONTROL_STREAMS:
                media_sources_use(c.fd);
                break;
        case CONTROL_ALLOCATOR:
                allocation_use(c.fd);
                break;
        case CONTROL_SHARED:
                server_loop_share(w->loop, c.size > 0);
                break;
        case CONTROL_LOAD:
                if (c.size == sizeof(uint64_t))
                        server_loop_load(w->loop, bytes_get_u64(c.data));
                break;
        case CONTROL_DRAIN:
                server_loop_drain(w->loop);
                break;
        case CONTROL_STOP:
                server_loop_stop(w->loop, (const char *)c.data);
                break;
        default:
                log_warn(LOG, "the supervisor sent a message that this version does not know");
        }
        return true;
}

/* In builds that count blocks: check that no more than `before` are left. Threads that dial soon
 * free their blocks. */
static void check_memory(long before)
{
        for (int i = 0; mem_live() != before && i < 200; i++)
                (void)thread_sleep(10000000);
        if (mem_live() != before)
                log_error(LOG, "%ld blocks of memory were not freed", mem_live() - before);
}

/* Clear the URLs of sources and sinks in the arguments of this process: a session may read its process's memory. */
static void forget_urls(const struct config_options *o)
{
        for (size_t i = 0; i < o->list_count; i++) {
                char *value = (char *)(uintptr_t)o->list[i].value;
                enum config_id id = o->list[i].id;
                char *url = id == CONFIG_media_source || id == CONFIG_media_sink
                                    ? strchr(value, '=')
                                    : NULL;
                if (url)
                        explicit_bzero(url + 1, strlen(url + 1));
        }
}

int worker_main(const struct config_options *o, const char *scratch_dir, const char *owner)
{
        static struct worker w; /* static because it is large */
        long blocks = mem_live();
        bool orphan = false;
        forget_urls(o);
        signals_ignore_pipe(); /* standard error is the supervisor's socket, which may be gone */
        lifetime_of_supervisor();
        int refusals;
        if (!worker_shut_in(o, scratch_dir, owner, &w.caches, &refusals)) {
                send_text(CONTROL_FAILED, "this server can't shut its sessions in; see its log");
                return 1;
        }
        hand_over(refusals);
        lifetime_of_supervisor(); /* again: a change of user has cleared it */
        fabric_configure(config_option_text(o, CONFIG_fabric));
        if (checkup_is_wanted())
                return checkup_run(o, scratch_dir);
        if (config_option_flag(o, CONFIG_lttng))
                (void)lttng_start(true);
        w.ended_fd = wakeup_new();
        if (w.ended_fd < 0)
                return 1;
        /* Children of drivers, such as compilers, must not keep the socket open. */
        (void)!file_keep_from_programs(CONTROL_FD);
        if (open_backend(&w, o, scratch_dir) < 0) {
                (void)file_close(w.ended_fd);
                return 1;
        }
        struct watchdog dog;
        watchdog_init(&dog, o, w.loop);
        while (!orphan && !atomic_load(&w.ended)) {
                struct pollfd p[] = { { .fd = CONTROL_FD, .events = POLLIN },
                                      { .fd = w.ended_fd, .events = POLLIN },
                                      { .fd = dialling_socket(), .events = POLLIN } };
                if (poll(p, array_size(p), w.attached ? watchdog_poll_ms(&dog) : -1) < 0)
                        continue;
                if (w.attached)
                        watchdog_check(&dog);
                if (p[2].revents)
                        dialling_receive();
                if (p[0].revents)
                        orphan = !obey(&w);
        }
        /* The worker can't wait for a kernel that never completes: the alarm's signal ends the
         * process. */
        lifetime_limit(END_SECONDS);
        if (w.attached && atomic_load(&w.ended)) {
                send_use(&w, 0);
                send_end(&w);
        }
        observing_end();
        dialling_begin(-1);
        w.loop = server_loop_free(w.loop);
        observing_wait();
        (void)file_close(w.ended_fd);
        check_memory(blocks);
        if (orphan) /* the folder itself stays, for the next spancld */
                tree_remove(scratch_dir);
        return w.unclean ? WORKER_UNCLEAN : 0;
}

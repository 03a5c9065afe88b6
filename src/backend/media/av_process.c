#include "backend/media/av_process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/installed.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/iovec.h"
#include "os/lock.h"
#include "os/passing.h"
#include "os/poll.h"
#include "os/process/detached.h"
#include "os/shared_memory.h"
#include "os/thread.h"
#include "os/vm.h"

#define LOG     "media"
#define PROGRAM "media-av"

enum {
        ENDING_MAX = 64,
        GRACE_S = 10,
        END_MS = 1000, /* for the end of a first process that is not used */
        MS = 1000000,
};

struct av_processes {
        bool in_process;
        unsigned max;
        int stop;
        char path[PATH_MAX], device[AV_DEVICE_MAX];
        struct lock lock; /* guards what follows */
        unsigned running;
        /* The socket of the first process, until a stream without the device takes it; or -1. */
        int spare_id, spare;
        unsigned ending_count;
        int ending[]; /* numbers of processes that were ended, but are not collected yet */
};

/* ---- start and end -------------------------------------------------------------------------- */

/* A session's worker becomes the parent of processes. In a program of others the init process does. */
static void collect(struct av_processes *all) REQUIRES(all->lock)
{
        unsigned left = 0;
        for (unsigned i = 0; i < all->ending_count; i++)
                if (!detached_collect(all->ending[i]))
                        all->ending[left++] = all->ending[i];
        all->ending_count = left;
}

/* `device`: open the device that decodes. */
static int launch(struct av_processes *all, bool device, int *ret_socket, int *ret_id)
{
        static char own[] = "own", session[] = "session";
        char level[16];
        char *argv[] = { all->path, all->in_process ? own : session, level,
                         device ? all->device : NULL, NULL };
        snprintf(level, sizeof(level), "%s", log_level_name(log_threshold));
        return detached_start_socket(argv, all->in_process, ret_socket, ret_id);
}

static bool is_stopped(int stop)
{
        struct pollfd p = { .fd = stop, .events = POLLIN };
        return poll(&p, 1, 0) > 0;
}

/* One process less runs; it has the number `id`, or 0. */
static void give_back(struct av_processes *all, int id)
{
        lock_take(&all->lock);
        all->running--;
        collect(all);
        if (!all->in_process && !detached_collect(id))
                all->ending[all->ending_count++] = id; /* `take` has left room */
        lock_release(&all->lock);
}

/* Get a process for a stream of this kind. Decoders alone open the device, because that widens their sandbox. */
static enum codec_result take(struct av_processes *all, uint32_t kind, int *ret_socket, int *ret_id)
{
        const bool device = kind == AV_DECODER && *all->device;
        enum codec_result r = CODEC_NO_MEMORY;
        if (is_stopped(all->stop))
                return CODEC_LOST;
        lock_take(&all->lock);
        collect(all);
        if (all->running < all->max && all->running + all->ending_count < all->max + ENDING_MAX) {
                r = CODEC_OK;
                all->running++;
                if (!device) {
                        *ret_socket = all->spare;
                        *ret_id = all->spare_id;
                        all->spare = -1;
                        all->spare_id = 0;
                }
        }
        lock_release(&all->lock);
        if (r == CODEC_OK && *ret_socket < 0 && launch(all, device, ret_socket, ret_id) < 0) {
                log_warn(LOG, "%s can't be started: %s", all->path, strerror(errno));
                give_back(all, *ret_id);
                r = CODEC_LOST;
        }
        return r;
}

/* ---- requests ------------------------------------------------------------------------------- */

bool av_call(int socket, int stop, const struct av_request *r, int memory, struct av_reply *ret,
             int *ret_fd)
{
        int unused;
        struct av_request copy = *r;
        struct iovec to = { &copy, sizeof(copy) }, from = { ret, sizeof(*ret) };
        uint64_t deadline = clock_now_ns() + (AV_LIMIT_S + GRACE_S) * 1000000000ull;
        if (is_stopped(stop) ||
            passing_send(socket, &to, 1, &memory, memory < 0 ? 0 : 1) != sizeof(copy))
                return false;
        for (;;) {
                ssize_t n = passing_receive(socket, &from, 1, ret_fd ? ret_fd : &unused,
                                            ret_fd ? 1 : 0);
                if (n != SP_E_AGAIN)
                        return n == sizeof(*ret);
                struct pollfd p[] = { { .fd = socket, .events = POLLIN },
                                      { .fd = stop, .events = POLLIN } };
                if (poll_until(p, array_size(p), deadline) == 0 || p[1].revents)
                        return false;
        }
}

static void lose(struct av_process *p)
{
        if (!is_stopped(p->stop))
                log_warn(LOG, "the process of a stream is lost");
        file_close(p->socket);
        p->socket = -1;
}

enum codec_result av_process_call(struct av_process *p, const struct av_request *r,
                                  struct av_reply *ret)
{
        if (p->socket < 0)
                return CODEC_LOST;
        bool ok = av_call(p->socket, p->stop, r, -1, ret, NULL) && ret->result <= CODEC_NONE &&
                  ret->result > CODEC_LOST;
        if (ok && av_reply_check(ret, (enum av_kind)r->kind, &p->open) == CODEC_OK)
                return (enum codec_result)ret->result;
        lose(p);
        return CODEC_LOST;
}

/* Make the memory, and open the stream. */
static enum codec_result open_stream(struct av_process *p)
{
        struct av_reply reply;
        size_t size = (size_t)(p->open.in_room + p->open.out_room + 2 * AV_PADDING);
        uint64_t at = 0;
        int fd = shared_memory_new(size);
        if (fd < 0)
                return CODEC_NO_MEMORY;
        enum codec_result r = CODEC_NO_MEMORY;
        if (vm_map_file(fd, 0, size, &at) == 0) {
                p->memory = (uint8_t *)(uintptr_t)at;
                r = av_call(p->socket, p->stop, &p->open, fd, &reply, NULL) &&
                                    reply.result <= CODEC_OK && reply.result > CODEC_LOST
                            ? (enum codec_result)reply.result
                            : CODEC_LOST;
        }
        file_close(fd);
        return r;
}

enum codec_result av_process_start(struct av_processes *all, const struct av_request *open,
                                   struct av_process *ret)
{
        enum codec_result r = CODEC_LOST;
        for (unsigned i = 0; i < 2 && r == CODEC_LOST;
             i++) { /* the first process may be long gone */
                struct av_process p = {
                        .all = all, .socket = -1, .stop = all->stop, .open = *open
                };
                r = take(all, open->kind, &p.socket, &p.id);
                if (r < 0)
                        return r;
                r = open_stream(&p);
                if (r == CODEC_OK)
                        *ret = p;
                else
                        av_process_end(&p);
        }
        return r;
}

enum codec_result av_process_adopt(int socket, int stop, const struct av_request *open,
                                   struct av_process *ret)
{
        struct av_process p = { .open = *open, .socket = socket, .stop = stop };
        enum codec_result r = open_stream(&p);
        if (r == CODEC_OK)
                *ret = p;
        else
                av_process_end(&p);
        return r;
}

void av_process_end(struct av_process *p)
{
        if (p->memory)
                vm_unmap((uint64_t)(uintptr_t)p->memory,
                         (size_t)(p->open.in_room + p->open.out_room + 2 * AV_PADDING));
        if (p->socket >= 0)
                file_close(p->socket);
        if (p->all)
                give_back(p->all, p->id);
        *p = (struct av_process){ .socket = -1 };
}

/* ---- all of them ---------------------------------------------------------------------------- */

int av_processes_open(bool in_process, unsigned max, const char *device, int stop,
                      struct av_processes **ret, uint32_t *ret_codecs)
{
        struct av_processes *all =
                mem_zalloc(sizeof(*all) + ((size_t)max + ENDING_MAX) * sizeof(all->ending[0]));
        struct av_request hello = { .kind = AV_HELLO, .version = AV_VERSION };
        struct av_reply reply;
        if (!all)
                return SP_E_NOMEM;
        lock_init(&all->lock);
        all->in_process = in_process;
        all->max = max;
        snprintf(all->device, sizeof(all->device), "%s", device);
        all->stop = stop;
        all->spare = -1;
        if (!installed_find(PROGRAM, all->path)) {
                log_info(LOG, PROGRAM " is not installed: the media device has no encoders");
        } else if (launch(all, false, &all->spare, &all->spare_id) < 0) {
                log_error(LOG, "%s can't be started: %s", all->path, strerror(errno));
        } else if (!av_call(all->spare, stop, &hello, -1, &reply, NULL) ||
                   reply.result != CODEC_OK || reply.version != AV_VERSION) {
                log_error(LOG, "%s is of another version, or does not run here", all->path);
        } else {
                *ret_codecs = reply.codecs;
                *ret = all;
                return 0;
        }
        int id = all->spare_id;
        av_processes_free(all);
        for (unsigned i = 0; !in_process && i < END_MS && !detached_collect(id); i++)
                (void)thread_sleep(MS);
        return SP_E_NOENT;
}

void av_processes_free(struct av_processes *all)
{
        if (!all)
                return;
        if (all->spare >= 0)
                file_close(all->spare);
        lock_fini(&all->lock);
        mem_free(all);
}

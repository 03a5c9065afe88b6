/* The processes media-av, one for each stream, and requests to them. They are started by this process, and inherit the
 * sandbox of a session's worker, to which they add their own (sandbox_enter_media). A process ends when its socket
 * closes, or by itself when a request takes AV_LIMIT_S. */
#ifndef SPANCL_BACKEND_MEDIA_AV_PROCESS_H
#define SPANCL_BACKEND_MEDIA_AV_PROCESS_H

#include "backend/media/av_message.h"

/* All processes of a device. Thread-safe. */
struct av_processes;

/* Start the first process, and ask it for its codecs (av_reply). `in_process`: this is a program's own process. `max`:
 * processes at a time. `device`: the device that decodes, as of media_settings. `stop`: once this descriptor is
 * readable, no request waits any more, and each gets CODEC_LOST; -1: none. SP_E_NOENT: it is not installed, or does not
 * start, and the log says which; SP_E_NOMEM. */
SP_NODISCARD int av_processes_open(bool in_process, unsigned max, const char *device, int stop,
                                   struct av_processes **ret, uint32_t *ret_codecs);
void av_processes_free(struct av_processes *all); /* NULL is allowed; no process of it is left */

/* One process, with a stream. One thread at a time. */
struct av_process {
        struct av_processes *all;
        struct av_request open;
        int id, socket; /* -1: it is lost */
        int stop;
        uint8_t *memory;
};

/* Start a process, and open its stream: `open` has all members of such a request. The caller ends it with
 * av_process_end. CODEC_NO_MEMORY: also if as many processes run as may; CODEC_LOST; CODEC_FORMAT: there is no such
 * codec, or it does not take such pictures. */
SP_NODISCARD enum codec_result av_process_start(struct av_processes *all,
                                                const struct av_request *open,
                                                struct av_process *ret);
void av_process_end(struct av_process *p);

/* The same for a process that already has this socket, which this takes over. `stop`: as of av_processes_open. */
SP_NODISCARD enum codec_result av_process_adopt(int socket, int stop, const struct av_request *open,
                                                struct av_process *ret);

/* Make a request without a stream, and wait for the answer. *ret_fd: the descriptor that came with it, or -1. False:
 * the other side is gone, or must not be believed, or `stop` is readable. */
SP_NODISCARD bool av_call(int socket, int stop, const struct av_request *r, int memory,
                          struct av_reply *ret, int *ret_fd);

/* Memory to the process, of open.in_room bytes, and from it. The process may change the bytes at any time. */
static inline uint8_t *av_process_in(const struct av_process *p)
{
        return p->memory;
}

static inline const uint8_t *av_process_out(const struct av_process *p)
{
        return p->memory + p->open.in_room + AV_PADDING;
}

/* Make a request, and wait for the answer. Returns its result, once av_reply_check has passed the answer. CODEC_LOST:
 * the process has ended, or must not be believed; all further requests get this, too. */
SP_NODISCARD enum codec_result av_process_call(struct av_process *p, const struct av_request *r,
                                               struct av_reply *ret);

#endif

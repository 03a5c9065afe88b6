/* The sandbox that a worker enters before it has a client. It leaves only the access that drivers
 * and compilers need. Each measure applies where the kernel has it. No state. */
#ifndef SPANCL_SANDBOX_SANDBOX_H
#define SPANCL_SANDBOX_SANDBOX_H

#include "config/options.h"
#include "sandbox/paths.h"
#include "sandbox/user.h"

/* Enter a worker's sandbox: its own root folder and user where the host allows them, files
 * (Landlock), system calls (seccomp) and limits (rlimits). The caller has one thread, has called
 * user_lay_aside, and knows its caches. The worker may write to `folders`. False: it is not
 * possible, and the log says why. `ret_refusals` as of calls_restrict. */
bool sandbox_enter(struct user *u, const struct config_options *o,
                   const struct sandbox_folders *folders, int *ret_refusals);

/* Return true if a worker needs the host's network. Only a fabric does, because the dialler makes
 * its links to other servers. Without the network a worker makes no sockets. */
bool worker_needs_network(const struct config_options *o);

/* Enter the dialler's sandbox (daemon/dialler/dialler.h). The dialler can read libraries and the files of
 * name resolution, writes nowhere, and has no capabilities. False: it is not possible, and the
 * log says why. */
bool sandbox_enter_dialler(const struct config_options *o);

/* Enter the allocator's sandbox (daemon/allocator/allocator.h): it can read libraries, /proc and /sys, and use NVIDIA's
 * devices. It has a worker's system calls, and may make Unix sockets, because CUDA's library does not start without
 * one. But it can't connect them, and can't make datagram sockets, which need no connection. It writes only to files of
 * its own in /proc, has no capabilities, and other processes of its user can't inspect it. If root has started it, it
 * has a network namespace of its own. False: as above. */
bool sandbox_enter_allocator(const struct config_options *o);

/* Enter the sandbox of a process media-av (backend/media/av_process.h), which has loaded its libraries: it can reach no
 * file, writes none, and has few descriptors. `own`: it is not in a session's sandbox, whose filter of system calls it
 * would have, so it gets such a filter, and root becomes nobody. `device`: a device decodes for it, so its driver can
 * also read libraries, /proc and /sys, use GPUs, and have more descriptors. False: it is not possible, and the log says
 * why. */
bool sandbox_enter_media(bool own, bool device);

struct sandbox_streams {
        const char *const *files, *const *folders; /* both end with NULL */
        uint64_t bytes_max;                        /* of a file that it writes */
        bool network;
};

/* Enter the sandbox of media-io, which opens what --media-source and --media-sink name: it can read these files, and
 * make and write files in these folders. With `network` it can also read libraries, the files of name resolution and
 * certificates of authorities, and make sockets of IP. It runs no program, has no capabilities, and other processes of
 * its user can't inspect it. False: as above. */
bool sandbox_enter_streams(const struct sandbox_streams *streams);

/* Enter the sandbox of a process with one stream, within that of media-io: it opens no file for writing, and no open
 * file may become larger than this. `bytes_max` 0: it writes none. False: as above. */
bool sandbox_enter_stream(uint64_t bytes_max);

/* Forbid this process any further descriptor above the standard ones: it opens no file, and no socket. */
void sandbox_deny_descriptors(void);

#endif

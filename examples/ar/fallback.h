/* Fallback (docs/FALLBACK.md): two ways to compute a frame, and the choice between them. The far way computes it in a
 * place, with the devices of servers. While they are lost, the near way computes it with fewer points on the client's
 * own device, in a context of its own. Without `params.enabled` there is the far way alone, and errors end the program.
 *
 * One thread calls these functions. Another one, of the fallback's own, repairs the far way when its devices return. */
#ifndef AR_FALLBACK_H
#define AR_FALLBACK_H

#include <pthread.h>
#include <stdatomic.h>

#include "place.h"

enum { FALLBACK_STEP = 4 };

struct fallback_params {
        bool enabled;
        struct place_params place; /* `step` is that of the near way if enabled */
        size_t pictures;           /* of the camera */
};

/* A way to compute frames. */
struct way {
        struct machine *machine;
        struct track track;
        struct pipeline pipeline;
};

/* Of the far way. `FAR_READY`: it is repaired, and begins again at a frame where decoders can start. */
enum far_state { FAR_USED, FAR_LOST, FAR_REPAIRING, FAR_READY };

/* A frame that has begun. */
struct fallback_frame {
        size_t frame;
        struct pose pose;
        unsigned epoch; /* 0: the far way did not begin it */
};

struct fallback {
        struct fallback_params p;
        struct way far, near; /* near: if enabled */
        struct machine near_machine;
        cl_device_id far_id, feed_id;
        enum far_state state;
        unsigned epoch; /* of the far way, from 1 on: each loss begins another one */
        size_t near_next; /* the frame that the near way's decoders can decode; SIZE_MAX: any key frame */
        double lost_ms; /* when the platform notified the program of the last loss */
        pthread_t repairer;
        atomic_int repair; /* 0: it goes on, 1: the far way works again, -1: it does not */
};

/* `m` has the devices of the roles. If enabled, a repair may close it and open it again. */
void fallback_open(struct fallback *f, struct machine *m, const struct fallback_params *p);
void fallback_close(struct fallback *f);

/* Find the camera's pose, and enqueue the frame's commands. At most `ahead` frames may have begun and not ended. */
void fallback_begin(struct fallback *f, size_t frame, struct fallback_frame *ret);

/* Wait for the frame that began first of those that have not ended. Returns true if the far way computed it. */
bool fallback_end(struct fallback *f, const struct fallback_frame *frame, uint8_t *ret_rgba);

/* Compute frame 0 in both ways. Implementations compile kernels when these run first. */
void fallback_warm(struct fallback *f, uint8_t *rgba);

/* Return the largest error of a tracked pose, in pixels. */
double fallback_worst(const struct fallback *f);

/* End the program if a media device delivered no picture of the last frame. With the fallback, only fallback_warm()
 * looks. */
void fallback_check(struct fallback *f);

#endif

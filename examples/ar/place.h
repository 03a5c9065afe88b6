/* Places: which device computes which part of a frame. Computes one frame in one place. */
#ifndef AR_PLACE_H
#define AR_PLACE_H

#include "codec.h"
#include "draw.h"
#include "points.h"
#include "sort.h"
#include "track.h"

/* A place. Without any of these the client's device computes all. */
struct place {
        const char *name;
        const char *text;
        bool sort; /* another device makes the points, and sorts them: the index list comes back */
        bool host; /* data of other devices goes through the program's memory */
        bool content; /* only the meaningful bytes of a buffer travel */
        bool points;  /* another device does all but drawing: sorted points come back */
        bool layer;   /* another device draws, too */
        bool encode;  /* the drawn layer comes back as video */
};

extern const struct place places[];
extern const size_t place_count;

const struct place *place_find(const char *name);

/* The devices' parts. One device may be several. */
struct roles {
        struct device *near; /* the client's own */
        struct device *far;  /* makes points and sorts */
        struct device *feed; /* makes the pictures for `far` */
};

struct place_params {
        const struct place *place;
        struct roles roles;
        const struct source *source;
        struct view view;
        int opacity;
        int step; /* only each `step`th pixel, in both directions, gives points, which are larger */
        const char *codec;
        size_t ahead; /* frames that are computed at the same time, from 1 to AHEAD_MAX */
};

enum { AHEAD_MAX = 8 };

/* The objects of a frame. Frames that are computed at the same time share decoders and encoders. */
struct slot {
        struct feed near_feed, far_feed;
        struct pictures copies; /* on `far`, with `host` */
        struct points near_points, far_points;
        struct sort sort;
        struct draw draw;
        struct codec codec;
        cl_mem near_pose, far_pose;
        cl_mem host_index, host_index_bytes;
        cl_kernel compose;
        cl_mem picture; /* RGBA, on `near` */
        struct pose pose;
        cl_mem camera;
        cl_event sorted, composed;
        struct watch watch; /* the commands of the client's devices for the frame */
};

struct pipeline {
        struct place_params p;
        struct machine *machine;
        bool uses_far, is_split; /* split: the points are made on both devices */
        struct slot slots[AHEAD_MAX];
        size_t begun, ended; /* frames */
        uint8_t *staging;
};

void pipeline_open(struct pipeline *l, struct machine *m, const struct place_params *p);
void pipeline_close(struct pipeline *l);

/* Enqueue the commands of a frame for the pose, over the camera's picture. At most `ahead` frames may have begun and
 * not ended. */
void pipeline_begin(struct pipeline *l, size_t frame, const struct pose *pose, cl_mem camera);

/* Return the event that is complete when the oldest frame is computed. NULL: pipeline_end() enqueues its last part. */
cl_event pipeline_next(const struct pipeline *l);

/* Wait for the oldest frame, and read it: 4 bytes for each pixel. */
void pipeline_end(struct pipeline *l, uint8_t *ret_rgba);

/* Forget the frames that have begun. Their commands may still run. The next frame has to be a key frame of the
 * stream. */
void pipeline_restart(struct pipeline *l);

/* End the program if a media device delivered no picture of the last frame. */
void pipeline_check(struct pipeline *l);

/* Compare the points of the last frame with the reference's. Ends the program if they differ. */
void pipeline_verify(struct pipeline *l, size_t frame);

#endif

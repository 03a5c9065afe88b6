#include "fallback.h"

#include <spancl/availability.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void way_open(struct way *w, struct machine *m, const struct fallback_params *p,
                     const struct place_params *place)
{
        w->machine = m;
        track_open(&w->track, m, place->roles.near, &place->view, p->pictures);
        pipeline_open(&w->pipeline, m, place);
}

static void way_close(struct way *w)
{
        pipeline_close(&w->pipeline);
        track_close(&w->track);
}

/* ---- devices --------------------------------------------------------------------------------- */

static bool is_available(cl_device_id id)
{
        cl_bool available = CL_FALSE;
        return clGetDeviceInfo(id, CL_DEVICE_AVAILABLE, sizeof(available), &available, NULL) ==
                       CL_SUCCESS &&
               available;
}

static double now_ms(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Callbacks tell the waiting thread by these. Static, because the callbacks of lost commands may come late. */
static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        double lost_ms; /* when the platform notified of the loss; 0: it did not */
} news = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void CL_CALLBACK on_change(cl_device_id id, cl_bool available, void *user)
{
        (void)id;
        (void)user;
        pthread_mutex_lock(&news.lock);
        if (!available && news.lost_ms == 0)
                news.lost_ms = now_ms();
        pthread_cond_broadcast(&news.changed);
        pthread_mutex_unlock(&news.lock);
}

static void CL_CALLBACK on_end(cl_event event, cl_int status, void *user)
{
        (void)event;
        (void)status;
        (void)user;
        pthread_mutex_lock(&news.lock);
        pthread_cond_broadcast(&news.changed);
        pthread_mutex_unlock(&news.lock);
}

static bool is_running(cl_event event)
{
        cl_int status = CL_COMPLETE;
        check(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                             NULL),
              "CL_EVENT_COMMAND_EXECUTION_STATUS");
        return status > CL_COMPLETE;
}

/* Wait until the command ends, or the other device is lost. A call that waits for a command of the client's own device
 * would wait for data of the lost one until that is there again. */
static void wait_or_lose(cl_event event)
{
        check(clSetEventCallback(event, CL_COMPLETE, on_end, NULL), "clSetEventCallback");
        pthread_mutex_lock(&news.lock);
        while (news.lost_ms == 0 && is_running(event))
                pthread_cond_wait(&news.changed, &news.lock);
        if (news.lost_ms != 0)
                check(CL_DEVICE_NOT_AVAILABLE, "the other device");
        pthread_mutex_unlock(&news.lock);
}

/* Return when the loss was known, or 0, and forget it if told to. */
static double known_ms(bool forget)
{
        pthread_mutex_lock(&news.lock);
        double ms = news.lost_ms;
        if (forget)
                news.lost_ms = 0;
        pthread_mutex_unlock(&news.lock);
        return ms;
}

/* Calls fail at once when a device is lost, because there is a callback. */
static void watch(const struct fallback *f, spancl_availability_fn notify)
{
        spancl_set_availability_callback_fn set =
                (spancl_set_availability_callback_fn)clGetExtensionFunctionAddressForPlatform(
                        f->far.machine->platform, "clSetDeviceAvailabilityCallbackSPANCL");
        if (!set)
                die("--fallback: the platform has no cl_spancl_device_availability");
        check(set(f->far_id, notify, NULL), "clSetDeviceAvailabilityCallbackSPANCL");
        if (f->feed_id != f->far_id)
                check(set(f->feed_id, notify, NULL), "clSetDeviceAvailabilityCallbackSPANCL");
}

/* ---- the near way ---------------------------------------------------------------------------- */

static void near_open(struct fallback *f)
{
        struct machine *m = f->far.machine;
        struct place_params place = f->p.place;
        cl_device_id ids[2] = { place.roles.near->id };
        size_t count = 1;
        if (place.source->packet_size)
                ids[count++] = media_device(m, FEED_DECODER, true)->id;
        if (!place.place->sort && !place.place->points)
                die("--fallback: at the place %s no other device computes", place.place->name);
        if (ids[0] == f->far_id || ids[count - 1] == f->feed_id)
                die("--fallback: the client needs a device of its own");
        machine_open_some(&f->near_machine, m, ids, count);
        struct device *near = &f->near_machine.devices[0];
        place.place = place_find("local");
        place.roles = (struct roles){ .near = near, .far = near, .feed = near };
        place.ahead = 1;
        way_open(&f->near, &f->near_machine, &f->p, &place);
}

/* Return the frame of the figure that the near way can decode. Its decoders begin with the last key frame, so the
 * figure is late until the next one comes. */
static size_t near_figure(struct fallback *f, size_t frame)
{
        const struct source *s = f->p.place.source;
        size_t figure = frame % s->frame_count;
        if (f->near_next >= s->frame_count)
                for (f->near_next = figure; !s->frames[f->near_next].key; f->near_next--)
                        ;
        if (s->frames[figure].key)
                f->near_next = figure;
        return f->near_next++;
}

static void near_frame(struct fallback *f, const struct fallback_frame *frame, uint8_t *ret_rgba)
{
        struct way *w = &f->near;
        pipeline_begin(&w->pipeline, near_figure(f, frame->frame), &frame->pose,
                       track_picture(&w->track, frame->frame));
        pipeline_end(&w->pipeline, ret_rgba);
}

/* ---- the far way ----------------------------------------------------------------------------- */

static void lose_far(struct fallback *f, size_t frame, cl_int err)
{
        double known = known_ms(false);
        f->lost_ms = known > 0 ? known : now_ms();
        f->state = FAR_LOST;
        f->epoch++;
        f->near_next = SIZE_MAX;
        fprintf(stderr, "ar: frame %zu: the other device is lost (error %d)\n", frame, err);
}

/* Make all objects anew. */
static void reopen_far(struct fallback *f)
{
        struct machine *m = f->far.machine, old = *m;
        cl_device_id ids[DEVICES_MAX];
        for (size_t i = 0; i < old.device_count; i++)
                ids[i] = old.devices[i].id;
        way_close(&f->far);
        machine_close(m);
        machine_open_some(m, &old, ids, old.device_count);
        way_open(&f->far, m, &f->p, &f->far.pipeline.p);
}

/* If only the connection was lost, the old objects work again, and the commands of lost frames complete. */
static void *repair(void *arg)
{
        struct fallback *f = arg;
        errors_note();
        machine_finish(f->far.machine);
        cl_int err = errors_noted();
        if (err != CL_SUCCESS) {
                errors_note();
                reopen_far(f);
                (void)errors_noted();
                errors_note();
                machine_finish(f->far.machine);
                err = errors_noted();
        }
        atomic_store(&f->repair, err == CL_SUCCESS ? 1 : -1);
        return NULL;
}

static void end_repair(struct fallback *f)
{
        pthread_join(f->repairer, NULL);
        f->state = atomic_load(&f->repair) > 0 ? FAR_READY : FAR_LOST;
        if (f->state == FAR_READY)
                pipeline_restart(&f->far.pipeline);
}

/* Choose the way of the next frame. */
static void advance(struct fallback *f, size_t frame)
{
        const struct source *s = f->p.place.source;
        if (f->state == FAR_LOST && is_available(f->far_id) && is_available(f->feed_id)) {
                (void)known_ms(true);
                atomic_store(&f->repair, 0);
                if (pthread_create(&f->repairer, NULL, repair, f) == 0)
                        f->state = FAR_REPAIRING;
        }
        if (f->state == FAR_REPAIRING && atomic_load(&f->repair))
                end_repair(f);
        if (f->state == FAR_READY && s->frames[frame % s->frame_count].key)
                f->state = FAR_USED;
}

/* ---------------------------------------------------------------------------------------------- */

void fallback_open(struct fallback *f, struct machine *m, const struct fallback_params *p)
{
        struct place_params place = p->place;
        *f = (struct fallback){ .p = *p, .epoch = 1, .near_next = SIZE_MAX };
        f->far_id = place.roles.far->id;
        f->feed_id = place.roles.feed->id;
        f->far.machine = m;
        if (p->enabled) {
                place.step = 1;
                near_open(f);
                watch(f, on_change);
        }
        way_open(&f->far, m, p, &place);
}

void fallback_close(struct fallback *f)
{
        if (f->p.enabled) {
                if (f->state == FAR_REPAIRING)
                        end_repair(f);
                watch(f, NULL);
                way_close(&f->near);
                machine_close(&f->near_machine);
        }
        way_close(&f->far);
}

void fallback_begin(struct fallback *f, size_t frame, struct fallback_frame *ret)
{
        struct way *w = &f->far;
        *ret = (struct fallback_frame){ .frame = frame };
        ret->pose = track_run(f->p.enabled ? &f->near.track : &w->track, frame);
        if (f->p.enabled)
                advance(f, frame);
        if (f->state != FAR_USED)
                return;
        ret->epoch = f->epoch;
        if (f->p.enabled)
                errors_note();
        pipeline_begin(&w->pipeline, frame, &ret->pose, track_picture(&w->track, frame));
        cl_int err = f->p.enabled ? errors_noted() : CL_SUCCESS;
        if (err != CL_SUCCESS)
                lose_far(f, frame, err);
}

static cl_int end_far(struct fallback *f, uint8_t *ret_rgba)
{
        struct pipeline *l = &f->far.pipeline;
        cl_int err = CL_SUCCESS;
        if (f->p.enabled && pipeline_next(l)) {
                errors_note();
                wait_or_lose(pipeline_next(l));
                err = errors_noted();
        }
        if (err != CL_SUCCESS)
                return err;
        if (f->p.enabled)
                errors_note();
        pipeline_end(l, ret_rgba);
        return f->p.enabled ? errors_noted() : CL_SUCCESS;
}

bool fallback_end(struct fallback *f, const struct fallback_frame *frame, uint8_t *ret_rgba)
{
        if (frame->epoch == f->epoch) {
                cl_int err = end_far(f, ret_rgba);
                if (err == CL_SUCCESS)
                        return true;
                lose_far(f, frame->frame, err);
        }
        near_frame(f, frame, ret_rgba);
        return false;
}

void fallback_check(struct fallback *f)
{
        if (f->p.enabled)
                return;
        pipeline_check(&f->far.pipeline);
}

void fallback_warm(struct fallback *f, uint8_t *rgba)
{
        struct fallback_frame frame;
        fallback_begin(f, 0, &frame);
        bool full = fallback_end(f, &frame, rgba);
        if (full)
                pipeline_check(&f->far.pipeline);
        if (full && f->p.enabled) {
                near_frame(f, &frame, rgba);
                pipeline_check(&f->near.pipeline);
        }
        f->near_next = SIZE_MAX;
}

double fallback_worst(const struct fallback *f)
{
        return f->p.enabled ? f->near.track.worst : f->far.track.worst;
}

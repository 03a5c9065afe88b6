#include "backend/native/clock.h"

#include "os/clock.h"

bool clock_sync(struct native_device *d)
{
        __typeof__(clGetDeviceAndHostTimer) *read = d->platform->api.clGetDeviceAndHostTimer;
        if (!read)
                return false;
        /* The shortest of a few readings is the most exact. Its host time is of an unknown clock, so
         * ours is read around it. */
        uint64_t shortest = UINT64_MAX;
        for (int i = 0; i < 3; i++) {
                cl_ulong device, host;
                uint64_t before = clock_now_ns();
                if (read(d->id, &device, &host) != CL_SUCCESS || !device)
                        return false;
                uint64_t took = clock_now_ns() - before;
                if (took < shortest) {
                        shortest = took;
                        atomic_store(&d->clock_offset, (int64_t)(before + took / 2 - device));
                }
        }
        return true;
}

/* Narrow the clock offset by the times of one command. Its clEnqueue* was called before it could
 * start, and it ended before now. If its QUEUED time is of the same clock, it was queued within the
 * call. An offset that contradicts these bounds is moved to the nearest bound, which also follows
 * clocks that drift. */
static int64_t learn(struct backend_event *e, const cl_ulong t[4])
{
        struct native_device *d = e->queue->device;
        int64_t low = (int64_t)(e->enter_ns - t[2]), high = (int64_t)(clock_now_ns() - t[3]);
        if (e->queue->estimate_clock) {
                int64_t first = (int64_t)(e->enter_ns - t[0]);
                int64_t last = (int64_t)(e->return_ns - t[0]);
                low = first > low ? first : low;
                high = last < high ? last : high;
        }
        int64_t offset = atomic_load(&d->clock_offset);
        if (low > high) /* times that make no sense */
                return offset;
        if (offset > high)
                offset = high;
        if (offset < low)
                offset = low;
        atomic_store(&d->clock_offset, offset);
        return offset;
}

struct backend_times clock_times(struct backend_event *e)
{
        __typeof__(clGetEventProfilingInfo) *ask = e->queue->domain->api->clGetEventProfilingInfo;
        static const cl_profiling_info names[4] = {
                CL_PROFILING_COMMAND_QUEUED,
                CL_PROFILING_COMMAND_SUBMIT,
                CL_PROFILING_COMMAND_START,
                CL_PROFILING_COMMAND_END,
        };
        struct backend_times none = { 0 };
        cl_ulong t[4];
        for (int i = 0; i < 4; i++)
                if (ask(e->event, names[i], sizeof(t[i]), &t[i], NULL) != CL_SUCCESS)
                        return none;
        if (!t[3])
                return none;
        /* Implementations are known to mix up the order, or to leave submit zero. */
        for (int i = 1; i < 4; i++)
                if (t[i] < t[i - 1])
                        t[i] = t[i - 1];
        int64_t offset = learn(e, t);
        if (offset == INT64_MAX)
                return none;
        struct native_device *d = e->queue->device;
        uint64_t ours[4];
        lock_take(&d->clock_lock);
        for (int i = 1; i < 4; i++)
                ours[i] = monotone_map(&d->clock, t[i], offset);
        lock_release(&d->clock_lock);
        return (struct backend_times){ ours[1], ours[2], ours[3] };
}

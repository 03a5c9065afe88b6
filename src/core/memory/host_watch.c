#include "core/memory/host_watch.h"

#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "core/client.h"
#include "core/memory/mem.h"

enum { SAMPLES = 32 };

static atomic_bool warned;

/* Mixes samples of 8 bytes, at equal distances. */
static uint64_t digest(const uint8_t *at, size_t size)
{
        uint64_t sum = size, sample = 0;
        size_t last = size > sizeof(sample) ? size - sizeof(sample) : 0;
        size_t len = size < sizeof(sample) ? size : sizeof(sample);
        for (size_t i = 0; i < SAMPLES; i++) {
                memcpy(&sample, at + last / (SAMPLES - 1) * i, len);
                sum = (sum ^ sample) * 0x9e3779b97f4a7c15u;
                sum ^= sum >> 29;
        }
        return sum;
}

void host_watch_end(cl_mem m)
{
        mem_root(m)->host_watch.state = HOST_WATCH_ENDED;
}

void host_watch_launch(cl_mem m, const struct _cl_device_id *d)
{
        cl_mem root = mem_root(m);
        if (atomic_load_explicit(&warned, memory_order_relaxed) ||
            root->host_watch.state == HOST_WATCH_ENDED || root->chunk || mem_is_image(root) ||
            !(d->type & CL_DEVICE_TYPE_CPU))
                return;
        uint64_t now = digest(root->host_ptr, root->size);
        if (root->host_watch.state == HOST_WATCH_RUNS && now != root->host_watch.digest) {
                atomic_store(&warned, true);
                log_warn(
                        "client",
                        "a kernel uses a buffer whose memory (CL_MEM_USE_HOST_PTR) the program has changed "
                        "without a map: the device does not see the change");
        }
        root->host_watch.state = HOST_WATCH_RUNS;
        root->host_watch.digest = now;
}

#include "daemon/sensors/sensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "daemon/control.h"
#include "daemon/linux/rights.h"
#include "os/poll.h"
#include "os/process/library.h"
#include "os/process/process.h"

enum { IDLE_MS = 60000, DEVICES_MAX = 32, NAME_SIZE = 96 };

/* The functions of NVML that are used, as its manual describes them. Each returns 0 if it has worked. */
struct nvml {
        int (*init)(void);
        int (*count)(unsigned *ret);
        int (*device)(unsigned index, void **ret);
        int (*name)(void *device, char *ret, unsigned size);
        int (*busy)(void *device, unsigned ret[2]); /* percent of the time: compute, memory */
        int (*memory)(void *device, unsigned long long ret[3]); /* bytes: total, free, used */
        int (*temperature)(void *device, int sensor, unsigned *ret);
        int (*power)(void *device, unsigned *ret);
};

/* Load the library. False: there is none, or no driver. */
static bool load(struct nvml *n)
{
        struct library *library = library_load("libnvidia-ml.so.1", LIBRARY_FOR_EVER);
        const struct {
                const char *name;
                void *to;
        } all[] = {
                { "nvmlInit_v2", &n->init },
                { "nvmlDeviceGetCount_v2", &n->count },
                { "nvmlDeviceGetHandleByIndex_v2", &n->device },
                { "nvmlDeviceGetName", &n->name },
                { "nvmlDeviceGetUtilizationRates", &n->busy },
                { "nvmlDeviceGetMemoryInfo", &n->memory },
                { "nvmlDeviceGetTemperature", &n->temperature },
                { "nvmlDeviceGetPowerUsage", &n->power },
        };
        for (size_t i = 0; i < array_size(all); i++) {
                void *found = library ? library_symbol(library, all[i].name) : NULL;
                if (!found)
                        return false;
                memcpy(all[i].to, &found, sizeof(found));
        }
        return n->init() == 0;
}

static size_t put(char *text, size_t at, size_t size, bool known, uint64_t value)
{
        int n = known ? snprintf(text + at, size - at, "%" PRIu64 " ", value)
                      : snprintf(text + at, size - at, "- ");
        return at + (size_t)n;
}

/* Write the line of a device. Returns the end of the text. */
static size_t read_device(const struct nvml *n, void *device, char *text, size_t at, size_t size)
{
        unsigned busy[2], temperature, power;
        unsigned long long memory[3];
        char name[NAME_SIZE] = "";
        if (n->name(device, name, sizeof(name)) != 0)
                return at;
        name[sizeof(name) - 1] = 0;
        bool known = !n->busy(device, busy);
        at = put(text, at, size, known, known ? busy[0] : 0);
        known = !n->memory(device, memory);
        at = put(text, at, size, known, known ? memory[2] : 0);
        at = put(text, at, size, known, known ? memory[0] : 0);
        known = !n->temperature(device, 0, &temperature);
        at = put(text, at, size, known, known ? temperature : 0);
        known = !n->power(device, &power);
        at = put(text, at, size, known, known ? power : 0);
        return at + (size_t)snprintf(text + at, size - at, "%s\n", name);
}

static int answer(const struct nvml *n)
{
        enum { LINE = NAME_SIZE + 5 * 21 + 2 };
        char text[CONTROL_MAX];
        unsigned count = 0;
        size_t at = 0;
        if (n && n->count(&count) != 0)
                count = 0;
        for (unsigned i = 0; i < count && i < DEVICES_MAX && at + LINE < sizeof(text); i++) {
                void *device;
                if (!n->device(i, &device))
                        at = read_device(n, device, text, at, sizeof(text));
        }
        return control_send(CONTROL_FD, CONTROL_SENSED, bytes_of(text, at), -1);
}

int sensors_main(void)
{
        static struct control c; /* static because it is large */
        static struct nvml n;
        process_name("spancld-sensors");
        process_end_with_parent();
        rights_gain_none();
        if (!load(&n))
                return answer(NULL) < 0;
        struct pollfd p = { .fd = CONTROL_FD, .events = POLLIN };
        while (poll(&p, 1, IDLE_MS) > 0) {
                int r = control_receive(CONTROL_FD, &c);
                if (!r)
                        control_drop(&c);
                if (r == SP_E_LINK || (!r && c.kind == CONTROL_SENSE && answer(&n) == SP_E_LINK))
                        break;
        }
        return 0;
}

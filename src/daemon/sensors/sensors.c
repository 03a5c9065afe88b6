#include "daemon/sensors/sensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "daemon/control.h"
#include "daemon/system/powercap.h"
#include "daemon/system/rights.h"
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
        int (*energy)(void *device, unsigned long long *ret); /* millijoules; NULL: an old driver */
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
        void *energy = library_symbol(library, "nvmlDeviceGetTotalEnergyConsumption");
        memcpy(&n->energy, &energy, sizeof(energy));
        return n->init() == 0;
}

static size_t put(char *text, size_t at, size_t size, bool known, uint64_t value)
{
        int n = known ? snprintf(text + at, size - at, "%" PRIu64 " ", value)
                      : snprintf(text + at, size - at, "- ");
        return at + (size_t)n;
}

static size_t put_processors(const struct powercap *p, char *text, size_t at, size_t size)
{
        for (size_t i = 0; i < p->count; i++) {
                uint64_t energy;
                bool known = powercap_read(p, i, &energy);
                at += (size_t)snprintf(text + at, size - at, "cpu %u ", p->processors[i].number);
                at = put(text, at, size, known, known ? energy : 0);
                at += (size_t)snprintf(text + at, size - at, "%" PRIu64 "\n",
                                       p->processors[i].range_uj);
        }
        return at;
}

/* Write the line of a device; NULL: one that can't be asked, which keeps its place. Returns the end of the text. */
static size_t read_device(const struct nvml *n, void *device, char *text, size_t at, size_t size)
{
        unsigned busy[2], temperature, power;
        unsigned long long memory[3], energy;
        char name[NAME_SIZE] = "";
        if (!device || n->name(device, name, sizeof(name)) != 0)
                return at + (size_t)snprintf(text + at, size - at, "- - - - - - ?\n");
        name[sizeof(name) - 1] = 0;
        bytes_tame(name, sizeof(name));
        bool known = !n->busy(device, busy);
        at = put(text, at, size, known, known ? busy[0] : 0);
        known = !n->memory(device, memory);
        at = put(text, at, size, known, known ? memory[2] : 0);
        at = put(text, at, size, known, known ? memory[0] : 0);
        known = !n->temperature(device, 0, &temperature);
        at = put(text, at, size, known, known ? temperature : 0);
        known = !n->power(device, &power);
        at = put(text, at, size, known, known ? power : 0);
        known = n->energy && !n->energy(device, &energy) && energy <= UINT64_MAX / 1000;
        at = put(text, at, size, known, known ? energy * 1000 : 0);
        return at + (size_t)snprintf(text + at, size - at, "%s\n", name);
}

static int answer(const struct nvml *n, const struct powercap *p)
{
        enum {
                LINE = NAME_SIZE + 6 * 21 + 2,
                PROCESSORS_SIZE = POWERCAP_PROCESSORS * (4 + 3 * 21 + 1)
        };
        char text[CONTROL_MAX];
        _Static_assert(PROCESSORS_SIZE + LINE < CONTROL_MAX, "all processors have room");
        unsigned count = 0;
        size_t at = put_processors(p, text, 0, sizeof(text));
        if (n && n->count(&count) != 0)
                count = 0;
        for (unsigned i = 0; i < count && i < DEVICES_MAX && at + LINE < sizeof(text); i++) {
                void *device = NULL;
                if (n->device(i, &device) != 0)
                        device = NULL;
                at = read_device(n, device, text, at, sizeof(text));
        }
        return control_send(CONTROL_FD, CONTROL_SENSED, bytes_of(text, at), -1);
}

int sensors_main(const struct config_options *o)
{
        static struct control c; /* static because it is large */
        static struct nvml n;
        static struct powercap p;
        process_name("spancld-sensors");
        process_end_with_parent();
        rights_gain_none();
        bool devices = load(&n);
        powercap_find(config_option_text(o, CONFIG_powercap), &p);
        if (!devices && !p.count)
                return answer(NULL, &p) < 0;
        struct pollfd event = { .fd = CONTROL_FD, .events = POLLIN };
        while (poll(&event, 1, IDLE_MS) > 0) {
                int r = control_receive(CONTROL_FD, &c);
                if (!r)
                        control_drop(&c);
                if (r == SP_E_LINK ||
                    (!r && c.kind == CONTROL_SENSE && answer(devices ? &n : NULL, &p) == SP_E_LINK))
                        break;
        }
        return 0;
}

/* A stand-in for the NVIDIA driver's management library, as far as spancld's sensors use it: one device, whose name is
 * NVML_NAME. With NVML_CRASH it crashes. The file NVML_ENERGY has its energy in millijoules. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetCount_v2(unsigned *ret);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret);
EXPORT int nvmlDeviceGetName(void *device, char *ret, unsigned size);
EXPORT int nvmlDeviceGetUtilizationRates(void *device, unsigned ret[2]);
EXPORT int nvmlDeviceGetMemoryInfo(void *device, unsigned long long ret[3]);
EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *ret);
EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *ret);
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *ret);

int nvmlInit_v2(void)
{
        return 0;
}

int nvmlDeviceGetCount_v2(unsigned *ret)
{
        *ret = 1;
        return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret)
{
        *ret = ret;
        return index != 0;
}

int nvmlDeviceGetName(void *device, char *ret, unsigned size)
{
        const char *name = getenv("NVML_NAME");
        if (getenv("NVML_CRASH")) {
                fputs("the stand-in crashes\n", stderr);
                abort();
        }
        snprintf(ret, size, "%s", name ? name : "");
        return !device;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned ret[2])
{
        ret[0] = 53;
        ret[1] = 7;
        return !device;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long ret[3])
{
        ret[0] = 80ull << 30;
        ret[1] = 70ull << 30;
        ret[2] = 10ull << 30;
        return !device;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *ret)
{
        *ret = 41;
        return !device || sensor;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *ret)
{
        *ret = 0;
        return device ? 3 : 2; /* not supported */
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *ret)
{
        const char *path = getenv("NVML_ENERGY");
        FILE *from = device && path ? fopen(path, "r") : NULL;
        char text[32] = "";
        if (!from)
                return 3; /* not supported */
        bool known = fgets(text, sizeof(text), from) && *text >= '0' && *text <= '9';
        fclose(from);
        *ret = strtoull(text, NULL, 10);
        return known ? 0 : 999;
}

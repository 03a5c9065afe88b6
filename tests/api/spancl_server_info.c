/* Queries of clGetDeviceInfo about the server of a device: PoCL's and those of cl_spancl_servers. servers: 2 */
#include "api.h"

#include <spancl/servers.h>
#include <time.h>

#define IP      0x4503
#define PORT    0x4504
#define TRAFFIC 0x4501

static const cl_device_info all[] = { IP,
                                      PORT,
                                      TRAFFIC,
                                      CL_DEVICE_SERVER_NAME_SPANCL,
                                      CL_DEVICE_SERVER_KEY_SPANCL,
                                      CL_DEVICE_SERVER_ROUND_TRIP_SPANCL };

/* Name `i` of the list SPANCL_SERVERS. */
static void name_of(unsigned i, char ret[256])
{
        const char *p = getenv("SPANCL_SERVERS");
        while (i--) {
                p = strchr(p, ' ');
                CHECK(p++);
        }
        snprintf(ret, 256, "%.*s", (int)strcspn(p, " "), p);
}

static void sizes(cl_device_id d, cl_device_info name, size_t size)
{
        char value[512];
        size_t has = 0;
        OK(clGetDeviceInfo(d, name, 0, NULL, &has));
        CHECK(!size || has == size);
        OK(clGetDeviceInfo(d, name, has, value, NULL));
        EXPECT(CL_INVALID_VALUE, clGetDeviceInfo(d, name, has - 1, value, NULL));
}

static void strings(cl_device_id d, const char *server)
{
        char name[256], key[256];
        cl_ulong round_trip = 0;
        sizes(d, CL_DEVICE_SERVER_NAME_SPANCL, 0);
        sizes(d, CL_DEVICE_SERVER_KEY_SPANCL, 0);
        sizes(d, CL_DEVICE_SERVER_ROUND_TRIP_SPANCL, sizeof(cl_ulong));
        OK(clGetDeviceInfo(d, CL_DEVICE_SERVER_NAME_SPANCL, sizeof(name), name, NULL));
        CHECK(!strcmp(name, server));
        OK(clGetDeviceInfo(d, CL_DEVICE_SERVER_KEY_SPANCL, sizeof(key), key, NULL));
        CHECK(!*key || strspn(key, "0123456789abcdef") == 64);
        CHECK(!strstr(server, "tls:") || *key);
        OK(clGetDeviceInfo(d, CL_DEVICE_SERVER_ROUND_TRIP_SPANCL, sizeof(round_trip), &round_trip,
                           NULL));
        CHECK(round_trip > 0 && round_trip < 60000000000ull);
}

static void address(cl_device_id d, const char *server)
{
        char ip[256];
        cl_uint port = 0;
        if (strstr(server, "unix:")) {
                EXPECT(CL_INVALID_VALUE, clGetDeviceInfo(d, IP, sizeof(ip), ip, NULL));
                EXPECT(CL_INVALID_VALUE, clGetDeviceInfo(d, PORT, sizeof(port), &port, NULL));
                return;
        }
        sizes(d, IP, 0);
        sizes(d, PORT, sizeof(cl_uint));
        OK(clGetDeviceInfo(d, IP, sizeof(ip), ip, NULL));
        CHECK(!strcmp(ip, "127.0.0.1") || !strcmp(ip, "::1"));
        OK(clGetDeviceInfo(d, PORT, sizeof(port), &port, NULL));
        CHECK(port == (cl_uint)atoi(strrchr(server, ':') + 1));
}

static void traffic(struct api *a, cl_uint i)
{
        static char bytes[1 << 20];
        cl_ulong before[6], after[6];
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, sizeof(bytes), NULL);
        time_t now = time(NULL);
        sizes(a->devices[i], TRAFFIC, sizeof(before));
        OK(clGetDeviceInfo(a->devices[i], TRAFFIC, sizeof(before), before, NULL));
        OK(clEnqueueWriteBuffer(a->queues[i], m, CL_TRUE, 0, sizeof(bytes), bytes, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(a->queues[i], m, CL_TRUE, 0, sizeof(bytes), bytes, 0, NULL, NULL));
        OK(clFinish(a->queues[i]));
        OK(clGetDeviceInfo(a->devices[i], TRAFFIC, sizeof(after), after, NULL));
        CHECK(after[0] >= (cl_ulong)now && after[1] < 1000000000);
        CHECK(after[2] >= after[3] && after[4] >= after[5]);
        CHECK(after[3] > before[3] && after[5] > before[5]);
        OK(clReleaseMemObject(m));
}

/* A device of this process has no server. */
static void in_process(cl_device_id d)
{
        char value[256];
        for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
                EXPECT(CL_INVALID_VALUE, clGetDeviceInfo(d, all[k], sizeof(value), value, NULL));
}

int main(void)
{
        char list[1024], server[256];
        snprintf(list, sizeof(list), "%s in-process", getenv("SPANCL_SERVERS"));
        setenv("SPANCL_SERVERS", list, 1);
        struct api a = api_open(0);
        unsigned count = 0, at = 0, remote = 0;
        for (const char *p = list; p; p = strchr(p + 1, ' '))
                count++;
        for (cl_uint i = 0; i < a.count; i++) {
                cl_ulong round_trip;
                if (clGetDeviceInfo(a.devices[i], CL_DEVICE_SERVER_ROUND_TRIP_SPANCL,
                                    sizeof(round_trip), &round_trip, NULL) != CL_SUCCESS) {
                        in_process(a.devices[i]);
                        continue;
                }
                /* Devices come in the order of the servers. */
                char name[256];
                OK(clGetDeviceInfo(a.devices[i], CL_DEVICE_SERVER_NAME_SPANCL, sizeof(name), name,
                                   NULL));
                for (name_of(at, server); strcmp(name, server) != 0; name_of(++at, server))
                        CHECK(at + 1 < count);
                strings(a.devices[i], server);
                address(a.devices[i], server);
                traffic(&a, i);
                remote++;
        }
        CHECK(remote > 0 && remote < a.count);
        api_close(&a);
        return 0;
}

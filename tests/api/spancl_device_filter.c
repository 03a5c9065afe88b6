/* SPANCL_DEVICES: the devices that pass, their order, and servers that are added later. servers: 2 */
#include "api.h"

#include <spancl/servers.h>
#include <sys/wait.h>

/* The devices that a process with this filter sees. */
struct seen {
        cl_platform_id platform;
        cl_device_id devices[API_DEVICES_MAX];
        cl_uint count;
};

static struct seen look(void)
{
        struct seen s = { 0 };
        OK(clGetPlatformIDs(1, &s.platform, NULL));
        cl_int e = clGetDeviceIDs(s.platform, CL_DEVICE_TYPE_ALL, API_DEVICES_MAX, s.devices,
                                  &s.count);
        EXPECT(s.count ? CL_SUCCESS : CL_DEVICE_NOT_FOUND, e);
        return s;
}

/* Run the claim in a process of its own with this filter and these servers. */
static cl_uint run(const char *filter, const char *servers, cl_uint (*claim)(void))
{
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
                setenv("SPANCL_DEVICES", filter, 1);
                if (servers)
                        setenv("SPANCL_SERVERS", servers, 1);
                exit((int)claim()); /* takes leave of the servers */
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
        CHECK(WEXITSTATUS(status) != 1);
        return (cl_uint)WEXITSTATUS(status) / 2;
}

/* A claim's status: twice the number of devices; 1 is a failed check. */
static cl_uint count(void)
{
        return 2 * look().count;
}

static cl_ulong memory(cl_device_id d)
{
        cl_ulong value;
        OK(clGetDeviceInfo(d, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(value), &value, NULL));
        return value;
}

static cl_uint by_memory(void)
{
        struct seen s = look();
        for (cl_uint i = 1; i < s.count; i++)
                CHECK(memory(s.devices[i - 1]) >= memory(s.devices[i]));
        return 2 * s.count;
}

/* Add the server of ADDED and wait until it is connected; its devices may not be shown. */
static struct seen add_server(const struct seen *before)
{
        char text[2048];
        spancl_servers_fn add = (spancl_servers_fn)clGetExtensionFunctionAddressForPlatform(
                before->platform, "clAddServersSPANCL");
        spancl_get_servers_fn get = (spancl_get_servers_fn)clGetExtensionFunctionAddressForPlatform(
                before->platform, "clGetServersSPANCL");
        CHECK(add && get);
        OK(add(before->platform, getenv("ADDED")));
        for (const char *state = "\tconnecting\t"; state;) {
                usleep(10000);
                look(); /* receives */
                OK(get(before->platform, sizeof(text), text, NULL));
                state = strstr(text, "\tconnecting\t") || strstr(text, "connected\t0\n") ? text
                                                                                         : NULL;
        }
        return look();
}

static cl_uint added(void)
{
        struct seen before = look(), after = add_server(&before);
        CHECK(after.count > before.count);
        CHECK(!memcmp(before.devices, after.devices, before.count * sizeof(cl_device_id)));
        return 2 * after.count;
}

static cl_uint added_in_vain(void)
{
        struct seen before = look(), after = add_server(&before);
        CHECK(after.count == before.count && after.devices[0] == before.devices[0]);
        return 2 * after.count;
}

int main(void)
{
        char second[256], name[256], filter[512];
        cl_uint all = run("", NULL, count);
        CHECK(all >= 2);
        CHECK(run("*", NULL, count) == 0);
        CHECK(run("name=*", NULL, count) == all);
        CHECK(run("cpu,gpu,accelerator,vendor=*", NULL, count) == all);
        CHECK(run("vendor=nobody", NULL, count) == 0);
        CHECK(run("memory>=1048576", NULL, count) == 0);
        CHECK(run("count=1", NULL, count) == 1);
        CHECK(run("order=latency", NULL, count) == all);
        CHECK(run("order=load", NULL, count) == all);
        CHECK(run("order=memory", NULL, by_memory) == all);
        CHECK(snprintf(second, sizeof(second), "%s", strchr(getenv("SPANCL_SERVERS"), ' ') + 1) <
              (int)sizeof(second));
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(getenv("SPANCL_SERVERS"), " "),
                 getenv("SPANCL_SERVERS"));
        setenv("ADDED", name, 1);
        cl_uint one = run("", second, count);
        CHECK(one >= 1 && one < all);
        CHECK(run("", second, added) == all);
        CHECK(run("order=memory", second, added) == all);
        snprintf(filter, sizeof(filter), "count=%u", one);
        CHECK(run(filter, second, added_in_vain) == one);
        /* The driver's names count, not those that the settings give. */
        setenv("SPANCL_DEVICE_NAME", "another", 1);
        setenv("SPANCL_DEVICE_VENDOR", "nobody", 1);
        CHECK(run("name=another", second, count) == 0);
        CHECK(run("vendor=nobody", second, count) == 0);
        CHECK(run("name=*", second, count) == one);
        return 0;
}

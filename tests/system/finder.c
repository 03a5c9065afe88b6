/* finder: a client whose servers come and go. It obeys standard input, a word per line, and answers each
 * with a line.
 *
 *   list     a letter for each device of clGetDeviceIDs, the same one as long as it is the same device
 *   until W  the same, when it is W ("-": none)
 *   use [L]  make a context on the first device, or on that with the letter, and keep it
 *   take     make a context of the platform's devices, without a list, and keep it
 *   has      a letter for each device of the context
 *   compute  write and read a buffer there: "ok", or the first error
 *   drop     release it
 *   state    of the first device of the context: is it available, 0 or 1?
 *   until_state S
 *   fork     list in the child of a fork
 *   children "none" if waitpid finds no child, and no SIGCHLD came
 *   add, remove S   a server, by cl_spancl_servers
 *   servers  its list, each line's end a ';'
 *   first    the name of the first device's server */
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <errno.h>
#include <signal.h>
#include <spancl/servers.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEVICES_MAX = 26, SIZE = 1 << 20 };

static cl_platform_id platform;
static cl_device_id known[DEVICES_MAX];
static unsigned known_count;
static cl_context context;
static cl_device_id used;
static volatile sig_atomic_t children;

static void on_child(int signal)
{
        (void)signal;
        children++;
}

static void pause_ms(int ms)
{
        struct timespec t = { .tv_nsec = ms * 1000000L };
        nanosleep(&t, NULL);
}

static void name_all(const cl_device_id *now, cl_uint count, char text[DEVICES_MAX + 2])
{
        strcpy(text, count ? "" : "-");
        for (cl_uint i = 0; i < count; i++) {
                unsigned k = 0;
                while (k < known_count && known[k] != now[i])
                        k++;
                if (k == known_count)
                        known[known_count++] = now[i];
                text[i] = (char)('a' + k);
                text[i + 1] = 0;
        }
}

static void list(char text[DEVICES_MAX + 2])
{
        cl_device_id now[DEVICES_MAX];
        cl_uint count = 0;
        cl_int e = clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, DEVICES_MAX, now, &count);
        if (e == CL_DEVICE_NOT_FOUND)
                count = 0;
        else if (e != CL_SUCCESS)
                exit(3);
        name_all(now, count, text);
}

static cl_int take(void)
{
        const cl_context_properties list[] = { CL_CONTEXT_PLATFORM, (cl_context_properties)platform,
                                               0 };
        cl_int e;
        context = clCreateContextFromType(list, CL_DEVICE_TYPE_CUSTOM, NULL, NULL, &e);
        return e;
}

static void has(char text[DEVICES_MAX + 2])
{
        cl_device_id devices[DEVICES_MAX];
        size_t size = 0;
        if (clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(devices), devices, &size))
                exit(3);
        name_all(devices, (cl_uint)(size / sizeof(*devices)), text);
}

static cl_int use(const char *letter)
{
        cl_int e = CL_SUCCESS;
        if (letter)
                used = known[*letter - 'a'];
        else
                e = clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, 1, &used, NULL);
        if (e == CL_SUCCESS)
                context = clCreateContext(NULL, 1, &used, NULL, NULL, &e);
        return e;
}

static cl_int compute(void)
{
        static int in[SIZE / sizeof(int)], out[SIZE / sizeof(int)];
        cl_int e;
        cl_command_queue q = clCreateCommandQueueWithProperties(context, used, NULL, &e);
        if (e != CL_SUCCESS)
                return e;
        for (size_t i = 0; i < SIZE / sizeof(int); i++)
                in[i] = (int)i;
        cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, SIZE, NULL, &e);
        if (e == CL_SUCCESS)
                e = clEnqueueWriteBuffer(q, m, CL_TRUE, 0, SIZE, in, 0, NULL, NULL);
        if (e == CL_SUCCESS)
                e = clEnqueueReadBuffer(q, m, CL_TRUE, 0, SIZE, out, 0, NULL, NULL);
        if (e == CL_SUCCESS && memcmp(in, out, SIZE) != 0)
                e = -999;
        if (m)
                clReleaseMemObject(m);
        clReleaseCommandQueue(q);
        return e;
}

static int state(void)
{
        cl_bool available;
        if (clGetDeviceInfo(used, CL_DEVICE_AVAILABLE, sizeof(available), &available, NULL))
                exit(3);
        return available != 0;
}

static void answer(cl_int e)
{
        if (e == CL_SUCCESS)
                printf("ok\n");
        else
                printf("error %d\n", e);
}

static void in_child(void)
{
        char text[DEVICES_MAX + 2];
        fflush(stdout);
        int pid = fork();
        if (!pid) {
                known_count = 0;
                list(text);
                printf("%s\n", text);
                fflush(stdout);
                _exit(0); /* a sanitizer would look for leaks, and drop what is not written yet */
        }
        waitpid(pid, NULL, 0);
        children = 0;
}

static void name_servers(const char *name, const char *servers)
{
        spancl_servers_fn fn =
                (spancl_servers_fn)(void *)clGetExtensionFunctionAddressForPlatform(platform, name);
        answer(fn ? fn(platform, servers) : -998);
}

static void print_servers(void)
{
        char text[4096];
        size_t size;
        spancl_get_servers_fn fn =
                (spancl_get_servers_fn)(void *)clGetExtensionFunctionAddressForPlatform(
                        platform, "clGetServersSPANCL");
        if (!fn || fn(platform, 0, NULL, &size) || size > sizeof(text) ||
            fn(platform, size, text, NULL))
                strcpy(text, "error");
        for (char *p = text; *p; p++)
                if (*p == '\n')
                        *p = ';';
        printf("%s\n", text);
}

static void print_first(void)
{
        char name[256];
        cl_device_id d;
        if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, 1, &d, NULL) ||
            clGetDeviceInfo(d, CL_DEVICE_SERVER_NAME_SPANCL, sizeof(name), name, NULL))
                strcpy(name, "error");
        printf("%s\n", name);
}

int main(void)
{
        char line[512], text[DEVICES_MAX + 2];
        signal(SIGCHLD, on_child);
        if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS) {
                printf("no platform\n");
                return 1;
        }
        while (fgets(line, sizeof(line), stdin)) {
                line[strcspn(line, "\n")] = 0;
                char *rest = strchr(line, ' ');
                if (rest)
                        *rest++ = 0;
                if (!strcmp(line, "list")) {
                        list(text);
                        printf("%s\n", text);
                } else if (!strcmp(line, "until")) {
                        for (list(text); strcmp(text, rest) != 0; list(text))
                                pause_ms(10);
                        printf("%s\n", text);
                } else if (!strcmp(line, "use")) {
                        answer(use(rest));
                } else if (!strcmp(line, "take")) {
                        answer(take());
                } else if (!strcmp(line, "has")) {
                        has(text);
                        printf("%s\n", text);
                } else if (!strcmp(line, "compute")) {
                        answer(compute());
                } else if (!strcmp(line, "drop")) {
                        answer(clReleaseContext(context));
                } else if (!strcmp(line, "state")) {
                        printf("%d\n", state());
                } else if (!strcmp(line, "until_state")) {
                        while (state() != atoi(rest))
                                pause_ms(10);
                        printf("%s\n", rest);
                } else if (!strcmp(line, "fork")) {
                        in_child();
                } else if (!strcmp(line, "children")) {
                        int r = waitpid(-1, NULL, WNOHANG);
                        printf("%s\n", r < 0 && errno == ECHILD && !children ? "none" : "some");
                } else if (!strcmp(line, "add")) {
                        name_servers("clAddServersSPANCL", rest);
                } else if (!strcmp(line, "remove")) {
                        name_servers("clRemoveServersSPANCL", rest);
                } else if (!strcmp(line, "servers")) {
                        print_servers();
                } else if (!strcmp(line, "first")) {
                        print_first();
                } else {
                        return 2;
                }
                fflush(stdout);
        }
        return 0;
}

/* nomad: a client that computes on whatever devices there are, until standard input ends. Servers come, drain,
 * die and move meanwhile. It adds ones to a buffer that goes from device to device, and compares every byte of
 * what comes back; what a lost server takes with it is computed again elsewhere.
 *
 * Prints figures in the end: computed rounds; rounds that a loss has ended; contexts; the most devices of a context;
 * devices that the callback has announced (new) and taken back (gone); the longest time between two rounds. */
#include <CL/cl.h>
#include <poll.h>
#include <spancl/availability.h>
#include <spancl/servers.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEVICES_MAX = 64, SIZE = 100003, STEPS = 8, LONG_MS = 1000 };

static cl_platform_id platform;
static cl_context context;
static cl_command_queue queues[DEVICES_MAX];
static cl_uint count;
static cl_program program;
static cl_kernel kernel;
static cl_mem ones, numbers;
static atomic_uint arrived, left;
static atomic_bool changed = true;
static unsigned char state[SIZE];

static void CL_CALLBACK on_change(cl_device_id device, cl_bool available, void *user_data)
{
        (void)device;
        (void)user_data;
        if (available)
                atomic_fetch_add(&arrived, 1);
        else
                atomic_fetch_add(&left, 1);
        atomic_store(&changed, true);
}

static void must(cl_int e, const char *what)
{
        if (e == CL_SUCCESS)
                return;
        fprintf(stderr, "nomad: %s: error %d\n", what, e);
        exit(1);
}

static double now_ms(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* A release may return the error of a server that is lost. */
static void close_context(void)
{
        if (ones)
                clReleaseMemObject(ones);
        if (numbers)
                clReleaseMemObject(numbers);
        if (kernel)
                clReleaseKernel(kernel);
        if (program)
                clReleaseProgram(program);
        for (cl_uint i = 0; i < count; i++)
                if (queues[i])
                        clReleaseCommandQueue(queues[i]);
        if (context)
                clReleaseContext(context);
        ones = numbers = NULL;
        kernel = NULL;
        program = NULL;
        context = NULL;
        memset(queues, 0, sizeof(queues));
        count = 0;
}

static cl_int open_context(void)
{
        static const char name[] = "pocl.add.i8";
        const unsigned char one = 1;
        cl_device_id all[DEVICES_MAX], devices[DEVICES_MAX];
        cl_uint known = 0;
        cl_int e = clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, DEVICES_MAX, all, &known);
        if (e != CL_SUCCESS)
                return e;
        for (cl_uint i = 0; i < known && i < DEVICES_MAX; i++) {
                cl_bool available = CL_FALSE;
                must(clGetDeviceInfo(all[i], CL_DEVICE_AVAILABLE, sizeof(available), &available,
                                     NULL),
                     "CL_DEVICE_AVAILABLE");
                if (available)
                        devices[count++] = all[i];
        }
        if (!count)
                return CL_DEVICE_NOT_AVAILABLE;
        context = clCreateContext(NULL, count, devices, NULL, NULL, &e);
        for (cl_uint i = 0; i < count && e == CL_SUCCESS; i++)
                queues[i] = clCreateCommandQueueWithProperties(context, devices[i], NULL, &e);
        if (e == CL_SUCCESS)
                program = clCreateProgramWithBuiltInKernels(context, count, devices, name, &e);
        if (e == CL_SUCCESS)
                kernel = clCreateKernel(program, name, &e);
        if (e == CL_SUCCESS)
                ones = clCreateBuffer(context, CL_MEM_READ_WRITE, SIZE, NULL, &e);
        if (e == CL_SUCCESS)
                numbers = clCreateBuffer(context, CL_MEM_READ_WRITE, SIZE, NULL, &e);
        if (e == CL_SUCCESS)
                e = clEnqueueFillBuffer(queues[0], ones, &one, 1, 0, SIZE, 0, NULL, NULL);
        if (e == CL_SUCCESS)
                e = clFinish(queues[0]);
        return e;
}

/* One step on each device in turn, and the result back. */
static cl_int compute(unsigned char result[SIZE])
{
        const size_t size = SIZE;
        cl_event before = NULL;
        cl_int e = clEnqueueWriteBuffer(queues[0], numbers, CL_TRUE, 0, SIZE, state, 0, NULL, NULL);
        if (e == CL_SUCCESS)
                e = clSetKernelArg(kernel, 0, sizeof(numbers), &numbers);
        if (e == CL_SUCCESS)
                e = clSetKernelArg(kernel, 1, sizeof(ones), &ones);
        if (e == CL_SUCCESS)
                e = clSetKernelArg(kernel, 2, sizeof(numbers), &numbers);
        for (unsigned i = 0; i < STEPS && e == CL_SUCCESS; i++) {
                cl_event after = NULL;
                e = clEnqueueNDRangeKernel(queues[i % count], kernel, 1, NULL, &size, NULL,
                                           before != NULL, before ? &before : NULL, &after);
                if (before)
                        clReleaseEvent(before);
                before = after;
        }
        for (cl_uint i = 0; i < count && e == CL_SUCCESS; i++)
                e = clFlush(queues[i]);
        if (e == CL_SUCCESS)
                e = clEnqueueReadBuffer(queues[0], numbers, CL_TRUE, 0, SIZE, result, 1, &before,
                                        NULL);
        if (before)
                clReleaseEvent(before);
        return e;
}

/* Say which servers there are in a long pause. */
static void tell_servers(double ms, cl_int error)
{
        char text[4096] = "";
        spancl_get_servers_fn get =
                (spancl_get_servers_fn)(void *)clGetExtensionFunctionAddressForPlatform(
                        platform, "clGetServersSPANCL");
        if (get)
                (void)get(platform, sizeof(text), text, NULL);
        fprintf(stderr, "nomad: nothing computed for %.0f ms, error %d:\n%s", ms, error, text);
}

static int input_ends(void)
{
        struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
        return poll(&p, 1, 0) > 0;
}

int main(void)
{
        static unsigned char result[SIZE];
        unsigned rounds = 0, failures = 0, contexts = 0, most = 0;
        double last = 0, longest = 0;
        bool told = false;
        must(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
        spancl_set_availability_callback_fn set = (spancl_set_availability_callback_fn)(void *)
                clGetExtensionFunctionAddressForPlatform(platform,
                                                         "clSetDeviceAvailabilityCallbackSPANCL");
        if (!set)
                return 1;
        must(set(NULL, on_change, NULL), "the callback for new devices");
        for (size_t i = 0; i < SIZE; i++)
                state[i] = (unsigned char)(i * 7);
        while (!input_ends()) {
                cl_int e = CL_SUCCESS;
                if (!context || atomic_exchange(&changed, false)) {
                        close_context();
                        e = open_context();
                        contexts += e == CL_SUCCESS;
                        most = count > most ? count : most;
                }
                if (e == CL_SUCCESS)
                        e = compute(result);
                if (e == CL_SUCCESS) {
                        for (size_t i = 0; i < SIZE; i++) {
                                unsigned char expected = (unsigned char)(state[i] + STEPS);
                                if (result[i] == expected)
                                        continue;
                                fprintf(stderr, "nomad: round %u: byte %zu is %u, not %u\n", rounds,
                                        i, result[i], expected);
                                return 1;
                        }
                        memcpy(state, result, SIZE);
                        double now = now_ms();
                        longest = rounds && now - last > longest ? now - last : longest;
                        last = now;
                        told = false;
                        rounds++;
                        if (rounds == 1) {
                                printf("computes\n");
                                fflush(stdout);
                        }
                        continue;
                }
                failures++;
                close_context();
                if (rounds && now_ms() - last > LONG_MS && !told) {
                        tell_servers(now_ms() - last, e);
                        told = true;
                }
                if (e != CL_DEVICE_NOT_FOUND && e != CL_DEVICE_NOT_AVAILABLE &&
                    e != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
                        fprintf(stderr, "nomad: round %u: error %d\n", rounds, e);
                        return 1;
                }
                struct timespec pause = { .tv_nsec = 2000000 };
                nanosleep(&pause, NULL);
        }
        close_context();
        printf("rounds %u failures %u contexts %u devices %u new %u gone %u longest_ms %.0f\n",
               rounds, failures, contexts, most, atomic_load(&arrived), atomic_load(&left),
               longest);
        return rounds ? 0 : 1;
}

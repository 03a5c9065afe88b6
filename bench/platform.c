/* Measures a platform with many servers: the first query of devices, the client's memory, and a round trip on one
 * device while nothing uses the others; the memory and the round trip again when their sessions have ended
 * (SPANCL_IDLE), and the time until a context on the last device begins one. The queries that follow have to give the
 * same devices. Devices are of the type "custom", as bench_fleet has them. Prints one JSON object. */
#include "opencl.h"

#include <malloc.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEVICES_MAX = 2048, ROUNDS = 2000, IDLE_S = 3 };

static double now_us(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Memory that the heap has given out, in KiB. */
static long allocated(void)
{
        struct mallinfo2 m = mallinfo2();
        return (long)((m.uordblks + m.hblkhd) / 1024);
}

/* Resident memory in KiB, with stacks of ended threads that the C library keeps. */
static long resident(void)
{
        long pages = 0;
        FILE *f = fopen("/proc/self/statm", "r");
        if (!f || fscanf(f, "%*d %ld", &pages) != 1)
                exit(1);
        fclose(f);
        return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static double round_trip(cl_command_queue queue, cl_mem m, cl_int value)
{
        double begin = now_us();
        for (int i = 0; i < ROUNDS; i++) {
                cl_int back = 0;
                CHECK(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(back), &back, 0, NULL,
                                          NULL));
                check(back == value ? CL_SUCCESS : CL_INVALID_VALUE, "the value");
        }
        return (now_us() - begin) / ROUNDS;
}

int main(void)
{
        static cl_device_id devices[DEVICES_MAX], again[DEVICES_MAX];
        cl_platform_id platform;
        cl_uint count, same;
        cl_int err, value = 1;
        /* Loaders ask for the devices already here. */
        long before = resident(), heap_before = allocated();
        double begin = now_us();
        CHECK(clGetPlatformIDs(1, &platform, NULL));
        CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, DEVICES_MAX, devices, &count));
        double first = now_us() - begin;
        long grown = resident() - before, heap = allocated() - heap_before;
        begin = now_us();
        CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, DEVICES_MAX, again, &same));
        double second = now_us() - begin;
        if (same != count || memcmp(devices, again, count * sizeof(*devices)) != 0)
                check(CL_INVALID_VALUE, "the devices of the second query");
        cl_context context = clCreateContext(NULL, 1, devices, NULL, NULL, &err);
        check(err, "clCreateContext");
        cl_command_queue queue = clCreateCommandQueue(context, devices[0], 0, &err);
        check(err, "clCreateCommandQueue");
        cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(value), NULL, &err);
        check(err, "clCreateBuffer");
        CHECK(clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL));
        double trip = round_trip(queue, m, value);
        sleep(IDLE_S);
        long idle_grown = resident() - before, idle_heap = allocated() - heap_before;
        double idle_trip = round_trip(queue, m, value);
        begin = now_us();
        cl_context late = clCreateContext(NULL, 1, &devices[count - 1], NULL, NULL, &err);
        check(err, "clCreateContext on an idle server");
        double again_us = now_us() - begin;
        CHECK(clReleaseContext(late));
        CHECK(clReleaseMemObject(m));
        CHECK(clReleaseCommandQueue(queue));
        CHECK(clReleaseContext(context));
        printf("{\"devices\": %u, \"first_ms\": %.1f, \"second_us\": %.1f, \"memory_kib\": %ld, "
               "\"heap_kib\": %ld, \"read_4_us\": %.1f, \"idle_memory_kib\": %ld, "
               "\"idle_heap_kib\": %ld, \"idle_read_4_us\": %.1f, \"again_ms\": %.1f}\n",
               count, first / 1e3, second, grown, heap, trip, idle_grown, idle_heap, idle_trip,
               again_us / 1e3);
        return 0;
}

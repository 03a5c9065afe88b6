/* Measures how soon the completion of a command is noticed: by clSetEventCallback, by a thread
 * that sleeps in clWaitForEvents, and by polling clGetEventInfo. An empty kernel runs one at a
 * time. For comparison the first series uses only clFinish on the enqueuing thread. Bursts
 * follow. Prints one JSON object. */

#include "opencl.h"
#include "samples.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>

enum { ROUNDS = 2000, WARM_UP = 100, BURST = 64 };

static struct samples samples;
static struct launcher on;

static cl_event enqueue(void)
{
        static const size_t one = 1;
        cl_event event;
        check(clEnqueueNDRangeKernel(on.queue, on.kernel, 1, NULL, &one, &one, 0, NULL, &event),
              "clEnqueueNDRangeKernel");
        check(clFlush(on.queue), "clFlush");
        return event;
}

/* The time when the event of the current round was noticed. The main thread sleeps until then, as
 * an engine's does, so that it takes no core from the working threads. */
static double noticed;
static sem_t posted;

static void notice(void)
{
        noticed = now_us();
        sem_post(&posted);
}

static double wait_noticed(unsigned times)
{
        while (times--)
                while (sem_wait(&posted))
                        continue;
        return noticed;
}

static void measure(const char *name, double (*one)(void))
{
        for (int i = 0; i < WARM_UP; i++)
                one();
        for (int i = 0; i < ROUNDS; i++)
                samples_add(&samples, one());
        samples_print(&samples, name, "us");
}

static double by_finish(void)
{
        double start = now_us();
        cl_event event = enqueue();
        check(clFinish(on.queue), "clFinish");
        double end = now_us();
        clReleaseEvent(event);
        return end - start;
}

static double by_polling(void)
{
        double start = now_us();
        cl_event event = enqueue();
        cl_int status = CL_QUEUED;
        while (status > CL_COMPLETE)
                check(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                                     &status, NULL),
                      "clGetEventInfo");
        double end = now_us();
        clReleaseEvent(event);
        return end - start;
}

static void CL_CALLBACK on_complete(cl_event event, cl_int status, void *user)
{
        notice();
}

static double by_callback(void)
{
        double start = now_us();
        cl_event event = enqueue();
        check(clSetEventCallback(event, CL_COMPLETE, on_complete, NULL), "clSetEventCallback");
        double end = wait_noticed(1);
        clReleaseEvent(event);
        return end - start;
}

/* The events to wait for, in order. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static cl_event waited[BURST];
static unsigned waited_count;
static int stop;

static void *waiter_main(void *arg)
{
        pthread_mutex_lock(&lock);
        while (!stop) {
                cl_event events[BURST];
                unsigned count = waited_count;
                memcpy(events, waited, sizeof(events));
                waited_count = 0;
                if (!count) {
                        pthread_cond_wait(&changed, &lock);
                        continue;
                }
                pthread_mutex_unlock(&lock);
                for (unsigned i = 0; i < count; i++) {
                        check(clWaitForEvents(1, &events[i]), "clWaitForEvents");
                        notice();
                }
                pthread_mutex_lock(&lock);
        }
        pthread_mutex_unlock(&lock);
        return NULL;
}

static void hand_over(cl_event event)
{
        pthread_mutex_lock(&lock);
        waited[waited_count++] = event;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
}

static double by_waiting(void)
{
        double start = now_us();
        cl_event event = enqueue();
        hand_over(event);
        double end = wait_noticed(1);
        clReleaseEvent(event);
        return end - start;
}

/* The time for each command of a burst until the last is noticed. */
static double burst(int callback)
{
        cl_event events[BURST];
        double start = now_us();
        for (int i = 0; i < BURST; i++) {
                events[i] = enqueue();
                if (callback)
                        check(clSetEventCallback(events[i], CL_COMPLETE, on_complete, NULL),
                              "clSetEventCallback");
                else
                        hand_over(events[i]);
        }
        double end = wait_noticed(BURST);
        for (int i = 0; i < BURST; i++)
                clReleaseEvent(events[i]);
        return (end - start) / BURST;
}

static double burst_by_callback(void)
{
        return burst(1);
}

static double burst_by_waiting(void)
{
        return burst(0);
}

int main(void)
{
        launcher_init(&on);
        if (sem_init(&posted, 0, 0))
                return 1;
        measure("finish", by_finish);
        measure("poll", by_polling);
        measure("callback", by_callback);
        pthread_t thread;
        if (pthread_create(&thread, NULL, waiter_main, NULL))
                return 1;
        measure("wait_thread", by_waiting);
        measure("callback_burst", burst_by_callback);
        measure("wait_thread_burst", burst_by_waiting);
        pthread_mutex_lock(&lock);
        stop = 1;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
        pthread_join(thread, NULL);
        printf("\n}\n");
        return 0;
}

/* Measures the cost of a probe, switched off and on. Prints one JSON object. */

#include "samples.h"
#include "trace/trace.h"

enum { ROUNDS = 200, PROBES = 10000 };

static struct samples samples;

static void measure(const char *name, void (*probes)(void))
{
        for (int i = 0; i < ROUNDS; i++) {
                double start = now_us();
                probes();
                samples_add(&samples, (now_us() - start) * 1e3 / PROBES);
        }
        samples_print(&samples, name, "ns");
}

static void nothing(void)
{
        for (unsigned i = 0; i < PROBES; i++)
                __asm__ volatile("" : : "r"(i));
}

static void moments(void)
{
        for (unsigned i = 0; i < PROBES; i++)
                TRACE(completed, i);
}

static void spans(void)
{
        for (unsigned i = 0; i < PROBES; i++) {
                TRACE_SPAN(submit, i);
                __asm__ volatile("" : : "r"(i));
        }
}

int main(void)
{
        measure("loop", nothing);
        measure("moment_off", moments);
        measure("span_off", spans);
        trace_start(true);
        measure("moment_on", moments);
        measure("span_on", spans);
        printf("\n}\n");
        return 0;
}

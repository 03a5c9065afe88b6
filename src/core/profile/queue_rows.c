#include "core/profile/queue_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int by_row(const void *a, const void *b)
{
        const struct journal_command *x = *(const struct journal_command *const *)a;
        const struct journal_command *y = *(const struct journal_command *const *)b;
        if (x->server != y->server)
                return x->server < y->server ? -1 : 1;
        if (x->queue != y->queue)
                return x->queue < y->queue ? -1 : 1;
        return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

unsigned queue_rows_free_layer(uint64_t layers[QUEUE_ROWS_LAYERS], uint64_t begin_ns,
                               uint64_t end_ns)
{
        unsigned i = 0;
        while (i < QUEUE_ROWS_LAYERS && layers[i] > begin_ns)
                i++;
        if (i < QUEUE_ROWS_LAYERS)
                layers[i] = end_ns;
        return i;
}

void queue_rows_put_rate(struct timeline *out, uint64_t bytes, uint64_t ns)
{
        timeline_arg(out, "bytes", bytes);
        if (ns)
                timeline_arg(out, "MB_s", bytes < UINT64_MAX / 1000 ? bytes * 1000 / ns : 0);
}

static void put_sizes(struct timeline *out, const char *name, const uint64_t sizes[3],
                      unsigned dims)
{
        char text[80] = "";
        int n = 0;
        for (unsigned i = 0; i < dims; i++)
                n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%" PRIu64, i ? "x" : "",
                              sizes[i]);
        if (sizes[0])
                timeline_arg_text(out, name, text);
}

/* The events that its message waits for, as a text. */
static void put_after(struct timeline *out, const struct journal_command *j)
{
        char text[JOURNAL_AFTER * 24] = "";
        int n = 0;
        for (unsigned i = 0; i < j->after_count && i < JOURNAL_AFTER; i++)
                n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%" PRIu64, i ? " " : "",
                              j->after[i]);
        if (n)
                timeline_arg_text(out, "after", text);
}

static void put_queue(struct timeline *out, const char *device, unsigned process, uint64_t thread,
                      unsigned layer, unsigned number)
{
        char name[160];
        snprintf(name, sizeof(name), "queue %u%s on %.100s", number, layer ? " (beside)" : "",
                 device);
        timeline_thread(out, process, thread, name);
}

static void put_command(struct timeline *out, unsigned process, uint64_t thread, uint64_t begin_ns,
                        const struct journal_command *j)
{
        /* Figures of kernels and transfers have only those that succeeded. */
        const char *kind = j->failed  ? "other"
                           : j->dims  ? "kernel"
                           : j->bytes ? "transfer"
                                      : "other";
        timeline_slice(out, process, thread, begin_ns, j->untimed ? begin_ns : j->end_ns, kind,
                       j->name);
        timeline_arg(out, "event", j->id);
        if (j->asked)
                timeline_arg(out, "asked", 1);
        if (j->untimed)
                timeline_arg(out, "untimed", 1);
        put_after(out, j);
        put_sizes(out, "global", j->global, j->dims);
        put_sizes(out, "local", j->local, j->dims);
        if (j->bytes && !j->failed)
                queue_rows_put_rate(out, j->bytes, j->end_ns - begin_ns);
        if (j->failed)
                timeline_arg(out, "failed", 1);
        if (j->submit_ns && j->submit_ns < j->start_ns)
                timeline_arg(out, "queued_ns", j->start_ns - j->submit_ns);
        if (j->by_server)
                timeline_arg_text(out, "times", "of the server");
        timeline_slice_end(out);
        timeline_flow(out, TRACE_FLOW_STEP, process, thread, begin_ns, "command", j->id);
}

void queue_rows_put(struct timeline *out, struct journal_gaps *gaps,
                    const struct journal_command **all, size_t count,
                    const struct queue_rows_names *names)
{
        const struct journal_command *last = NULL; /* that was shown */
        uint64_t layers[QUEUE_ROWS_LAYERS] = { 0 }, thread = 0;
        unsigned number = 0, named = 0;
        qsort(all, count, sizeof(*all), by_row);
        for (size_t i = 0; i < count; i++) {
                const struct journal_command *j = all[i];
                const char *server =
                        j->end_ns || j->untimed ? names->server(names->user, j->server) : NULL;
                if (!server) {
                        gaps->untimed++;
                        continue;
                }
                unsigned process = JOURNAL_DEVICES + j->server;
                bool first = !last || last->server != j->server;
                bool other = first || last->queue != j->queue;
                last = j;
                if (first) {
                        char name[300];
                        snprintf(name, sizeof(name), "%.250s: devices", server);
                        timeline_process(out, process, name);
                        number = 0;
                }
                if (other) {
                        number++;
                        thread = (uint64_t)number * QUEUE_ROWS_LAYERS;
                        named = 0;
                        for (unsigned k = 0; k < QUEUE_ROWS_LAYERS; k++)
                                layers[k] = 0;
                }
                uint64_t begin = j->start_ns;
                if (j->untimed) {
                        put_command(out, process, thread, begin, j);
                        continue;
                }
                if (j->in_order && begin < layers[0]) /* the clock was measured anew meanwhile */
                        begin = layers[0] < j->end_ns ? layers[0] : j->end_ns;
                unsigned layer = queue_rows_free_layer(layers, begin, j->end_ns);
                if (layer == QUEUE_ROWS_LAYERS) {
                        gaps->dropped++;
                        continue;
                }
                if (!(named & 1u << layer))
                        put_queue(out, names->device(names->user, j->server, j->device), process,
                                  thread + layer, layer, number);
                named |= 1u << layer;
                put_command(out, process, thread + layer, begin, j);
        }
}

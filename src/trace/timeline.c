#include "trace/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/quote.h"

void timeline_begin(struct timeline *t, FILE *out)
{
        *t = (struct timeline){ .out = out };
        fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [", out);
}

void timeline_end(struct timeline *t)
{
        fputs(t->other ? "}}\n" : "\n]}\n", t->out);
}

static void next(struct timeline *t)
{
        fputs(t->started ? ",\n" : "\n", t->out);
        t->started = true;
}

static void put_text(FILE *out, const char *text)
{
        char escaped[QUOTE_CHARACTER];
        fputc('"', out);
        for (struct bytes b = bytes_str(text); b.size;)
                fwrite(escaped, 1, quote_character(&b, escaped), out);
        fputc('"', out);
}

/* Write exact microseconds: doubles have too few digits for machines that run for long. */
static void put_us(FILE *out, uint64_t ns)
{
        fprintf(out, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

void timeline_process(struct timeline *t, unsigned process, const char *name)
{
        next(t);
        fprintf(t->out,
                "{\"ph\": \"M\", \"pid\": %u, \"name\": \"process_name\", \"args\": {\"name\": ",
                process);
        put_text(t->out, name);
        fputs("}}", t->out);
}

void timeline_thread(struct timeline *t, unsigned process, uint64_t thread, const char *name)
{
        next(t);
        fprintf(t->out,
                "{\"ph\": \"M\", \"pid\": %u, \"tid\": %" PRIu64
                ", \"name\": \"thread_name\", \"args\": {\"name\": ",
                process, thread);
        put_text(t->out, name);
        fputs("}}", t->out);
}

static void put_head(struct timeline *t, const char *phase, unsigned process, uint64_t thread,
                     uint64_t ns)
{
        next(t);
        fprintf(t->out, "{\"ph\": \"%s\", \"pid\": %u, \"tid\": %" PRIu64 ", \"ts\": ", phase,
                process, thread);
        put_us(t->out, ns);
}

/* ---- slices and arrows ---------------------------------------------------------------------- */

void timeline_slice(struct timeline *t, unsigned process, uint64_t thread, uint64_t begin_ns,
                    uint64_t end_ns, const char *category, const char *name)
{
        put_head(t, "X", process, thread, begin_ns);
        fputs(", \"dur\": ", t->out);
        put_us(t->out, end_ns > begin_ns ? end_ns - begin_ns : 0);
        fputs(", \"name\": ", t->out);
        put_text(t->out, name);
        fprintf(t->out, ", \"cat\": \"%s\", \"args\": {", category);
        t->more = false;
}

void timeline_slice_end(struct timeline *t)
{
        fputs("}}", t->out);
}

static void next_arg(struct timeline *t, const char *name)
{
        fprintf(t->out, "%s\"%s\": ", t->more ? ", " : "", name);
        t->more = true;
}

void timeline_arg(struct timeline *t, const char *name, uint64_t value)
{
        next_arg(t, name);
        fprintf(t->out, "%" PRIu64, value);
}

void timeline_arg_text(struct timeline *t, const char *name, const char *value)
{
        next_arg(t, name);
        put_text(t->out, value);
}

void timeline_arg_real(struct timeline *t, const char *name, double value)
{
        if (!isfinite(value))
                return;
        next_arg(t, name);
        fprintf(t->out, "%.17g", value);
}

void timeline_counter(struct timeline *t, unsigned process, uint64_t ns, const char *name)
{
        put_head(t, "C", process, 0, ns);
        fputs(", \"name\": ", t->out);
        put_text(t->out, name);
        fputs(", \"args\": {", t->out);
        t->more = false;
}

void timeline_flow(struct timeline *t, enum trace_flow flow, unsigned process, uint64_t thread,
                   uint64_t ns, const char *category, uint64_t id)
{
        static const char *const phases[] = {
                [TRACE_FLOW_START] = "s", [TRACE_FLOW_STEP] = "t", [TRACE_FLOW_END] = "f"
        };
        put_head(t, phases[flow], process, thread, ns);
        fprintf(t->out,
                ", \"name\": \"%s\", \"cat\": \"%s\", \"bp\": \"e\", \"id\": \"%" PRIx64 "\"}",
                category, category, id ^ t->flow_salt);
}

void timeline_rate(struct timeline *t, unsigned process, uint64_t ns, uint64_t width_ns,
                   uint64_t sent, uint64_t received)
{
        put_head(t, "C", process, 0, ns);
        fprintf(t->out, ", \"name\": \"MB/s\", \"args\": {\"sent\": %.3f, \"received\": %.3f}}",
                (double)sent * 1e3 / (double)width_ns, (double)received * 1e3 / (double)width_ns);
}

/* ---- records -------------------------------------------------------------------------------- */

static void put_record(struct timeline *t, unsigned process, uint64_t thread,
                       const struct trace_record *r, const char *command, bool first)
{
        const struct trace_info *p = trace_find(trace_probe_of(r));
        if (!p || r->end_ns < r->begin_ns)
                return;
        timeline_slice(t, process, thread, r->begin_ns, r->end_ns, p->group, p->name);
        timeline_arg(t, p->value, r->value);
        if (command)
                timeline_arg_text(t, "command", command);
        timeline_slice_end(t);
        if (p->flow == TRACE_FLOW_MARK) {
                put_head(t, "i", process, thread, r->begin_ns);
                fprintf(t->out, ", \"s\": \"g\", \"name\": \"%s\", \"cat\": \"mark\"}", p->name);
        } else if (p->flow != TRACE_FLOW_NONE) {
                timeline_flow(t, first ? TRACE_FLOW_START : p->flow, process, thread, r->begin_ns,
                              "command", r->value);
        }
}

void timeline_record(struct timeline *t, unsigned process, uint64_t thread,
                     const struct trace_record *r, const char *command)
{
        put_record(t, process, thread, r, command, false);
}

void timeline_record_first(struct timeline *t, unsigned process, uint64_t thread,
                           const struct trace_record *r)
{
        put_record(t, process, thread, r, NULL, true);
}

/* ---- other data ----------------------------------------------------------------------------- */

void timeline_other(struct timeline *t)
{
        fputs("\n],\n\"otherData\": {", t->out);
        t->other = true;
        t->more = false;
}

void timeline_clocks(struct timeline *t, const struct timeline_clock *clocks, size_t count)
{
        next_arg(t, "clocks");
        fputc('[', t->out);
        for (size_t i = 0; i < count; i++) {
                fprintf(t->out, "%s{\"server\": ", i ? ", " : "");
                put_text(t->out, clocks[i].server);
                /* The offset is a text: readers keep 53 bits of a number. */
                fprintf(t->out, ", \"error_ns\": %" PRIu64 ", \"offset_ns\": \"%" PRId64 "\"}",
                        clocks[i].error_ns, clocks[i].offset_ns);
        }
        fputc(']', t->out);
}

void timeline_energy(struct timeline *t, const struct timeline_energy *all, size_t count)
{
        next_arg(t, "energy");
        fputc('[', t->out);
        for (size_t i = 0; i < count; i++) {
                fprintf(t->out, "%s{\"server\": ", i ? ", " : "");
                put_text(t->out, all[i].server);
                fprintf(t->out, ", \"device\": %" PRIu64 ", \"name\": ", all[i].device);
                put_text(t->out, all[i].name);
                fprintf(t->out, ", \"energy_uj\": %" PRIu64 "}", all[i].energy_uj);
        }
        fputc(']', t->out);
}

bool timeline_path(const char *path, unsigned number, char *ret, size_t size)
{
        const char *name = strrchr(path, '/'), *dot = strrchr(name ? name : path, '.');
        size_t stem = dot && dot != path && dot[-1] != '/' ? (size_t)(dot - path) : strlen(path);
        int n = number > 1 ? snprintf(ret, size, "%.*s-%u%s", (int)stem, path, number, path + stem)
                           : snprintf(ret, size, "%s", path);
        return n > 0 && (size_t)n < size;
}

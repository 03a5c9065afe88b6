#include "trace/timeline.h"

#include <inttypes.h>

void timeline_begin(struct timeline *t, FILE *out)
{
        *t = (struct timeline){ .out = out };
        fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [", out);
}

void timeline_end(struct timeline *t)
{
        fputs("\n]}\n", t->out);
}

static void next(struct timeline *t)
{
        fputs(t->started ? ",\n" : "\n", t->out);
        t->started = true;
}

static void put_text(FILE *out, const char *text)
{
        fputc('"', out);
        for (; *text; text++) {
                unsigned char c = (unsigned char)*text;
                if (c < ' ')
                        continue;
                if (c == '"' || c == '\\')
                        fputc('\\', out);
                fputc(c, out);
        }
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

void timeline_record(struct timeline *t, unsigned process, uint64_t thread,
                     const struct trace_record *r)
{
        static const char *const flows[] = {
                [TRACE_FLOW_START] = "s", [TRACE_FLOW_STEP] = "t", [TRACE_FLOW_END] = "f"
        };
        const struct trace_info *p = trace_find(r->probe);
        if (!p || r->end_ns < r->begin_ns)
                return;
        put_head(t, "X", process, thread, r->begin_ns);
        fputs(", \"dur\": ", t->out);
        put_us(t->out, r->end_ns - r->begin_ns);
        fprintf(t->out, ", \"name\": \"%s\", \"cat\": \"%s\", \"args\": {\"%s\": %" PRIu64 "}}",
                p->name, p->group, p->value, r->value);
        if (!flows[p->flow])
                return;
        put_head(t, flows[p->flow], process, thread, r->begin_ns);
        fprintf(t->out,
                ", \"name\": \"command\", \"cat\": \"command\", \"bp\": \"e\", \"id\": \"%" PRIx64
                "\"}",
                r->value);
}

#include "cli/trace/summary.h"

#include <inttypes.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/mem.h"
#include "cli/profile/answers.h"
#include "cli/trace/perfetto.h"

static const char *const categories[SUMMARY_KINDS] = { "kernel", "transfer", "migration",
                                                       "waited" };
static const char *const names[SUMMARY_KINDS] = { "kernels", "transfers", "migrations", "waits" };

static void keep_longest(struct summary *s, enum summary_kind kind,
                         const struct trace_file_event *e)
{
        const struct trace_file_event **all = s->kinds[kind].longest;
        size_t n = s->kinds[kind].shown, at = n;
        while (at && all[at - 1]->duration_ns < e->duration_ns)
                at--;
        if (at == SUMMARY_TOP)
                return;
        size_t behind = (n < SUMMARY_TOP ? n : SUMMARY_TOP - 1) - at;
        memmove(&all[at + 1], &all[at], behind * sizeof(*all));
        all[at] = e;
        s->kinds[kind].shown = n < SUMMARY_TOP ? n + 1 : n;
}

static void count_moment(struct summary *s, const char *name)
{
        const struct {
                const char *name;
                uint64_t *count;
        } all[] = {
                { "enqueue", &s->enqueued },        { "compile", &s->compiled },
                { "cached", &s->cached },           { "disconnected", &s->disconnected },
                { "reconnected", &s->reconnected }, { "lost", &s->lost },
                { "failed", &s->failed },
        };
        for (size_t i = 0; i < array_size(all); i++)
                if (!strcmp(name, all[i].name))
                        ++*all[i].count;
}

static bool is_of_probe(const char *category)
{
        return !strcmp(category, "client") || !strcmp(category, "server") ||
               !strcmp(category, "link");
}

void summary_make(const struct trace_file *f, struct summary *ret)
{
        uint64_t begin = UINT64_MAX, end = 0;
        *ret = (struct summary){ 0 };
        for (size_t i = 0; i < f->row_count; i++)
                ret->processes += !f->rows[i].thread;
        for (size_t i = 0; i < f->event_count; i++) {
                const struct trace_file_event *e = &f->events[i];
                const char *category = trace_file_text(f, e->category);
                if (e->phase != 'X')
                        continue;
                uint64_t last = e->begin_ns + e->duration_ns;
                begin = e->begin_ns < begin ? e->begin_ns : begin;
                end = last > end ? last : end;
                ret->events++;
                if (is_of_probe(category)) {
                        count_moment(ret, trace_file_text(f, e->name));
                        continue;
                }
                for (int k = 0; k < SUMMARY_KINDS; k++) {
                        if (strcmp(category, categories[k]) != 0)
                                continue;
                        ret->kinds[k].count++;
                        ret->kinds[k].ns += e->duration_ns;
                        ret->kinds[k].bytes += e->bytes;
                        keep_longest(ret, (enum summary_kind)k, e);
                }
        }
        ret->wall_ns = end > begin ? end - begin : 0;
}

static void print_longest(FILE *to, const struct trace_file *f, const struct summary *s,
                          enum summary_kind kind)
{
        static const char *const titles[SUMMARY_KINDS] = { "Longest kernels", "Longest transfers",
                                                           "Longest migrations", "Longest waits" };
        char t[ANSWERS_NUMBER_MAX], b[ANSWERS_NUMBER_MAX];
        if (!s->kinds[kind].shown)
                return;
        fprintf(to, "\n%s\n", titles[kind]);
        for (size_t i = 0; i < s->kinds[kind].shown; i++) {
                const struct trace_file_event *e = s->kinds[kind].longest[i];
                fprintf(to, "  %10s  %-32s  %s", answers_time(e->duration_ns, t),
                        trace_file_text(f, e->name),
                        e->server ? trace_file_text(f, e->server)
                                  : trace_file_row_name(f, e->process, 0));
                if (e->command)
                        fprintf(to, ", %s", trace_file_text(f, e->command));
                if (e->bytes)
                        fprintf(to, "  %s", answers_size(e->bytes, b));
                fputc('\n', to);
        }
}

static void print_energy(FILE *to, const struct trace_file *f)
{
        if (f->energy_count)
                fputs("\nEnergy\n", to);
        for (size_t i = 0; i < f->energy_count; i++)
                fprintf(to, "  %8.3f J  %-32s  %s\n", (double)f->energies[i].energy_uj / 1e6,
                        trace_file_text(f, f->energies[i].name),
                        trace_file_text(f, f->energies[i].server));
}

static void json_energy(struct json_writer *w, const struct trace_file *f)
{
        json_begin(w, "energy", '[');
        for (size_t i = 0; i < f->energy_count; i++) {
                json_begin(w, NULL, '{');
                json_put_text(w, "server", trace_file_text(f, f->energies[i].server));
                json_put_u64(w, "device", f->energies[i].device);
                json_put_text(w, "name", trace_file_text(f, f->energies[i].name));
                json_put_real(w, "joules", (double)f->energies[i].energy_uj / 1e6, 3);
                json_end(w, '}');
        }
        json_end(w, ']');
}

static void print_gaps(FILE *to, const struct trace_file *f)
{
        char n[ANSWERS_NUMBER_MAX];
        if (f->dropped)
                fprintf(to, "%s older records had no room and are missing.\n",
                        answers_count(f->dropped, n));
        if (f->untimed)
                fprintf(to,
                        "%s commands are not shown on their device: their times are not known.\n",
                        answers_count(f->untimed, n));
        if (f->left_out)
                fprintf(to, "The counts leave out %s events.\n", answers_count(f->left_out, n));
}

void summary_text(FILE *to, const struct trace_file *f, const struct summary *s, const char *path)
{
        char a[ANSWERS_NUMBER_MAX], b[ANSWERS_NUMBER_MAX], c[ANSWERS_NUMBER_MAX];
        fprintf(to, "\n%s events in %s, %s commands enqueued\n", answers_count(s->events, a),
                answers_time(s->wall_ns, b), answers_count(s->enqueued, c));
        for (int k = 0; k < SUMMARY_KINDS; k++) {
                if (!s->kinds[k].count)
                        continue;
                fprintf(to, "  %-10s  %8s  %10s", names[k], answers_count(s->kinds[k].count, a),
                        answers_time(s->kinds[k].ns, b));
                if (s->kinds[k].bytes)
                        fprintf(to, "  %s", answers_size(s->kinds[k].bytes, c));
                fputc('\n', to);
        }
        if (s->compiled || s->cached)
                fprintf(to, "  %-10s  %8s  of them from the cache: %s\n", "builds",
                        answers_count(s->compiled + s->cached, a), answers_count(s->cached, b));
        if (s->disconnected || s->lost)
                fprintf(to, "  connections lost: %s, made again: %s, servers lost: %s\n",
                        answers_count(s->disconnected, a), answers_count(s->reconnected, b),
                        answers_count(s->lost, c));
        if (s->failed)
                fprintf(to, "  commands that failed: %s\n", answers_count(s->failed, a));
        for (int k = 0; k < SUMMARY_KINDS; k++)
                print_longest(to, f, s, (enum summary_kind)k);
        print_energy(to, f);
        fputc('\n', to);
        if (f->reason)
                fprintf(to, "The flight recorder wrote it: %s.\n", trace_file_text(f, f->reason));
        print_gaps(to, f);
        for (size_t i = 0; i < f->clock_count; i++)
                if (f->clocks[i].error_ns)
                        fprintf(to, "Times of %s are exact to ±%s.\n",
                                trace_file_text(f, f->clocks[i].server),
                                answers_time(f->clocks[i].error_ns, a));
                else
                        fprintf(to, "%s has the same clock.\n",
                                trace_file_text(f, f->clocks[i].server));
        fprintf(to, "The timeline is in %s. Open it in https://ui.perfetto.dev%s.\n", path,
                perfetto_is_name(path) ? "" : " or chrome://tracing");
}

static void put_longest(struct json_writer *w, const struct trace_file *f, const struct summary *s,
                        enum summary_kind kind)
{
        json_begin(w, "longest", '[');
        for (size_t i = 0; i < s->kinds[kind].shown; i++) {
                const struct trace_file_event *e = s->kinds[kind].longest[i];
                json_begin(w, NULL, '{');
                json_put_text(w, "name", trace_file_text(f, e->name));
                json_put_text(w, "process", trace_file_row_name(f, e->process, 0));
                json_put_text(w, "command", e->command ? trace_file_text(f, e->command) : NULL);
                json_put_text(w, "server", e->server ? trace_file_text(f, e->server) : NULL);
                json_put_u64(w, "begin_ns", e->begin_ns);
                json_put_u64(w, "duration_ns", e->duration_ns);
                json_put_u64(w, "bytes", e->bytes);
                json_end(w, '}');
        }
        json_end(w, ']');
}

void summary_json(FILE *to, const struct trace_file *f, const struct summary *s, const char *path)
{
        struct json_writer w = { .to = to };
        json_begin(&w, NULL, '{');
        json_put_text(&w, "file", path);
        json_put_text(&w, "reason", f->reason ? trace_file_text(f, f->reason) : NULL);
        json_put_u64(&w, "wall_ns", s->wall_ns);
        json_put_u64(&w, "events", s->events);
        json_put_u64(&w, "processes", s->processes);
        json_put_u64(&w, "enqueued", s->enqueued);
        for (int k = 0; k < SUMMARY_KINDS; k++) {
                json_begin(&w, names[k], '{');
                json_put_u64(&w, "count", s->kinds[k].count);
                json_put_u64(&w, "total_ns", s->kinds[k].ns);
                json_put_u64(&w, "bytes", s->kinds[k].bytes);
                put_longest(&w, f, s, (enum summary_kind)k);
                json_end(&w, '}');
        }
        json_put_u64(&w, "compiled", s->compiled);
        json_put_u64(&w, "cached", s->cached);
        json_put_u64(&w, "disconnected", s->disconnected);
        json_put_u64(&w, "reconnected", s->reconnected);
        json_put_u64(&w, "lost", s->lost);
        json_put_u64(&w, "failed", s->failed);
        json_put_u64(&w, "dropped", f->dropped);
        json_put_u64(&w, "untimed", f->untimed);
        json_begin(&w, "clocks", '[');
        for (size_t i = 0; i < f->clock_count; i++) {
                json_begin(&w, NULL, '{');
                json_put_text(&w, "server", trace_file_text(f, f->clocks[i].server));
                json_put_u64(&w, "error_ns", f->clocks[i].error_ns);
                json_end(&w, '}');
        }
        json_end(&w, ']');
        json_energy(&w, f);
        json_end(&w, '}');
        json_line(&w);
}

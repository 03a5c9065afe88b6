#include "cli/replay/what_if.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/replay/fit.h"
#include "cli/replay/sleeps.h"
#include "cli/trace/file.h"

/* ---- the text of an option ------------------------------------------------------------------ */

struct unit {
        const char *name;
        double factor;
};

static const struct unit times[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
static const struct unit rates[] = {
        { "bit", 0.125 },   { "kbit", 125 },   { "Mbit", 125e3 },   { "Gbit", 125e6 },
        { "bit/s", 0.125 }, { "kbit/s", 125 }, { "Mbit/s", 125e3 }, { "Gbit/s", 125e6 },
        { "B/s", 1 },       { "kB/s", 1e3 },   { "MB/s", 1e6 },     { "GB/s", 1e9 },
};

#define ROUND_TRIP_MAX 60e9 /* ns */
#define RATE_MAX       1e13 /* bytes a second */

__attribute__((format(printf, 2, 3))) static int refuse(char *ret_error, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(ret_error, WHAT_IF_ERROR_MAX, fmt, ap);
        va_end(ap);
        return SP_E_INVAL;
}

/* Read a number with a unit: digits, and perhaps a point with digits. False: it is none. */
static bool read_value(const char *text, size_t size, const struct unit *units, size_t count,
                       double *ret)
{
        char number[32];
        size_t n = strspn(text, "0123456789.");
        if (n > size || !n || n >= sizeof(number) || text[0] == '.')
                return false;
        memcpy(number, text, n);
        number[n] = 0;
        const char *point = strchr(number, '.');
        if (point && (strchr(point + 1, '.') || !point[1]))
                return false;
        for (size_t i = 0; i < count; i++) {
                if (strlen(units[i].name) == size - n &&
                    !strncmp(units[i].name, text + n, size - n)) {
                        *ret = strtod(number, NULL) * units[i].factor;
                        return true;
                }
        }
        return false;
}

static int read_part(const char *part, size_t size, struct what_if *w, char *ret_error)
{
        double value = 0;
        const char *text = part + strcspn(part, "=") + 1;
        if (size > 4 && !strncmp(part, "rtt=", 4)) {
                if (w->has_round_trip)
                        return refuse(ret_error, "rtt is there twice");
                if (!read_value(text, size - 4, times, array_size(times), &value))
                        return refuse(ret_error, "'%.*s' is no time: rtt=5ms, 300us or 0.005s",
                                      (int)(size < 60 ? size : 60), part);
                if (value > ROUND_TRIP_MAX)
                        return refuse(ret_error, "a round trip has at most 60 s");
                w->has_round_trip = true;
                w->round_trip_ns = (uint64_t)(value + 0.5);
                return 0;
        }
        if (size > 3 && !strncmp(part, "bw=", 3)) {
                if (w->has_rate)
                        return refuse(ret_error, "bw is there twice");
                if (!read_value(text, size - 3, rates, array_size(rates), &value))
                        return refuse(ret_error, "'%.*s' is no rate: bw=1Gbit, 100Mbit or 50MB/s",
                                      (int)(size < 60 ? size : 60), part);
                if (value < 1 || value > RATE_MAX)
                        return refuse(ret_error, "a rate is 8bit to 80000Gbit");
                w->has_rate = true;
                w->bytes_per_s = (uint64_t)(value + 0.5);
                return 0;
        }
        return refuse(ret_error, "'%.*s' is neither rtt=TIME nor bw=RATE",
                      (int)(size < 60 ? size : 60), part);
}

int what_if_parse(const char *text, struct what_if *ret, char ret_error[WHAT_IF_ERROR_MAX])
{
        struct what_if w = { .text = text };
        for (const char *p = text;; p++) {
                size_t n = strcspn(p, ",");
                int r = read_part(p, n, &w, ret_error);
                if (r < 0)
                        return r;
                p += n;
                if (!*p)
                        break;
        }
        *ret = w;
        return 0;
}

/* ---- predictions ---------------------------------------------------------------------------- */

const char *what_if_bound_name(enum what_if_bound b)
{
        static const char *const names[WHAT_IF_BOUNDS] = {
                [WHAT_IF_LATENCY] = "latency",
                [WHAT_IF_BANDWIDTH] = "bandwidth",
                [WHAT_IF_DEVICE] = "device",
                [WHAT_IF_PROGRAM] = "program",
        };
        return names[b];
}

/* Replay without a part of the costs; WHAT_IF_BOUNDS: with all. */
static int replay_without(const struct fit *f, const struct what_if *w, enum what_if_bound part,
                          uint64_t *ret)
{
        struct replay_link links[REPLAY_SERVERS_MAX];
        for (size_t i = 0; i < f->run.server_count; i++) {
                links[i] = f->links[i];
                if (w->has_round_trip)
                        links[i].round_trip_ns = w->round_trip_ns;
                if (w->has_rate)
                        links[i].bytes_per_s = w->bytes_per_s;
                if (part == WHAT_IF_LATENCY)
                        links[i].round_trip_ns = 0;
                if (part == WHAT_IF_BANDWIDTH)
                        links[i].bytes_per_s = 0;
        }
        return replay(&f->run, links,
                      (struct replay_without){ .devices = part == WHAT_IF_DEVICE,
                                               .program = part == WHAT_IF_PROGRAM },
                      ret);
}

static int predict(const struct fit *f, const struct what_if *w, double scale,
                   struct what_if_result *ret)
{
        uint64_t ns, least = UINT64_MAX;
        int r = replay_without(f, w, WHAT_IF_BOUNDS, &ns);
        ret->link = *w;
        for (unsigned i = 0; i < WHAT_IF_BOUNDS && r == 0; i++) {
                uint64_t without = 0;
                r = replay_without(f, w, (enum what_if_bound)i, &without);
                if (without < least)
                        ret->bound = (enum what_if_bound)i;
                least = without < least ? without : least;
        }
        double all = (double)(r == 0 ? ns : 0) * scale;
        ret->ns = all < (double)REPLAY_TIME_MAX ? (uint64_t)all : REPLAY_TIME_MAX;
        return r;
}

int what_if_run(const struct fit *f, uint64_t wall_ns, const struct what_if *links, size_t count,
                struct what_if_results *ret)
{
        const struct what_if recorded = { .text = "as recorded" };
        struct what_if_results results = { .measured_ns = wall_ns, .share = 1 };
        int r = 0;
        for (size_t i = 0; i < f->run.server_count; i++) {
                if (f->links[i].round_trip_ns > results.round_trip_ns)
                        results.round_trip_ns = f->links[i].round_trip_ns;
                if (f->links[i].bytes_per_s &&
                    (!results.bytes_per_s || f->links[i].bytes_per_s < results.bytes_per_s))
                        results.bytes_per_s = f->links[i].bytes_per_s;
        }
        if (f->is_part && wall_ns)
                results.share = (double)f->span_ns / (double)wall_ns;
        for (size_t i = 0; i <= count && i <= WHAT_IF_MAX && r == 0; i++)
                r = predict(f, i ? &links[i - 1] : &recorded, 1 / results.share,
                            &results.all[results.count++]);
        if (r == 0)
                *ret = results;
        return r;
}

int what_if_read(const char *path, const struct ledger_file *ledger, const struct what_if *links,
                 size_t count, struct what_if_results *ret)
{
        char *text;
        size_t size;
        struct recording recording;
        struct fit f;
        int r = trace_file_load(path, &text, &size);
        if (r < 0)
                return r;
        r = size ? recording_read(text, size, ledger, &recording) : SP_E_NOENT;
        mem_free(text);
        if (r < 0)
                return r;
        r = fit_make(&recording, ledger, &f);
        recording_fini(&recording);
        if (r < 0)
                return r;
        sleeps_measure(f.run.sleeps);
        r = what_if_run(&f, ledger->wall_ns, links, count, ret);
        fit_fini(&f);
        return r;
}

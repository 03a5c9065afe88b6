#include "run.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fallback.h"
#include "output.h"
#include "source.h"

enum { CAMERA_PICTURES = 60 };

/* A frame that has begun. */
struct flight {
        struct fallback_frame frame;
        double begun_ms;
};

/* The measurements of frames, without warm-up frames. */
struct measure {
        double start_ms, last_ms;    /* of the first frame's begin, of the last picture */
        double kept_ms, kept_cpu_ms; /* the time that pictures took to be written and compared */
        double cpu_ms;               /* before the frames */
        uint64_t sent, received;     /* before the frames */
        double *latencies;
        size_t frames, room, lower;
};

struct session {
        const struct options *o;
        struct machine *machine;
        struct source source;
        struct fallback fallback;
        struct output output;
        struct flight flights[AHEAD_MAX];
        struct measure took;
        unsigned epoch; /* of the last picture */
        uint8_t *rgba;
};

static double clock_ms(clockid_t clock)
{
        struct timespec t;
        clock_gettime(clock, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- figures --------------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;
        return x < y ? -1 : x > y;
}

static uint64_t read_counter(const char *interface, const char *name)
{
        char *path;
        unsigned long long value;
        if (asprintf(&path, "/sys/class/net/%s/statistics/%s", interface, name) < 0)
                die("out of memory");
        FILE *f = fopen(path, "r");
        if (!f || fscanf(f, "%llu", &value) != 1)
                die("%s: %s", path, strerror(errno));
        fclose(f);
        free(path);
        return value;
}

/* Get the bytes sent and received until now. False: the platform does not count them. */
static bool traffic(const struct options *o, const struct machine *m, uint64_t *ret_sent,
                    uint64_t *ret_received)
{
        if (!o->link)
                return machine_traffic(m, ret_sent, ret_received);
        *ret_sent = read_counter(o->link, "tx_bytes");
        *ret_received = read_counter(o->link, "rx_bytes");
        return true;
}

/* Return the peak signal-to-noise ratio in dB. */
static double psnr(double mean_square)
{
        return 10 * log10(255.0 * 255.0 / mean_square);
}

static bool uses_stdout(const struct options *o)
{
        const char *files[] = { o->raw, o->times, o->video };
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
                if (files[i] && strcmp(files[i], "-") == 0)
                        return true;
        return false;
}

static void report(struct session *s)
{
        const struct options *o = s->o;
        struct measure *took = &s->took;
        double n = (double)took->frames, wall = took->last_ms - took->start_ms;
        double cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - took->cpu_ms - took->kept_cpu_ms;
        double mean_square = output_mean_square(&s->output);
        uint64_t sent = 0, received = 0;
        /* A lost session's counters are lost, too. */
        bool counted = !took->lower && traffic(o, s->machine, &sent, &received);
        double up = (double)(sent - took->sent) / n, down = (double)(received - took->received) / n;
        /* While pictures are written, other frames are computed. */
        if (o->ahead == 1)
                wall -= took->kept_ms;
        qsort(took->latencies, took->frames, sizeof(double), compare_doubles);
        double median = took->latencies[took->frames / 2], most = took->latencies[took->frames - 1];
        FILE *out = uses_stdout(o) ? stderr : stdout;
        if (o->figures) {
                fprintf(out,
                        "{\"place\": \"%s\", \"frames\": %zu, \"fps\": %.4f, \"latency_ms\": %.3f, "
                        "\"latency_most_ms\": %.3f, \"cpu_ms\": %.3f, \"fingerprint\": \"%016llx\"",
                        o->place, took->frames, n / wall * 1e3, median, most, cpu / n,
                        (unsigned long long)s->output.print);
                if (counted)
                        fprintf(out, ", \"up_bytes\": %.0f, \"down_bytes\": %.0f", up, down);
                if (o->fallback)
                        fprintf(out, ", \"lower\": %zu", took->lower);
                if (o->compare)
                        fprintf(out, ", \"same\": %s", mean_square > 0 ? "false" : "true");
                if (o->compare && mean_square > 0)
                        fprintf(out, ", \"psnr_db\": %.2f", psnr(mean_square));
                fprintf(out, "}\n");
                return;
        }
        fprintf(out, "%s: %.2f frames/s; latency: median %.1f ms, longest %.1f ms\n", o->place,
                n / wall * 1e3, median, most);
        fprintf(out, "client's CPU time %.1f ms a frame", cpu / n);
        if (counted)
                fprintf(out, "; to servers %.0f bytes a frame, from them %.0f bytes", up, down);
        fprintf(out, "\nthe tracked pose was at most %.2f pixels away\n",
                fallback_worst(&s->fallback));
        if (o->fallback)
                fprintf(out, "%zu of %zu frames were of lower quality\n", took->lower,
                        took->frames);
        if (o->compare && mean_square > 0)
                fprintf(out, "the pictures differ: PSNR %.2f dB\n", psnr(mean_square));
        else if (o->compare)
                fprintf(out, "the pictures are the same\n");
        fprintf(out, "fingerprint %016llx\n", (unsigned long long)s->output.print);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void session_open(struct session *s, const struct options *o, struct machine *m,
                         const struct roles *roles)
{
        struct fallback_params params = {
                .enabled = o->fallback,
                .pictures = o->frames && o->frames < CAMERA_PICTURES ? (size_t)o->frames
                                                                     : CAMERA_PICTURES,
                .place = { .place = place_find(o->place),
                           .roles = *roles,
                           .source = &s->source,
                           .opacity = o->opacity,
                           .step = o->thin       ? o->thin
                                   : o->fallback ? FALLBACK_STEP
                                                 : 1,
                           .codec = o->codec,
                           .ahead = (size_t)o->ahead },
        };
        if (!params.place.place)
                die("--place %s: there is no such place", o->place);
        *s = (struct session){ .o = o, .machine = m, .epoch = 1 };
        s->rgba = allocate((size_t)o->width * (size_t)o->height * 4, 1);
        output_open(&s->output, o);
        source_open(&s->source, o->stream, (size_t)o->voxels, (size_t)o->capacity);
        s->source.libavcodec = o->libavcodec;
        params.place.view = (struct view){ .width = o->width,
                                           .height = o->height,
                                           .voxels = (int)s->source.voxels };
        fallback_open(&s->fallback, m, &params);
}

static void session_close(struct session *s)
{
        fallback_close(&s->fallback);
        source_close(&s->source);
        output_close(&s->output);
        free(s->rgba);
        free(s->took.latencies);
}

/* Show, write and compare a picture. Returns false if the user closed the window. */
static bool keep(struct session *s, const struct flight *f, bool full)
{
        struct measure *took = &s->took;
        double now = clock_ms(CLOCK_MONOTONIC), cpu = clock_ms(CLOCK_THREAD_CPUTIME_ID);
        struct shown shown = { .frame = f->frame.frame,
                               .at_ms = now - took->start_ms,
                               .frame_ms = now - took->last_ms,
                               .latency_ms = now - f->begun_ms,
                               .since_loss_ms = -1,
                               .full = full };
        if (!full && s->epoch != s->fallback.epoch)
                shown.since_loss_ms = now - s->fallback.lost_ms;
        s->epoch = s->fallback.epoch;
        took->last_ms = now;
        took->lower += !full;
        if (took->frames == took->room) {
                took->room = took->room ? 2 * took->room : 256;
                took->latencies = realloc(took->latencies, took->room * sizeof(double));
                if (!took->latencies)
                        die("out of memory");
        }
        took->latencies[took->frames++] = shown.latency_ms;
        bool goes_on = output_picture(&s->output, s->rgba, &shown);
        took->kept_ms += clock_ms(CLOCK_MONOTONIC) - now;
        took->kept_cpu_ms += clock_ms(CLOCK_THREAD_CPUTIME_ID) - cpu;
        return goes_on;
}

static bool input_has_ended(void)
{
        struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
        char c;
        return poll(&in, 1, 0) > 0 && read(STDIN_FILENO, &c, 1) <= 0;
}

static void begin(struct session *s, size_t frame, struct flight *f)
{
        f->begun_ms = clock_ms(CLOCK_MONOTONIC);
        fallback_begin(&s->fallback, frame, &f->frame);
}

void run(const struct options *o, struct machine *m, const struct roles *roles)
{
        struct session s;
        size_t begun = 0, ended = 0, count = o->frames ? (size_t)o->frames : SIZE_MAX;
        session_open(&s, o, m, roles);
        for (int i = 0; i < o->warm; i++)
                fallback_warm(&s.fallback, s.rgba);
        traffic(o, m, &s.took.sent, &s.took.received);
        s.took.cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
        s.took.start_ms = s.took.last_ms = clock_ms(CLOCK_MONOTONIC);
        while (ended < count) {
                for (; begun < count && begun - ended < (size_t)o->ahead; begun++)
                        begin(&s, begun, &s.flights[begun % (size_t)o->ahead]);
                struct flight *f = &s.flights[ended++ % (size_t)o->ahead];
                bool full = fallback_end(&s.fallback, &f->frame, s.rgba);
                if (!keep(&s, f, full) || (count == SIZE_MAX && input_has_ended()))
                        count = begun;
        }
        fallback_check(&s.fallback);
        if (o->verify)
                pipeline_verify(&s.fallback.far.pipeline, ended - 1);
        report(&s);
        output_last(&s.output, s.rgba);
        session_close(&s);
}

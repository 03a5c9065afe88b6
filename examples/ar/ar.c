/* An animated figure of points in augmented reality. The client's device finds a marker in a camera's picture, and with
 * it the camera's pose. Points are made from the pictures of a V-PCC frame, sorted by distance and blended over the
 * camera's picture. --place chooses the devices of each part (docs/AR.md). Plain OpenCL: it runs on native devices, on
 * one server or several; the extension cl_pocl_content_size and the built-in kernels of media devices are used where
 * a place needs them. */

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "place.h"
#include "source.h"

struct options {
        const char *kernels, *platform, *stream, *place, *codec, *png, *raw, *compare, *link;
        int width, height, frames, warm, voxels, opacity, capacity;
        int near, far, feed; /* devices of the list; -1: by default */
        bool list, figures, verify;
        long sort; /* keys to sort and compare; -1: none */
};

/* The figures of the measured frames, without the time that pictures take to be written and compared. */
struct measure {
        double wall_ms, cpu_ms;
        uint64_t sent, received; /* before the measured frames */
        double *latencies;       /* of each frame, in ms */
        int frames;
};

/* The pictures of a run. */
struct result {
        double pose_px; /* error of the tracked pose */
        uint64_t print; /* of all pictures */
        bool compared;
        double mean_square; /* of the differences of red, green and blue */
};

static double clock_ms(clockid_t clock)
{
        struct timespec t;
        clock_gettime(clock, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static uint64_t fingerprint(uint64_t h, const uint8_t *data, size_t size)
{
        for (size_t i = 0; i < size; i++)
                h = (h ^ data[i]) * 0x100000001b3u;
        return h;
}

static void write_png(const char *path, const uint8_t *rgba, int width, int height)
{
        png_image image = {
                .version = PNG_IMAGE_VERSION,
                .width = (png_uint_32)width,
                .height = (png_uint_32)height,
                .format = PNG_FORMAT_RGBA,
        };
        if (!png_image_write_to_file(&image, path, 0, rgba, 0, NULL))
                die("%s: %s", path, image.message);
}

/* ---- options --------------------------------------------------------------------------------- */

static void usage(void)
{
        printf("usage: ar [OPTION]...\n\n"
               "  --place NAME,...   where the parts of a frame are computed (local):\n");
        for (size_t i = 0; i < place_count; i++)
                printf("      %-14s %s\n", places[i].name, places[i].text);
        printf("  --stream FILE      a V-PCC stream; without it a figure of balls\n"
               "  --voxels N         side of the figure of balls, a multiple of 16 up to 1024 (512)\n"
               "  --capacity N       points of a frame, at most (1500000)\n"
               "  --size WxH         the camera's pictures (1280x720)\n"
               "  --frames N         frames that are measured (30)\n"
               "  --warm N           frames before these (2)\n"
               "  --opacity N        of a point, 1 to 256 (200)\n"
               "  --codec NAME       of the place video: h264, hevc, mjpeg (mjpeg)\n"
               "  --platform NAME    a part of the platform's name\n"
               "  --near N           the client's own device (the last one that computes)\n"
               "  --far N            the other device (the first one)\n"
               "  --feed N           the device that makes pictures for the other device (the last but one)\n"
               "  --list             list the devices\n"
               "  --sort N           sort N keys on each device, and compare with the host's sort\n"
               "  --png FILE         write the last picture\n"
               "  --raw FILE         write all pictures, 4 bytes a pixel; -: standard output\n"
               "  --compare FILE     compare with pictures that --raw wrote\n"
               "  --link NAME        count the bytes of this network interface, not those of sessions\n"
               "  --verify           compare the points of the last frame with those of plain C code\n"
               "  --figures          print the measurements in one line of JSON\n"
               "  --kernels FOLDER   the folder of the kernels\n");
}

static long number(const char *text, long low, long high, const char *what)
{
        char *end;
        errno = 0;
        long n = strtol(text, &end, 10);
        if (errno || *end || end == text || n < low || n > high)
                die("--%s %s: from %ld to %ld", what, text, low, high);
        return n;
}

static void parse(int argc, char **argv, struct options *o)
{
        enum {
                PLACE,
                STREAM,
                VOXELS,
                CAPACITY,
                SIZE,
                FRAMES,
                WARM,
                OPACITY,
                CODEC,
                PLATFORM,
                NEAR,
                FAR,
                FEED,
                LIST,
                SORT,
                PNG,
                RAW,
                COMPARE,
                LINK,
                VERIFY,
                FIGURES,
                KERNELS,
                HELP
        };
        static const struct option names[] = {
                { "place", 1, 0, PLACE },     { "stream", 1, 0, STREAM },
                { "voxels", 1, 0, VOXELS },   { "capacity", 1, 0, CAPACITY },
                { "size", 1, 0, SIZE },       { "frames", 1, 0, FRAMES },
                { "warm", 1, 0, WARM },       { "opacity", 1, 0, OPACITY },
                { "codec", 1, 0, CODEC },     { "platform", 1, 0, PLATFORM },
                { "near", 1, 0, NEAR },       { "far", 1, 0, FAR },
                { "feed", 1, 0, FEED },       { "list", 0, 0, LIST },
                { "sort", 1, 0, SORT },       { "png", 1, 0, PNG },
                { "raw", 1, 0, RAW },         { "compare", 1, 0, COMPARE },
                { "link", 1, 0, LINK },       { "verify", 0, 0, VERIFY },
                { "figures", 0, 0, FIGURES }, { "kernels", 1, 0, KERNELS },
                { "help", 0, 0, HELP },       { 0 },
        };
        int c;
        while ((c = getopt_long(argc, argv, "", names, NULL)) >= 0) {
                const char *name = c < HELP ? names[c].name : "";
                char *x;
                switch (c) {
                case PLACE:
                        o->place = optarg;
                        break;
                case STREAM:
                        o->stream = optarg;
                        break;
                case VOXELS:
                        o->voxels = (int)number(optarg, 16, 1024, name) / 16 * 16;
                        break;
                case CAPACITY:
                        o->capacity = (int)number(optarg, 1, 16 << 20, name);
                        break;
                case SIZE:
                        x = strchr(optarg, 'x');
                        if (!x)
                                die("--size %s: WIDTHxHEIGHT", optarg);
                        *x = '\0';
                        o->width = (int)number(optarg, 64, 4096, name) / 2 * 2;
                        o->height = (int)number(x + 1, 64, 4096, name) / 2 * 2;
                        break;
                case FRAMES:
                        o->frames = (int)number(optarg, 1, 100000, name);
                        break;
                case WARM:
                        o->warm = (int)number(optarg, 0, 1000, name);
                        break;
                case OPACITY:
                        o->opacity = (int)number(optarg, 1, 256, name);
                        break;
                case CODEC:
                        o->codec = optarg;
                        break;
                case PLATFORM:
                        o->platform = optarg;
                        break;
                case NEAR:
                        o->near = (int)number(optarg, 0, DEVICES_MAX - 1, name);
                        break;
                case FAR:
                        o->far = (int)number(optarg, 0, DEVICES_MAX - 1, name);
                        break;
                case FEED:
                        o->feed = (int)number(optarg, 0, DEVICES_MAX - 1, name);
                        break;
                case LIST:
                        o->list = true;
                        break;
                case SORT:
                        o->sort = number(optarg, 0, 64 << 20, name);
                        break;
                case PNG:
                        o->png = optarg;
                        break;
                case RAW:
                        o->raw = optarg;
                        break;
                case COMPARE:
                        o->compare = optarg;
                        break;
                case VERIFY:
                        o->verify = true;
                        break;
                case LINK:
                        o->link = optarg;
                        break;
                case FIGURES:
                        o->figures = true;
                        break;
                case KERNELS:
                        o->kernels = optarg;
                        break;
                case HELP:
                        usage();
                        exit(0);
                default:
                        exit(2);
                }
        }
        if (optind < argc)
                die("%s: unknown argument", argv[optind]);
}

/* ---- devices --------------------------------------------------------------------------------- */

static struct device *device_at(struct machine *m, int place, const char *what)
{
        if ((size_t)place >= m->device_count || !device_computes(&m->devices[place]))
                die("--%s %d: there is no such device that computes", what, place);
        return &m->devices[place];
}

static struct roles choose_roles(struct machine *m, const struct options *o)
{
        struct roles r = { 0 };
        for (size_t i = 0; i < m->device_count; i++) {
                if (!device_computes(&m->devices[i]))
                        continue;
                r.far = r.far ? r.far : &m->devices[i];
                r.feed = r.near ? r.near : &m->devices[i];
                r.near = &m->devices[i];
        }
        if (!r.near)
                die("no device of %s computes", m->platform_name);
        if (o->near >= 0)
                r.near = device_at(m, o->near, "near");
        if (o->far >= 0)
                r.far = device_at(m, o->far, "far");
        if (o->feed >= 0)
                r.feed = device_at(m, o->feed, "feed");
        return r;
}

static void list(struct machine *m)
{
        struct roles r = choose_roles(m, &(struct options){ .near = -1, .far = -1, .feed = -1 });
        for (size_t i = 0; i < m->device_count; i++) {
                const struct device *d = &m->devices[i];
                printf("%zu: %s%s%s%s%s\n", i, d->name, d == r.near ? ", near" : "",
                       d == r.far ? ", far" : "", d == r.feed ? ", feed" : "",
                       d->built_in ? ", built-in kernels" : "");
        }
}

/* ---- frames ---------------------------------------------------------------------------------- */

static FILE *open_file(const char *path, const char *mode)
{
        FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, mode);
        if (!f)
                die("%s: %s", path, strerror(errno));
        return f;
}

/* Return the sum of squared differences. The fourth components are the same, so they add nothing. */
static double difference(const uint8_t *a, const uint8_t *b, size_t size)
{
        double sum = 0;
        for (size_t i = 0; i < size; i++)
                sum += (double)((a[i] - b[i]) * (a[i] - b[i]));
        return sum;
}

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

static void report(const struct options *o, const struct machine *m, struct measure *took,
                   const struct result *result)
{
        double n = took->frames, wall = took->wall_ms, cpu = took->cpu_ms;
        uint64_t sent = 0, received = 0;
        bool counted = traffic(o, m, &sent, &received);
        double up = (double)(sent - took->sent) / n, down = (double)(received - took->received) / n;
        qsort(took->latencies, (size_t)took->frames, sizeof(double), compare_doubles);
        double median = took->latencies[took->frames / 2], most = took->latencies[took->frames - 1];
        FILE *out = o->raw && strcmp(o->raw, "-") == 0 ? stderr : stdout;
        if (o->figures) {
                fprintf(out,
                        "{\"place\": \"%s\", \"frames\": %d, \"fps\": %.4f, \"latency_ms\": %.3f, "
                        "\"latency_most_ms\": %.3f, \"cpu_ms\": %.3f, \"fingerprint\": \"%016llx\"",
                        o->place, o->frames, n / wall * 1e3, median, most, cpu / n,
                        (unsigned long long)result->print);
                if (counted)
                        fprintf(out, ", \"up_bytes\": %.0f, \"down_bytes\": %.0f", up, down);
                if (result->compared)
                        fprintf(out, ", \"same\": %s", result->mean_square > 0 ? "false" : "true");
                if (result->compared && result->mean_square > 0)
                        fprintf(out, ", \"psnr_db\": %.2f", psnr(result->mean_square));
                fprintf(out, "}\n");
                return;
        }
        fprintf(out, "%s: %.2f frames/s; latency: median %.1f ms, longest %.1f ms\n", o->place,
                n / wall * 1e3, median, most);
        fprintf(out, "client's CPU time %.1f ms a frame", cpu / n);
        if (counted)
                fprintf(out, "; to servers %.0f bytes a frame, from them %.0f bytes", up, down);
        fprintf(out, "\nthe tracked pose was at most %.2f pixels away\n", result->pose_px);
        if (result->compared && result->mean_square > 0)
                fprintf(out, "the pictures differ: PSNR %.2f dB\n", psnr(result->mean_square));
        else if (result->compared)
                fprintf(out, "the pictures are the same\n");
        fprintf(out, "fingerprint %016llx\n", (unsigned long long)result->print);
}

/* The objects of all frames of a run. */
struct show {
        struct source source;
        struct track track;
        struct pipeline pipeline;
        uint8_t *rgba, *other;
        size_t size;
        FILE *raw, *compared;
        double squares; /* sum of the differences' */
        uint64_t print;
};

static void show_open(struct show *s, struct machine *m, const struct options *o)
{
        struct place_params params = { .place = place_find(o->place),
                                       .roles = choose_roles(m, o),
                                       .source = &s->source,
                                       .opacity = o->opacity,
                                       .codec = o->codec };
        if (!params.place)
                die("--place %s: there is no such place", o->place);
        *s = (struct show){ .size = (size_t)o->width * (size_t)o->height * 4,
                            .print = 0xcbf29ce484222325u };
        s->rgba = allocate(s->size, 1);
        s->other = allocate(s->size, 1);
        s->raw = o->raw ? open_file(o->raw, "wb") : NULL;
        s->compared = o->compare ? open_file(o->compare, "rb") : NULL;
        source_open(&s->source, o->stream, (size_t)o->voxels, (size_t)o->capacity);
        params.view = (struct view){ .width = o->width,
                                     .height = o->height,
                                     .voxels = (int)s->source.voxels };
        track_open(&s->track, m, params.roles.near, &params.view,
                   (size_t)(o->frames < 60 ? o->frames : 60));
        pipeline_open(&s->pipeline, m, &params);
}

static void show_close(struct show *s)
{
        pipeline_close(&s->pipeline);
        track_close(&s->track);
        source_close(&s->source);
        if (s->raw && fclose(s->raw) != 0)
                die("the pictures: %s", strerror(errno));
        if (s->compared)
                fclose(s->compared);
        free(s->rgba);
        free(s->other);
}

/* Write and compare a picture, outside of the measured time. */
static void show_keep(struct show *s)
{
        s->print = fingerprint(s->print, s->rgba, s->size);
        if (s->raw && fwrite(s->rgba, 1, s->size, s->raw) != s->size)
                die("--raw: %s", strerror(errno));
        if (!s->compared)
                return;
        if (fread(s->other, 1, s->size, s->compared) != s->size)
                die("--compare: the file has fewer pictures, or smaller ones");
        s->squares += difference(s->rgba, s->other, s->size);
}

static void run(const struct options *o, struct machine *m)
{
        struct show s;
        struct measure took = { .frames = o->frames,
                                .latencies = allocate((size_t)o->frames, sizeof(double)) };
        show_open(&s, m, o);
        for (int i = -o->warm; i < o->frames; i++) {
                size_t frame = i < 0 ? 0 : (size_t)i;
                if (i == 0)
                        traffic(o, m, &took.sent, &took.received);
                double wall = clock_ms(CLOCK_MONOTONIC), cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
                struct pose pose = track_run(&s.track, frame);
                pipeline_frame(&s.pipeline, frame, &pose, track_picture(&s.track, frame), s.rgba);
                if (i < 0) {
                        pipeline_check(&s.pipeline);
                        continue;
                }
                took.latencies[i] = clock_ms(CLOCK_MONOTONIC) - wall;
                took.wall_ms += took.latencies[i];
                took.cpu_ms += clock_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
                show_keep(&s);
        }
        pipeline_check(&s.pipeline);
        if (o->verify)
                pipeline_verify(&s.pipeline, (size_t)o->frames - 1);
        report(o, m, &took,
               &(struct result){ .pose_px = s.track.worst,
                                 .print = s.print,
                                 .compared = s.compared != NULL,
                                 .mean_square = s.squares / ((double)s.size * 3 / 4 * o->frames) });
        if (o->png)
                write_png(o->png, s.rgba, o->width, o->height);
        show_close(&s);
        free(took.latencies);
}

/* --place: names between commas. */
static void run_all(struct options *o, struct machine *m)
{
        char *names = strdup(o->place), *rest = names;
        if (!names)
                die("out of memory");
        while ((o->place = strsep(&rest, ",")))
                run(o, m);
        free(names);
}

int main(int argc, char **argv)
{
        struct options o = { .kernels = AR_KERNELS,
                             .place = "local",
                             .codec = "mjpeg",
                             .width = 1280,
                             .height = 720,
                             .frames = 30,
                             .warm = 2,
                             .voxels = 512,
                             .opacity = 200,
                             .capacity = 1500000,
                             .near = -1,
                             .far = -1,
                             .feed = -1,
                             .sort = -1 };
        struct machine m;
        parse(argc, argv, &o);
        machine_open(&m, o.platform, o.kernels);
        if (o.list)
                list(&m);
        for (size_t i = 0; o.sort >= 0 && i < m.device_count; i++)
                if (device_computes(&m.devices[i]))
                        sort_verify(&m, &m.devices[i], (size_t)o.sort);
        if (!o.list && o.sort < 0)
                run_all(&o, &m);
        machine_close(&m);
        return 0;
}

/* An animated figure of points in augmented reality. The client's device finds a marker in a camera's picture, and with
 * it the camera's pose. Points are made from the pictures of a V-PCC frame, sorted by distance and blended over the
 * camera's picture. --place chooses the devices of each part (docs/AR.md). Plain OpenCL: it runs on native devices, on
 * one server or several; the extension cl_pocl_content_size and the built-in kernels of media devices are used where
 * a place needs them. */

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fallback.h"
#include "options.h"
#include "run.h"

/* ---- options --------------------------------------------------------------------------------- */

static void usage(void)
{
        printf("usage: ar [OPTION]...\n\n"
               "  --place NAME,...   where the parts of a frame are computed (local):\n");
        for (size_t i = 0; i < place_count; i++)
                printf("      %-14s %s\n", places[i].name, places[i].text);
        printf("  --stream FILE      a V-PCC stream; without it a figure of balls\n"
               "  --libavcodec       libavcodec decodes it, where the device has that\n"
               "  --voxels N         side of the figure of balls, a multiple of 16 up to 1024 (512)\n"
               "  --capacity N       points of a frame, at most (1500000)\n"
               "  --size WxH         the camera's pictures (1280x720)\n"
               "  --frames N         frames that are measured (30); 0: until standard input ends\n"
               "  --warm N           frames before these (2)\n"
               "  --ahead N          frames that are computed at the same time, 1 to %d (1)\n"
               "  --fallback         if the other device is lost, compute on the client's own with fewer points\n"
               "  --thin N           one of N x N pixels gives a point, in all frames or those of --fallback (%d)\n"
               "  --opacity N        of a point, 1 to 256 (200)\n"
               "  --codec NAME       of the place video: h264, hevc, mjpeg (mjpeg)\n"
               "  --platform NAME    a part of the platform's name\n"
               "  --near N           the client's own device (the last one that computes)\n"
               "  --far N            the other device (the first one)\n"
               "  --feed N           the device that makes pictures for the other device (the last but one)\n"
               "  --wide             all devices get the kernels for GPUs\n"
               "  --list             list the devices\n"
               "  --sort N           sort N keys on each device, and compare with the host's sort\n"
               "  --png FILE         write the last picture\n"
               "  --raw FILE         write all pictures, 4 bytes a pixel; -: standard output\n"
               "  --video FILE       write all pictures as YUV4MPEG2, 30 a second; -: standard output\n"
               "  --window           show all pictures; closing it ends the run\n"
               "  --compare FILE     compare with pictures that --raw wrote\n"
               "  --times FILE       write the time and the quality of each frame\n"
               "  --link NAME        count the bytes of this network interface, not those of sessions\n"
               "  --verify           compare the points of the last frame with those of plain C code\n"
               "  --figures          print the measurements in one line of JSON\n"
               "  --kernels FOLDER   the folder of the kernels\n",
               AHEAD_MAX, FALLBACK_STEP);
}

static int number(const char *text, int low, int high, const char *what)
{
        char *end;
        errno = 0;
        long n = strtol(text, &end, 10);
        if (errno || *end || end == text || n < low || n > high)
                die("--%s %s: from %d to %d", what, text, low, high);
        return (int)n;
}

enum kind { TEXT, NUMBER, FLAG, SIZE_OF_PICTURE, HELP };

/* Where a value goes in struct options, and the bounds of a number. */
static const struct {
        const char *name;
        enum kind kind;
        size_t at;
        int low, high;
} known[] = {
#define AT(member) offsetof(struct options, member)
        { "place", TEXT, AT(place), 0, 0 },
        { "stream", TEXT, AT(stream), 0, 0 },
        { "voxels", NUMBER, AT(voxels), 16, 1024 },
        { "capacity", NUMBER, AT(capacity), 1, 16 << 20 },
        { "size", SIZE_OF_PICTURE, 0, 64, 4096 },
        { "frames", NUMBER, AT(frames), 0, 100000 },
        { "warm", NUMBER, AT(warm), 0, 1000 },
        { "ahead", NUMBER, AT(ahead), 1, AHEAD_MAX },
        { "fallback", FLAG, AT(fallback), 0, 0 },
        { "thin", NUMBER, AT(thin), 1, 16 },
        { "opacity", NUMBER, AT(opacity), 1, 256 },
        { "codec", TEXT, AT(codec), 0, 0 },
        { "platform", TEXT, AT(platform), 0, 0 },
        { "near", NUMBER, AT(near), 0, DEVICES_MAX - 1 },
        { "far", NUMBER, AT(far), 0, DEVICES_MAX - 1 },
        { "feed", NUMBER, AT(feed), 0, DEVICES_MAX - 1 },
        { "libavcodec", FLAG, AT(libavcodec), 0, 0 },
        { "wide", FLAG, AT(wide), 0, 0 },
        { "list", FLAG, AT(list), 0, 0 },
        { "sort", NUMBER, AT(sort), 0, 64 << 20 },
        { "png", TEXT, AT(png), 0, 0 },
        { "raw", TEXT, AT(raw), 0, 0 },
        { "video", TEXT, AT(video), 0, 0 },
        { "window", FLAG, AT(window), 0, 0 },
        { "compare", TEXT, AT(compare), 0, 0 },
        { "times", TEXT, AT(times), 0, 0 },
        { "link", TEXT, AT(link), 0, 0 },
        { "verify", FLAG, AT(verify), 0, 0 },
        { "figures", FLAG, AT(figures), 0, 0 },
        { "kernels", TEXT, AT(kernels), 0, 0 },
        { "help", HELP, 0, 0, 0 },
#undef AT
};

enum { KNOWN = sizeof(known) / sizeof(known[0]) };

static void take(struct options *o, int which, char *text)
{
        const int low = known[which].low, high = known[which].high;
        const char *name = known[which].name;
        void *to = (char *)o + known[which].at;
        char *x;
        switch (known[which].kind) {
        case TEXT:
                *(const char **)to = text;
                break;
        case NUMBER:
                *(int *)to = number(text, low, high, name);
                break;
        case FLAG:
                *(bool *)to = true;
                break;
        case SIZE_OF_PICTURE:
                x = strchr(text, 'x');
                if (!x)
                        die("--size %s: WIDTHxHEIGHT", text);
                *x = '\0';
                o->width = number(text, low, high, name) / 2 * 2;
                o->height = number(x + 1, low, high, name) / 2 * 2;
                break;
        case HELP:
                usage();
                exit(0);
        }
}

static void parse(int argc, char **argv, struct options *o)
{
        struct option names[KNOWN + 1] = { 0 };
        for (int i = 0; i < KNOWN; i++) {
                const bool has_value = known[i].kind != FLAG && known[i].kind != HELP;
                names[i] = (struct option){ known[i].name, has_value, NULL, i };
        }
        for (int c; (c = getopt_long(argc, argv, "", names, NULL)) >= 0;) {
                if (c >= KNOWN) /* '?', after getopt_long's message */
                        exit(2);
                take(o, c, optarg);
        }
        o->voxels = o->voxels / 16 * 16;
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

/* --place: names between commas. */
static void run_all(struct options *o, struct machine *m)
{
        char *names = strdup(o->place), *rest = names;
        if (!names)
                die("out of memory");
        struct roles roles = choose_roles(m, o);
        if (o->fallback && (strchr(o->place, ',') || o->verify))
                die("--fallback: one place only, and no --verify");
        while ((o->place = strsep(&rest, ",")))
                run(o, m, &roles);
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
                             .ahead = 1,
                             .voxels = 512,
                             .opacity = 200,
                             .capacity = 1500000,
                             .near = -1,
                             .far = -1,
                             .feed = -1,
                             .sort = -1 };
        struct machine m;
        parse(argc, argv, &o);
        machine_open(&m, o.platform, o.kernels, o.wide);
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

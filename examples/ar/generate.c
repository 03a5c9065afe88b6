/* generate FOLDER [FIRST LAST]: writes the frames of our synthetic sequence, a dancer, as PLY files.
 *
 * The figure is made of surfaces that are given by equations: limbs, ellipsoids and a skirt. Each frame sets its joints
 * from the time and samples all surfaces more densely than the voxels. Samples inside of another part are left out, the
 * others are rounded to voxels of a cube of 1024. A column of voxels along the main direction of the surface gets one
 * voxel. After 90 frames, which are 3 seconds, the motion begins again. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE   1024
#define FRAMES 90
#define PARTS  16
#define PI     3.14159265358979f
#define STEP   0.45f /* voxels between two samples, at most */

struct vec {
        float x, y, z;
};

struct color {
        float r, g, b;
};

/* Patterns of parts. */
enum pattern { SKIN, HAIR, SHIRT, SLEEVE, STOCKING, SHOE, FACE, SKIRT };

enum shape { LIMB, ELLIPSOID, BELL };

struct part {
        enum shape shape;
        enum pattern pattern;
        struct vec a, b;      /* a limb's ends; an ellipsoid's centre and radii */
        float ra, rb;         /* a limb's radii; a bell's at its top and at its hem */
        float phase, flutter; /* a bell's folds */
        float turn;           /* rotation about the vertical axis, in radians */
};

struct figure {
        struct part parts[PARTS];
        int count;
        int overflow;
};

static struct vec add(struct vec a, struct vec b)
{
        return (struct vec){ a.x + b.x, a.y + b.y, a.z + b.z };
}

static struct vec sub(struct vec a, struct vec b)
{
        return (struct vec){ a.x - b.x, a.y - b.y, a.z - b.z };
}

static struct vec scale(struct vec a, float s)
{
        return (struct vec){ a.x * s, a.y * s, a.z * s };
}

static float dot(struct vec a, struct vec b)
{
        return a.x * b.x + a.y * b.y + a.z * b.z;
}

static struct vec cross(struct vec a, struct vec b)
{
        return (struct vec){ a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x };
}

static struct vec unit(struct vec a)
{
        float l = sqrtf(dot(a, a));
        return l > 0 ? scale(a, 1 / l) : (struct vec){ 0, 1, 0 };
}

static struct vec turn_y(struct vec a, float angle)
{
        float c = cosf(angle), s = sinf(angle);
        return (struct vec){ c * a.x + s * a.z, a.y, c * a.z - s * a.x };
}

static float mix(float a, float b, float t)
{
        return a + (b - a) * t;
}

/* A bell's radius at height `h`, 0 at its top and 1 at its hem, in direction `angle`. */
static float bell_radius(const struct part *p, float h, float angle)
{
        float folds = sinf(9 * angle + p->phase) + 0.45f * sinf(5 * angle - 2 * p->phase);
        return mix(p->ra, p->rb, powf(h, 0.85f)) * (1 + p->flutter * h * h * folds);
}

/* The point of a part's surface at (u, v), each from 0 to 1. */
static struct vec surface(const struct part *p, float u, float v)
{
        float angle = 2 * PI * u;
        if (p->shape == BELL) {
                float r = bell_radius(p, v, angle);
                struct vec q = { r * cosf(angle), v * (p->b.y - p->a.y), r * sinf(angle) };
                return add(p->a, turn_y(q, p->turn));
        }
        if (p->shape == ELLIPSOID) {
                float polar = PI * v;
                struct vec q = { p->b.x * sinf(polar) * cosf(angle), p->b.y * cosf(polar),
                                 p->b.z * sinf(polar) * sinf(angle) };
                return add(p->a, turn_y(q, p->turn));
        }
        struct vec along = sub(p->b, p->a);
        float length = sqrtf(dot(along, along));
        struct vec w = unit(along);
        struct vec side = unit(
                cross(w, fabsf(w.y) < 0.9f ? (struct vec){ 0, 1, 0 } : (struct vec){ 1, 0, 0 }));
        struct vec up = cross(w, side);
        /* v runs over a half sphere, the cone and the other half sphere, by their lengths. */
        float cap_a = 0.5f * PI * p->ra, cap_b = 0.5f * PI * p->rb;
        float s = v * (cap_a + length + cap_b);
        float radius, height;
        if (s < cap_a) {
                radius = p->ra * sinf(s / p->ra);
                height = -p->ra * cosf(s / p->ra);
        } else if (s < cap_a + length) {
                height = s - cap_a;
                radius = mix(p->ra, p->rb, height / length);
        } else {
                float t = (s - cap_a - length) / p->rb;
                radius = p->rb * cosf(t);
                height = length + p->rb * sinf(t);
        }
        struct vec around = add(scale(side, radius * cosf(angle)), scale(up, radius * sinf(angle)));
        return add(p->a, add(scale(w, height), around));
}

/* Return whether a point lies inside of a part, by more than a voxel. */
static int inside(const struct part *p, struct vec q)
{
        if (p->shape == BELL) {
                struct vec d = turn_y(sub(q, p->a), -p->turn);
                float h = d.y / (p->b.y - p->a.y);
                if (h < 0 || h > 0.82f) /* the space over the hem is open */
                        return 0;
                return hypotf(d.x, d.z) < bell_radius(p, h, atan2f(d.z, d.x)) - 1;
        }
        if (p->shape == ELLIPSOID) {
                struct vec d = turn_y(sub(q, p->a), -p->turn);
                struct vec e = { d.x / (p->b.x - 1), d.y / (p->b.y - 1), d.z / (p->b.z - 1) };
                return dot(e, e) < 1;
        }
        struct vec along = sub(p->b, p->a), d = sub(q, p->a);
        float t = fminf(fmaxf(dot(d, along) / dot(along, along), 0), 1);
        struct vec off = sub(d, scale(along, t));
        float r = mix(p->ra, p->rb, t) - 1;
        return dot(off, off) < r * r;
}

static float stripe(float x)
{
        float s = 0.5f + 0.5f * sinf(2 * PI * x);
        return s * s * (3 - 2 * s);
}

static struct color blend(struct color a, struct color b, float t)
{
        return (struct color){ mix(a.r, b.r, t), mix(a.g, b.g, t), mix(a.b, b.b, t) };
}

static struct color paint(const struct part *p, float u, float v, struct vec normal)
{
        static const struct color skin = { 224, 172, 138 }, dark = { 62, 40, 30 },
                                  white = { 240, 236, 228 };
        static const struct color red = { 186, 40, 52 }, blue = { 38, 70, 138 },
                                  gold = { 226, 170, 60 };
        struct color c = skin;
        switch (p->pattern) {
        case SKIN:
                break;
        case HAIR:
                c = blend(dark, (struct color){ 110, 70, 46 }, stripe(24 * u + 2 * sinf(5 * v)));
                break;
        case SHIRT:
                c = blend(white, blue, stripe(12 * v));
                break;
        case SLEEVE:
                c = v < 0.6f ? blend(white, blue, stripe(9 * v)) : skin;
                break;
        case STOCKING:
                c = blend(white, (struct color){ 120, 120, 128 }, stripe(16 * v));
                break;
        case SHOE:
                c = dark;
                break;
        case FACE: {
                /* The face looks along z, which is u = 0.25: two eyes and a mouth. */
                float x = (u - 0.25f) * 2 * PI, y = v - 0.5f;
                float eye = fminf(hypotf(x - 0.36f, 3 * (y + 0.03f)),
                                  hypotf(x + 0.36f, 3 * (y + 0.03f)));
                float mouth = fabsf(x) < 0.4f ? fabsf(y - 0.19f + 0.12f * x * x) : 1;
                c = eye < 0.07f ? dark : eye < 0.14f ? white : mouth < 0.012f ? red : skin;
                break;
        }
        case SKIRT:
                c = blend(red, gold, stripe(9 * u * 2) * stripe(4 * v + 0.25f));
                c = v > 0.93f ? gold : c;
                break;
        }
        /* Light from above and in front is part of the colour. */
        float light = 0.72f + 0.28f * dot(normal, unit((struct vec){ 0.4f, 0.8f, 0.6f }));
        return (struct color){ c.r * light, c.g * light, c.b * light };
}

static void put(struct figure *f, struct part p)
{
        if (f->count < PARTS)
                f->parts[f->count++] = p;
        else
                f->overflow = 1;
}

static void limb(struct figure *f, enum pattern pattern, struct vec a, float ra, struct vec b,
                 float rb)
{
        put(f,
            (struct part){ .shape = LIMB, .pattern = pattern, .a = a, .b = b, .ra = ra, .rb = rb });
}

/* Set the joints of the figure at `time`, from 0 to 1 over the period. */
static void pose(struct figure *f, float time)
{
        float t = 2 * PI * time;
        float yaw = 0.7f * sinf(t), sway = 22 * sinf(2 * t), bounce = 12 * fabsf(sinf(2 * t));
        struct vec hip = { 512 + sway, 520 + bounce, 512 };
        struct vec chest = { 512 + 0.3f * sway, 690 + bounce, 512 };
        struct vec neck = { 512 - 0.2f * sway, 800 + bounce, 512 };
        struct vec head = { 512 - 0.5f * sway, 884 + bounce, 512 };
        *f = (struct figure){ .count = 0 };
        put(f, (struct part){ ELLIPSOID, FACE, head, { 78, 94, 84 }, .turn = yaw });
        struct vec back = turn_y((struct vec){ 0, 22, -26 }, yaw);
        put(f, (struct part){ ELLIPSOID, HAIR, add(head, back), { 88, 92, 82 }, .turn = yaw });
        limb(f, SKIN, neck, 36, head, 34);
        put(f, (struct part){ ELLIPSOID, SHIRT, chest, { 124, 140, 84 }, .turn = yaw });
        limb(f, SHIRT, hip, 92, chest, 88);
        put(f, (struct part){ .shape = BELL,
                              .pattern = SKIRT,
                              .a = { hip.x, hip.y + 62, hip.z },
                              .b = { 0, 268, 0 },
                              .ra = 92,
                              .rb = 228 + 12 * sinf(2 * t),
                              .phase = t * 2,
                              .flutter = 0.055f,
                              .turn = 1.5f * yaw });
        for (int i = 0; i < 2; i++) {
                float side = i ? 1 : -1, other = i ? 0 : PI;
                float lift = sinf(t + other);
                struct vec reach = { side * 150, 50 * lift - 10, 40 * cosf(t) };
                struct vec bend = { side * 60 + 28 * sinf(2 * t + side), 80 + 30 * lift,
                                    60 * cosf(2 * t) };
                struct vec shoulder = add(chest, turn_y((struct vec){ side * 112, 78, 0 }, yaw));
                struct vec elbow = add(shoulder, turn_y(reach, yaw));
                struct vec hand = add(elbow, turn_y(bend, yaw));
                limb(f, SLEEVE, shoulder, 46, elbow, 37);
                limb(f, SKIN, elbow, 36, hand, 27);
                put(f, (struct part){ ELLIPSOID, SKIN, hand, { 38, 44, 32 }, .turn = yaw });

                float step = fmaxf(0, sinf(2 * t + other));
                struct vec foot = { 512 + side * 84, 46 + 60 * step, 512 + 50 * step };
                struct vec knee = { 512 + side * 80 + 0.5f * sway, 290 + 40 * step,
                                    530 + 40 * step };
                struct vec toe = { 0, -6, 34 };
                limb(f, STOCKING, knee, 52, foot, 38);
                put(f, (struct part){
                               ELLIPSOID, SHOE, add(foot, toe), { 44, 32, 86 }, .turn = side / 4 });
        }
}

struct voxel {
        uint16_t at[3];
        uint8_t color[3];
};

struct cloud {
        struct voxel *voxels;
        size_t count, capacity;
        uint8_t *taken; /* a bit for each voxel of the cube */
};

static int cloud_put(struct cloud *c, const int at[3], struct color color)
{
        for (int k = 0; k < 3; k++)
                if (at[k] < 0 || at[k] >= SIDE)
                        return -1;
        size_t index = ((size_t)at[2] * SIDE + (size_t)at[1]) * SIDE + (size_t)at[0];
        if (c->taken[index / 8] >> index % 8 & 1)
                return 0;
        if (c->count == c->capacity)
                return -1;
        c->taken[index / 8] = (uint8_t)(c->taken[index / 8] | 1 << index % 8);
        c->voxels[c->count++] = (struct voxel){
                { (uint16_t)at[0], (uint16_t)at[1], (uint16_t)at[2] },
                { (uint8_t)fminf(color.r, 255), (uint8_t)fminf(color.g, 255),
                  (uint8_t)fminf(color.b, 255) },
        };
        return 0;
}

/* Move a sample to the middle of its column along the surface, and round it. */
static void column(struct vec q, struct vec normal, int at[3])
{
        float p[3] = { q.x, q.y, q.z }, n[3] = { normal.x, normal.y, normal.z };
        int main = fabsf(n[0]) >= fabsf(n[1]) && fabsf(n[0]) >= fabsf(n[2]) ? 0
                   : fabsf(n[1]) >= fabsf(n[2])                             ? 1
                                                                            : 2;
        for (int k = 0; k < 3; k++) {
                if (k == main)
                        continue;
                float middle = floorf(p[k]) + 0.5f;
                p[main] -= n[k] * (middle - p[k]) / n[main];
                p[k] = middle;
        }
        for (int k = 0; k < 3; k++)
                at[k] = (int)floorf(p[k]);
}

static int sample_part(const struct figure *f, int index, struct cloud *c)
{
        const struct part *p = &f->parts[index];
        /* The length of a line of constant u, and then of each circle, decides the number of samples. */
        float length = 0;
        for (int i = 0; i < 64; i++) {
                struct vec d = sub(surface(p, 0.02f, (float)(i + 1) / 64),
                                   surface(p, 0.02f, (float)i / 64));
                length += 1.35f * sqrtf(dot(d, d));
        }
        int rows = (int)(length / STEP) + 2;
        for (int row = 0; row <= rows; row++) {
                float v = (float)row / (float)rows, girth = 0;
                for (int i = 0; i < 90; i++) {
                        struct vec d = sub(surface(p, (float)(i + 1) / 90, v),
                                           surface(p, (float)i / 90, v));
                        girth += 1.1f * sqrtf(dot(d, d));
                }
                int columns = (int)(girth / STEP) + 2;
                for (int i = 0; i < columns; i++) {
                        float u = (float)i / (float)columns, e = 0.002f;
                        struct vec q = surface(p, u, v);
                        int hidden = 0;
                        for (int k = 0; k < f->count && !hidden; k++)
                                hidden = k != index && inside(&f->parts[k], q);
                        if (hidden)
                                continue;
                        float v0 = fmaxf(v - e, 0), v1 = fminf(v + e, 1);
                        struct vec normal =
                                unit(cross(sub(surface(p, u, v1), surface(p, u, v0)),
                                           sub(surface(p, u + e, v), surface(p, u - e, v))));
                        struct vec out = p->shape == LIMB ? sub(q, scale(add(p->a, p->b), 0.5f))
                                                          : sub(q, p->a);
                        if (p->shape == BELL)
                                out.y = 0;
                        if (dot(normal, out) < 0)
                                normal = scale(normal, -1);
                        int at[3];
                        column(q, normal, at);
                        if (cloud_put(c, at, paint(p, u, v, normal)) < 0)
                                return -1;
                }
        }
        return 0;
}

/* Write the cloud as a binary PLY file: 16-bit coordinates would do, but readers expect floats. */
static int write_ply(const char *path, const struct cloud *c)
{
        FILE *file = fopen(path, "wb");
        if (!file)
                return -1;
        fprintf(file,
                "ply\nformat binary_little_endian 1.0\nelement vertex %zu\nproperty float x\nproperty float y\n"
                "property float z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n",
                c->count);
        for (size_t i = 0; i < c->count; i++) {
                float at[3] = { c->voxels[i].at[0], c->voxels[i].at[1], c->voxels[i].at[2] };
                fwrite(at, sizeof(at), 1, file);
                fwrite(c->voxels[i].color, sizeof(c->voxels[i].color), 1, file);
        }
        int failed = ferror(file);
        return fclose(file) != 0 || failed ? -1 : 0;
}

int main(int argc, char **argv)
{
        if (argc != 2 && argc != 4) {
                fprintf(stderr, "usage: %s FOLDER [FIRST LAST]\n", argv[0]);
                return 2;
        }
        int first = argc == 4 ? atoi(argv[2]) : 0, last = argc == 4 ? atoi(argv[3]) : FRAMES - 1;
        struct cloud cloud = { .capacity = 4u << 20 };
        cloud.voxels = malloc(cloud.capacity * sizeof(*cloud.voxels));
        cloud.taken = malloc((size_t)SIDE * SIDE * SIDE / 8);
        int status = !cloud.voxels || !cloud.taken;
        for (int frame = first; !status && frame <= last; frame++) {
                struct figure figure;
                char path[4096];
                pose(&figure, (float)frame / FRAMES);
                cloud.count = 0;
                memset(cloud.taken, 0, (size_t)SIDE * SIDE * SIDE / 8);
                status = figure.overflow;
                for (int i = 0; i < figure.count && !status; i++)
                        status = sample_part(&figure, i, &cloud) < 0;
                snprintf(path, sizeof(path), "%s/dancer_vox10_%04d.ply", argv[1], frame);
                if (status || write_ply(path, &cloud) < 0) {
                        fprintf(stderr, "can't write frame %d to %s\n", frame, path);
                        status = 1;
                } else {
                        printf("%s %zu points\n", path, cloud.count);
                        fflush(stdout);
                }
        }
        free(cloud.voxels);
        free(cloud.taken);
        return status;
}

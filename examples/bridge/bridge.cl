/* A bridge at dusk, path by path. Every pixel depends on its coordinates alone, so a picture does
 * not depend on which device rendered which rows. */

#include "shape.h"

#define MAX_STEPS 160
#define FAR       420.0f

static uint mix_bits(uint x)
{
        x ^= x >> 16;
        x *= 0x7feb352du;
        x ^= x >> 15;
        x *= 0x846ca68bu;
        return x ^ (x >> 16);
}

static float uniform_next(uint *state)
{
        *state = mix_bits(*state + 0x9e3779b9u);
        return (float)(*state >> 8) * (1.0f / 16777216.0f);
}

static float3 sun_direction(void)
{
        return normalize((float3)(-0.78f, 0.115f, -0.62f));
}

static float3 sky(float3 d)
{
        float up = max(d.y, 0.0f);
        float3 low = (float3)(1.05f, 0.48f, 0.22f);
        float3 middle = (float3)(0.50f, 0.36f, 0.48f);
        float3 high = (float3)(0.07f, 0.13f, 0.33f);
        float3 c = mix(low, middle, smoothstep(0.0f, 0.18f, up));
        c = mix(c, high, smoothstep(0.10f, 0.65f, up));
        float s = max(dot(d, sun_direction()), 0.0f);
        c += (float3)(1.0f, 0.55f, 0.22f) * (0.35f * pow(s, 12.0f) + 0.5f * pow(s, 160.0f));
        if (s > 0.9994f)
                c += (float3)(26.0f, 17.0f, 8.0f);
        return c;
}

static float wave_height(float2 p)
{
        float h = 0.0f;
        h += 0.070f * sin(0.55f * p.x + 0.21f * p.y);
        h += 0.050f * sin(-0.37f * p.x + 0.93f * p.y + 1.3f);
        h += 0.024f * sin(1.70f * p.x + 1.10f * p.y + 0.4f);
        h += 0.012f * sin(-2.90f * p.x + 2.30f * p.y + 2.1f);
        h += 0.005f * sin(5.70f * p.x + 4.10f * p.y + 0.9f);
        return h;
}

static float3 wave_normal(float2 p)
{
        float e = 0.03f;
        float hx = wave_height(p + (float2)(e, 0.0f)) - wave_height(p - (float2)(e, 0.0f));
        float hz = wave_height(p + (float2)(0.0f, e)) - wave_height(p - (float2)(0.0f, e));
        return normalize((float3)(-hx, 2.0f * e, -hz));
}

static float3 bridge_normal(float3 p)
{
        int material;
        float e = 0.01f;
        float3 n = (float3)(0.0f);
        for (int i = 0; i < 4; i++) {
                float3 k = (float3)((i & 1) ? 1.0f : -1.0f, (i & 2) ? 1.0f : -1.0f,
                                    (i == 1 || i == 2) ? -1.0f : 1.0f);
                n += k * bridge_distance(p + e * k, &material);
        }
        return normalize(n);
}

/* Distance along the ray to the first surface; negative: it hits none. */
static float trace(float3 from, float3 d, int *material)
{
        float water = d.y < 0.0f ? -from.y / d.y : FAR;
        float limit = min(water, FAR);
        float t = 0.02f;
        for (int i = 0; i < MAX_STEPS && t < limit; i++) {
                float3 p = from + t * d;
                if (p.y > TOWER_H + 3.0f && d.y > 0.0f)
                        break;
                float near = bridge_distance(p, material);
                if (near < 0.0004f * t + 0.002f)
                        return t;
                t += near * 0.85f;
        }
        if (water < FAR) {
                *material = WATER;
                return water;
        }
        return -1.0f;
}

static float3 hemisphere(float3 n, uint *seed)
{
        float a = 6.2831853f * uniform_next(seed);
        float z = 2.0f * uniform_next(seed) - 1.0f;
        float r = sqrt(max(1.0f - z * z, 0.0f));
        return normalize(n + 0.999f * (float3)(r * cos(a), r * sin(a), z));
}

static float3 path(float3 from, float3 d, uint *seed, int bounces)
{
        float3 light = (float3)(0.0f);
        float3 throughput = (float3)(1.0f);

        for (int bounce = 0; bounce <= bounces; bounce++) {
                int material = 0;
                float t = trace(from, d, &material);
                if (t < 0.0f) {
                        float3 c = sky(d);
                        /* The sun itself comes by its own ray wherever the surface is rough. */
                        light += throughput * (bounce ? min(c, (float3)(4.0f)) : c);
                        break;
                }

                float3 p = from + t * d;
                float haze = 1.0f - exp(-0.0035f * t);
                light += throughput * haze * sky(normalize((float3)(d.x, max(d.y, 0.02f), d.z)));
                throughput *= 1.0f - haze;

                if (material == WATER) {
                        float3 n = wave_normal(p.xz);
                        n = normalize(mix(n, (float3)(0.0f, 1.0f, 0.0f), smoothstep(40.0f, 400.0f, t)));
                        float fresnel = 0.03f + 0.97f * pow(1.0f - max(dot(-d, n), 0.0f), 5.0f);
                        light += throughput * (1.0f - fresnel) * (float3)(0.010f, 0.026f, 0.036f);
                        throughput *= fresnel;
                        d = d - 2.0f * dot(d, n) * n;
                        d = normalize((float3)(d.x, fabs(d.y) + 0.001f, d.z));
                        from = p + 0.02f * n;
                        continue;
                }

                float3 n = bridge_normal(p);
                float3 albedo = (float3)(0.62f, 0.13f, 0.07f);
                if (material == ROAD)
                        albedo = (float3)(0.08f);
                if (material == STONE)
                        albedo = (float3)(0.26f, 0.24f, 0.22f);

                float3 to_sun = sun_direction();
                float facing = dot(n, to_sun);
                from = p + 0.02f * n;
                if (facing > 0.0f) {
                        float3 jitter = (float3)(uniform_next(seed), uniform_next(seed), uniform_next(seed));
                        int shadow;
                        if (trace(from, normalize(to_sun + 0.03f * (jitter - 0.5f)), &shadow) < 0.0f)
                                light += throughput * albedo * facing * (float3)(2.6f, 1.5f, 0.75f);
                }
                throughput *= albedo;
                d = hemisphere(n, seed);
        }
        return light;
}

/* Renders `rows` rows of the picture, from `first_row`, to `band`. */
__kernel void render(__global float4 *band, int width, int height, int first_row, int rows,
                     int samples, int bounces)
{
        int x = get_global_id(0);
        int row = get_global_id(1);
        if (x >= width || row >= rows)
                return;
        int y = first_row + row;

        float3 eye = (float3)(-74.0f, 6.0f, 46.0f);
        float3 target = (float3)(2.0f, 13.0f, -2.0f);
        float3 forward = normalize(target - eye);
        float3 right = normalize(cross(forward, (float3)(0.0f, 1.0f, 0.0f)));
        float3 up = cross(right, forward);

        float3 sum = (float3)(0.0f);
        for (int s = 0; s < samples; s++) {
                uint seed = mix_bits((uint)(y * width + x) * 977u + (uint)s * 7919u + 1u);
                float u = (2.0f * ((float)x + uniform_next(&seed)) - (float)width) / (float)height;
                float v = ((float)height - 2.0f * ((float)y + uniform_next(&seed))) / (float)height;
                float3 d = normalize(1.75f * forward + u * right + v * up);
                sum += min(path(eye, d, &seed, bounces), (float3)(12.0f));
        }
        band[row * width + x] = (float4)(sum / (float)samples, 1.0f);
}

/* Glow: light that is brighter than the screen can show. Each device blurs its own rows along the
 * rows. */
__kernel void glow_rows(__global const float4 *band, __global float4 *glow, int width, int rows,
                        int radius)
{
        int x = get_global_id(0);
        int row = get_global_id(1);
        if (x >= width || row >= rows)
                return;
        float4 sum = (float4)(0.0f);
        float weights = 0.0f;
        for (int i = -radius; i <= radius; i++) {
                float w = exp(-4.0f * (float)(i * i) / (float)(radius * radius));
                float4 c = band[row * width + clamp(x + i, 0, width - 1)];
                sum += w * max(c - (float4)(0.9f), (float4)(0.0f));
                weights += w;
        }
        glow[row * width + x] = sum / weights;
}

/* On the gathering device: blur along columns, add, map to the colours of a screen. */
__kernel void compose(__global const float4 *picture, __global const float4 *glow,
                      __global uchar4 *screen, int width, int height, int radius)
{
        int x = get_global_id(0);
        int y = get_global_id(1);
        if (x >= width || y >= height)
                return;
        float4 sum = (float4)(0.0f);
        float weights = 0.0f;
        for (int i = -radius; i <= radius; i++) {
                float w = exp(-4.0f * (float)(i * i) / (float)(radius * radius));
                sum += w * glow[clamp(y + i, 0, height - 1) * width + x];
                weights += w;
        }
        float4 c = picture[y * width + x] + 0.8f * sum / weights;
        float vignette = 1.0f - 0.25f * pow(fabs(2.0f * (float)x / (float)width - 1.0f), 3.0f);
        c = (float4)(1.0f) - exp(-1.25f * vignette * c);
        c = pow(c, (float4)(1.0f / 2.2f));
        screen[y * width + x] = convert_uchar4_sat_rte((float4)(c.xyz, 1.0f) * 255.0f);
}

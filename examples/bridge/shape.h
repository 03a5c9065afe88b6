/* Distance fields of the bridge. Included by bridge.cl: found with -I on the machine of the
 * application, wherever the kernels are compiled. Lengths in metres, y is up. */

#ifndef SHAPE_H
#define SHAPE_H

#define SPAN    90.0f /* between the towers */
#define TOWER_H 34.0f
#define DECK_Y  7.0f
#define SAG_Y   9.5f /* lowest point of the main cable */
#define CABLE_Z 3.2f

static float box_distance(float3 p, float3 half_size)
{
        float3 q = fabs(p) - half_size;
        return length(max(q, 0.0f)) + min(max(q.x, max(q.y, q.z)), 0.0f);
}

/* Height of the main cable over the deck's middle line: parabolas between and beside the towers. */
static float cable_height(float x)
{
        float half_span = 0.5f * SPAN;
        float u = fabs(x) / half_span;
        if (u < 1.0f)
                return mix(SAG_Y, TOWER_H - 1.0f, u * u);
        float v = clamp((u - 1.0f) / 1.1f, 0.0f, 1.0f);
        return mix(TOWER_H - 1.0f, DECK_Y + 1.0f, v * (1.35f - 0.35f * v));
}

static float cable_slope(float x)
{
        return (cable_height(x + 0.05f) - cable_height(x - 0.05f)) * 10.0f;
}

/* Materials of the nearest surface. */
#define STEEL 1
#define ROAD  2
#define STONE 3
#define WATER 4

static float bridge_distance(float3 p, int *material)
{
        float3 q = (float3)(p.x, p.y, fabs(p.z));

        /* Towers: two legs with portals between them. */
        float3 t = (float3)(fabs(q.x) - 0.5f * SPAN, q.y, q.z);
        float taper = 0.012f * q.y;
        float steel = box_distance(t - (float3)(0.0f, 0.5f * TOWER_H, CABLE_Z),
                                   (float3)(1.3f - taper, 0.5f * TOWER_H, 0.8f - 0.5f * taper));
        float y = t.y - 15.0f;
        y = y - 6.0f * clamp(rint(y / 6.0f), 0.0f, 3.0f);
        steel = min(steel, box_distance((float3)(t.x, y, t.z), (float3)(0.7f, 0.6f, CABLE_Z)));

        /* Main cables and hangers. */
        float cable_y = cable_height(q.x);
        float slope = cable_slope(q.x);
        float dy = (q.y - cable_y) * rsqrt(1.0f + slope * slope);
        float cable = length((float2)(dy, q.z - CABLE_Z)) - 0.28f;
        if (fabs(q.x) > 1.05f * SPAN)
                cable = max(cable, fabs(q.x) - 1.05f * SPAN);
        float hx = q.x - 4.5f * rint(q.x / 4.5f);
        float hanger = length((float2)(hx, q.z - CABLE_Z)) - 0.075f;
        hanger = max(hanger, max(q.y - cable_y, DECK_Y - q.y));
        steel = min(steel, min(cable, hanger) * 0.8f);

        /* Deck with a truss of its own, and railings. */
        float truss_x = q.x - 4.5f * rint(q.x / 4.5f);
        float diagonal = fabs(fabs(truss_x) - (DECK_Y - q.y) - 0.1f) * 0.7071f - 0.14f;
        diagonal = max(diagonal, fabs(q.z - CABLE_Z + 0.3f) - 0.12f);
        diagonal = max(diagonal, fabs(q.y - DECK_Y + 1.1f) - 1.1f);
        steel = min(steel, diagonal);
        float3 lower = (float3)(0.0f, q.y - DECK_Y + 2.2f, q.z - CABLE_Z + 0.3f);
        steel = min(steel, length(lower.yz) - 0.2f);
        float3 rail = (float3)(0.0f, q.y - DECK_Y - 1.0f, q.z - CABLE_Z + 0.25f);
        steel = min(steel, length(rail.yz) - 0.07f);
        float road = box_distance((float3)(0.0f, q.y - DECK_Y + 0.2f, q.z),
                                  (float3)(1.0f, 0.25f, CABLE_Z));

        /* Piers. */
        float stone =
                box_distance(t - (float3)(0.0f, 0.0f, 0.0f), (float3)(3.2f, 2.2f, 6.0f)) - 0.3f;

        float d = steel;
        *material = STEEL;
        if (road < d) {
                d = road;
                *material = ROAD;
        }
        if (stone < d) {
                d = stone;
                *material = STONE;
        }
        return d;
}

#endif

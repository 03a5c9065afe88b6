/* Lattice-Boltzmann D3Q19, BGK collision, two grids, pull: a step reads the populations that move into a
 * cell, collides them, and writes the cell. They are stored less their weights, which is what is
 * left of them at rest, so that float32 has digits for the rest. NX and NY are the size of a layer;
 * a domain is a slab of nz layers.
 *
 * Geometry: periodic; with CAVITY walls all around, half a cell beyond the last, the one at y = NY moves
 * along x (half-way bounce-back). With HALO the layers beyond the domain's first and last are in
 * buffers of their own, which hold only the five populations that come from there: `below` and
 * `above` are read, `up` and `down` are what the neighbours will read. */

#pragma OPENCL FP_CONTRACT OFF /* the same result on every device */

#define LAYER ((uint)(NX * NY))

/* number, opposite, direction, weight, place among those that go the same way along z */
#define REST 0.333333333f
#define FACE 0.0555555556f
#define EDGE 0.0277777778f
#define EACH(D)                      \
        D(0, 0, 0, 0, 0, REST, 0)    \
        D(1, 2, 1, 0, 0, FACE, 0)    \
        D(2, 1, -1, 0, 0, FACE, 0)   \
        D(3, 4, 0, 1, 0, FACE, 0)    \
        D(4, 3, 0, -1, 0, FACE, 0)   \
        D(5, 6, 0, 0, 1, FACE, 0)    \
        D(6, 5, 0, 0, -1, FACE, 0)   \
        D(7, 8, 1, 1, 0, EDGE, 0)    \
        D(8, 7, -1, -1, 0, EDGE, 0)  \
        D(9, 10, 1, -1, 0, EDGE, 0)  \
        D(10, 9, -1, 1, 0, EDGE, 0)  \
        D(11, 12, 1, 0, 1, EDGE, 1)  \
        D(12, 11, -1, 0, -1, EDGE, 1) \
        D(13, 14, 1, 0, -1, EDGE, 2) \
        D(14, 13, -1, 0, 1, EDGE, 2) \
        D(15, 16, 0, 1, 1, EDGE, 3)  \
        D(16, 15, 0, -1, -1, EDGE, 3) \
        D(17, 18, 0, 1, -1, EDGE, 4) \
        D(18, 17, 0, -1, 1, EDGE, 4)

struct cell {
        float f[19];
};

#ifdef HALO
#define HALO_IN  , global const float *below, global const float *above
#define HALO_OUT , global float *up, global float *down
#define HALO_OUT_ARGS , up, down
#else
#define HALO_IN
#define HALO_OUT
#define HALO_OUT_ARGS
#endif

static void moments(const struct cell *c, float *rho, float *ux, float *uy, float *uz)
{
        float r = 0, x = 0, y = 0, z = 0;
#define D(q, o, cx, cy, cz, w, s) \
        r += c->f[q];             \
        if (cx)                   \
                x += cx * c->f[q]; \
        if (cy)                   \
                y += cy * c->f[q]; \
        if (cz)                   \
                z += cz * c->f[q];
        EACH(D)
#undef D
        r += 1;
        *rho = r;
        *ux = x / r;
        *uy = y / r;
        *uz = z / r;
}

/* Towards equilibrium: omega is 1 / tau. */
static void collide(struct cell *c, float omega, float rho, float ux, float uy, float uz)
{
        float square = 1.5f * (ux * ux + uy * uy + uz * uz);
#define D(q, o, cx, cy, cz, w, s)                                                  \
        {                                                                          \
                float cu = cx * ux + cy * uy + cz * uz;                            \
                float equal = w * (rho - 1 + rho * (3 * cu + 4.5f * cu * cu - square)); \
                c->f[q] += omega * (equal - c->f[q]);                              \
        }
        EACH(D)
#undef D
}

static void store(const struct cell *c, global float *to, uint x, uint y, uint z, uint nz HALO_OUT)
{
        uint n = (z * NY + y) * NX + x, all = LAYER * nz;
#define D(q, o, cx, cy, cz, w, s) to[q * all + n] = c->f[q];
        EACH(D)
#undef D
#ifdef HALO
        if (z + 1 == nz) {
#define D(q, o, cx, cy, cz, w, s) \
        if (cz > 0)               \
                up[s * LAYER + y * NX + x] = c->f[q];
                EACH(D)
#undef D
        }
        if (z == 0) {
#define D(q, o, cx, cy, cz, w, s) \
        if (cz < 0)               \
                down[s * LAYER + y * NX + x] = c->f[q];
                EACH(D)
#undef D
        }
#endif
}

/* One step of the layers z0 + i * dz. first, last: there is a wall below, above. */
kernel void advance(global const float *from, global float *to, uint nz, uint z0, uint dz, float omega,
                 float lid, int first, int last HALO_IN HALO_OUT)
{
        const int x = get_global_id(0), y = get_global_id(1), z = z0 + get_global_id(2) * dz;
        const uint all = LAYER * nz;
        const int xm = x ? x - 1 : NX - 1, xp = x + 1 < NX ? x + 1 : 0;
        const int ym = y ? y - 1 : NY - 1, yp = y + 1 < NY ? y + 1 : 0;
        const int zm = z ? z - 1 : (int)nz - 1, zp = z + 1 < (int)nz ? z + 1 : 0;
        struct cell c;

#ifdef HALO
#define BEYOND(q, cz, s)                                                    \
        (cz > 0 && z == 0              ? below + s * LAYER                  \
         : cz < 0 && z + 1 == (int)nz ? above + s * LAYER                  \
                                       : from + q * all + SOURCE(z, cz) * LAYER)
#else
#define BEYOND(q, cz, s) (from + q * all + SOURCE(z, cz) * LAYER)
#endif
#define SOURCE(a, ca) (uint)((ca) > 0 ? a##m : (ca) < 0 ? a##p : a)
#define OUTSIDE(a, ca, size) (((ca) > 0 && a == 0) || ((ca) < 0 && a == (int)(size)-1))
#ifdef CAVITY
#define D(q, o, cx, cy, cz, w, s)                                                               \
        if (OUTSIDE(x, cx, NX) || OUTSIDE(y, cy, NY) || ((cz) > 0 && z == 0 && first) ||        \
            ((cz) < 0 && z == (int)nz - 1 && last)) {                                           \
                c.f[q] = from[o * all + ((uint)z * NY + y) * NX + x];                           \
                if ((cy) < 0 && y == NY - 1)                                                    \
                        c.f[q] += 6 * w * cx * lid;                                             \
        } else {                                                                                \
                c.f[q] = BEYOND(q, cz, s)[SOURCE(y, cy) * NX + SOURCE(x, cx)];                  \
        }
#else
#define D(q, o, cx, cy, cz, w, s) c.f[q] = BEYOND(q, cz, s)[SOURCE(y, cy) * NX + SOURCE(x, cx)];
#endif
        EACH(D)
#undef D
        float rho, ux, uy, uz;
        moments(&c, &rho, &ux, &uy, &uz);
        collide(&c, omega, rho, ux, uy, uz);
        store(&c, to, x, y, z, nz HALO_OUT_ARGS);
}

/* Density 1 + field[0] and velocity field[1..3] at equilibrium. */
kernel void start(global const float4 *field, global float *to, uint nz HALO_OUT)
{
        const uint x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
        const float4 v = field[(z * NY + y) * NX + x];
        struct cell c;
        for (int i = 0; i < 19; i++)
                c.f[i] = 0;
        collide(&c, 1.0f, 1 + v.x, v.y, v.z, v.w);
        store(&c, to, x, y, z, nz HALO_OUT_ARGS);
}

kernel void look(global const float *from, global float4 *field, uint nz)
{
        const uint n = (get_global_id(2) * NY + get_global_id(1)) * NX + get_global_id(0);
        float rho, ux, uy, uz;
        struct cell c;
        for (int i = 0; i < 19; i++)
                c.f[i] = from[i * LAYER * nz + n];
        moments(&c, &rho, &ux, &uy, &uz);
        field[n] = (float4)(rho - 1, ux, uy, uz);
}

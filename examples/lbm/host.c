#include "host.h"

#include <stdlib.h>

enum { Q = 19 };

static const int c[Q][3] = {
        { 0, 0, 0 },  { 1, 0, 0 },   { -1, 0, 0 },  { 0, 1, 0 },   { 0, -1, 0 },
        { 0, 0, 1 },  { 0, 0, -1 },  { 1, 1, 0 },   { -1, -1, 0 }, { 1, -1, 0 },
        { -1, 1, 0 }, { 1, 0, 1 },   { -1, 0, -1 }, { 1, 0, -1 },  { -1, 0, 1 },
        { 0, 1, 1 },  { 0, -1, -1 }, { 0, 1, -1 },  { 0, -1, 1 },
};

static double weight(int q)
{
        int along = abs(c[q][0]) + abs(c[q][1]) + abs(c[q][2]);
        return along == 0 ? 1 / 3.0 : along == 1 ? 1 / 18.0 : 1 / 36.0;
}

/* Directions stand in pairs behind the first. */
static int opposite(int q)
{
        return q == 0 ? 0 : ((q - 1) ^ 1) + 1;
}

static size_t cells(const struct host_flow *h)
{
        return h->size[0] * h->size[1] * h->size[2];
}

static void moments(const double *f, double *rho, double u[3])
{
        *rho = u[0] = u[1] = u[2] = 0;
        for (int q = 0; q < Q; q++) {
                *rho += f[q];
                for (int a = 0; a < 3; a++)
                        u[a] += c[q][a] * f[q];
        }
        for (int a = 0; a < 3; a++)
                u[a] /= *rho;
}

static double equilibrium(int q, double rho, const double u[3])
{
        double cu = c[q][0] * u[0] + c[q][1] * u[1] + c[q][2] * u[2];
        double square = u[0] * u[0] + u[1] * u[1] + u[2] * u[2];
        return weight(q) * rho * (1 + 3 * cu + 4.5 * cu * cu - 1.5 * square);
}

bool host_flow_start(struct host_flow *h, const float (*field)[4])
{
        h->f = calloc(cells(h) * Q, sizeof(double));
        h->next = calloc(cells(h) * Q, sizeof(double));
        if (!h->f || !h->next)
                return false;
        for (size_t n = 0; n < cells(h); n++)
                for (int q = 0; q < Q; q++)
                        h->f[n * Q + (size_t)q] =
                                equilibrium(q, 1 + (double)field[n][0],
                                            (double[3]){ (double)field[n][1], (double)field[n][2],
                                                         (double)field[n][3] });
        return true;
}

/* The population that moves along q into the cell. */
static double arriving(const struct host_flow *h, const size_t at[3], int q)
{
        size_t from[3], n = (at[2] * h->size[1] + at[1]) * h->size[0] + at[0];
        bool wall = false, moving = false;
        for (int a = 0; a < 3; a++) {
                bool before = c[q][a] > 0 && at[a] == 0;
                bool behind = c[q][a] < 0 && at[a] + 1 == h->size[a];
                wall |= before || behind;
                moving |= a == 1 && behind;
                from[a] = (at[a] + h->size[a] - (size_t)(c[q][a] + 1) + 1) % h->size[a];
        }
        if (h->cavity && wall)
                return h->f[n * Q + (size_t)opposite(q)] +
                       (moving ? 6 * weight(q) * c[q][0] * h->lid : 0);
        n = (from[2] * h->size[1] + from[1]) * h->size[0] + from[0];
        return h->f[n * Q + (size_t)q];
}

void host_flow_step(struct host_flow *h)
{
        size_t at[3], n = 0;
        for (at[2] = 0; at[2] < h->size[2]; at[2]++) {
                for (at[1] = 0; at[1] < h->size[1]; at[1]++) {
                        for (at[0] = 0; at[0] < h->size[0]; at[0]++, n++) {
                                double *f = h->next + n * Q, rho, u[3];
                                for (int q = 0; q < Q; q++)
                                        f[q] = arriving(h, at, q);
                                moments(f, &rho, u);
                                for (int q = 0; q < Q; q++)
                                        f[q] += h->omega * (equilibrium(q, rho, u) - f[q]);
                        }
                }
        }
        double *f = h->f;
        h->f = h->next;
        h->next = f;
}

void host_flow_look(const struct host_flow *h, double (*field)[4])
{
        for (size_t n = 0; n < cells(h); n++) {
                double rho, u[3];
                moments(h->f + n * Q, &rho, u);
                field[n][0] = rho - 1;
                for (int a = 0; a < 3; a++)
                        field[n][1 + a] = u[a];
        }
}

void host_flow_end(struct host_flow *h)
{
        free(h->f);
        free(h->next);
}

/* The reference: the same flow on the host, in plain loops over double. The devices' results must
 * come near it. */
#ifndef LBM_HOST_H
#define LBM_HOST_H

#include <stdbool.h>
#include <stddef.h>

struct host_flow {
        size_t size[3];
        bool cavity;
        double lid;   /* velocity of the wall at the end of y, along x */
        double omega; /* 1 / relaxation time */
        double *f;    /* populations, [cell][19] */
        double *next;
};

/* `field` is density - 1 and velocity of each cell, x fastest. False: out of memory. */
bool host_flow_start(struct host_flow *h, const float (*field)[4]);
void host_flow_step(struct host_flow *h);
void host_flow_look(const struct host_flow *h, double (*field)[4]);
void host_flow_end(struct host_flow *h);

#endif

/* Samplers. */
#ifndef SPANCL_CORE_SAMPLER_H
#define SPANCL_CORE_SAMPLER_H

#include "core/client.h"
#include "core/handle.h"

/* `properties`: with the final 0; NULL: none. SP_E_NOMEM. */
SP_NODISCARD int sampler_new(cl_context x, const struct sampler_desc *desc,
                             const cl_sampler_properties *properties, size_t property_count,
                             cl_sampler *ret) REQUIRES(client_held);

/* Make sure that the server knows the object. */
SP_NODISCARD int sampler_declare(cl_sampler s, struct server *server) REQUIRES(client_held);

void sampler_hold(cl_sampler s) REQUIRES(client_held);
void sampler_unhold(cl_sampler s) REQUIRES(client_held);

#endif

#include <CL/cl.h>

#include "api/reply.h"
#include "core/memory/image.h"
#include "core/memory/sampler.h"

static bool any_device_has_images(const struct _cl_context *x)
{
        for (cl_uint i = 0; i < x->device_count; i++)
                if (device_has_images(x->devices[i]))
                        return true;
        return false;
}

static bool desc_is_valid(const struct sampler_desc *d)
{
        /* "CL_INVALID_VALUE if addressing_mode, filter_mode, normalized_coords or a combination of
         * these arguments are not valid": CL_ADDRESS_REPEAT and CL_ADDRESS_MIRRORED_REPEAT "can only be
         * used with normalized coordinates", but it is the kernel's result that is undefined then. */
        return d->addressing >= CL_ADDRESS_NONE && d->addressing <= CL_ADDRESS_MIRRORED_REPEAT &&
               (d->filter == CL_FILTER_NEAREST || d->filter == CL_FILTER_LINEAR);
}

static cl_sampler create(cl_context context, const struct sampler_desc *desc,
                         const cl_sampler_properties *list, size_t count, cl_int *errcode_ret)
{
        if (!desc_is_valid(desc))
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        /* "CL_INVALID_OPERATION if images are not supported by any device associated with context." */
        if (!any_device_has_images(context))
                return reply_error(errcode_ret, CL_INVALID_OPERATION);
        cl_sampler s = NULL;
        client_lock(context->client);
        int r = sampler_new(context, desc, list, count, &s);
        client_unlock(context->client);
        if (errcode_ret)
                *errcode_ret = status_to_cl(r);
        return s;
}

CL_API_ENTRY cl_sampler CL_API_CALL clCreateSampler(cl_context context, cl_bool normalized_coords,
                                                    cl_addressing_mode addressing_mode,
                                                    cl_filter_mode filter_mode, cl_int *errcode_ret)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        if (normalized_coords != CL_TRUE && normalized_coords != CL_FALSE)
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        const struct sampler_desc desc = { normalized_coords, addressing_mode, filter_mode };
        return create(context, &desc, NULL, 0, errcode_ret);
}

/* CL_INVALID_VALUE: "the property name in sampler_properties is not a supported property name";
 * "the value specified for a supported property name is not valid"; or "the same property name is
 * specified more than once". */
static bool read_properties(const cl_sampler_properties *list, struct sampler_desc *ret,
                            size_t *ret_count)
{
        unsigned seen = 0;
        size_t i = 0;
        for (; list[i]; i += 2) {
                cl_sampler_properties name = list[i], value = list[i + 1];
                if (name < CL_SAMPLER_NORMALIZED_COORDS || name > CL_SAMPLER_FILTER_MODE ||
                    value > UINT32_MAX || seen & 1u << (name - CL_SAMPLER_NORMALIZED_COORDS))
                        return false;
                seen |= 1u << (name - CL_SAMPLER_NORMALIZED_COORDS);
                if (name == CL_SAMPLER_ADDRESSING_MODE)
                        ret->addressing = (uint32_t)value;
                else if (name == CL_SAMPLER_FILTER_MODE)
                        ret->filter = (uint32_t)value;
                else if (value > CL_TRUE)
                        return false;
                else
                        ret->normalized = value;
        }
        *ret_count = i + 1;
        return true;
}

CL_API_ENTRY cl_sampler CL_API_CALL clCreateSamplerWithProperties(
        cl_context context, const cl_sampler_properties *sampler_properties, cl_int *errcode_ret)
{
        struct sampler_desc desc = { true, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST };
        size_t count = 0;
        if (!handle_is(context, HANDLE_CONTEXT))
                return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        if (sampler_properties && !read_properties(sampler_properties, &desc, &count))
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        return create(context, &desc, sampler_properties, count, errcode_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clRetainSampler(cl_sampler sampler)
{
        if (!handle_is(sampler, HANDLE_SAMPLER))
                return CL_INVALID_SAMPLER;
        handle_retain(&sampler->h);
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseSampler(cl_sampler sampler)
{
        if (!handle_is(sampler, HANDLE_SAMPLER))
                return CL_INVALID_SAMPLER;
        struct client *c = sampler->context->client;
        client_lock(c);
        int last = handle_release(&sampler->h);
        if (last > 0)
                sampler_unhold(sampler);
        client_unlock(c);
        return last < 0 ? CL_INVALID_SAMPLER : CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetSamplerInfo(cl_sampler sampler, cl_sampler_info param_name,
                                                 size_t param_value_size, void *param_value,
                                                 size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        if (!handle_is(sampler, HANDLE_SAMPLER))
                return CL_INVALID_SAMPLER;
        switch (param_name) {
        case CL_SAMPLER_REFERENCE_COUNT:
                return reply_value(reply, cl_uint, atomic_load(&sampler->h.refs));
        case CL_SAMPLER_CONTEXT:
                return reply_value(reply, cl_context, sampler->context);
        case CL_SAMPLER_NORMALIZED_COORDS:
                return reply_value(reply, cl_bool, sampler->desc.normalized);
        case CL_SAMPLER_ADDRESSING_MODE:
                return reply_value(reply, cl_addressing_mode, sampler->desc.addressing);
        case CL_SAMPLER_FILTER_MODE:
                return reply_value(reply, cl_filter_mode, sampler->desc.filter);
        case CL_SAMPLER_PROPERTIES:
                return reply_bytes(reply, sampler->properties,
                                   sampler->property_count * sizeof(*sampler->properties));
        default:
                return CL_INVALID_VALUE;
        }
}

/* Entry points whose objects no device supports yet: they check what they can and return what the
 * specification names for such a device. docs/CONFORMANCE.md lists them. */
#include <CL/cl.h>
#include <CL/cl_egl.h>
#include <CL/cl_ext.h>
#include <CL/cl_gl.h>

#include "api/check.h"
#include "api/reply.h"
#include "core/context.h"

/* ---- OpenGL --------------------------------------------------------------------------------- */

/* "CL_INVALID_CONTEXT if context is not a valid context or was not created from a GL context." None
 * can be: clCreateContext has no properties for it. */
CL_API_ENTRY cl_mem CL_API_CALL clCreateFromGLBuffer(cl_context context, cl_mem_flags flags,
                                                     cl_GLuint bufobj, cl_int *errcode_ret)
{
        return reply_error(errcode_ret, CL_INVALID_CONTEXT);
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateFromGLTexture(cl_context context, cl_mem_flags flags,
                                                      cl_GLenum target, cl_GLint miplevel,
                                                      cl_GLuint texture, cl_int *errcode_ret)
{
        return reply_error(errcode_ret, CL_INVALID_CONTEXT);
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateFromGLTexture2D(cl_context context, cl_mem_flags flags,
                                                        cl_GLenum target, cl_GLint miplevel,
                                                        cl_GLuint texture, cl_int *errcode_ret)
{
        return reply_error(errcode_ret, CL_INVALID_CONTEXT);
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateFromGLTexture3D(cl_context context, cl_mem_flags flags,
                                                        cl_GLenum target, cl_GLint miplevel,
                                                        cl_GLuint texture, cl_int *errcode_ret)
{
        return reply_error(errcode_ret, CL_INVALID_CONTEXT);
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateFromGLRenderbuffer(cl_context context, cl_mem_flags flags,
                                                           cl_GLuint renderbuffer,
                                                           cl_int *errcode_ret)
{
        return reply_error(errcode_ret, CL_INVALID_CONTEXT);
}

/* "CL_INVALID_GL_OBJECT if there is no GL object associated with memobj." */
CL_API_ENTRY cl_int CL_API_CALL clGetGLObjectInfo(cl_mem memobj, cl_gl_object_type *gl_object_type,
                                                  cl_GLuint *gl_object_name)
{
        return handle_is(memobj, HANDLE_MEM) ? CL_INVALID_GL_OBJECT : CL_INVALID_MEM_OBJECT;
}

CL_API_ENTRY cl_int CL_API_CALL clGetGLTextureInfo(cl_mem memobj, cl_gl_texture_info param_name,
                                                   size_t param_value_size, void *param_value,
                                                   size_t *param_value_size_ret)
{
        return handle_is(memobj, HANDLE_MEM) ? CL_INVALID_GL_OBJECT : CL_INVALID_MEM_OBJECT;
}

/* "CL_INVALID_CONTEXT if context associated with command_queue was not created from an OpenGL
 * context." */
static cl_int refuse_gl_enqueue(cl_command_queue queue, cl_uint num_events, const cl_event *events)
{
        cl_int e = check_enqueue(queue, num_events, events);
        return e != CL_SUCCESS ? e : CL_INVALID_CONTEXT;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueAcquireGLObjects(
        cl_command_queue command_queue, cl_uint num_objects, const cl_mem *mem_objects,
        cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event)
{
        return refuse_gl_enqueue(command_queue, num_events_in_wait_list, event_wait_list);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReleaseGLObjects(
        cl_command_queue command_queue, cl_uint num_objects, const cl_mem *mem_objects,
        cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event)
{
        return refuse_gl_enqueue(command_queue, num_events_in_wait_list, event_wait_list);
}

CL_API_ENTRY cl_int CL_API_CALL clGetGLContextInfoKHR(const cl_context_properties *properties,
                                                      cl_gl_context_info param_name,
                                                      size_t param_value_size, void *param_value,
                                                      size_t *param_value_size_ret)
{
        /* "CL_INVALID_VALUE if an invalid attribute name is specified in param_name." */
        if (param_name != CL_CURRENT_DEVICE_FOR_GL_CONTEXT_KHR &&
            param_name != CL_DEVICES_FOR_GL_CONTEXT_KHR)
                return CL_INVALID_VALUE;
        /* No device can be associated with the GL context or share group, whichever it is. */
        return CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR;
}

CL_API_ENTRY cl_event CL_API_CALL clCreateEventFromGLsyncKHR(cl_context context, cl_GLsync sync,
                                                             cl_int *errcode_ret)
{
        return reply_error(errcode_ret, CL_INVALID_CONTEXT);
}

/* ---- EGL ------------------------------------------------------------------------------------ */

/* "CL_INVALID_OPERATION if there are no devices in context that support images." */
CL_API_ENTRY cl_mem CL_API_CALL clCreateFromEGLImageKHR(
        cl_context context, CLeglDisplayKHR display, CLeglImageKHR image, cl_mem_flags flags,
        const cl_egl_image_properties_khr *properties, cl_int *errcode_ret)
{
        /* "CL_INVALID_CONTEXT if context is not a valid context." "CL_INVALID_OPERATION if there are no
         * devices in context that support" it. */
        return reply_error(errcode_ret, handle_is(context, HANDLE_CONTEXT) ? CL_INVALID_OPERATION
                                                                           : CL_INVALID_CONTEXT);
}

/* "CL_INVALID_EGL_OBJECT_KHR if memory objects in mem_objects have not been created from EGL
 * objects." */
static cl_int refuse_egl_enqueue(cl_command_queue queue, cl_uint num_events, const cl_event *events)
{
        cl_int e = check_enqueue(queue, num_events, events);
        return e != CL_SUCCESS ? e : CL_INVALID_EGL_OBJECT_KHR;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueAcquireEGLObjectsKHR(
        cl_command_queue command_queue, cl_uint num_objects, const cl_mem *mem_objects,
        cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event)
{
        return refuse_egl_enqueue(command_queue, num_events_in_wait_list, event_wait_list);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReleaseEGLObjectsKHR(
        cl_command_queue command_queue, cl_uint num_objects, const cl_mem *mem_objects,
        cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event)
{
        return refuse_egl_enqueue(command_queue, num_events_in_wait_list, event_wait_list);
}

CL_API_ENTRY cl_event CL_API_CALL clCreateEventFromEGLSyncKHR(cl_context context, CLeglSyncKHR sync,
                                                              CLeglDisplayKHR display,
                                                              cl_int *errcode_ret)
{
        return reply_error(errcode_ret, handle_is(context, HANDLE_CONTEXT)
                                                ? CL_INVALID_EGL_OBJECT_KHR
                                                : CL_INVALID_CONTEXT);
}

/* ---- cl_ext_device_fission ------------------------------------------------------------------ */

/* As clCreateSubDevices: no way of division is supported. */
CL_API_ENTRY cl_int CL_API_CALL
clCreateSubDevicesEXT(cl_device_id in_device, const cl_device_partition_property_ext *properties,
                      cl_uint num_entries, cl_device_id *out_devices, cl_uint *num_devices)
{
        return handle_is(in_device, HANDLE_DEVICE) ? CL_INVALID_VALUE : CL_INVALID_DEVICE;
}

CL_API_ENTRY cl_int CL_API_CALL clRetainDeviceEXT(cl_device_id device)
{
        return clRetainDevice(device);
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseDeviceEXT(cl_device_id device)
{
        return clReleaseDevice(device);
}

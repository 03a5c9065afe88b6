/* Native queues, commands and their events. */
#ifndef SPANCL_BACKEND_NATIVE_COMMAND_H
#define SPANCL_BACKEND_NATIVE_COMMAND_H

#include "backend/native/native.h"

cl_command_queue native_create_queue(struct native_domain *domain, cl_device_id device,
                                     cl_command_queue_properties props, cl_int *err);
cl_int native_queue_create(struct backend *b, unsigned device, cl_command_queue_properties props,
                           struct backend_queue **ret);
cl_int native_device_queue_create(struct backend *b, unsigned device,
                                  cl_command_queue_properties props, cl_uint size,
                                  struct backend_queue **ret);
cl_int native_device_queue_set_default(struct backend_queue *q);
cl_int native_kernel_set_queue(struct backend_kernel *k, unsigned index, struct backend_queue *q);
void native_queue_release(struct backend_queue *q);
void native_queue_flush(struct backend_queue *q);
cl_int native_submit(struct backend_queue *q, const struct backend_command *c,
                     struct backend_event **ret);
void native_event_release(struct backend_event *e);
cl_int native_event_report(struct backend_queue *q, struct backend_event *e, void *cookie);
cl_int native_event_status(struct backend_event *e);
bool native_failure_stays(const struct backend_queue *q);
size_t native_marker_max(const struct backend_queue *q);

#endif

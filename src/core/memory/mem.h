/* Memory objects: buffers, sub-buffers, images, pipes. */
#ifndef SPANCL_CORE_MEM_H
#define SPANCL_CORE_MEM_H

#include "core/client.h"
#include "core/handle.h"
#include "core/link/listeners.h"

struct buffer_params {
        cl_mem_flags flags; /* with the defaults filled in */
        size_t size;
        void *host_ptr;
        const cl_mem_properties *properties; /* with the final 0; NULL: none */
        size_t property_count;
};

/* SP_E_NOMEM. */
SP_NODISCARD int mem_new_buffer(cl_context x, const struct buffer_params *params, cl_mem *ret)
        REQUIRES(client_held);

/* A memory object for an allocation of shared virtual memory (core/memory/svm.h). */
SP_NODISCARD int mem_new_svm(cl_context x, cl_mem_flags flags, struct svm_chunk *chunk,
                             size_t offset, size_t size, cl_mem *ret) REQUIRES(client_held);

/* A sub-buffer of a buffer, or a buffer over an allocation of shared virtual memory, which is then
 * the parent. */
SP_NODISCARD int mem_new_sub_buffer(cl_mem parent, cl_mem_flags flags, size_t origin, size_t size,
                                    cl_mem *ret) REQUIRES(client_held);

struct image_params {
        cl_mem_flags flags; /* with the defaults filled in */
        struct image_desc desc;
        size_t row_pitch, slice_pitch; /* as struct _cl_mem has them */
        void *host_ptr;
        cl_mem parent;                       /* NULL: none */
        const cl_mem_properties *properties; /* with the final 0; NULL: none */
        size_t property_count;
};

SP_NODISCARD int mem_new_pipe(cl_context x, cl_mem_flags flags, cl_uint packet_size,
                              cl_uint packets, cl_mem *ret) REQUIRES(client_held);

SP_NODISCARD int mem_new_image(cl_context x, const struct image_params *params, cl_mem *ret)
        REQUIRES(client_held);

/* Call fn, on the progress thread, when the object is gone. SP_E_NOMEM. */
SP_NODISCARD int mem_on_destroy(cl_mem m, void(CL_CALLBACK *fn)(cl_mem, void *), void *user_data)
        REQUIRES(client_held);

/* The application's last reference went: drop the hold. If there are destructors, the progress
 * thread makes sure that the commands which still hold the object complete. */
void mem_release(cl_mem m) REQUIRES(client_held);

/* Make sure that the server knows the object. */
SP_NODISCARD int mem_declare(cl_mem m, struct server *s) REQUIRES(client_held);

static inline bool mem_is_pipe(const struct _cl_mem *m)
{
        return m->pipe.packets != 0;
}

static inline bool mem_is_image(const struct _cl_mem *m)
{
        return m->image.type != 0;
}

/* The object that m is a part of for the application; NULL: none. */
static inline cl_mem mem_parent(const struct _cl_mem *m)
{
        return m->parent && !m->parent->chunk ? m->parent : NULL;
}

/* The object that holds the bytes, and a range of m's in it. */
static inline cl_mem mem_root(cl_mem m)
{
        while (m->parent)
                m = m->parent;
        return m;
}

static inline size_t mem_root_offset(const struct _cl_mem *m)
{
        size_t at = 0;
        for (; m->parent; m = m->parent)
                at += m->origin;
        return at;
}

static inline struct range mem_range(const struct _cl_mem *m, size_t offset, size_t size)
{
        size_t at = mem_root_offset(m) + offset;
        return (struct range){ at, at + size };
}

/* All of it; of an image it is what every command uses. */
static inline struct range mem_all(const struct _cl_mem *m)
{
        return mem_range(m, 0, m->size);
}

/* The application's memory behind byte `offset` of m (of an image: with its pitches): host_ptr's or a
 * shadow made when first needed, for `used` bytes.
 * NULL: out of memory. */
void *mem_host(cl_mem m, size_t offset, size_t used) REQUIRES(client_held);

/* Are the bytes that the device uses those of mem_host? */
bool mem_is_here(const struct _cl_mem *root, const struct _cl_device_id *d) REQUIRES(client_held);

/* The number of the domain that stands for the place where a device has the bytes of `root`: domains of
 * one server have shared virtual memory in common. */
unsigned mem_domain(const struct _cl_mem *root, const struct _cl_device_id *d)
        REQUIRES(client_held);

/* Nothing reads the private copy of the initial data now: free it once a server has it all. */
void mem_drop_initial(cl_mem root);

void mem_hold(cl_mem m) REQUIRES(client_held);
void mem_unhold(cl_mem m) REQUIRES(client_held);

/* The replicas of all memory objects on a lost server are gone. */
void mems_server_lost(struct server *s, const struct server_loss *loss);

#endif

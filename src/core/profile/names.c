#include "core/profile/names.h"

#include <stdlib.h>
#include <string.h>

#include "core/command/khr_command_buffer.h"
#include "core/hash.h"
#include "core/object.h"

/* Numbers of kernels follow those of kinds. */
enum {
        KIND_none,
        KIND_read_buffer,
        KIND_write_buffer,
        KIND_copy_buffer,
        KIND_fill_buffer,
        KIND_map,
        KIND_unmap,
        KIND_read_image,
        KIND_write_image,
        KIND_copy_image,
        KIND_fill_image,
        KIND_copy_SVM,
        KIND_fill_SVM,
        KIND_map_SVM,
        KIND_unmap_SVM,
        KIND_migrate,
        KIND_marker_barrier,
        KIND_command_buffer,
        KIND_other_commands,
        KIND_others, /* kernels without a number of their own */
        KINDS,
};

static const char *const kinds[KINDS] = {
        [KIND_read_buffer] = "read buffer",
        [KIND_write_buffer] = "write buffer",
        [KIND_copy_buffer] = "copy buffer",
        [KIND_fill_buffer] = "fill buffer",
        [KIND_map] = "map",
        [KIND_unmap] = "unmap",
        [KIND_read_image] = "read image",
        [KIND_write_image] = "write image",
        [KIND_copy_image] = "copy image",
        [KIND_fill_image] = "fill image",
        [KIND_copy_SVM] = "copy SVM",
        [KIND_fill_SVM] = "fill SVM",
        [KIND_map_SVM] = "map SVM",
        [KIND_unmap_SVM] = "unmap SVM",
        [KIND_migrate] = "migrate",
        [KIND_marker_barrier] = "marker, barrier",
        [KIND_command_buffer] = "command buffer",
        [KIND_other_commands] = "other commands",
        [KIND_others] = "(others)",
};

enum { BUCKETS = 256, KERNELS = 1 << 14 };

struct name {
        struct name *next; /* in its bucket */
        unsigned number;
        char text[NAMES_LENGTH];
};

/* The names are never freed, so they are not counted as blocks. */
static struct {
        struct name *buckets[BUCKETS];
        struct name *all[KERNELS];
        unsigned count;
} kernels GUARDED_BY(client_held);

unsigned names_of_kind(cl_command_type type)
{
        switch (type) {
        case CL_COMMAND_READ_BUFFER:
        case CL_COMMAND_READ_BUFFER_RECT:
                return KIND_read_buffer;
        case CL_COMMAND_WRITE_BUFFER:
        case CL_COMMAND_WRITE_BUFFER_RECT:
                return KIND_write_buffer;
        case CL_COMMAND_COPY_BUFFER:
        case CL_COMMAND_COPY_BUFFER_RECT:
                return KIND_copy_buffer;
        case CL_COMMAND_FILL_BUFFER:
                return KIND_fill_buffer;
        case CL_COMMAND_MAP_BUFFER:
        case CL_COMMAND_MAP_IMAGE:
                return KIND_map;
        case CL_COMMAND_UNMAP_MEM_OBJECT:
                return KIND_unmap;
        case CL_COMMAND_READ_IMAGE:
                return KIND_read_image;
        case CL_COMMAND_WRITE_IMAGE:
                return KIND_write_image;
        case CL_COMMAND_COPY_IMAGE:
        case CL_COMMAND_COPY_IMAGE_TO_BUFFER:
        case CL_COMMAND_COPY_BUFFER_TO_IMAGE:
                return KIND_copy_image;
        case CL_COMMAND_FILL_IMAGE:
                return KIND_fill_image;
        case CL_COMMAND_SVM_MEMCPY:
                return KIND_copy_SVM;
        case CL_COMMAND_SVM_MEMFILL:
                return KIND_fill_SVM;
        case CL_COMMAND_SVM_MAP:
                return KIND_map_SVM;
        case CL_COMMAND_SVM_UNMAP:
                return KIND_unmap_SVM;
        case CL_COMMAND_MIGRATE_MEM_OBJECTS:
        case CL_COMMAND_SVM_MIGRATE_MEM:
                return KIND_migrate;
        case CL_COMMAND_MARKER:
        case CL_COMMAND_BARRIER:
                return KIND_marker_barrier;
        case CL_COMMAND_COMMAND_BUFFER_KHR:
                return KIND_command_buffer;
        default:
                return KIND_other_commands;
        }
}

static unsigned number_of(const char *name) REQUIRES(client_held)
{
        size_t length = strnlen(name, NAMES_LENGTH - 1);
        struct name **bucket = &kernels.buckets[hash_bytes(name, length) % BUCKETS];
        for (struct name *n = *bucket; n; n = n->next)
                if (!strncmp(n->text, name, NAMES_LENGTH - 1))
                        return n->number;
        struct name *n = kernels.count < KERNELS ? calloc(1, sizeof(*n)) : NULL;
        if (!n)
                return KIND_others;
        memcpy(n->text, name, length);
        n->number = KINDS + kernels.count;
        n->next = *bucket;
        *bucket = n;
        kernels.all[kernels.count++] = n;
        return n->number;
}

unsigned names_of_kernel(struct kernel_info *k)
{
        if (!k->name_number)
                k->name_number = number_of(k->name);
        return k->name_number;
}

const char *names_text(unsigned number)
{
        if (number < KINDS)
                return kinds[number];
        return number - KINDS < kernels.count ? kernels.all[number - KINDS]->text : NULL;
}

#include "core/memory/mapping.h"
#include "core/command/operands.h"

#include "base/mem.h"
#include "core/client.h"
#include "core/command/action.h"
#include "core/command/command.h"
#include "core/command/enqueue.h"
#include "core/command/queue.h"
#include "core/command/transfer.h"
#include "core/link/server.h"
#include "core/memory/content_size.h"
#include "core/memory/host_watch.h"
#include "core/memory/image.h"
#include "core/memory/mem.h"
#include "core/memory/placement.h"

/* Make a mapping of m as in `what`. Its pointer becomes the application's memory at `offset` of m. */
static struct mapping *mapping_new(cl_mem m, size_t offset, const struct mapping *what)
        REQUIRES(client_held)
{
        struct mapping *map = mem_dup(what, sizeof(*what));
        if (!map)
                return NULL;
        size_t used = mem_is_image(m) ? image_bytes(&m->image, what->region) : what->size;
        map->pointer = mem_host(m, offset, used);
        if (!map->pointer) {
                mem_free(map);
                return NULL;
        }
        map->mem = m;
        host_watch_end(m);
        list_init(&map->link);
        list_append(&mem_root(m)->mappings, &map->link);
        m->map_count++;
        return map;
}

static void mapping_free(struct mapping *map)
{
        list_remove(&map->link);
        map->mem->map_count--;
        mem_free(map);
}

/* Are the bytes right in the application's memory already? */
static bool is_at_host(cl_mem root, struct range r)
{
        const struct replica *host = placement_find(&root->placement, PLACEMENT_HOST, 0);
        if (root->view || placement_view_has(&root->placement, r))
                return true; /* views change without maps */
        return root->host_ptr && host && range_set_has(&host->current, r);
}

/* Is the view of the mapped memory worth remembering? Only mappings must change it, so it can't be
 * the application's own memory (CL_MEM_USE_HOST_PTR). And m must come after all commands that
 * placement knows to write there. */
static bool keeps_view(const struct command *m, cl_mem mem, struct range r) REQUIRES(client_held)
{
        cl_mem root = mem_root(mem);
        bool ours = root->chunk || !root->host_ptr;
        if (!ours || root->view || mem_is_image(mem) || root->content ||
            mem_is_here(root, m->queue->device))
                return false;
        return placement_comes_after(&root->placement, m->server->index,
                                     mem_domain(root, m->queue->device), r, queue_order(m->queue),
                                     m->waits, m->wait_count);
}

/* The mapped bytes in the application's memory. */
static struct host_box mapped_box(cl_mem mem, const struct mapping *map)
{
        if (!mem_is_image(mem))
                return host_bytes(map->pointer, map->size);
        return image_box(mem, map->region, mem->row_pitch, mem->slice_pitch, map->pointer);
}

/* The bytes that are placed with it. */
static struct range mapped_range(const struct _cl_mem *mem, const struct mapping *map)
{
        if (mem_is_image(mem))
                return mem_all(mem);
        return (struct range){ map->offset, map->offset + map->size };
}

static struct operand operand_mapped(cl_mem mem, const struct mapping *map)
{
        return (struct operand){ .mem = mem,
                                 .named = mem_is_image(mem) ? mem : mem_root(mem),
                                 .bytes = mapped_range(mem, map),
                                 .origin = map->origin };
}

static int send_read(struct command *m, cl_mem mem, const struct mapping *map) REQUIRES(client_held)
{
        int r = transfer_expect(m, mapped_box(mem, map), mem_root(mem));
        if (r < 0)
                return r;
        r = content_size_send(m, mem, map->size);
        if (r == 0)
                r = action_send(m, &(struct action){ .kind = mem_is_image(mem) ? ACTION_IMAGE_READ
                                                                               : ACTION_BUFFER_READ,
                                                     .from = operand_mapped(mem, map),
                                                     .region = map->region });
        if (r < 0)
                incoming_cancel(m->client, m->id);
        return r;
}

/* ---- several mappings of the same bytes ----------------------------------------------------- */

static bool is_for_writing(const struct mapping *map)
{
        return map->flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
}

/* Does any row of the box have one of these bytes? */
static bool box_meets(const struct host_box *b, const uint8_t *from, const uint8_t *to)
{
        for (size_t z = 0; z < b->region[2]; z++)
                for (size_t y = 0; y < b->region[1]; y++) {
                        const uint8_t *row = b->at + z * b->slice_pitch + y * b->row_pitch;
                        if (row < to && from < row + b->region[0])
                                return true;
                }
        return false;
}

/* All mappings of a root are in the same host memory. */
static bool mappings_overlap(const struct mapping *a, const struct mapping *b)
{
        if (a->mem == b->mem && mem_is_image(a->mem)) {
                for (int i = 0; i < 3; i++)
                        if (a->origin[i] + a->region[i] <= b->origin[i] ||
                            b->origin[i] + b->region[i] <= a->origin[i])
                                return false;
                return true;
        }
        const struct host_box rows = mapped_box(a->mem, a), other = mapped_box(b->mem, b);
        for (size_t z = 0; z < rows.region[2]; z++)
                for (size_t y = 0; y < rows.region[1]; y++) {
                        const uint8_t *row = rows.at + z * rows.slice_pitch + y * rows.row_pitch;
                        if (box_meets(&other, row, row + rows.region[0]))
                                return true;
                }
        return false;
}

/* Are the pixels of `map` all in `in`, of the same image? */
static bool mapping_is_inside(const struct mapping *map, const struct mapping *in)
{
        for (int i = 0; i < 3; i++)
                if (map->origin[i] < in->origin[i] ||
                    map->origin[i] + map->region[i] > in->origin[i] + in->region[i])
                        return false;
        return map->mem == in->mem;
}

/* Cut the bytes of `m` off the part of a buffer if they are at one of its ends. Return true if that was so. */
static bool cut_off(struct mapping *part, const struct mapping *m)
{
        size_t begin = part->offset, end = begin + part->size, other_end = m->offset + m->size;
        if (mem_is_image(m->mem) || other_end <= begin || end <= m->offset)
                return false;
        if (m->offset <= begin)
                begin = other_end < end ? other_end : end;
        else if (end <= other_end)
                end = m->offset;
        else
                return false;
        part->pointer = (uint8_t *)part->pointer + (begin - part->offset);
        part->offset = begin;
        part->size = end - begin;
        return true;
}

/* Leave out bytes that are mapped for writing already. Such bytes are "considered to be undefined
 * until this region is unmapped", and the application's writes there must stay. Return false if
 * they are in the middle of the remaining part. */
static bool leave_out_written(const struct mapping *map, struct mapping *part)
{
        bool cut = true, image = mem_is_image(map->mem);
        while (cut && part->size) {
                cut = false;
                list_each(m, &mem_root(map->mem)->mappings, struct mapping, link)
                {
                        if (m == map || !is_for_writing(m))
                                continue;
                        if (image && mapping_is_inside(map, m))
                                part->size = 0;
                        else if (!image && part->size)
                                cut |= cut_off(part, m);
                }
        }
        list_each(m, &mem_root(map->mem)->mappings, struct mapping, link)
        {
                if (m != map && is_for_writing(m) && part->size && mappings_overlap(part, m))
                        return false;
        }
        return true;
}

/* ---- map and unmap -------------------------------------------------------------------------- */

/* `offset`: of its first byte in the application's memory of mem. */
static cl_int enqueue_mapping(const struct enqueue *q, cl_mem mem, size_t offset,
                              const struct mapping *what, void **ret_pointer)
{
        struct command m;
        struct range at = mapped_range(mem, what);
        struct mapping *map = NULL;
        void *pointer = NULL;
        int r = command_begin(&m, q);
        if (r == 0) {
                map = mapping_new(mem, offset, what);
                r = map ? 0 : SP_E_NOMEM;
        }
        bool read = r == 0 && !(what->flags & CL_MAP_WRITE_INVALIDATE_REGION) &&
                    !is_at_host(mem_root(mem), at);
        struct mapping part = map ? *map : (struct mapping){ 0 };
        /* "CL_INVALID_OPERATION [...] if mapping would lead to overlapping regions being mapped for
         * writing". Native implementations accept such mappings. So does the client if the bytes
         * that must be read are in one piece. clEnqueueSVMMap has no such rule. */
        if (read && !leave_out_written(map, &part) && !mem->chunk && is_for_writing(map))
                r = CL_INVALID_OPERATION;
        read = read && r == 0 && part.size;
        bool here = r == 0 && mem_is_here(mem_root(mem), m.queue->device);
        if (read || here)
                r = command_use(&m, mem_is_image(mem) ? mem : mem_root(mem), at, read);
        read = read && !here;
        if (r == 0 && read)
                r = content_size_use(&m, mem, part.size);
        if (here) /* the program may use the device's memory as soon as a wait returns */
                mem->context->ahead.never = true;
        if (r == 0)
                r = command_ready(&m, read || q->blocking);
        if (r == 0 && read && keeps_view(&m, mem, at))
                r = placement_copy(&mem_root(mem)->placement, PLACEMENT_VIEW, 0,
                                   mapped_range(mem, &part), m.id);
        if (r == 0)
                r = read ? send_read(&m, mem, &part) : command_send_nothing(&m);
        if (read)
                m.profile.bytes = part.size;
        bool waiting = r == 0 && q->blocking;
        if (r == 0)
                pointer = map->pointer;
        else if (map)
                mapping_free(map);
        if (waiting) {
                map->waiting = true;
                mem_hold(mem);
        }
        cl_int status = command_end(&m, r, q->blocking);
        if (waiting) {
                client_lock(m.client);
                map->waiting = false;
                if (status != CL_SUCCESS)
                        mapping_free(map);
                mem_unhold(mem);
                client_unlock(m.client);
        }
        if (status == CL_SUCCESS)
                *ret_pointer = pointer;
        return status;
}

cl_int enqueue_map(const struct enqueue *q, cl_mem mem, cl_map_flags flags, size_t offset,
                   size_t size, void **ret_pointer)
{
        const struct mapping what = {
                .offset = (size_t)mem_range(mem, offset, size).begin,
                .size = size,
                .flags = flags,
        };
        return enqueue_mapping(q, mem, offset, &what, ret_pointer);
}

cl_int enqueue_map_image(const struct enqueue *q, cl_mem mem, cl_map_flags flags,
                         const size_t origin[3], const size_t region[3], void **ret_pointer)
{
        const struct mapping what = {
                .origin = { origin[0], origin[1], origin[2] },
                .region = { region[0], region[1], region[2] },
                .size = 1,
                .flags = flags,
        };
        return enqueue_mapping(q, mem, image_offset(mem, origin), &what, ret_pointer);
}

/* The latest mapping that starts there. */
static struct mapping *mapping_find(cl_mem m, const void *pointer)
{
        struct mapping *found = NULL;
        list_each(map, &mem_root(m)->mappings, struct mapping, link)
        {
                if (map->mem == m && map->pointer == pointer && !map->waiting)
                        found = map;
        }
        return found;
}

static int send_write(struct command *m, cl_mem mem, const struct mapping *map)
{
        return action_send(m, &(struct action){ .kind = mem_is_image(mem) ? ACTION_IMAGE_WRITE
                                                                          : ACTION_BUFFER_WRITE,
                                                .to = operand_mapped(mem, map),
                                                .region = map->region });
}

static int send_back(struct command *m, cl_mem mem, struct mapping map) REQUIRES(client_held)
{
        cl_mem root = mem_root(mem), used = mem_is_image(mem) ? mem : root;
        struct range at = mapped_range(mem, &map);
        bool bring = mem_is_image(mem) && !image_is_covered(mem, map.region);
        bool here = mem_is_here(root, m->queue->device);
        int r = command_use(m, used, at, bring);
        bool keep = keeps_view(m, mem, at);
        if (r == 0)
                r = command_ready(m, !here && at.end - at.begin > SESSION_INLINE_DEFAULT);
        if (r == 0)
                r = here ? command_send_nothing(m) : send_write(m, mem, &map);
        if (r == 0)
                r = command_wrote(m, root, at, !bring);
        if (r == 0 && keep)
                placement_view_right(&root->placement, at);
        if (r == 0 && !here)
                r = transfer_send(m, mapped_box(mem, &map), root, NULL);
        return r;
}

cl_int enqueue_unmap(const struct enqueue *q, cl_mem mem, void *pointer)
{
        struct command m;
        struct mapping map = { 0 };
        int r = command_begin(&m, q);
        struct mapping *found = r == 0 ? mapping_find(mem, pointer) : NULL;
        if (r == 0 && !found)
                r = CL_INVALID_VALUE;
        if (found)
                map = *found;
        if (r == 0 && is_for_writing(&map) && !mem_root(mem)->view) {
                r = send_back(&m, mem, map);
        } else if (r == 0) {
                r = command_ready(&m, false);
                if (r == 0)
                        r = command_send_nothing(&m);
        }
        if (r == 0)
                mapping_free(found);
        return command_end(&m, r, false);
}

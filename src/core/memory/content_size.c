#include "core/memory/content_size.h"
#include "core/command/operands.h"

#include "core/command/command.h"
#include "core/link/server.h"
#include "core/memory/mem.h"
#include "core/memory/placement.h"

enum {
        SIZE = 8,       /* of the number */
        MIN = 64 << 10, /* bytes; reads of fewer are not worth a question */
};

void content_size_set(cl_mem buffer, cl_mem size)
{
        if (buffer->parent) /* its bytes are moved with those beside it */
                size = NULL;
        /* Not round in a circle, which would keep all of them for ever: then it is no hint. */
        for (cl_mem m = size; m; m = mem_root(m)->content)
                if (mem_root(m) == mem_root(buffer))
                        size = NULL;
        cl_mem before = buffer->content;
        if (size)
                mem_hold(size);
        buffer->content = size;
        if (before)
                mem_unhold(before);
}

static cl_mem content_of(cl_mem mem, uint64_t size)
{
        cl_mem root = mem_root(mem);
        return size >= MIN && !mem_is_image(mem) && !root->chunk ? root->content : NULL;
}

struct range content_size_range(const struct _cl_mem *root)
{
        return mem_range(root->content, 0, SIZE);
}

int content_size_use(struct command *m, cl_mem mem, size_t size)
{
        cl_mem content = m->enqueue->record ? NULL : content_of(mem, size);
        return content ? command_use(m, mem_root(content), mem_range(content, 0, SIZE), true) : 0;
}

int content_size_request(struct session *session, const struct _cl_mem *root, uint64_t event)
{
        return session_send(session, content_size, .event = event,
                            .buffer = mem_root(root->content)->id,
                            .offset = mem_root_offset(root->content));
}

int content_size_send(struct command *m, cl_mem mem, size_t size)
{
        if (m->enqueue->record || !content_of(mem, size))
                return 0;
        int r = content_size_request(m->session, mem_root(mem), m->id);
        m->at = session_position(m->session);
        return r;
}

const struct replica *content_size_at(cl_mem root, struct range part, uint32_t server,
                                      uint32_t domain)
{
        cl_mem content = content_of(root, part.end - part.begin);
        if (!content)
                return NULL;
        struct replica *at = placement_find(&mem_root(content)->placement, server, domain);
        return at && range_set_has(&at->current, content_size_range(root)) ? at : NULL;
}

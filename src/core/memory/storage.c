#include "core/memory/storage.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/link/request.h"
#include "core/link/server.h"
#include "core/memory/placement.h"
#include "os/file.h"
#include "os/vm.h"
#include "proto/info.h"

enum {
        STORAGE_MIN = 1 << 20, /* smaller buffers are not worth a mapping */
        /* Readable bytes behind a buffer, as elsewhere: kernels of real programs read a little too far. */
        STORAGE_SLACK = 512,
        /* Bytes of released parts that wait for the next buffer: some pictures of a video. */
        STORAGE_KEPT = 64 << 20,
};

/* The device of `s` that works on the host's memory; NULL: none. */
static cl_device_id host_device(cl_device_id const *devices, cl_uint count, const struct server *s)
{
        for (cl_uint i = 0; i < count; i++)
                if (devices[i]->server == s && devices[i]->svm == INFO_SVM_FOLLOWS)
                        return devices[i];
        return NULL;
}

void storage_settle(struct client *c)
{
        struct arena *m = &c->arena;
        for (unsigned i = 0; i < c->server_count && !m->server; i++) {
                struct server *s = c->servers[i];
                int fd = c->io->arena && s->state == SERVER_UP
                                 ? c->io->arena(c->io_user, s->link, &m->size)
                                 : -1;
                if (fd < 0 || !host_device(s->devices, s->device_count, s))
                        continue;
                m->size = m->size / VM_GRANULE * VM_GRANULE;
                m->fd = file_duplicate(fd);
                if (m->fd < 0)
                        return;
                if (range_set_add(&m->free, (struct range){ 0, m->size }) < 0)
                        file_close(m->fd);
                else
                        m->server = s;
                list_init(&m->released);
                list_init(&m->kept);
        }
}

static void forget(struct client *c) REQUIRES(client_held)
{
        storage_fini(c);
        c->arena = (struct arena){ .fd = -1 };
}

void storage_server_lost(struct server *s, const struct server_loss *loss)
{
        struct client *c = s->client;
        if (c->arena.server == s && !c->arena.used)
                forget(c);
}

bool storage_uses(const struct server *s)
{
        return s->client->arena.server == s;
}

static void unmap(struct storage *s)
{
        if (s->address)
                vm_unmap((uint64_t)(uintptr_t)s->address, s->size);
        s->address = NULL;
}

static void discard(struct storage *s)
{
        unmap(s);
        buf_fini(&s->request.info);
        mem_free(s);
}

void storage_fini(struct client *c)
{
        struct arena *m = &c->arena;
        if (!m->server)
                return;
        list_each(s, &m->released, struct storage, link)
        {
                discard(s);
        }
        list_each(kept, &m->kept, struct storage, link)
        {
                discard(kept);
        }
        range_set_fini(&m->free);
        file_close(m->fd);
}

static bool find_room(struct arena *m, uint64_t size, struct range *ret)
{
        for (size_t i = 0; i < m->free.count; i++) {
                const struct range *r = &m->free.ranges[i];
                if (r->end - r->begin < size)
                        continue;
                *ret = (struct range){ r->begin, r->begin + size };
                return range_set_remove(&m->free, *ret) == 0;
        }
        return false;
}

static void give_back(struct arena *m, uint64_t offset, uint64_t size)
{
        /* Its pages go, too. */
        if (vm_empty_file(m->fd, offset, (size_t)size) < 0 ||
            range_set_add(&m->free, (struct range){ offset, offset + size }) < 0)
                log_debug("client", "a part of the shared arena is lost");
}

/* In a child of fork the session is not there: the arena is the parent's, which may use this part again. */
static void drop(struct arena *m, struct storage *s) REQUIRES(client_held)
{
        if (server_session(m->server))
                give_back(m, s->offset, s->size);
        discard(s);
}

/* Return true if the part may wait with its mapping and its pages for the next buffer of its size. The kernel fills
 * each new page with zeros, and each costs a fault. The parts that waited longest give way. Parts that the server still
 * uses count, too, since this process may have few addresses. */
static bool may_wait(struct arena *m, uint64_t size) REQUIRES(client_held)
{
        if (size > STORAGE_KEPT)
                return false;
        while (m->waiting > STORAGE_KEPT - size && !list_empty(&m->kept)) {
                struct storage *oldest = list_entry(m->kept.next, struct storage, link);
                list_remove(&oldest->link);
                m->waiting -= oldest->size;
                drop(m, oldest);
        }
        if (m->waiting > STORAGE_KEPT - size)
                return false;
        m->waiting += size;
        return true;
}

/* Take the part of that size that was used last; NULL: there is none. It has the bytes of another buffer, which other
 * servers of the context have never had. */
static struct storage *take_kept(const struct _cl_context *x, struct arena *m, uint64_t size)
{
        struct storage *found = NULL;
        for (cl_uint i = 0; i < x->device_count; i++)
                if (x->devices[i]->server != m->server)
                        return NULL;
        list_each(s, &m->kept, struct storage, link)
        {
                if (s->size == size)
                        found = s;
        }
        if (found) {
                list_remove(&found->link);
                m->waiting -= size;
        }
        return found;
}

/* Keep the parts that the server has released since the last call. */
static void take_back(struct arena *m) REQUIRES(client_held)
{
        list_each(s, &m->released, struct storage, link)
        {
                if (!s->request.done)
                        continue;
                list_remove(&s->link);
                buf_fini(&s->request.info);
                bool again = s->request.status == CL_SUCCESS && server_session(m->server);
                if (again && s->address) {
                        list_append(&m->kept, &s->link);
                        continue;
                }
                m->waiting -= s->address ? s->size : 0;
                if (again)
                        drop(m, s);
                else
                        discard(s);
        }
}

/* A part that no buffer has had yet. */
static struct storage *storage_make(struct arena *m, uint64_t size)
{
        struct range at;
        struct storage *s = mem_zalloc(sizeof(*s));
        if (!s || !find_room(m, size, &at)) {
                mem_free(s);
                return NULL;
        }
        uint64_t address;
        if (vm_map_file(m->fd, at.begin, (size_t)size, &address) < 0) {
                give_back(m, at.begin, size);
                mem_free(s);
                return NULL;
        }
        s->offset = at.begin;
        s->size = (size_t)size;
        s->address = (void *)(uintptr_t)address;
        return s;
}

struct storage *storage_new(cl_context x, size_t size)
{
        struct client *c = x->client;
        struct arena *m = &c->arena;
        /* The arena's session has ended, and no buffer uses it any more: another server may have
         * one, or the same one again. Not before: by now the sessions of the context have begun. */
        if (size >= STORAGE_MIN && (!m->server || (m->server->state == SERVER_LOST && !m->used))) {
                forget(c);
                storage_settle(c);
        }
        uint64_t whole =
                ((uint64_t)size + STORAGE_SLACK + VM_GRANULE - 1) / VM_GRANULE * VM_GRANULE;
        if (size < STORAGE_MIN || whole < size || !m->server || !server_session(m->server) ||
            !host_device(x->devices, x->device_count, m->server))
                return NULL;
        take_back(m);
        struct storage *s = take_kept(x, m, whole);
        if (!s)
                s = storage_make(m, whole);
        if (!s)
                return NULL;
        *s = (struct storage){ .id = client_new_id(c, OBJECT_SVM),
                               .server = m->server,
                               .offset = s->offset,
                               .size = s->size,
                               .address = s->address };
        m->used++;
        return s;
}

struct storage *storage_free(struct storage *s)
{
        if (!s)
                return NULL;
        struct client *c = s->server->client;
        struct arena *m = &c->arena;
        struct session *session = server_session(s->server);
        m->used--;
        take_back(m);
        if (!may_wait(m, s->size))
                unmap(s);
        list_append(&m->released, &s->link);
        s->request.done = true;
        if (s->declared && session) {
                bool asks = request_begin(c, s->server, &s->request) == 0;
                int r = session_send(session, release, .object = s->id,
                                     .request = asks ? s->request.id : 0);
                if (asks && r < 0)
                        request_done(c, s->request.id, CL_OUT_OF_HOST_MEMORY, (struct bytes){ 0 });
                if (!asks) { /* there is no answer, so the part is not used again */
                        s->request.status = CL_OUT_OF_HOST_MEMORY;
                        s->request.done = true;
                }
        }
        take_back(m);
        return NULL;
}

int storage_declare(struct storage *s, struct session *session)
{
        struct server *server = s->server;
        cl_device_id d = host_device(server->devices, server->device_count, server);
        if (s->declared)
                return 0;
        int r = session_send(session, storage_create, .svm = s->id, .device = d->index,
                             .offset = s->offset, .size = s->size);
        s->declared = r == 0;
        return r;
}

bool storage_is_here(const struct storage *s, const struct _cl_device_id *d)
{
        return s && d->server == s->server && d->svm == INFO_SVM_FOLLOWS;
}

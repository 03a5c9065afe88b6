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

void storage_fini(struct client *c)
{
        struct arena *m = &c->arena;
        if (!m->server)
                return;
        list_each(s, &m->released, struct storage, link)
        {
                buf_fini(&s->request.info);
                mem_free(s);
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

static void give_back(struct arena *m, const struct storage *s)
{
        /* Its pages go, too. */
        if (vm_empty_file(m->fd, s->offset, s->size) < 0 ||
            range_set_add(&m->free, (struct range){ s->offset, s->offset + s->size }) < 0)
                log_debug("client", "a part of the shared arena is lost");
}

/* Free the parts that the server has released since the last call. */
static void take_back(struct arena *m)
{
        list_each(s, &m->released, struct storage, link)
        {
                if (!s->request.done)
                        continue;
                list_remove(&s->link);
                if (s->request.status == CL_SUCCESS)
                        give_back(m, s);
                buf_fini(&s->request.info);
                mem_free(s);
        }
}

struct storage *storage_new(cl_context x, size_t size)
{
        struct client *c = x->client;
        struct arena *m = &c->arena;
        struct range at;
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
        struct storage *s = mem_zalloc(sizeof(*s));
        if (!s || !find_room(m, whole, &at)) {
                mem_free(s);
                return NULL;
        }
        *s = (struct storage){ .server = m->server, .offset = at.begin, .size = (size_t)whole };
        uint64_t address;
        if (vm_map_file(m->fd, s->offset, s->size, &address) < 0) {
                give_back(m, s);
                mem_free(s);
                return NULL;
        }
        s->address = (void *)(uintptr_t)address;
        s->id = client_new_id(c, OBJECT_SVM);
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
        vm_unmap((uint64_t)(uintptr_t)s->address, s->size);
        m->used--;
        list_append(&m->released, &s->link);
        s->request.done = true;
        if (s->declared && session && request_begin(c, s->server, &s->request) == 0 &&
            session_send(session, release, .object = s->id, .request = s->request.id) < 0)
                request_done(c, s->request.id, CL_OUT_OF_HOST_MEMORY, (struct bytes){ 0 });
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

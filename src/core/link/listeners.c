#include "core/link/listeners.h"

#include "core/command/event.h"
#include "core/command/transfer.h"
#include "core/context.h"
#include "core/link/peers.h"
#include "core/link/request.h"
#include "core/memory/mem.h"
#include "core/memory/migration.h"
#include "core/memory/storage.h"
#include "core/memory/svm.h"

/* Called in this order. It matters for a loss:
 * - The replicas go first, so that nothing that follows takes bytes from the lost server.
 * - The other servers hear of the loss before they hear how its events completed.
 * - Transfers end before events complete: the application may free its memory then.
 * - The application is told last, when its calls return the error already. */
static const struct {
        void (*settled)(struct client *c);
        void (*added)(struct server *s);
        void (*lost)(struct server *s, const struct server_loss *loss);
        void (*replaced)(struct server *s);
        bool (*uses)(const struct server *s);
} listeners[] = {
        { .lost = mems_server_lost },
        { .settled = svm_settle,
          .added = svm_server_added,
          .replaced = svm_server_replaced,
          .uses = svm_uses },
        { .settled = storage_settle, .uses = storage_uses },
        { .lost = peers_server_lost },
        { .lost = requests_server_lost },
        { .lost = storage_server_lost },
        { .lost = transfers_server_lost },
        { .lost = migrations_server_lost },
        { .lost = events_server_lost },
        { .lost = contexts_server_lost, .uses = contexts_use },
};

void servers_settled(struct client *c)
{
        for (size_t i = 0; i < array_size(listeners); i++)
                if (listeners[i].settled)
                        listeners[i].settled(c);
}

void server_notify_added(struct server *s)
{
        for (size_t i = 0; i < array_size(listeners); i++)
                if (listeners[i].added)
                        listeners[i].added(s);
}

void server_notify_lost(struct server *s, const struct server_loss *loss)
{
        for (size_t i = 0; i < array_size(listeners); i++)
                if (listeners[i].lost)
                        listeners[i].lost(s, loss);
}

void server_notify_replaced(struct server *s)
{
        for (size_t i = 0; i < array_size(listeners); i++)
                if (listeners[i].replaced)
                        listeners[i].replaced(s);
}

bool server_is_used(const struct server *s)
{
        for (size_t i = 0; i < array_size(listeners); i++)
                if (listeners[i].uses && listeners[i].uses(s))
                        return true;
        return false;
}

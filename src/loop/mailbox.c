#include "loop/mailbox.h"

#include "base/mem.h"
#include "os/file.h"
#include "os/wakeup.h"

void box_wake(struct mailbox *box)
{
        wakeup_set(box->wake_fd);
}

struct arrival *arrival_free(struct arrival *a)
{
        if (!a)
                return NULL;
        conn_close(a->conn);
        buf_fini(&a->hello);
        mem_free(a);
        return NULL;
}

void arrivals_free(struct list *all)
{
        while (!list_empty(all)) {
                struct arrival *a = list_entry(all->next, struct arrival, link);
                list_remove(&a->link);
                arrival_free(a);
        }
}

struct mailbox *box_ref(struct mailbox *box)
{
        lock_take(&box->lock);
        box->refs++;
        lock_release(&box->lock);
        return box;
}

struct mailbox *box_unref(struct mailbox *box)
{
        if (!box)
                return NULL;
        lock_take(&box->lock);
        bool last = !--box->refs;
        lock_release(&box->lock);
        if (!last)
                return NULL;
        arrivals_free(&box->arrivals);
        file_close(box->wake_fd);
        lock_fini(&box->lock);
        mem_free(box);
        return NULL;
}

int box_new(struct mailbox **ret)
{
        struct mailbox *box = mem_zalloc(sizeof(*box));
        if (!box)
                return SP_E_NOMEM;
        box->wake_fd = wakeup_new();
        if (box->wake_fd < 0) {
                mem_free(box);
                return SP_E_LIMIT;
        }
        lock_init(&box->lock);
        list_init(&box->arrivals);
        box->refs = 1;
        *ret = box;
        return 0;
}

void box_post(struct mailbox *box, struct arrival *a)
{
        lock_take(&box->lock);
        bool closed = box->closed;
        if (!closed) {
                list_append(&box->arrivals, &a->link);
                atomic_store(&box->full, true);
        }
        lock_release(&box->lock);
        if (closed)
                arrival_free(a);
        else
                box_wake(box);
}

struct arrival *box_take(struct mailbox *box)
{
        struct arrival *a = NULL;
        if (!atomic_load(&box->full))
                return NULL;
        lock_take(&box->lock);
        if (list_empty(&box->arrivals)) {
                atomic_store(&box->full, box->stop);
        } else {
                a = list_entry(box->arrivals.next, struct arrival, link);
                list_remove(&a->link);
        }
        lock_release(&box->lock);
        return a;
}

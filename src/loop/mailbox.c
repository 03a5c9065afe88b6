#include "loop/mailbox.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"

void box_wake(struct mailbox *box)
{
        while (eventfd_write(box->wake_fd, 1) < 0 && errno == EINTR)
                ;
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
        pthread_mutex_lock(&box->lock);
        box->refs++;
        pthread_mutex_unlock(&box->lock);
        return box;
}

struct mailbox *box_unref(struct mailbox *box)
{
        if (!box)
                return NULL;
        pthread_mutex_lock(&box->lock);
        bool last = !--box->refs;
        pthread_mutex_unlock(&box->lock);
        if (!last)
                return NULL;
        arrivals_free(&box->arrivals);
        close(box->wake_fd);
        pthread_mutex_destroy(&box->lock);
        mem_free(box);
        return NULL;
}

int box_new(struct mailbox **ret)
{
        struct mailbox *box = mem_zalloc(sizeof(*box));
        if (!box)
                return SP_E_NOMEM;
        box->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (box->wake_fd < 0) {
                mem_free(box);
                return SP_E_LIMIT;
        }
        pthread_mutex_init(&box->lock, NULL);
        list_init(&box->arrivals);
        box->refs = 1;
        *ret = box;
        return 0;
}

void box_post(struct mailbox *box, struct arrival *a)
{
        pthread_mutex_lock(&box->lock);
        bool closed = box->closed;
        if (!closed) {
                list_append(&box->arrivals, &a->link);
                atomic_store(&box->full, true);
        }
        pthread_mutex_unlock(&box->lock);
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
        pthread_mutex_lock(&box->lock);
        if (list_empty(&box->arrivals)) {
                atomic_store(&box->full, box->stop);
        } else {
                a = list_entry(box->arrivals.next, struct arrival, link);
                list_remove(&a->link);
        }
        pthread_mutex_unlock(&box->lock);
        return a;
}

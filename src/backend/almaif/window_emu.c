/* An emulator that is a thread of this process: it runs programs for accelerators without one. All windows on
 * one name share an emulator, which ends with the last of them. */
#include <stdio.h>
#include <string.h>

#include "backend/almaif/window.h"
#include "backend/emulator/emulator.h"
#include "base/list.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/file_info.h"
#include "os/lock.h"
#include "os/thread.h"

#define DATA_SIZE ((uint64_t)64 << 20) /* unless the place says otherwise; taken when it is used */

struct emulated {
        struct list link;
        char name[WINDOW_PATH_SIZE];
        unsigned refs;
        struct emulator *emulator;
        atomic_bool stop;
        thread_id thread;
};

/* Guards the list and the references; a leaf. */
static struct lock lock = LOCK_INIT;
static struct list all = { &all, &all };

static void *thread_main(void *arg)
{
        struct emulated *e = arg;
        emulator_run(e->emulator, &e->stop);
        return NULL;
}

static struct emulated *emulated_new(const struct place *p)
{
        struct emulator_params params = EMULATOR_DEFAULTS;
        struct emulated *e = mem_zalloc(sizeof(*e));
        if (!e)
                return NULL;
        params.data_size = p->data ? p->data : DATA_SIZE;
        emulator_all_kernels(&params);
        memcpy(e->name, p->path, sizeof(e->name));
        e->refs = 1;
        if (emulator_new(&params, &e->emulator) < 0 ||
            thread_start(&e->thread, false, thread_main, e) < 0) {
                emulator_free(e->emulator);
                mem_free(e);
                return NULL;
        }
        list_init(&e->link);
        list_append(&all, &e->link);
        return e;
}

static struct emulated *emulated_ref(const struct place *p)
{
        struct emulated *found = NULL;
        lock_take(&lock);
        list_each(e, &all, struct emulated, link)
        {
                if (!strcmp(e->name, p->path))
                        found = e;
        }
        if (found)
                found->refs++;
        else
                found = emulated_new(p);
        lock_release(&lock);
        return found;
}

static void emulated_unref(struct emulated *e)
{
        lock_take(&lock);
        bool last = !--e->refs;
        if (last)
                list_remove(&e->link);
        lock_release(&lock);
        if (!last)
                return;
        e->stop = true;
        emulator_wake(e->emulator);
        thread_join(e->thread);
        emulator_free(e->emulator);
        mem_free(e);
}

/* Open the memory anew, so that locks are the window's own. */
static int open_emu(struct window *w, const struct place *p, char error[WINDOW_ERROR_SIZE])
{
        struct file_info file;
        struct emulated *e = emulated_ref(p);
        w->handle[0] = e;
        if (e)
                w->fd = file_open_again(emulator_fd(e->emulator));
        if (w->fd < 0 || !file_info_of(w->fd, &file)) {
                snprintf(error, WINDOW_ERROR_SIZE, "no memory or thread for the emulator %.100s",
                         p->path);
                return SP_E_NOMEM;
        }
        w->futex = true;
        return window_map(w, p->path, w->base, file.size, error);
}

static void close_emu(struct window *w)
{
        window_unmap(w);
        if (w->handle[0])
                emulated_unref(w->handle[0]);
}

static void wait_emu(struct window *w, uint64_t word, uint32_t seen, uint64_t timeout_ns)
{
        window_shm.wait(w, word, seen, timeout_ns);
}

const struct window_ops window_emu = {
        .name = "emu", .open = open_emu, .close = close_emu, .wait = wait_emu
};

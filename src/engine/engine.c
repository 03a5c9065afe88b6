#include "engine/engine.h"

#include "base/mem.h"
#include "base/relax.h"
#include "engine/command/command.h"
#include "engine/command/enqueue.h"
#include "engine/command/recording.h"
#include "engine/completion/coalesced.h"
#include "engine/completion/completion.h"
#include "engine/completion/untracked.h"
#include "engine/device.h"
#include "engine/program/cache.h"
#include "engine/program/cached_build.h"
#include "engine/query.h"
#include "engine/tracing.h"
#include "engine/transfer/relay.h"
#include "engine/transfer/reroute.h"
#include "engine/transfer/upload.h"
#include "os/thread.h"
#include "trace/trace.h"

struct engine *engine_free(struct engine *e) LOCK_UNCHECKED
{
        if (!e)
                return NULL;
        engine_builder_stop(e);
        engine_uploads_stop(e);
        engine_lock(e);
        e->closing = true;
        engine_unlock(e);

        /* Completions have no effect any more, so the rest needs no lock. */
        engine_command_abandon_all(e);
        engine_transfer_abandon_all(e);
        engine_untracked_abandon(e);
        engine_event_free_all(e);
        for (size_t i = 0; i < e->peers.count; i++)
                engine_device_staging_end(e->peers.all[i]);
        size_t pos = 0;
        struct object *o;
        while ((o = map_next(&e->objects.table, &pos)))
                engine_object_unref(o);
        map_fini(&e->objects.table);
        engine_device_free_all(e);

        /* Commands in flight use the transfers' host memory, so wait for them before freeing it. */
        if (e->backend)
                e->be->close(e->backend);
        engine_command_free_all(e);
        for (size_t i = 0; i < e->peers.count; i++)
                e->peers.all[i]->session = session_free(e->peers.all[i]->session);
        engine_transfer_free_all(e);
        for (size_t i = 0; i < e->peers.count; i++)
                engine_peer_free(e->peers.all[i]);
        mem_free(e->peers.all);
        engine_transfer_free_staging(e);
        engine_uploads_fini(e);
        engine_limit_free(e);
        engine_usage_fini(e);
        engine_observed_fini(e);
        struct pool *pools[] = { &e->commands.pool, &e->events.pool, &e->programs.value_pool,
                                 &e->transfers.pool };
        for (size_t i = 0; i < array_size(pools); i++)
                pool_fini(pools[i]);
        buf_fini(&e->commands.deps);
        engine_builder_fini(&e->programs.builder);
        content_store_fini(&e->programs.contents);
        lock_fini(&e->lock);
        cache_free(e->programs.cache);
        mem_free(e->programs.device_keys);
        mem_free(e->scratch_dir);
        mem_free(e);
        return NULL;
}

static void engine_freep(struct engine **e)
{
        engine_free(*e);
}

/* Spin before sleeping on the lock. The holder hands commands to a driver, for some microseconds
 * each. A sleeping thread takes longer than that to wake up, and then finds that running threads
 * took the lock meanwhile, again and again. So a thread spins for up to about 50 µs where there are
 * enough cores. */
static unsigned lock_tries(void)
{
        enum { CORES = 3, TRIES = 256 };
        return thread_cores() < CORES ? 0 : TRIES;
}

static void on_broken(void *user, const char *text)
{
        struct engine *e = user;
        if (e->params.ops->broken)
                e->params.ops->broken(e->params.user, text);
}

int engine_new(const struct engine_params *params, struct engine **ret) LOCK_UNCHECKED
{
        struct engine *made = mem_zalloc(sizeof(*made));
        if (!made)
                return SP_E_NOMEM;
        lock_init(&made->lock);
        made->lock_tries = lock_tries();
        engine_builder_init(&made->programs.builder);
        content_store_init(&made->programs.contents);
        struct list *lists[] = { &made->events.failed,         &made->events.early,
                                 &made->commands.all,          &made->commands.ready,
                                 &made->objects.dirty_queues,  &made->completion.untracked_queues,
                                 &made->completion.unreported, &made->transfers.over_quota,
                                 &made->transfers.orphaned,    &made->limits.busy,
                                 &made->limits.roomless,       &made->completion.completed_early,
                                 &made->completion.candidates };
        for (size_t i = 0; i < array_size(lists); i++)
                list_init(lists[i]);
        auto_clean(engine_freep) struct engine *e = made;

        e->commands.pool.size = engine_command_block;
        e->events.pool.size = sizeof(struct event);
        e->programs.value_pool.size = engine_value_block;
        e->transfers.pool.size = sizeof(struct transfer);
        e->params = *params;
        engine_transfer_init_staging(e);
        if (engine_uploads_init(e) < 0)
                return SP_E_NOMEM;
        if (params->scratch_dir) {
                e->scratch_dir = mem_strdup(params->scratch_dir);
                if (!e->scratch_dir)
                        return SP_E_NOMEM;
        }
        struct peer *client;
        int r = engine_peer_new(e, 0, &client);
        if (!r && params->cache_dir && !params->single_threaded)
                r = cache_new(params->cache_dir,
                              config_option_number(params->options, CONFIG_cache_size) << 20,
                              &e->programs.cache);
        if (r < 0)
                return r;
        const struct backend_params bp = {
                .options = params->options,
                .scratch_dir = e->scratch_dir,
                .in_process = params->in_process,
                .complete = engine_completion_report,
                .broken = on_broken,
                .user = e,
        };
        r = backend_open(params->backend, &bp, &e->be, &e->backend);
        if (r < 0)
                return r;
        e->device_count = e->be->device.count(e->backend);
        r = engine_usage_init(e);
        if (r < 0)
                return r;
        if (e->programs.cache && !params->in_process) {
                r = cached_build_prepare(e);
                if (r < 0)
                        return r;
        }
        *ret = steal(e);
        return 0;
}

void engine_lock(struct engine *e) LOCK_UNCHECKED
{
        enum { PAUSES = 4 };
        for (unsigned i = 0; i < e->lock_tries; i++) {
                if (lock_try(&e->lock))
                        return;
                for (unsigned k = 0; k < PAUSES; k++)
                        cpu_relax();
        }
        lock_take(&e->lock);
}

bool engine_try_lock(struct engine *e) LOCK_UNCHECKED
{
        return lock_try(&e->lock);
}

void engine_unlock(struct engine *e) LOCK_UNCHECKED
{
        lock_release(&e->lock);
}

struct session *engine_session(struct engine *e)
{
        return engine_client(e)->session;
}

enum backend_polled engine_poll(struct engine *e, bool last)
{
        return e->be->poll ? e->be->poll(e->backend, last) : BACKEND_IDLE;
}

bool engine_closed(struct engine *e)
{
        return e->closed;
}

void engine_use_account(struct engine *e, const struct account *a)
{
        e->limits.account = *a;
        engine_usage_limit(e);
        if (a->cache_max && e->programs.cache)
                cache_limit(e->programs.cache, a->cache_max);
}

void engine_take_notices(struct engine *e)
{
        e->notices = true;
}

bool engine_takes_uploads(const struct engine *e) LOCK_UNCHECKED
{
        return e->uploads.store;
}

void engine_notice(struct engine *e, const char *text)
{
        if (e->notices && !e->closing)
                peer_send(engine_client(e), notice, .text = bytes_str(text));
}

struct backend *engine_backend(struct engine *e)
{
        return e->backend;
}

unsigned engine_device_count(const struct engine *e)
{
        return e->device_count;
}

bool engine_device_label(struct engine *e, unsigned device, unsigned *ret_number, char *ret_name,
                         size_t size)
{
        return e->be->device.label &&
               e->be->device.label(e->backend, device, ret_number, ret_name, size);
}

void engine_get_counts(struct engine *e, struct engine_counts *ret)
{
        *ret = (struct engine_counts){
                .objects = e->objects.table.count,
                .events = e->events.table.count - e->events.failed_count - e->events.early_count +
                          e->completion.untracked,
                .transfers = e->transfers.count,
                .commands_held = e->commands.held,
                .commands_running = e->commands.running,
                .transfer_bytes = e->transfers.bytes,
        };
        engine_transfer_count_staging(e, &ret->staging, &ret->staging_free);
}

static void flush_queues(struct engine *e) REQUIRES(engine_held)
{
        while (!list_empty(&e->objects.dirty_queues)) {
                struct queue *q = list_entry(e->objects.dirty_queues.next, struct queue, dirty);
                list_remove(&q->dirty);
                engine_object_ref(&q->object);
                engine_untracked_cover(q);
                TRACE_SPAN(flush, q->object.id);
                e->be->queue.flush(q->native);
                list_remove(&q->dirty);
                engine_object_unref(&q->object);
        }
}

/* Send to the peers. True: sending has completed transfers, which lets commands go on. */
static bool flush_peers(struct engine *e) REQUIRES(engine_held)
{
        bool dirty = false;
        /* Serve the servers first, since their devices wait, then the client. */
        for (size_t i = e->peers.count; i-- > 0;) {
                struct peer *p = e->peers.all[i];
                if (!p->dirty)
                        continue;
                p->dirty = false;
                if (p->lost || p->relay)
                        continue;
                e->params.ops->flush(e->params.user, p->session);
                for (size_t k = i; k < e->peers.count; k++)
                        dirty |= e->peers.all[k]->dirty;
        }
        return dirty || !list_empty(&e->commands.ready);
}

void engine_settle(struct engine *e)
{
        e->activity++;
        do {
                engine_relay_receive_all(e);
                engine_run(e);
                engine_coalesced_report_all(e);
                flush_queues(e);
                engine_relay_send_all(e);
        } while (flush_peers(e) && !e->closing);
}

/* ---- messages about the engine itself ------------------------------------------------------- */

static int handle_close(void *user, const struct wire_close *m) REQUIRES(engine_held)
{
        struct peer *p = user;
        (void)m;
        p->engine->closed = true;
        return 0;
}

const struct wire_handlers engine_client_handlers = {
        .close = handle_close,
        .clock_query = engine_handle_clock_query,
        .clock_reply = engine_handle_clock_reply,
        .server_info_query = engine_handle_server_info_query,
        .device_partition = engine_handle_device_partition,
        .device_release = engine_handle_device_release,
        .stats_query = engine_handle_stats_query,
        .trace_start = engine_handle_trace_start,
        .trace_query = engine_handle_trace_query,
        .peer_open = engine_handle_peer_open,
        .peer_expect = engine_handle_peer_expect,
        .peer_lost = engine_handle_peer_lost,
        .peer_relay = engine_handle_peer_relay,
        .relay_hello = engine_handle_relay_hello,
        .relay_data = engine_handle_relay_data,
        .relay_taken = engine_handle_relay_taken,

        .buffer_create = engine_handle_buffer_create,
        .sub_buffer_create = engine_handle_sub_buffer_create,
        .image_create = engine_handle_image_create,
        .pipe_create = engine_handle_pipe_create,
        .sampler_create = engine_handle_sampler_create,
        .svm_create = engine_handle_svm_create,
        .storage_create = engine_handle_storage_create,
        .svm_buffer_create = engine_handle_svm_buffer_create,
        .queue_create = engine_handle_queue_create,
        .content = engine_handle_content,
        .queue_set_default = engine_handle_queue_set_default,
        .program_create = engine_handle_program_create,
        .program_build = engine_handle_program_build,
        .program_link = engine_handle_program_link,
        .program_binaries_query = engine_handle_program_binaries_query,
        .program_inspect = engine_handle_program_inspect,
        .kernel_create = engine_handle_kernel_create,
        .kernel_query = engine_handle_kernel_query,
        .release = engine_handle_release,

        .kernel_launch = engine_handle_kernel_launch,
        .content_size = engine_handle_content_size,
        .buffer_write = engine_handle_buffer_write,
        .buffer_read = engine_handle_buffer_read,
        .buffer_write_rect = engine_handle_buffer_write_rect,
        .buffer_read_rect = engine_handle_buffer_read_rect,
        .buffer_copy = engine_handle_buffer_copy,
        .buffer_copy_rect = engine_handle_buffer_copy_rect,
        .buffer_fill = engine_handle_buffer_fill,
        .image_write = engine_handle_image_write,
        .image_read = engine_handle_image_read,
        .image_copy = engine_handle_image_copy,
        .image_to_buffer = engine_handle_image_to_buffer,
        .buffer_to_image = engine_handle_buffer_to_image,
        .image_fill = engine_handle_image_fill,
        .marker = engine_handle_marker,
        .recording_create = engine_handle_recording_create,
        .recording_run = engine_handle_recording_run,
        .recording_update = engine_handle_recording_update,
        .queue_flush = engine_handle_queue_flush,

        .event_import = engine_handle_event_import,
        .event_subscribe = engine_handle_event_subscribe,
        .event_watch = engine_handle_event_watch,
        .event_done = engine_handle_event_done,
        .launch_query = engine_handle_launch_query,
        .transfer_reroute = engine_handle_transfer_reroute,
        .upload_offer = engine_handle_upload_offer,
};

const struct wire_handlers engine_server_handlers = {
        .clock_query = engine_handle_clock_query,
        .clock_reply = engine_handle_clock_reply,
        .event_done = engine_handle_event_done,
        .transfer_failed = engine_handle_transfer_failed,
        .transfer_cut = engine_handle_transfer_cut,
        .staging_offer = engine_handle_staging_offer,
        .staging_answer = engine_handle_staging_answer,
        .staging_filled = engine_handle_staging_filled,
        .staging_emptied = engine_handle_staging_emptied,
};

#include "backend/media/media.h"

#include <errno.h>
#include <string.h>

#include "backend/media/av_process.h"
#include "backend/media/kernels.h"
#include "backend/reference/reference.h"
#include "base/installed.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/once.h"
#include "os/process/library.h"
#include "os/process/library_name.h"
#include "os/wakeup.h"

#define LOG    "media"
#define MODULE LIBRARY_NAME("spancl-media")

static struct once once = ONCE_INIT;
static const struct codec_module *module;

static void load(void)
{
        char path[PATH_MAX];
        if (!installed_find(MODULE, path)) {
                log_error(LOG, "the media device needs " MODULE ", which is not installed");
                return;
        }
        struct library *m = library_load(path, LIBRARY_FOR_EVER);
        const struct codec_module *found = m ? library_symbol(m, CODEC_SYMBOL) : NULL;
        if (!m)
                log_error(LOG, "cannot load %s: %s", path, library_error());
        else if (!found || found->version != CODEC_VERSION)
                log_error(LOG, "%s is of another version", path);
        else
                module = found;
}

static size_t fill(struct media *m, const struct config_options *o)
{
        static const struct codec *const none[] = { NULL };
        size_t count = 0;
        bool sources = false, sinks = false;
        const char *name;
        const struct registry_kernel *k;
        for (size_t i = 0; (k = media_decode_kernel(i, &name)); i++) {
                for (const struct codec *const *c = module ? module->codecs : none; *c; c++)
                        if (!strcmp((*c)->name, name))
                                m->codecs[i] = *c;
                if (media_decodes(m, i))
                        m->kernels[count++] = k;
        }
        for (size_t i = 0; (k = media_encode_kernel(i)); i++)
                if (m->av_codecs & 1u << i)
                        m->kernels[count++] = k;
        for (size_t i = 0; o && i < o->list_count; i++) {
                sources |= o->list[i].id == CONFIG_media_source;
                sinks |= o->list[i].id == CONFIG_media_sink;
        }
        if (sources)
                m->kernels[count++] = &media_source_kernel;
        if (sinks)
                m->kernels[count++] = &media_sink_kernel;
        m->kernels[count++] = &media_convert_kernel;
        return count;
}

static void media_close(void *user)
{
        struct media *m = user;
        av_processes_free(m->av);
        (void)file_close(m->stop);
        mem_free(m);
}

static void media_stop(void *user)
{
        struct media *m = user;
        wakeup_set(m->stop);
}

int media_open(const struct backend_params *params, struct backend **ret)
{
        const char *text = config_option_text(params->options, CONFIG_media);
        struct media_settings settings;
        if (!*text)
                return SP_E_NODEV;
        if (media_settings_parse(text, &settings) < 0) {
                log_error(LOG, "`%s` is neither `on` nor settings (docs/MEDIA.md)", text);
                return SP_E_NODEV;
        }
        once_run(&once, load);
        struct media *m = mem_zalloc(sizeof(*m));
        if (!m)
                return SP_E_NOMEM;
        m->settings = settings;
        m->stop = wakeup_new();
        if (m->stop < 0) {
                log_error(LOG, "a descriptor for the media device: %s", strerror(errno));
                mem_free(m);
                return SP_E_NODEV;
        }
        if (av_processes_open(params->in_process, settings.streams, settings.device, m->stop,
                              &m->av, &m->av_codecs) < 0 &&
            !module) {
                media_close(m);
                return SP_E_NODEV;
        }
        size_t count = fill(m, params->options);
        int r = reference_open(params,
                               &(struct reference_devices){ .name = "SpanCL media",
                                                            .count = 1,
                                                            .kernels = m->kernels,
                                                            .kernel_count = count,
                                                            .executors = settings.limits.threads,
                                                            .bytes = true,
                                                            .user = m,
                                                            .close = media_close,
                                                            .stop = media_stop },
                               ret);
        if (r < 0)
                media_close(m);
        return r;
}

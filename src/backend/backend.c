#include "backend/backend.h"

#include <string.h>

#include "backend/threaded/threaded.h"

static const struct backend_ops *const all[] = { &backend_native, &backend_reference,
                                                 &backend_almaif, &backend_media };

const struct backend_ops *backend_find(const char *name)
{
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                if (!strcmp(name, all[i]->name))
                        return all[i];
        return NULL;
}

/* Open `ops` with the accelerators that the options name, and native implementations that block. */
static int open_together(const struct backend_ops *ops,
                         const struct backend_ops *const *accelerators,
                         const struct backend_params *params, struct backend **ret)
{
        const struct backend_ops *parts[BACKEND_PARTS_MAX] = { ops };
        size_t count = 1;
        while (*accelerators)
                parts[count++] = *accelerators++;
        if (ops == &backend_native)
                parts[count++] = &backend_threaded;
        struct backend_params p = *params;
        p.parts = parts;
        return backend_composite.open(&p, ret);
}

/* The accelerators that the options name beside `ops`, up to a NULL. */
static void find_accelerators(const struct backend_ops *ops, const struct config_options *options,
                              const struct backend_ops *ret[BACKEND_PARTS_MAX])
{
        static const struct {
                const struct backend_ops *ops;
                enum config_id option; /* empty: it has no devices */
        } all_accelerators[] = { { &backend_almaif, CONFIG_almaif },
                                 { &backend_media, CONFIG_media } };
        for (size_t i = 0; i < sizeof(all_accelerators) / sizeof(all_accelerators[0]); i++)
                if (ops != all_accelerators[i].ops &&
                    *config_option_text(options, all_accelerators[i].option))
                        *ret++ = all_accelerators[i].ops;
        *ret = NULL;
}

int backend_open(const struct backend_ops *ops, const struct backend_params *params,
                 const struct backend_ops **ret_ops, struct backend **ret)
{
        const struct backend_ops *accelerators[BACKEND_PARTS_MAX];
        struct backend_params p = *params;
        p.calls = BACKEND_CALLS_RETURN;
        *ret_ops = &backend_composite;
        find_accelerators(ops, p.options, accelerators);
        if (*accelerators)
                return open_together(ops, accelerators, &p, ret);
        struct backend *b;
        int r = ops->open(&p, &b);
        if (r == SP_E_NODEV && ops == &backend_native) {
                *ret_ops = &backend_threaded;
                return backend_threaded.open(&p, ret);
        }
        if (r == 0 && ops->leaves_out && ops->leaves_out(b)) {
                ops->close(b);
                return open_together(ops, accelerators, &p, ret);
        }
        if (r == 0) {
                *ret_ops = ops;
                *ret = b;
        }
        return r;
}

#include "backend/backend.h"

#include <string.h>

#include "backend/threaded.h"

static const struct backend_ops *const all[] = { &backend_native, &backend_reference,
                                                 &backend_almaif };

const struct backend_ops *backend_find(const char *name)
{
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                if (!strcmp(name, all[i]->name))
                        return all[i];
        return NULL;
}

static int open_together(const struct backend_ops *ops, const struct backend_ops *accelerators,
                         const struct backend_params *params, struct backend **ret)
{
        const struct backend_ops *parts[BACKEND_PARTS_MAX] = { ops };
        size_t count = 1;
        if (accelerators)
                parts[count++] = accelerators;
        if (ops == &backend_native)
                parts[count++] = &backend_threaded;
        struct backend_params p = *params;
        p.parts = parts;
        return backend_composite.open(&p, ret);
}

int backend_open(const struct backend_ops *ops, const struct backend_params *params,
                 const struct backend_ops **ret_ops, struct backend **ret)
{
        struct backend_params p = *params;
        p.calls = BACKEND_CALLS_RETURN;
        *ret_ops = &backend_composite;
        if (*config_option_text(p.options, CONFIG_almaif) && ops != &backend_almaif)
                return open_together(ops, &backend_almaif, &p, ret);
        struct backend *b;
        int r = ops->open(&p, &b);
        if (r == SP_E_NODEV && ops == &backend_native) {
                *ret_ops = &backend_threaded;
                return backend_threaded.open(&p, ret);
        }
        if (r == 0 && ops->leaves_out && ops->leaves_out(b)) {
                ops->close(b);
                return open_together(ops, NULL, &p, ret);
        }
        if (r == 0) {
                *ret_ops = ops;
                *ret = b;
        }
        return r;
}

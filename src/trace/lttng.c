#include "trace/lttng.h"

#include "base/installed.h"
#include "base/log.h"
#include "os/process/library.h"
#include "os/process/library_name.h"
#include "trace/lttng_module.h"

#define LOG    "trace"
#define MODULE LIBRARY_NAME("spancl-lttng")

bool lttng_start(bool server)
{
        char path[PATH_MAX];
        if (!installed_find(MODULE, path)) {
                log_error(LOG, "LTTng's events need " MODULE ", which is not installed");
                return false;
        }
        /* Its constructors return when LTTng knows the events. */
        struct library *m = library_load(path, LIBRARY_FOR_EVER);
        const struct lttng_module *found = m ? library_symbol(m, LTTNG_MODULE_SYMBOL) : NULL;
        if (!m) {
                log_error(LOG, "cannot load %s: %s", path, library_error());
                return false;
        }
        if (!found || found->version != LTTNG_MODULE_VERSION) {
                log_error(LOG, "%s is of another version", path);
                return false;
        }
        trace_use_lttng(server ? found->put_server : found->put_client);
        return true;
}

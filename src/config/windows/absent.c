/* docs/PLATFORMS.md says why. */
#include "config/absent.h"

#include "base/mem.h"

bool config_is_absent(enum config_id id)
{
        static const enum config_id all[] = {
                CONFIG_advertise,
                CONFIG_server_dht_bootstrap,
                CONFIG_server_dht_port,
                CONFIG_server_dht_key,
                CONFIG_socket,
                CONFIG_socket_users,
                CONFIG_almaif,
                CONFIG_media,
                CONFIG_media_source,
                CONFIG_media_sink,
                CONFIG_preload,
                CONFIG_multipath,
                CONFIG_fabric,
                CONFIG_share,
                CONFIG_ktls,
                CONFIG_user,
                CONFIG_namespaces,
                CONFIG_sandbox_read,
                CONFIG_sandbox_allow,
                CONFIG_session_processes,
                CONFIG_client_priority,
                CONFIG_ready_fd,
                CONFIG_metrics,
                CONFIG_powercap,
                CONFIG_lttng,
        };
        for (size_t i = 0; i < array_size(all); i++)
                if (all[i] == id)
                        return true;
        return false;
}

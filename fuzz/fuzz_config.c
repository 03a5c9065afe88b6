/* The values of SPANCL_SERVERS and SPANCL_DEVICES. */
#include "fuzz/target.h"

#include <string.h>

#include "base/mem.h"
#include "config/device_filter.h"
#include "config/server_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = malloc(size + 1), *error = NULL;
        struct server_spec *servers;
        size_t count;
        fuzz_check(text);
        memcpy(text, data, size);
        text[size] = '\0';
        int r = config_servers_parse(text, "SPANCL_SERVERS", &servers, &count, &error);
        if (r == 0) {
                fuzz_check(count <= CONFIG_SERVERS_MAX);
                for (size_t i = 0; i < count; i++) {
                        const struct server_spec *s = &servers[i];
                        fuzz_check(s->name && s->in_process == !s->address);
                        fuzz_check(s->peer_port <= 65535);
                }
                config_servers_free(servers, count);
        } else {
                fuzz_check(r == SP_E_INVAL && error && strstr(error, "SPANCL_SERVERS"));
        }
        mem_free(error);
        error = NULL;
        struct device_filter filter;
        r = device_filter_parse(text, "SPANCL_DEVICES", &filter, &error);
        fuzz_check(r == 0 ? !error : r == SP_E_INVAL && strstr(error, "SPANCL_DEVICES"));
        fuzz_check(filter.glob_count <= DEVICE_FILTER_TERMS && (r == 0 || !filter.count_max));
        (void)device_filter_takes(&filter, &(struct device_traits){ CL_DEVICE_TYPE_GPU, "a vendor",
                                                                    "aXbXc", 1ull << 33 });
        mem_free(error);
        free(text);
        return 0;
}

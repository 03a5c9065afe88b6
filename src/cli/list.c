#include "cli/list.h"

#include <CL/cl.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/list_found.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "cli/stats_query.h"
#include "proto/info.h"

enum { PINGS_SHOWN = 5, SIZE = 16 << 20 };

enum { TEXT_MAX = 256 };

/* Get the text of a query, made safe for a terminal. */
static const char *text_of(struct bytes block, uint32_t key, char out[TEXT_MAX])
{
        struct bytes v;
        if (!info_find(block, key, &v))
                return "?";
        snprintf(out, TEXT_MAX, "%.*s", (int)strnlen(v.data, v.size), (const char *)v.data);
        return bytes_tame(out, TEXT_MAX);
}

static const char *type_name(uint64_t type)
{
        if (type & CL_DEVICE_TYPE_GPU)
                return "GPU";
        if (type & CL_DEVICE_TYPE_CPU)
                return "CPU";
        if (type & CL_DEVICE_TYPE_ACCELERATOR)
                return "accelerator";
        return "custom";
}

/* Get a value of 4 or 8 bytes. */
static uint64_t number_of(struct bytes block, uint32_t key)
{
        struct bytes v;
        if (!info_find(block, key, &v))
                return 0;
        return v.size == 4 ? bytes_get_u32(v.data) : v.size == 8 ? bytes_get_u64(v.data) : 0;
}

static void print_device(unsigned number, struct bytes d)
{
        struct bytes platform = { 0 };
        (void)info_find(d, INFO_DEVICE_PLATFORM, &platform);
        char name[TEXT_MAX], version[TEXT_MAX], of[TEXT_MAX];
        printf("  %u  %s: %s, %llu compute units, %.1f GiB, %s (%s)\n", number,
               text_of(d, CL_DEVICE_NAME, name), type_name(number_of(d, CL_DEVICE_TYPE)),
               (unsigned long long)number_of(d, CL_DEVICE_MAX_COMPUTE_UNITS),
               (double)number_of(d, CL_DEVICE_GLOBAL_MEM_SIZE) / (1 << 30),
               text_of(d, CL_DEVICE_VERSION, version), text_of(platform, CL_PLATFORM_NAME, of));
}

static bool chosen(const struct server_spec *spec, unsigned number)
{
        for (size_t i = 0; i < spec->device_count; i++)
                if (spec->device_list[i] == number)
                        return true;
        return !spec->device_count ||
               spec->in_process; /* of an in-process server the engine has filtered */
}

static int list_remote(struct remote *r, const struct server_spec *spec, bool quick)
{
        struct bytes devices;
        struct remote_speed speed = { 0 };
        double us = 0;
        int status = remote_devices(r, &devices);
        if (!status)
                status = remote_median(r, &us);
        if (!status && !quick && devices.size)
                status = remote_measure(r, 0, SIZE, &speed);
        if (status < 0)
                return status;
        printf("%s (%s): round trip %.1f us", spec->name, remote_transport(r), us);
        if (speed.write > 0)
                printf(", write %.2f GB/s, read %.2f GB/s", speed.write / 1e9, speed.read / 1e9);
        printf("\n");
        struct info_entry e;
        for (unsigned i = 0; info_next(&devices, &e);)
                if (e.key == INFO_DEVICE && !info_check(e.value)) {
                        if (chosen(spec, i))
                                print_device(i, e.value);
                        i++;
                }
        return 0;
}

static void on_stats(void *user, const struct wire_session_stats *m)
{
        (void)user;
        if (m)
                (void)stats_print_service(m);
}

/* Print the devices out of service. Sessions do not get them, so this takes a query of the
 * server. */
static void list_out_of_service(const struct server_spec *spec, int timeout_ms)
{
        if (!spec->in_process)
                (void)!stats_query(spec, timeout_ms, true, on_stats, NULL);
}

static int list_server(const struct server_spec *spec, int timeout_ms, bool quick)
{
        struct remote *r;
        int status = remote_open(spec, timeout_ms, &r);
        if (status < 0)
                return status;
        status = list_remote(r, spec, quick);
        if (status < 0)
                remote_complain(r, status);
        else
                list_out_of_service(spec, timeout_ms);
        remote_close(r);
        return status;
}

int command_list(int argc, char **argv)
{
        struct queried at;
        bool quick = false;
        size_t failed = 0;
        if (argc == 1 && !strcmp(argv[0], "--discover"))
                return list_found(options_timeout());
        if (options_query("list", argc, argv, "--quick", &quick, &at) < 0)
                return 2;
        for (size_t k = 0; k < at.count; k++)
                failed += list_server(&at.servers[k], at.timeout_ms, quick) < 0;
        if (failed)
                options_hint(&at);
        config_servers_free(at.servers, at.count);
        return failed ? 1 : 0;
}

static int ping(const struct server_spec *spec, int timeout_ms)
{
        struct remote *r;
        double us = 0;
        int status = remote_open(spec, timeout_ms, &r);
        if (status < 0)
                return status;
        printf("%s (%s): connected in %.1f ms\n", spec->name, remote_transport(r),
               (double)remote_connect_ns(r) / 1e6);
        for (int i = 0; i < PINGS_SHOWN && !status; i++) {
                uint64_t ns;
                status = remote_ping(r, &ns);
                if (!status)
                        printf("%s: round trip %.1f us\n", spec->name, (double)ns / 1000);
        }
        if (!status)
                status = remote_median(r, &us);
        if (!status)
                printf("%s: median of %d: %.1f us\n", spec->name, REMOTE_PINGS, us);
        else
                remote_complain(r, status);
        remote_close(r);
        return status;
}

int command_ping(int argc, char **argv)
{
        struct server_spec *servers;
        size_t count;
        int failed = 0;
        if (argc != 1 || !strncmp(argv[0], "--", 2)) {
                fprintf(stderr, "Usage: spancl ping HOST[:PORT]\n");
                return 2;
        }
        if (options_servers(argv[0], &servers, &count) < 0)
                return 2;
        for (size_t i = 0; i < count; i++)
                failed += ping(&servers[i], options_timeout()) < 0;
        config_servers_free(servers, count);
        return failed ? 1 : 0;
}

/* The ways to reach an accelerator, one row of window.h each. An emulator stands behind a file
 * that is taken for:
 * - shared memory;
 * - physical memory;
 * - a UIO device with its folder in /sys;
 * - the resource file of a PCIe device;
 * - a card of Xilinx XRT.
 *
 * Also the meaning of PoCL's variables. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/almaif/accel.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/servers.h"
#include "support/almaif.h"
#include "support/check.h"

/* Only shared memory can wake the emulator. Behind other files it has to poll for a while. */
#define AWAKE "--spin", "20000"

static const struct backend_ops *const ops = &backend_almaif;

/* ---- with the driver above ------------------------------------------------------------------ */

/* Sixty launches and what they did, over `kind` of place; the emulator has these options. */
static void expect_works(const char *kind, const char *const *options, const char *settings)
{
        struct fixture f = { 0 };
        char text[TEXT_SIZE];
        accelerator_start(&f.a, NULL, options);
        snprintf(text, sizeof(text), "%s%s%s", kind, f.a.path, settings);
        fixture_open_at(&f, text);
        for (int i = 0; i < 60; i++) /* a ring of 8 several times round */
                submit(f.q, launch_of(f.inc, whole), NULL, NULL);
        expect_added(&f, 60);
        fixture_close(&f);
}

TEST(a_resource_file_is_a_pcie_device)
{
        (void)state;
        expect_works("pci:", OPTIONS("--packets", "8", AWAKE), "");
        expect_works("pci:", OPTIONS("--packets", "8", "--base", "0x10000", "--bus-master", AWAKE),
                     "@0x10000");
        expect_works("pci:", OPTIONS("--profile", "v3", "--pointer", "4", "--packets", "8", AWAKE),
                     ",profile=v3,ids=0xF000:0xF001");
        expect_works("pci:", OPTIONS("--packets", "8", "--args", "packed", AWAKE), ",args=packed");
}

/* tests/support/xrt is compiled in: each word is a call. */
TEST(a_kernel_of_xrt_is_a_device)
{
        (void)state;
        struct backend *b;
        expect_works("xrt:0:acc:{acc_1}=", OPTIONS("--packets", "8", AWAKE), "");
        expect_works("xrt:0:acc+0x200000=", OPTIONS("--packets", "8", AWAKE), "");
        expect_works("xrt:0:acc@0x10000=", OPTIONS("--profile", "v3", "--packets", "8", AWAKE),
                     ",profile=v3,ids=0xF000:0xF001");
        log_threshold = LOG_NONE;
        assert_int_equal(open_text("xrt:0:acc=/nonexistent", &b), SP_E_NODEV);
        assert_int_equal(open_text("xrt:0:other=/dev/zero", &b), SP_E_NODEV);
        assert_int_equal(open_text("xrt:1:acc=/nonexistent", &b), SP_E_NODEV);
        log_threshold = LOG_WARN;
}

/* An emulator in this process; who has the name has the same one. */
TEST(an_emulator_may_be_a_thread)
{
        (void)state;
        struct fixture f = { 0 };
        struct backend_queue *q;
        fixture_open_at(&f, "emu:one");
        for (int i = 0; i < 200; i++)
                submit(f.q, launch_of(f.inc, whole), NULL, NULL);
        expect_added(&f, 200);
        struct backend *same = open_at("emu:one"), *other = open_at("emu:two+65536");
        log_threshold = LOG_NONE;
        assert_int_equal(ops->queue.create(same, 0, 0, &q), CL_DEVICE_NOT_AVAILABLE);
        log_threshold = LOG_WARN;
        q = queue_of(other, 0, 0);
        ops->queue.release(q);
        ops->close(same);
        ops->close(other);
        assert_int_equal(run(f.q, launch_of(f.inc, whole)), CL_SUCCESS);
        fixture_close(&f);
}

/* ---- without it ----------------------------------------------------------------------------- */

/* One accelerator at a place whose file is not the one that was written down. */
struct bare {
        struct accelerator a;
        struct almaif_spec *spec;
        struct accel accel;
};

static void bare_open(struct bare *x, const char *text, const char *const *options)
{
        char error[SPEC_ERROR_SIZE] = "";
        size_t count;
        accelerator_start(&x->a, NULL, options);
        assert_int_equal(almaif_specs_parse(text, &x->spec, &count, error), 0);
        snprintf(x->spec->place.path, sizeof(x->spec->place.path), "%s", x->a.path);
        if (accel_open(x->spec, &x->accel, error) < 0 || accel_start(&x->accel, error) < 0)
                fail_msg("%s", error);
}

static void bare_close(struct bare *x)
{
        accel_close(&x->accel);
        mem_free(x->spec);
        accelerator_stop(&x->a);
}

/* One noop, until its signal falls. */
static void bare_launch(struct bare *x)
{
        enum { SIGNAL = 128 };
        struct accel *a = &x->accel;
        struct almaif_dispatch d = { .header = bytes_le16(ALMAIF_PACKET_DISPATCH),
                                     .dimensions = bytes_le16(1),
                                     .grid_x = bytes_le32(1),
                                     .grid_y = bytes_le32(1),
                                     .grid_z = bytes_le32(1),
                                     .kernel = bytes_le64(0xF000),
                                     .completion = bytes_le64(a->data.address + SIGNAL) };
        uint64_t room = 0, at = a->data.at + SIGNAL;
        assert_int_equal(accel_room(a, &room), 0);
        assert_true(room > 0);
        signal_arm(a->window, at, true);
        accel_push(a, &d);
        accel_kick(a);
        while (signal_state(a->window, at, true) == SIGNAL_PENDING)
                a->window->ops->wait(a->window, a->read_at, window_load32(a->window, a->read_at),
                                     1000000);
        assert_int_equal(signal_state(a->window, at, true), SIGNAL_SUCCESS);
}

TEST(physical_memory_begins_anywhere)
{
        (void)state;
        static const char *const places[] = { "mem:0x43000", "mem:0x43000+0x200000" };
        for (size_t i = 0; i < array_size(places); i++) {
                struct bare x = { 0 };
                bare_open(&x, places[i],
                          OPTIONS("--base", "0x43000", "--bus-master", "--packets", "8", AWAKE));
                for (int n = 0; n < 20; n++)
                        bare_launch(&x);
                bare_close(&x);
        }
        /* Its regions are not where it says that it ends. */
        struct bare x = { 0 };
        char error[SPEC_ERROR_SIZE] = "";
        size_t count;
        accelerator_start(&x.a, NULL, OPTIONS("--base", "0x43000", "--packets", "8"));
        assert_int_equal(almaif_specs_parse("mem:0x43000+0x2000", &x.spec, &count, error), 0);
        snprintf(x.spec->place.path, sizeof(x.spec->place.path), "%s", x.a.path);
        assert_int_equal(accel_open(x.spec, &x.accel, error), SP_E_INVAL);
        assert_non_null(strstr(error, "DATA_SIZE (0x330)"));
        mem_free(x.spec);
        accelerator_stop(&x.a);
}

static void write_text(const char *folder, const char *name, const char *text)
{
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

/* The files in /sys of a UIO device with one map. */
struct uio {
        char folder[64], device[200], maps[210], map[220];
};

static void uio_make(struct uio *u, const char *device, const char *address, const char *size)
{
        strcpy(u->folder, "/tmp/spancl-uio.XXXXXX");
        assert_non_null(mkdtemp(u->folder));
        snprintf(u->device, sizeof(u->device), "%s/%s", u->folder, strrchr(device, '/') + 1);
        snprintf(u->maps, sizeof(u->maps), "%s/maps", u->device);
        snprintf(u->map, sizeof(u->map), "%s/map0", u->maps);
        assert_int_equal(mkdir(u->device, 0700) | mkdir(u->maps, 0700) | mkdir(u->map, 0700), 0);
        write_text(u->map, "addr", address);
        write_text(u->map, "size", size);
        window_uio_class = u->folder;
}

static void uio_remove(struct uio *u)
{
        char path[256];
        static const char *const files[] = { "addr", "size" };
        for (size_t i = 0; i < array_size(files); i++) {
                snprintf(path, sizeof(path), "%s/%s", u->map, files[i]);
                unlink(path);
        }
        rmdir(u->map);
        rmdir(u->maps);
        rmdir(u->device);
        rmdir(u->folder);
        window_uio_class = "/sys/class/uio";
}

/* The device side of an interrupt: told that it is wanted, it raises one. */
static void *raise_interrupt(void *arg)
{
        uint32_t wanted = 0, count = 1;
        int fd = *(int *)arg;
        if (read(fd, &wanted, sizeof(wanted)) != sizeof(wanted) || wanted != 1 ||
            write(fd, &count, sizeof(count)) != sizeof(count))
                return arg;
        return NULL;
}

/* A socket stands for the interrupt: the file of the emulator has none. */
TEST(a_uio_device_has_a_map_and_an_interrupt)
{
        (void)state;
        struct bare x = { 0 };
        struct uio u;
        char error[SPEC_ERROR_SIZE], text[TEXT_SIZE];
        size_t count;
        int ends[2];
        accelerator_start(&x.a, NULL, OPTIONS("--packets", "8", AWAKE));
        uio_make(&u, x.a.path, "0x43c00000\n", "0x103000\n");
        snprintf(text, sizeof(text), "uio:%s", x.a.path);
        assert_int_equal(almaif_specs_parse(text, &x.spec, &count, error), 0);
        if (accel_open(x.spec, &x.accel, error) < 0)
                fail_msg("%s", error);
        struct window *w = x.accel.window;
        assert_int_equal(w->base, 0x43c00000);
        close(w->irq_fd);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        w->irq_fd = ends[0];
        assert_int_equal(accel_start(&x.accel, error), 0);

        pthread_t thread;
        void *failed;
        uint32_t seen = window_load32(w, ALMAIF_READ_INDEX);
        assert_int_equal(pthread_create(&thread, NULL, raise_interrupt, &ends[1]), 0);
        w->ops->wait(w, ALMAIF_READ_INDEX, seen, 60000000000u);
        pthread_join(thread, &failed);
        assert_null(failed);
        struct pollfd p = { .fd = ends[0], .events = POLLIN };
        assert_int_equal(poll(&p, 1, 0), 0); /* it was taken */

        /* A change from before the wait is seen without an interrupt. */
        w->ops->wait(w, ALMAIF_READ_INDEX, seen + 1, 60000000000u);
        /* Without an interrupt: short sleeps. */
        close(ends[1]);
        close(ends[0]);
        w->irq_fd = -1;
        for (int n = 0; n < 20; n++)
                bare_launch(&x);
        uio_remove(&u);
        bare_close(&x);
}

TEST(other_files_than_uio_devices_are_reported)
{
        (void)state;
        struct bare x = { 0 };
        struct uio u;
        char error[SPEC_ERROR_SIZE] = "", text[TEXT_SIZE];
        size_t count;
        accelerator_start(&x.a, NULL, OPTIONS("--packets", "8"));
        snprintf(text, sizeof(text), "uio:%s", x.a.path);
        assert_int_equal(almaif_specs_parse(text, &x.spec, &count, error), 0);
        assert_int_equal(accel_open(x.spec, &x.accel, error), SP_E_INVAL);
        assert_non_null(strstr(error, "not a UIO device"));
        uio_make(&u, x.a.path, "0x43c00000\n", "0x200\n");
        assert_int_equal(accel_open(x.spec, &x.accel, error), SP_E_INVAL);
        assert_non_null(strstr(error, "bytes"));
        uio_remove(&u);
        mem_free(x.spec);
        accelerator_stop(&x.a);
}

/* ---- PoCL's variables ----------------------------------------------------------------------- */

/* Return POCL_ALMAIF0_PARAMETERS as an entry of SPANCL_ALMAIF. NULL: an error, which is
 * `*ret_error`. */
static char *pocl(const char *text, char **ret_error)
{
        char *entries = NULL;
        setenv("POCL_ALMAIF0_PARAMETERS", text, 1);
        *ret_error = NULL;
        int r = config_accelerators(&entries, ret_error);
        unsetenv("POCL_ALMAIF0_PARAMETERS");
        assert_int_equal(r == SP_E_INVAL, *ret_error != NULL);
        return entries;
}

TEST(pocls_variables_are_understood)
{
        (void)state;
        static const char *const same[][2] = {
                { "0x43c00000,/no/dev,1,0x2", "mem:0x43c00000,profile=v3,ids=1:0x2;" },
                { "0xE,0,1,2,4,9", "emu:pocl0,ids=0:1:2:4:9;" },
                { "14", "emu:pocl0;" },
                { "0xA,/no/vec,1",
                  "xrt:0:vec:{vec_1}@0x40000000=/no/vec.xclbin,profile=v3,ids=1;" },
        };
        static const char *const wrong[][2] = {
                { "0xB,core,65535", "OpenASIP" },    { "0xF,/db", "bitstreams" },
                { "0xA,/no/vec", "KERNEL" },         { "0x43c00000", "ADDRESS,FILE" },
                { "0x43c00000,", "ADDRESS,FILE" },   { "0x43c00000,,1", "ADDRESS,FILE" },
                { "somewhere,x,1", "ADDRESS,FILE" }, { "0xE:1", "ADDRESS,FILE" },
        };
        char *error;
        for (size_t i = 0; i < array_size(same); i++) {
                char *entries = pocl(same[i][0], &error);
                struct almaif_spec *s;
                char why[SPEC_ERROR_SIZE];
                size_t n;
                assert_string_equal(entries, same[i][1]);
                if (almaif_specs_parse(entries, &s, &n, why) < 0)
                        fail_msg("%s: %s", entries, why);
                assert_int_equal(n, 1);
                mem_free(s);
                mem_free(entries);
        }
        for (size_t i = 0; i < array_size(wrong); i++) {
                mem_free(pocl(wrong[i][0], &error));
                if (!error || !strstr(error, wrong[i][1]))
                        fail_msg("%s: %s", wrong[i][0], error ? error : "no error");
                mem_free(error);
        }
        setenv("POCL_ALMAIF_EXTERNALREGION", "0,4096", 1);
        mem_free(pocl("0xA,/no/vec,1", &error));
        assert_non_null(strstr(error, "POCL_ALMAIF_EXTERNALREGION"));
        mem_free(error);
        unsetenv("POCL_ALMAIF_EXTERNALREGION");
}

/* The image is the file of that name, if there is one. */
TEST(pocls_image_is_found_by_its_name)
{
        (void)state;
        char folder[] = "/tmp/spancl-pocl.XXXXXX", path[64], text[128], *error;
        assert_non_null(mkdtemp(folder));
        write_text(folder, "dev.img", "x");
        snprintf(text, sizeof(text), "0x1000,%s/dev,1", folder);
        char *entries = pocl(text, &error);
        snprintf(text, sizeof(text), "mem:0x1000,profile=v3,image=%s/dev.img,ids=1;", folder);
        assert_string_equal(entries, text);
        mem_free(entries);
        snprintf(path, sizeof(path), "%s/dev.img", folder);
        unlink(path);
        rmdir(folder);
}

TEST(pocls_emulator_runs)
{
        (void)state;
        struct fixture f = { 0 };
        char *error, *entries = pocl("0xE,0xF000,0xF001", &error);
        fixture_open_at(&f, entries);
        assert_int_equal(run(f.q, launch_of(f.inc, whole)), CL_SUCCESS);
        expect_added(&f, 1);
        fixture_close(&f);
        mem_free(entries);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_resource_file_is_a_pcie_device),
                cmocka_unit_test(a_kernel_of_xrt_is_a_device),
                cmocka_unit_test(an_emulator_may_be_a_thread),
                cmocka_unit_test(physical_memory_begins_anywhere),
                cmocka_unit_test(a_uio_device_has_a_map_and_an_interrupt),
                cmocka_unit_test(other_files_than_uio_devices_are_reported),
                cmocka_unit_test(pocls_variables_are_understood),
                cmocka_unit_test(pocls_image_is_found_by_its_name),
                cmocka_unit_test(pocls_emulator_runs),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

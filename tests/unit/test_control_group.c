/* src/os/process/control_group: groups, mounts and quotas in a folder of the test's. */
#include "support/check.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/folder.h"
#include "os/process/control_group.h"
#include "os/thread.h"

static char base[] = "/tmp/spancl-test-control-group.XXXXXX";

static const char *at(const char *name)
{
        static char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/%s", base, name);
        return path;
}

static void put(const char *name, const char *text)
{
        FILE *f = fopen(at(name), "we");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

/* Begin with a process in the group `own`, of a mount of the group `root`. */
static void begin(const char *own, const char *root, const char *type, const char *options)
{
        char text[PATH_MAX + 256];
        folder_remove(base);
        assert_int_equal(folder_make(at("mount/slice/unit")), 0);
        put("cgroup", own);
        snprintf(text, sizeof(text),
                 "21 1 0:20 / / rw - ext4 /dev/vda rw\n"
                 "29 23 0:26 / /elsewhere rw - cgroup cgroup rw,cpuset\n"
                 "30 23 0:27 %s %s/mount rw,nosuid shared:9 - %s cgroup rw,%s\n",
                 root, base, type, options);
        put("mountinfo", text);
}

static void begin_v2(const char *root)
{
        begin("1:name=systemd:/other\n0::/slice/unit\n", root, "cgroup2", "nsdelegate");
}

static void begin_v1(void)
{
        begin("5:cpuset:/other\n4:cpuacct,cpu:/slice/unit\n", "/", "cgroup", "cpuacct,cpu");
}

TEST(a_quota_counts_as_the_cores_that_it_needs)
{
        static const struct {
                const char *text;
                unsigned cores;
        } cases[] = { { "10000 100000\n", 1 },    { "100000 100000\n", 1 },
                      { "100001 100000\n", 2 },   { "150000 100000\n", 2 },
                      { "1 1000000\n", 1 },       { "max 100000\n", UINT_MAX },
                      { "1600000 100000\n", 16 }, { "50000 100000", 1 } };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                begin_v2("/");
                put("mount/slice/unit/cpu.max", cases[i].text);
                assert_int_equal(control_group_cores(base), cases[i].cores);
        }
}

TEST(the_smallest_quota_of_a_group_and_its_parents_counts)
{
        begin_v2("/");
        put("mount/slice/unit/cpu.max", "400000 100000\n");
        put("mount/slice/cpu.max", "max 100000\n");
        assert_int_equal(control_group_cores(base), 4);
        put("mount/slice/cpu.max", "250000 100000\n");
        assert_int_equal(control_group_cores(base), 3);
        put("mount/cpu.max", "20000 100000\n");
        assert_int_equal(control_group_cores(base), 1);
        put("cpu.max", "100 100000\n"); /* above the mount */
        assert_int_equal(control_group_cores(base), 1);
        put("mount/cpu.max", "max 100000\n");
        assert_int_equal(control_group_cores(base), 3);
}

TEST(version_1_has_two_files)
{
        begin_v1();
        assert_int_equal(control_group_cores(base), UINT_MAX);
        put("mount/slice/unit/cpu.cfs_period_us", "100000\n");
        put("mount/slice/unit/cpu.cfs_quota_us", "-1\n");
        assert_int_equal(control_group_cores(base), UINT_MAX);
        put("mount/slice/unit/cpu.cfs_quota_us", "110000\n");
        assert_int_equal(control_group_cores(base), 2);
        put("mount/slice/cpu.cfs_period_us", "50000\n");
        put("mount/slice/cpu.cfs_quota_us", "10000\n");
        assert_int_equal(control_group_cores(base), 1);
}

/* A container sees its group as the mount's root, with a namespace of its own or without one. */
TEST(a_mount_may_begin_at_a_lower_group)
{
        begin_v2("/slice");
        assert_int_equal(rmdir(at("mount/slice/unit")), 0);
        assert_int_equal(mkdir(at("mount/unit"), 0700), 0);
        put("mount/unit/cpu.max", "300000 100000\n");
        assert_int_equal(control_group_cores(base), 3);
        begin_v2("/slice/unit");
        put("mount/cpu.max", "200000 100000\n");
        assert_int_equal(control_group_cores(base), 2);
        begin("0::/\n", "/slice/unit", "cgroup2", "rw");
        put("mount/cpu.max", "200000 100000\n");
        assert_int_equal(control_group_cores(base), UINT_MAX);
        begin("0::/\n", "/", "cgroup2", "rw");
        put("mount/cpu.max", "200000 100000\n");
        assert_int_equal(control_group_cores(base), 2);
}

TEST(wrong_and_missing_files_give_no_quota)
{
        static const char *const wrong[] = { "",
                                             "\n",
                                             "50000",
                                             "50000 0",
                                             "0 100000",
                                             "-5 100000",
                                             "50000 -1",
                                             "x y",
                                             "50000 max",
                                             "99999999999999999999999 1",
                                             "+5 100000",
                                             "50000,100000",
                                             " 50000 1000",
                                             "5e4 1e5",
                                             "18446744073709551615 1",
                                             "1 99999999999999999999999" };
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                begin_v2("/");
                put("mount/slice/unit/cpu.max", wrong[i]);
                assert_int_equal(control_group_cores(base), UINT_MAX);
        }
        begin_v2("/");
        assert_int_equal(mkfifo(at("mount/slice/unit/cpu.max"), 0600), 0);
        put("limit", "10000 100000\n");
        assert_int_equal(symlink("../limit", at("mount/slice/cpu.max")), 0);
        assert_int_equal(mkdir(at("mount/cpu.max"), 0700), 0);
        assert_int_equal(control_group_cores(base), UINT_MAX);
        assert_int_equal(control_group_cores("/nowhere"), UINT_MAX);
}

TEST(wrong_groups_and_mounts_give_no_quota)
{
        static const char *const groups[] = { "",
                                              "0",
                                              "0:",
                                              "0::",
                                              "0::slice/unit\n",
                                              "0::/../limited\n",
                                              "0::/slice/unit/../..\n",
                                              ":::/",
                                              "1:cpus:/slice/unit\n" };
        for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
                begin_v2("/");
                put("cgroup", groups[i]);
                put("mount/cpu.max", "10000 100000\n");
                assert_int_equal(control_group_cores(base), UINT_MAX);
        }
        static const char *const mounts[] = { "", "\n", " - cgroup2 ",
                                              "30 23 0:27 / - cgroup2 x rw",
                                              "30 23 0:27 / /tmp rw" };
        for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
                begin_v2("/");
                put("mountinfo", mounts[i]);
                assert_int_equal(control_group_cores(base), UINT_MAX);
        }
        begin_v2("/sli"); /* begins as the group does, and is another one */
        put("mount/cpu.max", "10000 100000\n");
        assert_int_equal(control_group_cores(base), UINT_MAX);
        begin("0::/slice/unit\n", "/", "fuse", "rw");
        put("mount/cpu.max", "10000 100000\n");
        assert_int_equal(control_group_cores(base), UINT_MAX);
}

/* Of this process: with a quota here, the two numbers may differ. */
TEST(a_quota_does_not_change_how_many_cores_run_at_once)
{
        cpu_set_t set;
        unsigned quota = control_group_cores("/proc/self");
        assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
        unsigned cores = (unsigned)CPU_COUNT(&set);
        assert_int_equal(thread_cores_at_once(), cores);
        assert_int_equal(thread_cores(), quota < cores ? quota : cores);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_quota_counts_as_the_cores_that_it_needs),
                cmocka_unit_test(the_smallest_quota_of_a_group_and_its_parents_counts),
                cmocka_unit_test(version_1_has_two_files),
                cmocka_unit_test(a_mount_may_begin_at_a_lower_group),
                cmocka_unit_test(wrong_and_missing_files_give_no_quota),
                cmocka_unit_test(wrong_groups_and_mounts_give_no_quota),
                cmocka_unit_test(a_quota_does_not_change_how_many_cores_run_at_once),
        };
        if (!mkdtemp(base))
                return 1;
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        folder_remove(base);
        return r;
}

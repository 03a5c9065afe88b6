/* os/writes.h: pages that were written are found, and only these. */
#include "os/writes.h"

#include "support/check.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/file.h"
#include "os/thread.h"
#include "os/vm.h"

enum { SIZE = 64 * VM_GRANULE, PARTS = 5, ROUNDS = 200 };

static uint64_t at, other, page;
static int fd;
static bool found[SIZE / 4096];

static volatile uint32_t *word(uint64_t number)
{
        return (volatile uint32_t *)(uintptr_t)(at + number * page);
}

/* Set `found` of the pages that writes_take finds, and return their number. */
static uint64_t take(void)
{
        struct written parts[PARTS];
        uint64_t next = at, end = at + SIZE, count = 0;
        memset(found, 0, sizeof(found));
        while (next < end) {
                uint64_t begin = next;
                int n = writes_take(begin, end, parts, PARTS, &next);
                assert_in_range(n, 0, PARTS);
                assert_true(next > begin && next <= end);
                for (int i = 0; i < n; i++) {
                        assert_true(parts[i].begin >= begin && parts[i].end <= next);
                        for (uint64_t p = parts[i].begin; p < parts[i].end; p += page, count++)
                                found[(p - at) / page] = true;
                }
        }
        return count;
}

static int setup(void **state)
{
        (void)state;
        page = vm_page_size();
        if (vm_map_twice(0, SIZE, &at, &other, &fd) < 0 || vm_allow(at, SIZE, VM_WRITE) < 0)
                return -1;
        return writes_watch(at, SIZE) < 0 || writes_note(at, SIZE) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
        (void)state;
        vm_unmap(at, SIZE);
        vm_unmap(other, SIZE);
        file_close(fd);
        return 0;
}

TEST(pages_that_are_written_are_found_once)
{
        uint64_t count = SIZE / page;
        assert_int_equal(take(), 0);
        for (uint64_t i = 0; i < count; i += 3)
                *word(i) = 1;
        assert_int_equal(take(), (count + 2) / 3);
        for (uint64_t i = 0; i < count; i++)
                assert_int_equal(found[i], i % 3 == 0);
        assert_int_equal(take(), 0);
        *word(3) = 2;
        assert_int_equal(take(), 1);
        assert_true(found[3]);
}

TEST(reads_and_writes_at_the_other_address_do_not_count)
{
        uint32_t sum = 0;
        memset((void *)(uintptr_t)other, 1, SIZE);
        for (uint64_t i = 0; i < SIZE / page; i++)
                sum += *word(i);
        assert_int_equal(sum, (uint32_t)(SIZE / page) * 0x01010101u);
        assert_int_equal(take(), 0);
}

TEST(pages_that_are_there_before_they_are_read_do_not_count)
{
        memset((void *)(uintptr_t)other, 1, SIZE);
        vm_populate(at, SIZE);
        assert_true(vm_touched(at, SIZE));
        assert_int_equal(take(), 0);
}

/* The kernel writes there without a fault of the program. */
TEST(system_calls_count)
{
        int ends[2];
        uint32_t value = 7;
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], &value, sizeof(value)), sizeof(value));
        assert_int_equal(read(ends[0], (void *)(uintptr_t)word(9), sizeof(value)), sizeof(value));
        assert_int_equal(*word(9), 7);
        assert_int_equal(take(), 1);
        assert_true(found[9]);
        close(ends[0]);
        close(ends[1]);
}

/* The kernel forgets what it knew of them. */
TEST(written_pages_that_are_emptied_count)
{
        for (uint64_t i = 0; i < SIZE / page; i++)
                *word(i) = 5;
        assert_int_equal(madvise((void *)(uintptr_t)at, SIZE, MADV_DONTNEED), 0);
        assert_int_equal(take(), SIZE / page);
        assert_int_equal(take(), 0);
        *word(1) = 6;
        assert_int_equal(take(), 1);
}

TEST(memory_that_is_watched_no_more_is_not_known)
{
        struct written parts[PARTS];
        uint64_t next;
        *word(1) = 1;
        assert_true(mmap((void *)(uintptr_t)at, SIZE, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
        assert_int_equal(writes_take(at, at + SIZE, parts, PARTS, &next), SP_E_UNSUPP);
        assert_int_equal(writes_note(at, SIZE), SP_E_UNSUPP);
}

TEST(a_part_may_be_forgotten_and_watched_again)
{
        struct written parts[PARTS];
        uint64_t next, begin = at + 8 * page;
        writes_forget(begin, 8 * page);
        assert_int_equal(writes_take(at, at + SIZE, parts, PARTS, &next), SP_E_UNSUPP);
        *word(8) = 1;
        assert_int_equal(writes_watch(begin, 8 * page), 0);
        assert_int_equal(writes_note(begin, 8 * page), 0);
        assert_int_equal(take(), 0);
        *word(9) = 1;
        assert_int_equal(take(), 1);
        assert_true(found[9]);
}

static atomic_uint rounds_written;

static void *write_numbers(void *arg)
{
        for (uint32_t i = 1; i <= ROUNDS; i++) {
                for (uint64_t k = 0; k < 64; k++)
                        __atomic_store_n(word(k), i, __ATOMIC_RELAXED);
                atomic_store(&rounds_written, i);
        }
        return arg;
}

/* A copy that takes the pages that were found, again and again, has the last write of each. */
TEST(no_write_of_another_thread_is_lost)
{
        uint32_t copy[64] = { 0 };
        thread_id writer;
        assert_int_equal(thread_start(&writer, false, write_numbers, NULL), 0);
        for (bool last = false; !last;) {
                last = atomic_load(&rounds_written) == ROUNDS;
                (void)take();
                for (uint64_t k = 0; k < 64; k++)
                        if (found[k])
                                copy[k] = __atomic_load_n((uint32_t *)(uintptr_t)(other + k * page),
                                                          __ATOMIC_RELAXED);
        }
        thread_join(writer);
        for (uint64_t k = 0; k < 64; k++)
                assert_int_equal(copy[k], ROUNDS);
}

TEST(a_child_of_fork_knows_nothing_of_its_parents_and_has_its_own)
{
        int status;
        *word(2) = 1;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                struct written parts[PARTS];
                uint64_t next, mine, mine_too;
                int own;
                bool good = writes_take(at, at + SIZE, parts, PARTS, &next) == SP_E_UNSUPP &&
                            writes_can_be_noted() &&
                            vm_map_twice(0, VM_GRANULE, &mine, &mine_too, &own) == 0 &&
                            vm_allow(mine, VM_GRANULE, VM_WRITE) == 0 &&
                            writes_watch(mine, VM_GRANULE) == 0 &&
                            writes_note(mine, VM_GRANULE) == 0;
                if (good)
                        *(volatile char *)(uintptr_t)mine = 1;
                _exit(!good || writes_take(mine, mine + VM_GRANULE, parts, PARTS, &next) != 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(take(), 1);
        assert_true(found[2]);
}

int main(void)
{
#define ONE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                ONE(pages_that_are_written_are_found_once),
                ONE(reads_and_writes_at_the_other_address_do_not_count),
                ONE(pages_that_are_there_before_they_are_read_do_not_count),
                ONE(system_calls_count),
                ONE(written_pages_that_are_emptied_count),
                ONE(memory_that_is_watched_no_more_is_not_known),
                ONE(a_part_may_be_forgotten_and_watched_again),
                ONE(no_write_of_another_thread_is_lost),
                ONE(a_child_of_fork_knows_nothing_of_its_parents_and_has_its_own),
        };
        if (!writes_can_be_noted()) {
                print_message("not tested: this kernel does not note writes\n");
                return 0;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}

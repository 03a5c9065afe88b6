// almaif_core in Verilator behind a file of shared memory: SPANCL_ALMAIF=shm:FILE runs on the RTL. The core's
// memory is the file's; its registers are mirrored: what the host stores there is written to the core, what the
// core says is stored for the host. With SIM_BUS_MASTER the file is the bus, on which the core lies at BASE.
// Usage: sim FILE [READY_FD [BASE]]
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <spancl/almaif.h>
#include <verilated.h>

#include "Valmaif_core.h"

namespace {

constexpr uint32_t MEM_START = 0x10000, MEM_BYTES = 1u << SIM_MEM_BITS;
constexpr unsigned LOOK_EVERY = 8, IDLE_CYCLES = 4096;

volatile sig_atomic_t stop;

void on_signal(int) { stop = 1; }

struct Sim {
        Valmaif_core core;
        uint8_t *bus;  // the file
        uint64_t size; // of it
        uint8_t *file; // from the core's registers on
        int ready_fd = -1;
        bool retired = false;

        uint32_t *word(uint32_t at) { return reinterpret_cast<uint32_t *>(file + at); }
        uint64_t *wide(uint32_t at) { return reinterpret_cast<uint64_t *>(file + at); }

        // One cycle. The memory answers in the next one.
        void cycle()
        {
                bool valid = core.mem_valid;
                uint64_t address = (uint64_t)core.mem_addr * 4;
                uint32_t enable = core.mem_write;
                uint32_t data = core.mem_wdata, answer = core.mem_rdata;
                bool done = core.irq;
                uint8_t *p = SIM_BUS_MASTER ? bus + address : file + MEM_START + address;
                if (valid && p >= bus && p + 8 <= bus + size) { // else: nobody answers
                        uint32_t *w = reinterpret_cast<uint32_t *>(p);
                        if (enable == 15)
                                __atomic_store_n(w, data, __ATOMIC_SEQ_CST);
                        for (unsigned b = 0; enable && enable < 15 && b < 4; b++)
                                if (enable >> b & 1)
                                        p[b] = (uint8_t)(data >> 8 * b);
                        answer = __atomic_load_n(w, __ATOMIC_ACQUIRE);
                        if (enable == 15 && __atomic_load_n(w + 1, __ATOMIC_ACQUIRE) == 1)
                                wake(w);
                }
                core.clk = 0;
                core.eval();
                core.clk = 1;
                core.eval();
                core.mem_rdata = answer;
                core.eval();
                retired |= done;
        }

        void wake(void *p) { syscall(SYS_futex, p, FUTEX_WAKE, 1000, nullptr, nullptr, 0); }

        void retire()
        {
                retired = false;
                __atomic_store_n(wide(ALMAIF_READ_INDEX),
                                 (uint64_t)read_register(ALMAIF_READ_INDEX + 4) << 32 |
                                         read_register(ALMAIF_READ_INDEX),
                                 __ATOMIC_SEQ_CST);
                if (__atomic_exchange_n(word(ALMAIF_HOST_SLEEPS), 0, __ATOMIC_SEQ_CST))
                        wake(word(ALMAIF_READ_INDEX));
        }

        // The core's consumer goes on meanwhile.
        uint32_t read_register(uint32_t at)
        {
                core.reg_valid = 1;
                core.reg_write = 0;
                core.reg_addr = at / 4;
                cycle();
                core.reg_valid = 0;
                return core.reg_rdata;
        }

        void write_register(uint32_t at, uint32_t value)
        {
                core.reg_valid = 1;
                core.reg_write = 1;
                core.reg_addr = at / 4;
                core.reg_wdata = value;
                cycle();
                core.reg_valid = core.reg_write = 0;
        }

        void publish()
        {
                for (uint32_t at = 0; at < ALMAIF_CONTROL_SIZE; at += 4)
                        *word(at) = read_register(at);
        }

        // What the host stored since.
        void obey()
        {
                uint32_t command = __atomic_exchange_n(word(ALMAIF_COMMAND), 0, __ATOMIC_SEQ_CST);
                if (!command)
                        return;
                write_register(ALMAIF_COMMAND, command);
                cycle();
                if (command == ALMAIF_COMMAND_RESET) {
                        __atomic_store_n(wide(ALMAIF_WRITE_INDEX), 0, __ATOMIC_RELEASE);
                        __atomic_store_n(wide(ALMAIF_READ_INDEX), 0, __ATOMIC_RELEASE);
                }
                __atomic_store_n(word(ALMAIF_STATUS), read_register(ALMAIF_STATUS), __ATOMIC_RELEASE);
        }

        bool idle()
        {
                return __atomic_load_n(wide(ALMAIF_WRITE_INDEX), __ATOMIC_SEQ_CST) ==
                               *wide(ALMAIF_READ_INDEX) &&
                       !__atomic_load_n(word(ALMAIF_COMMAND), __ATOMIC_SEQ_CST);
        }

        void sleep()
        {
                timespec t = { 0, 20000000 };
                uint32_t seen = (uint32_t)__atomic_load_n(wide(ALMAIF_WRITE_INDEX), __ATOMIC_SEQ_CST);
                __atomic_store_n(word(ALMAIF_DEVICE_SLEEPS), 1, __ATOMIC_SEQ_CST);
                if (idle())
                        syscall(SYS_futex, word(ALMAIF_WRITE_INDEX), FUTEX_WAIT, seen, &t, nullptr, 0);
        }

        void run()
        {
                core.rst = 1;
                core.mem_ready = 1;
                cycle();
                core.rst = 0;
                publish();
                if (ready_fd >= 0 && (write(ready_fd, "ready\n", 6) != 6 || close(ready_fd) < 0))
                        perror("READY_FD");
                for (unsigned long n = 0, since = 0; !stop; n++) {
                        cycle();
                        if (retired)
                                retire();
                        if (n % LOOK_EVERY)
                                continue;
                        obey();
                        since = idle() ? since + LOOK_EVERY : 0;
                        if (since > IDLE_CYCLES)
                                sleep();
                }
        }
};

} // namespace

int main(int argc, char **argv)
{
        int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
        uint64_t base = argc > 3 ? strtoull(argv[3], nullptr, 0) : 0, end = base + MEM_START + MEM_BYTES + 4096;
        struct stat st;
        static Sim sim;
        if (fd < 0 || fstat(fd, &st) < 0 || base % MEM_BYTES ||
            ((uint64_t)st.st_size < end && ftruncate(fd, end) < 0)) {
                perror(argc > 1 ? argv[1] : "Usage: sim FILE [READY_FD [BASE]]");
                return 1;
        }
        sim.size = (uint64_t)st.st_size > end ? st.st_size : end;
        void *p = mmap(nullptr, sim.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
                return 1;
        sim.bus = static_cast<uint8_t *>(p);
        sim.file = sim.bus + base;
        sim.core.base = (SIM_BUS_MASTER ? base : 0) + MEM_START;
        signal(SIGTERM, on_signal);
        sim.ready_fd = argc > 2 ? atoi(argv[2]) : -1;
        sim.run();
        return 0;
}

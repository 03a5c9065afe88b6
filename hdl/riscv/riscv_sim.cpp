// rv32im in Verilator as an accelerator that runs compiled kernels: SPANCL_ALMAIF=shm:FILE,isa=rv32im. The core's
// memory is the file, registers and all, as in QEMU (src/emulator/riscv.c), but for commands, which are the reset of
// the core. Usage: sim FILE BOOT [READY_FD]; BOOT is firmware/riscv's boot.bin.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <spancl/almaif.h>
#include <verilated.h>

#include "Vrv32im.h"

namespace {

constexpr uint32_t RAM = 0x80000000, BOOT_AT = 0x1000, QUEUE_AT = 0x8000, CONFIG_AT = 0x10000;
constexpr uint32_t PACKETS = 64, CONFIG_BYTES = 4 << 20, DATA_BYTES = 4 << 20;
constexpr uint32_t BYTES = CONFIG_AT + CONFIG_BYTES + DATA_BYTES;
constexpr unsigned LOOK_EVERY = 1024;
constexpr long NAP_NS = 200000;

volatile sig_atomic_t stop;

void on_signal(int) { stop = 1; }

struct Sim {
        Vrv32im core;
        uint8_t *file;
        uint32_t answer = 0;
        bool error = false;

        uint32_t *word(uint32_t at) { return reinterpret_cast<uint32_t *>(file + at); }
        void put32(uint32_t at, uint32_t v) { __atomic_store_n(word(at), v, __ATOMIC_SEQ_CST); }
        uint32_t get32(uint32_t at) { return __atomic_load_n(word(at), __ATOMIC_SEQ_CST); }

        // The memory answers in the next cycle.
        void cycle()
        {
                bool valid = core.mem_valid, bad = false;
                uint32_t at = core.mem_addr - RAM, next = answer;
                if (valid) {
                        bad = at > BYTES - 4;
                        if (!bad && core.mem_write == 15)
                                put32(at, core.mem_wdata);
                        for (unsigned b = 0; !bad && core.mem_write < 15 && b < 4; b++)
                                if (core.mem_write >> b & 1)
                                        file[at + b] = (uint8_t)(core.mem_wdata >> 8 * b);
                        next = bad ? 0 : get32(at & ~3u);
                }
                core.clk = 0;
                core.eval();
                core.clk = 1;
                core.eval();
                core.mem_rdata = answer = next;
                if (valid)
                        error = bad;
                core.mem_error = error;
                core.eval();
        }

        void make_registers()
        {
                memset(file, 0, ALMAIF_CONTROL_SIZE);
                put32(ALMAIF_COMMAND, ALMAIF_COMMAND_RESET);
                put32(ALMAIF_DEVICE_CLASS, 0x5343);
                put32(ALMAIF_DEVICE_ID, 0x33);
                put32(ALMAIF_INTERFACE_VERSION, 2);
                put32(ALMAIF_CORE_COUNT, 1);
                put32(ALMAIF_CONFIG_SIZE, CONFIG_BYTES);
                put32(ALMAIF_CONFIG_START, CONFIG_AT);
                put32(ALMAIF_QUEUE_SIZE, PACKETS * ALMAIF_PACKET_SIZE);
                put32(ALMAIF_QUEUE_START, QUEUE_AT);
                put32(ALMAIF_DATA_SIZE, DATA_BYTES);
                put32(ALMAIF_DATA_START, CONFIG_AT + CONFIG_BYTES);
                put32(ALMAIF_KERNEL_COUNT, 1 | ALMAIF_KERNEL_COMPILED << 16);
        }

        void nap()
        {
                timespec t = { 0, NAP_NS };
                nanosleep(&t, nullptr);
        }

        // In reset until the host says RUN.
        void reset(const uint8_t *boot, size_t size)
        {
                core.rst = 1;
                cycle();
                memcpy(file + BOOT_AT, boot, size);
                put32(ALMAIF_WRITE_INDEX, get32(ALMAIF_READ_INDEX));
                put32(ALMAIF_WRITE_INDEX + 4, get32(ALMAIF_READ_INDEX + 4));
                put32(ALMAIF_STATUS, ALMAIF_STATUS_RESET);
        }

        void run(const uint8_t *boot, size_t size)
        {
                for (unsigned long n = 0; !stop; n++) {
                        if (core.rst) {
                                if (get32(ALMAIF_COMMAND) == ALMAIF_COMMAND_RUN)
                                        core.rst = 0;
                                else
                                        nap();
                                continue;
                        }
                        cycle();
                        if (core.sleep)
                                nap();
                        if ((core.sleep || n % LOOK_EVERY == 0) &&
                            get32(ALMAIF_COMMAND) == ALMAIF_COMMAND_RESET)
                                reset(boot, size);
                }
        }
};

} // namespace

int main(int argc, char **argv)
{
        static Sim sim;
        static uint8_t boot[QUEUE_AT - BOOT_AT];
        FILE *f = argc > 2 ? fopen(argv[2], "re") : nullptr;
        size_t size = f ? fread(boot, 1, sizeof(boot), f) : 0;
        int fd = argc > 2 ? open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
        if (!size || fd < 0 || ftruncate(fd, BYTES) < 0) {
                perror(argc > 2 ? argv[1] : "Usage: sim FILE BOOT [READY_FD]");
                return 1;
        }
        fclose(f);
        void *p = mmap(nullptr, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
                return 1;
        sim.file = static_cast<uint8_t *>(p);
        signal(SIGTERM, on_signal);
        sim.make_registers();
        sim.reset(boot, size);
        int ready = argc > 3 ? atoi(argv[3]) : -1;
        if (ready >= 0 && (write(ready, "ready\n", 6) != 6 || close(ready) < 0))
                perror("READY_FD");
        sim.run(boot, size);
        return 0;
}

#include "emulator/riscv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/installed.h"
#include "base/mem.h"

#define PROGRAM "qemu-system-riscv32"
#define RAM     0x80000000u /* where the core sees the file */

enum {
        MONITOR_AT = 0x1000,
        QUEUE_AT = 0x8000,
        PAGE = 0x10000,
        SPARE = 16 << 20, /* QEMU puts a description of the machine at the end */
        DEVICE_CLASS = 0x5343,
        DEVICE_ID = 0x32,
        PAUSE_NS = 1000000,
};

struct riscv_machine {
        pid_t pid;
        uint8_t *map;
        size_t size;
        sigset_t old;
};

static uint64_t pages(uint64_t size)
{
        return (size + PAGE - 1) / PAGE * PAGE;
}

static void put32(struct riscv_machine *m, unsigned at, uint32_t value)
{
        bytes_put_u32(m->map + at, value);
}

static void put64(struct riscv_machine *m, unsigned at, uint64_t value)
{
        bytes_put_u64(m->map + at, value);
}

static void make_registers(struct riscv_machine *m, const struct emulator_params *p)
{
        uint64_t queue = p->packets * ALMAIF_PACKET_SIZE, config = pages(QUEUE_AT + queue);
        memset(m->map, 0, ALMAIF_CONTROL_SIZE);
        put32(m, ALMAIF_COMMAND, ALMAIF_COMMAND_RESET);
        put32(m, ALMAIF_DEVICE_CLASS, DEVICE_CLASS);
        put32(m, ALMAIF_DEVICE_ID, DEVICE_ID);
        put32(m, ALMAIF_INTERFACE_VERSION, 2);
        put32(m, ALMAIF_CORE_COUNT, 1);
        put32(m, ALMAIF_CONFIG_SIZE, (uint32_t)p->config_size);
        put64(m, ALMAIF_CONFIG_START, config);
        put64(m, ALMAIF_QUEUE_SIZE, queue);
        put64(m, ALMAIF_QUEUE_START, QUEUE_AT);
        put64(m, ALMAIF_DATA_SIZE, p->data_size);
        put64(m, ALMAIF_DATA_START, config + pages(p->config_size));
        put32(m, ALMAIF_KERNEL_COUNT, 1 | ALMAIF_KERNEL_COMPILED << 16);
}

static int load_monitor(struct riscv_machine *m)
{
        char path[PATH_MAX];
        if (!installed_find("riscv/monitor.bin", path)) {
                fprintf(stderr, "spancl-almaif-emu: riscv/monitor.bin is not installed\n");
                return SP_E_NOENT;
        }
        FILE *f = fopen(path, "re");
        size_t n = f ? fread(m->map + MONITOR_AT, 1, QUEUE_AT - MONITOR_AT, f) : 0;
        if (f)
                fclose(f);
        if (!n)
                fprintf(stderr, "spancl-almaif-emu: %s: %s\n", path, strerror(errno));
        return n ? 0 : SP_E_NOENT;
}

static int map_file(struct riscv_machine *m, const struct emulator_params *p)
{
        uint64_t queue = p->packets * ALMAIF_PACKET_SIZE;
        uint64_t end = pages(QUEUE_AT + queue) + pages(p->config_size) + pages(p->data_size);
        m->size = (end + SPARE - 1) / SPARE * SPARE + SPARE;
        int fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        void *map = MAP_FAILED;
        if (fd >= 0 && ftruncate(fd, (off_t)m->size) == 0)
                map = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                fprintf(stderr, "spancl-almaif-emu: %s: %s\n", p->path, strerror(errno));
        if (fd >= 0)
                close(fd);
        if (map == MAP_FAILED)
                return SP_E_NOENT;
        m->map = map;
        return 0;
}

/* In the child. */
static void run_qemu(const struct riscv_machine *m, const char *path, pid_t parent)
{
        char size[32], memory[PATH_MAX + 128], start[64];
        snprintf(size, sizeof(size), "%zuM", m->size >> 20);
        snprintf(memory, sizeof(memory), "memory-backend-file,id=ram,size=%s,mem-path=%s,share=on",
                 size, path);
        snprintf(start, sizeof(start), "loader,addr=0x%x,cpu-num=0", RAM + MONITOR_AT);
        sigprocmask(SIG_SETMASK, &m->old, NULL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(1);
        execlp(PROGRAM, PROGRAM, "-machine", "virt,memory-backend=ram", "-smp", "1", "-m", size,
               "-object", memory, "-bios", "none", "-device", start, "-nodefaults", "-nographic",
               "-serial", "none", "-monitor", "none", (char *)NULL);
        fprintf(stderr, "spancl-almaif-emu: " PROGRAM ": %s\n", strerror(errno));
        _exit(127);
}

/* Until the monitor says that the accelerator is in reset. */
static int wait_reset(struct riscv_machine *m)
{
        static const struct timespec pause = { 0, PAUSE_NS };
        while (!(__atomic_load_n((uint32_t *)(void *)(m->map + ALMAIF_STATUS), __ATOMIC_ACQUIRE) &
                 ALMAIF_STATUS_RESET)) {
                if (waitpid(m->pid, NULL, WNOHANG) == m->pid) {
                        m->pid = 0;
                        return SP_E_NOENT;
                }
                nanosleep(&pause, NULL);
        }
        return 0;
}

int riscv_machine_new(const struct emulator_params *params, struct riscv_machine **ret)
{
        struct riscv_machine *m = mem_zalloc(sizeof(*m));
        sigset_t taken;
        if (!m)
                return SP_E_NOMEM;
        int r = map_file(m, params);
        if (!r)
                r = load_monitor(m);
        if (r < 0) {
                riscv_machine_free(m);
                return r;
        }
        make_registers(m, params);
        sigemptyset(&taken);
        sigaddset(&taken, SIGTERM);
        sigaddset(&taken, SIGINT);
        sigaddset(&taken, SIGCHLD);
        sigprocmask(SIG_BLOCK, &taken, &m->old);
        pid_t self = getpid();
        m->pid = fork();
        if (!m->pid)
                run_qemu(m, params->path, self);
        r = m->pid < 0 ? SP_E_NOMEM : wait_reset(m);
        if (r < 0) {
                riscv_machine_free(m);
                return r;
        }
        *ret = m;
        return 0;
}

int riscv_machine_wait(struct riscv_machine *m)
{
        sigset_t taken;
        sigemptyset(&taken);
        sigaddset(&taken, SIGTERM);
        sigaddset(&taken, SIGINT);
        sigaddset(&taken, SIGCHLD);
        for (;;) {
                int sig = sigwaitinfo(&taken, NULL);
                if (sig == SIGTERM || sig == SIGINT)
                        return 0;
                if (sig == SIGCHLD && waitpid(m->pid, NULL, WNOHANG) == m->pid) {
                        m->pid = 0;
                        return SP_E_NODEV;
                }
        }
}

struct riscv_machine *riscv_machine_free(struct riscv_machine *m)
{
        if (!m)
                return NULL;
        if (m->pid > 0) {
                kill(m->pid, SIGKILL);
                waitpid(m->pid, NULL, 0);
        }
        if (m->map)
                munmap(m->map, m->size);
        mem_free(m);
        return NULL;
}

/* spancl-almaif-emu: an AlmaIF accelerator in software, a process of its own (docs/internals/almaif.md). */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/emulator/emulator.h"
#include "base/mem.h"
#include "emulator/riscv.h"

static atomic_bool stop;

static void on_signal(int sig)
{
        (void)sig;
        stop = true;
}

static const char *const fault_names[EMULATOR_FAULT_KINDS] = {
        [EMULATOR_BAD_STATUS] = "bad-status",
        [EMULATOR_GARBAGE] = "garbage",
        [EMULATOR_HANG] = "hang",
        [EMULATOR_WRONG_INDEX] = "wrong-index",
        [EMULATOR_EARLY_WAKE] = "early-wake",
        [EMULATOR_DEAD] = "dead",
};

static const char usage[] =
        "Usage: spancl-almaif-emu --file PATH [OPTIONS]\n"
        "An AlmaIF accelerator in software, for SPANCL_ALMAIF=shm:PATH[@BASE].\n\n"
        "  --file PATH           the file of its bus; made, or made larger, if need be\n"
        "  --base OFFSET         where in the file it lies: its bus address (0)\n"
        "  --file-size BYTES     make the file at least that large: shared memory behind\n"
        "  --profile v2|v3       layout of the registers (v2)\n"
        "  --completion zero|one how signals say that it is done (zero; v3: one)\n"
        "  --index set|add       what a write to the write index does (set)\n"
        "  --args natural|packed|stride   how arguments lie (natural)\n"
        "  --pointer 4|8         bytes of an address (8; v2 has only 8)\n"
        "  --bus-master          it reaches all of the file\n"
        "  --compiled            it lists kernel 0xFFFF\n"
        "  --riscv               a RISC-V core (rv32im) in QEMU, for isa=rv32im; other options are --file,\n"
        "                        --packets, --ready-fd, and behind it --config (32 MiB), --data (64 MiB)\n"
        "  --ids N,N,...         its kernels (all that the registry can compute)\n"
        "  --kernels FILE        rows for the registry\n"
        "  --config BYTES, --packets N, --data BYTES   its memories (0, 64, 1048576)\n"
        "  --first-index N       where the indices begin (0)\n"
        "  --spin MICROSECONDS   look for work that long before it sleeps (50)\n"
        "  --fault KIND@N        at dispatch N, from 0; KIND is bad-status, garbage, hang, wrong-index,\n"
        "                        early-wake, dead\n"
        "  --ready-fd N          write a line there when the registers are there\n";

enum option_key {
        FILE_ = 1,
        BASE,
        FILE_SIZE,
        PROFILE,
        COMPLETION,
        INDEX,
        ARGS,
        POINTER,
        BUS_MASTER,
        COMPILED,
        RISCV,
        IDS,
        KERNELS,
        CONFIG,
        PACKETS,
        DATA,
        FIRST_INDEX,
        SPIN,
        FAULT,
        READY_FD,
        HELP,
};

static const struct option long_options[] = {
        { "file", 1, NULL, FILE_ },
        { "base", 1, NULL, BASE },
        { "file-size", 1, NULL, FILE_SIZE },
        { "profile", 1, NULL, PROFILE },
        { "completion", 1, NULL, COMPLETION },
        { "index", 1, NULL, INDEX },
        { "args", 1, NULL, ARGS },
        { "pointer", 1, NULL, POINTER },
        { "bus-master", 0, NULL, BUS_MASTER },
        { "compiled", 0, NULL, COMPILED },
        { "riscv", 0, NULL, RISCV },
        { "ids", 1, NULL, IDS },
        { "kernels", 1, NULL, KERNELS },
        { "config", 1, NULL, CONFIG },
        { "packets", 1, NULL, PACKETS },
        { "data", 1, NULL, DATA },
        { "first-index", 1, NULL, FIRST_INDEX },
        { "spin", 1, NULL, SPIN },
        { "fault", 1, NULL, FAULT },
        { "ready-fd", 1, NULL, READY_FD },
        { "help", 0, NULL, HELP },
        { 0 },
};

struct settings {
        struct emulator_params p;
        const char *completion; /* as given */
        struct registry_rows *rows;
        int ready_fd;
        bool riscv;
};

static bool number(const char *text, uint64_t *ret)
{
        char *end;
        errno = 0;
        *ret = strtoull(text, &end, 0);
        return *text && !*end && !errno;
}

/* Which of `words`, separated by `|`; -1: none. */
static int choice(const char *text, const char *words)
{
        size_t n = strlen(text);
        int index = 0;
        for (const char *p = words;; p++, index++) {
                const char *end = strchrnul(p, '|');
                if ((size_t)(end - p) == n && !memcmp(p, text, n))
                        return index;
                if (!*end)
                        return -1;
                p = end;
        }
}

static bool set_ids(struct emulator_params *p, const char *text)
{
        for (;;) {
                char *end;
                unsigned long id = strtoul(text, &end, 0);
                if (end == text || id > UINT16_MAX || p->id_count == ALMAIF_KERNELS_MAX)
                        return false;
                p->ids[p->id_count++] = (uint16_t)id;
                if (!*end)
                        return true;
                if (*end != ',')
                        return false;
                text = end + 1;
        }
}

static bool set_fault(struct emulator_params *p, const char *text)
{
        const char *at = strchr(text, '@');
        if (!at || p->fault_count == EMULATOR_FAULTS_MAX)
                return false;
        struct emulator_fault *f = &p->faults[p->fault_count++];
        for (unsigned i = 0; i < EMULATOR_FAULT_KINDS; i++) {
                if (strlen(fault_names[i]) != (size_t)(at - text) ||
                    memcmp(fault_names[i], text, (size_t)(at - text)))
                        continue;
                f->kind = (enum emulator_fault_kind)i;
                return number(at + 1, &f->at);
        }
        return false;
}

static bool load_rows(struct settings *s, const char *path)
{
        char error[REGISTRY_ERROR_SIZE];
        if (registry_rows_load(path, &s->rows, error) < 0) {
                fprintf(stderr, "spancl-almaif-emu: %s\n", error);
                return false;
        }
        s->p.rows = s->rows;
        return true;
}

static bool set(struct settings *s, int key, const char *value)
{
        struct emulator_params *p = &s->p;
        uint64_t n = 0;
        bool is_number = value && number(value, &n);
        int c;
        switch (key) {
        case FILE_:
                p->path = value;
                return true;
        case BASE:
                p->base = n;
                return is_number && n % 4096 == 0 && n < UINT64_MAX / 4;
        case FILE_SIZE:
                p->file_size = n;
                return is_number;
        case PROFILE:
                c = choice(value, "v2|v3");
                p->profile = c == 1 ? 3 : 2;
                return c >= 0;
        case COMPLETION:
                s->completion = value;
                return choice(value, "zero|one") >= 0;
        case INDEX:
                c = choice(value, "set|add");
                p->index_adds = c == 1;
                return c >= 0;
        case ARGS:
                c = choice(value, "natural|packed|stride");
                p->args = (enum emulator_args)(c < 0 ? 0 : c);
                return c >= 0;
        case POINTER:
                p->pointer_size = (unsigned)n;
                return is_number && (n == 4 || n == 8);
        case BUS_MASTER:
                return p->bus_master = true;
        case COMPILED:
                return p->compiled = true;
        case RISCV:
                p->config_size = 32 << 20;
                p->data_size = 64 << 20;
                return s->riscv = true;
        case IDS:
                return set_ids(p, value);
        case KERNELS:
                return load_rows(s, value);
        case CONFIG:
                p->config_size = n;
                return is_number && n <= UINT32_MAX;
        case PACKETS:
                p->packets = n;
                return is_number && n && n <= 1 << 20 && !(n & (n - 1));
        case DATA:
                p->data_size = n;
                return is_number && n < UINT64_MAX / 4;
        case FIRST_INDEX:
                p->first_index = n;
                return is_number;
        case SPIN:
                p->spin_us = n;
                return is_number && n <= 1000000000;
        case FAULT:
                return set_fault(p, value);
        case READY_FD:
                s->ready_fd = (int)n;
                return is_number && n <= 1 << 20;
        default:
                return false;
        }
}

static bool parse(struct settings *s, int argc, char **argv)
{
        int key, which = 0;
        while ((key = getopt_long(argc, argv, "", long_options, &which)) != -1) {
                if (key == HELP) {
                        fputs(usage, stdout);
                        exit(0);
                }
                if (key == '?')
                        return false;
                if (!set(s, key, optarg)) {
                        fprintf(stderr, "spancl-almaif-emu: --%s: what is that: %s\n",
                                long_options[which].name, optarg);
                        return false;
                }
        }
        if (!s->p.path || optind < argc) {
                fputs(usage, stderr);
                return false;
        }
        s->p.completion_zero =
                s->completion ? choice(s->completion, "zero|one") == 0 : s->p.profile == 2;
        if (!s->p.id_count)
                emulator_all_kernels(&s->p);
        return true;
}

static void print_ready(const struct settings *s)
{
        if (s->ready_fd >= 0 && (write(s->ready_fd, "ready\n", 6) != 6 || close(s->ready_fd) < 0))
                fprintf(stderr, "spancl-almaif-emu: --ready-fd: %s\n", strerror(errno));
}

static int run_riscv(struct settings *s)
{
        struct riscv_machine *m;
        if (riscv_machine_new(&s->p, &m) < 0)
                return 1;
        print_ready(s);
        int r = riscv_machine_wait(m);
        riscv_machine_free(m);
        return r < 0;
}

int main(int argc, char **argv)
{
        struct settings s = { .p = EMULATOR_DEFAULTS, .ready_fd = -1 };
        if (!parse(&s, argc, argv))
                return 2;
        if (s.riscv)
                return run_riscv(&s);
        struct sigaction sa = { .sa_handler = on_signal };
        sigemptyset(&sa.sa_mask);
        sigaction(SIGTERM, &sa, NULL);
        sigaction(SIGINT, &sa, NULL);
        struct emulator *e;
        if (emulator_new(&s.p, &e) < 0) {
                fprintf(stderr, "spancl-almaif-emu: %s: %s\n", s.p.path, strerror(errno));
                return 1;
        }
        print_ready(&s);
        emulator_run(e, &stop);
        emulator_free(e);
        registry_rows_free(s.rows);
        return 0;
}

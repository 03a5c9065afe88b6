/* Measures launch and completion of an empty built-in kernel on an emulated AlmaIF accelerator.
 * The baseline is a raw ping-pong over shared memory between the same two processors. A launch
 * goes three ways:
 * - through the ring alone;
 * - through the backend, polled for the completion, as the engine's thread does while it spins;
 * - through the backend, whose own threads notice the completion, as when the engine does not
 *   spin.
 *
 * Both sides spin. The ways alternate, so that the ratio holds on a busy machine. */
#include "samples.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/almaif/accel.h"
#include "backend/backend.h"
#include "base/bytes.h"
#include "base/mem.h"

enum { ROUNDS = 20, PER_ROUND = 2000, BACKEND_PER_ROUND = 300, PATH_SIZE = 64 };

static struct samples samples;

static void die(const char *what)
{
        fprintf(stderr, "bench_almaif: %s\n", what);
        exit(1);
}

/* ---- raw ------------------------------------------------------------------------------------ */

struct pong {
        _Alignas(64) atomic_uint ping;
        _Alignas(64) atomic_uint pong;
};

static pid_t start_pong(struct pong *p)
{
        pid_t pid = fork();
        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (unsigned seen = 0;;) {
                unsigned v = atomic_load_explicit(&p->ping, memory_order_acquire);
                if (v == UINT32_MAX)
                        _exit(0);
                if (v != seen)
                        atomic_store_explicit(&p->pong, seen = v, memory_order_release);
        }
}

static double raw_round(struct pong *p, unsigned *count)
{
        double before = now_us();
        for (unsigned i = 0; i < PER_ROUND; i++) {
                unsigned v = ++*count;
                atomic_store_explicit(&p->ping, v, memory_order_release);
                while (atomic_load_explicit(&p->pong, memory_order_acquire) != v)
                        ;
        }
        return (now_us() - before) / PER_ROUND;
}

/* ---- ring ----------------------------------------------------------------------------------- */

struct ring {
        struct almaif_spec *spec;
        struct accel a;
        uint64_t signal_at, signal_address;
};

static void ring_open(struct ring *r, const char *path)
{
        char text[PATH_SIZE + 8], error[SPEC_ERROR_SIZE];
        size_t count;
        snprintf(text, sizeof(text), "shm:%s", path);
        if (almaif_specs_parse(text, &r->spec, &count, error) < 0 ||
            accel_open(r->spec, &r->a, error) < 0 || accel_start(&r->a, error) < 0)
                die(error);
        r->signal_at = r->a.data.at + 128;
        r->signal_address = 128;
}

static double ring_round(struct ring *r)
{
        double before = now_us();
        for (unsigned i = 0; i < PER_ROUND; i++) {
                struct almaif_dispatch d = { .header = bytes_le16(ALMAIF_PACKET_DISPATCH),
                                             .dimensions = bytes_le16(1),
                                             .grid_x = bytes_le32(1),
                                             .grid_y = bytes_le32(1),
                                             .grid_z = bytes_le32(1),
                                             .kernel = bytes_le64(0xF000),
                                             .completion = bytes_le64(r->signal_address) };
                uint64_t room = 0;
                while (!room)
                        if (accel_room(&r->a, &room) < 0)
                                die("the read index is wrong");
                signal_arm(r->a.window, r->signal_at, true);
                accel_push(&r->a, &d);
                accel_kick(&r->a);
                while (signal_state(r->a.window, r->signal_at, true) == SIGNAL_PENDING)
                        ;
        }
        return (now_us() - before) / PER_ROUND;
}

/* ---- backend -------------------------------------------------------------------------------- */

static atomic_uint completions;

static void on_complete(void *user, void *cookie, cl_int status, const struct backend_times *t)
{
        if (status < 0)
                die("a command failed");
        atomic_fetch_add(&completions, 1);
}

struct queue {
        struct backend *b;
        struct backend_queue *q;
        struct backend_program *p;
        struct backend_kernel *k;
};

static void queue_open(struct queue *x, const char *path)
{
        const struct backend_ops *ops = &backend_almaif;
        char text[PATH_SIZE + 32];
        struct buf parts = { 0 };
        unsigned device = 0;
        snprintf(text, sizeof(text), "shm:%s,spin=1000", path);
        struct config_options options = { .values = { [CONFIG_almaif] = text } };
        struct backend_params params = { .options = &options, .complete = on_complete };
        if (ops->open(&params, &x->b) < 0 || ops->queue.create(x->b, 0, 0, &x->q) < 0 ||
            info_put(&parts, INFO_PART, "spancl.noop", 11) < 0 ||
            ops->program.create(x->b, 0, 3, &device, 1, bytes_of(parts.data, parts.size), &x->p) <
                    0 ||
            ops->kernel.create(x->p, "spancl.noop", &x->k) < 0)
                die("the backend can't be opened");
        buf_fini(&parts);
}

static void wait_polling(struct queue *x, unsigned seen)
{
        while (atomic_load(&completions) == seen)
                backend_almaif.poll(x->b, false);
}

static void wait_told(struct queue *x, unsigned seen)
{
        while (atomic_load(&completions) == seen)
                sched_yield();
}

static double queue_round(struct queue *x, void (*wait)(struct queue *x, unsigned seen))
{
        static const size_t one[1] = { 1 };
        double before = now_us();
        for (unsigned i = 0; i < BACKEND_PER_ROUND; i++) {
                unsigned seen = atomic_load(&completions);
                struct backend_event *e;
                struct backend_command c = {
                        .op = BACKEND_KERNEL, .kernel = x->k, .dims = 1, .global = one, .cookie = x
                };
                if (backend_almaif.submit(x->q, &c, &e) < 0)
                        die("a command was refused");
                wait(x, seen);
                backend_almaif.event.release(e);
        }
        double per = (now_us() - before) / BACKEND_PER_ROUND;
        backend_almaif.poll(x->b, true);
        return per;
}

static void queue_close(struct queue *x)
{
        backend_almaif.kernel.release(x->k);
        backend_almaif.program.release(x->p);
        backend_almaif.queue.release(x->q);
        backend_almaif.close(x->b);
}

/* ---- all ------------------------------------------------------------------------------------ */

static pid_t start_emulator(const char *program, char path[PATH_SIZE])
{
        int ready[2];
        char word;
        snprintf(path, PATH_SIZE, "/dev/shm/spancl-bench.XXXXXX");
        int fd = mkstemp(path);
        if (fd < 0 || pipe(ready) < 0)
                die("no file in /dev/shm");
        close(fd);
        pid_t pid = fork();
        if (!pid) {
                char digits[16];
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                snprintf(digits, sizeof(digits), "%d", ready[1]);
                execl(program, program, "--file", path, "--spin", "1000", "--ready-fd", digits,
                      (char *)NULL);
                _exit(127);
        }
        close(ready[1]);
        if (read(ready[0], &word, 1) != 1)
                die("the emulator does not start");
        close(ready[0]);
        return pid;
}

static void end_emulator(pid_t pid, const char *path)
{
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        unlink(path);
}

static void print(const char *name, const double *of, const double *over)
{
        for (unsigned i = 0; i < ROUNDS; i++)
                samples_add(&samples, of[i] - over[i]);
        samples_print(&samples, name, "us");
}

int main(int argc, char **argv)
{
        static const double none[ROUNDS];
        static double raw[ROUNDS], ring[ROUNDS], polled[ROUNDS], told[ROUNDS];
        char paths[2][PATH_SIZE], program[512];
        struct ring r = { 0 };
        struct queue q;
        unsigned count = 0;
        const char *slash = strrchr(argv[0], '/');
        snprintf(program, sizeof(program), "%.*s/spancl-almaif-emu",
                 slash ? (int)(slash - argv[0]) : 1, slash ? argv[0] : ".");
        struct pong *p =
                mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                die("no memory");
        pid_t pong = start_pong(p);
        pid_t emulators[2] = { start_emulator(program, paths[0]),
                               start_emulator(program, paths[1]) };
        ring_open(&r, paths[0]);
        queue_open(&q, paths[1]);
        for (unsigned i = 0; i < ROUNDS; i++) {
                raw[i] = raw_round(p, &count);
                kill(pong, SIGSTOP);
                ring[i] = ring_round(&r);
                polled[i] = queue_round(&q, wait_polling);
                told[i] = queue_round(&q, wait_told);
                kill(pong, SIGCONT);
        }
        print("raw_pingpong", raw, none);
        print("ring_launch", ring, none);
        print("ring_over_raw", ring, raw);
        print("backend_launch", polled, none);
        print("backend_over_raw", polled, raw);
        print("backend_thread_launch", told, none);
        print("backend_thread_over_raw", told, raw);
        printf("\n}\n");
        queue_close(&q);
        accel_close(&r.a);
        mem_free(r.spec);
        kill(pong, SIGKILL);
        waitpid(pong, NULL, 0);
        for (unsigned i = 0; i < 2; i++)
                end_emulator(emulators[i], paths[i]);
        return 0;
}

/* Units that run compiled kernels (isa=rv32im): their firmware, the programs in their configuration
 * memory, and the text that kernels print. include/spancl/riscv.h has the layout. */
#include <stdio.h>

#include "backend/almaif/code.h"

#include "base/log.h"
#include "base/mem.h"

#define LOG "almaif"

enum { PROGRAMS_MIN = 65536, PROGRAM_ALIGN = 128 };

/* A program that lies in a unit's configuration memory. */
struct code {
        struct list link;
        struct riscv_program *program; /* held */
        uint64_t at;                   /* in the heap */
};

static uint64_t aligned(uint64_t n)
{
        return (n + PROGRAM_ALIGN - 1) / PROGRAM_ALIGN * PROGRAM_ALIGN;
}

static int refuse(const struct unit *u, const char *why, char error[SPEC_ERROR_SIZE])
{
        snprintf(error, SPEC_ERROR_SIZE, "%s: isa=rv32im: %s", u->accel.spec->text, why);
        return SP_E_UNSUPP;
}

static uint32_t header_word(const struct unit *u, size_t offset)
{
        return bytes_get_u32(u->code.firmware.data + RISCV_HEADER_AT + offset);
}

static void set_header(struct unit *u, size_t offset, uint64_t value)
{
        bytes_put_u32(u->code.firmware.data + RISCV_HEADER_AT + offset, (uint32_t)value);
}

/* Image, notes of work-items, local memory, ring of printed text, programs; stacks at the end. */
static int lay_out(struct unit *u, char error[SPEC_ERROR_SIZE])
{
        uint64_t size = u->accel.config.size, each = RISCV_STACK_SIZE + RISCV_ITEM_SIZE;
        if (u->code.firmware.size < RISCV_HEADER_AT + sizeof(struct riscv_header) ||
            header_word(u, offsetof(struct riscv_header, magic)) != RISCV_MAGIC ||
            header_word(u, offsetof(struct riscv_header, abi)) != RISCV_ABI)
                return refuse(u, "the firmware is of another version", error);
        uint64_t items = aligned(header_word(u, offsetof(struct riscv_header, image_size)));
        uint64_t fixed = items + RISCV_LOCAL_SIZE + RISCV_OUTPUT_SIZE + PROGRAMS_MIN + each;
        if (size < fixed)
                return refuse(u, "its configuration memory (CONFIG_SIZE) is too small", error);
        u->code.group_max = RISCV_GROUP_MAX;
        while (u->code.group_max > 1 && u->code.group_max * each > size / 2)
                u->code.group_max /= 2;
        uint64_t local = aligned(items + u->code.group_max * RISCV_ITEM_SIZE);
        u->code.output_at = local + RISCV_LOCAL_SIZE;
        u->code.at = u->code.output_at + RISCV_OUTPUT_SIZE;
        uint64_t stacks =
                (size - u->code.group_max * RISCV_STACK_SIZE) / PROGRAM_ALIGN * PROGRAM_ALIGN;
        heap_init(&u->code.heap, stacks - u->code.at);
        set_header(u, offsetof(struct riscv_header, group_max), u->code.group_max);
        set_header(u, offsetof(struct riscv_header, items_at), items);
        set_header(u, offsetof(struct riscv_header, stacks_at), stacks);
        set_header(u, offsetof(struct riscv_header, local_at), local);
        set_header(u, offsetof(struct riscv_header, output_at), u->code.output_at);
        return 0;
}

int code_open(struct unit *u, const char *scratch_dir, char error[SPEC_ERROR_SIZE])
{
        const struct almaif_spec *s = u->accel.spec;
        char why[RISCV_ERROR_SIZE] = "out of memory";
        if (!s->rv32im)
                return 0;
        if (!u->accel.compiled)
                return refuse(u, "its registers do not list kernel 0xFFFF", error);
        if (s->profile != 2 || !s->completion_zero || s->args != SPEC_ARGS_NATURAL ||
            s->index_adds || u->accel.bus_master)
                return refuse(u,
                              "the firmware has profile=v2, completion=zero, index=set, "
                              "args=natural and no bus master",
                              error);
        if (riscv_firmware(&u->code.firmware, why) < 0)
                return refuse(u, why, error);
        int r = lay_out(u, error);
        if (r < 0)
                return r;
        u->accel.image = bytes_of(u->code.firmware.data, u->code.firmware.size);
        u->code.riscv = true;
        if (riscv_compiler_new(s->clang, scratch_dir, &u->code.compiler, why) < 0)
                log_warn(LOG, "%s: no programs can be built for it: %s", s->text, why);
        return 0;
}

void code_close(struct unit *u)
{
        if (u->code.riscv) {
                list_each(c, &u->code.programs, struct code, link)
                {
                        riscv_program_unref(c->program);
                        mem_free(c);
                }
                heap_fini(&u->code.heap);
        }
        riscv_compiler_free(u->code.compiler);
        buf_fini(&u->code.printed);
        buf_fini(&u->code.firmware);
}

/* ---- programs in its memory ----------------------------------------------------------------- */

static uint32_t load_header(struct unit *u, size_t offset)
{
        return window_load32(u->accel.window, u->accel.config.at + RISCV_HEADER_AT + offset);
}

static int write_code(struct unit *u, const struct code *c)
{
        uint8_t *image = mem_alloc(c->program->size + 1);
        if (!image)
                return SP_E_NOMEM;
        uint64_t at = u->code.at + c->at;
        uint32_t address = load_header(u, offsetof(struct riscv_header, address));
        riscv_program_load(c->program, address + (uint32_t)at, image);
        window_write(u->accel.window, u->accel.config.at + at, image, c->program->size);
        mem_free(image);
        return 0;
}

static void forget(struct unit *u, struct code *c) REQUIRES(almaif_held)
{
        list_remove(&c->link);
        heap_give(&u->code.heap, c->at);
        riscv_program_unref(c->program);
        mem_free(c);
}

/* Drop the programs that have no other owner. */
static void forget_unused(struct unit *u) REQUIRES(almaif_held)
{
        list_each(c, &u->code.programs, struct code, link)
        {
                if (atomic_load(&c->program->refs) == 1)
                        forget(u, c);
        }
}

static cl_int add_code(struct unit *u, struct riscv_program *p, uint64_t *ret) REQUIRES(almaif_held)
{
        struct code *c = mem_zalloc(sizeof(*c));
        if (!c)
                return CL_OUT_OF_HOST_MEMORY;
        uint64_t size = p->size ? p->size : 1;
        int r = heap_take(&u->code.heap, size, PROGRAM_ALIGN, &c->at);
        if (r == SP_E_LIMIT) {
                forget_unused(u);
                r = heap_take(&u->code.heap, size, PROGRAM_ALIGN, &c->at);
        }
        if (r < 0) {
                mem_free(c);
                return r == SP_E_NOMEM ? CL_OUT_OF_HOST_MEMORY : CL_OUT_OF_RESOURCES;
        }
        c->program = riscv_program_ref(p);
        list_append(&u->code.programs, &c->link);
        if (write_code(u, c) < 0) {
                forget(u, c);
                return CL_OUT_OF_HOST_MEMORY;
        }
        *ret = u->code.at + c->at;
        return CL_SUCCESS;
}

cl_int code_place(struct unit *u, struct riscv_program *p, uint64_t *ret)
{
        cl_int status = CL_SUCCESS;
        bool found = false;
        almaif_lock(u->backend);
        list_each(c, &u->code.programs, struct code, link)
        {
                if (c->program == p) {
                        *ret = u->code.at + c->at;
                        found = true;
                }
        }
        if (!found)
                status = u->dead ? u->dead : add_code(u, p, ret);
        almaif_unlock(u->backend);
        return status;
}

int code_again(struct unit *u)
{
        int r = 0;
        u->code.output_read = 0;
        if (!u->code.riscv)
                return 0;
        list_each(c, &u->code.programs, struct code, link)
        {
                if (!r)
                        r = write_code(u, c);
        }
        return r;
}

/* ---- what kernels print --------------------------------------------------------------------- */

void code_take_output(struct unit *u)
{
        if (!u->code.riscv || u->recovering)
                return;
        struct window *w = u->accel.window;
        uint64_t ring = u->accel.config.at + u->code.output_at;
        uint32_t end = load_header(u, offsetof(struct riscv_header, output_end));
        uint32_t size = end - u->code.output_read;
        if (!size || size > RISCV_OUTPUT_SIZE)
                return;
        if (buf_reserve(&u->code.printed, size) < 0)
                return; /* next time */
        while (size) {
                uint32_t at = u->code.output_read % RISCV_OUTPUT_SIZE, n = RISCV_OUTPUT_SIZE - at;
                n = n < size ? n : size;
                window_read(w, ring + at, u->code.printed.data + u->code.printed.size, n);
                u->code.printed.size += n;
                u->code.output_read += n;
                size -= n;
        }
        window_store32(w,
                       u->accel.config.at + RISCV_HEADER_AT +
                               offsetof(struct riscv_header, output_read),
                       u->code.output_read);
}

void code_print(struct buf *text)
{
        if (text->size) {
                fwrite(text->data, 1, text->size, stdout);
                fflush(stdout);
        }
        buf_fini(text);
}

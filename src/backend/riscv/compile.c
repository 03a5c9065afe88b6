#include "backend/riscv/compile.h"

#include <stdio.h>
#include <string.h>

#include "backend/riscv/kernels.h"
#include "backend/riscv/tool.h"
#include "base/installed.h"
#include "base/mem.h"
#include "os/folder.h"

enum { ARGV_MAX = 1024, OBJECTS_MAX = 512 };

struct riscv_compiler {
        char clang[PATH_MAX], builtins[PATH_MAX];
        const char *scratch_dir;
};

int riscv_compiler_new(const char *clang, const char *scratch_dir, struct riscv_compiler **ret,
                       char error[RISCV_ERROR_SIZE])
{
        static const char *const names[] = { "clang",    "clang-20", "clang-19",
                                             "clang-18", "clang-17", "clang-16",
                                             "clang-15", "clang-14", NULL };
        struct riscv_compiler *c = mem_zalloc(sizeof(*c));
        if (!c)
                return SP_E_NOMEM;
        c->scratch_dir = scratch_dir;
        if (!installed_find("riscv/builtins.o", c->builtins)) {
                snprintf(
                        error, RISCV_ERROR_SIZE,
                        "spancl/riscv/builtins.o is not installed (SpanCL was built without clang)");
        } else if (*clang) {
                snprintf(c->clang, sizeof(c->clang), "%s", clang);
        } else if (!tool_find(names, c->clang)) {
                snprintf(error, RISCV_ERROR_SIZE, "there is no clang in PATH");
        }
        if (!*c->clang) {
                mem_free(c);
                return SP_E_NOENT;
        }
        *ret = c;
        return 0;
}

struct riscv_compiler *riscv_compiler_free(struct riscv_compiler *c)
{
        mem_free(c);
        return NULL;
}

int riscv_firmware(struct buf *ret, char error[RISCV_ERROR_SIZE])
{
        char path[PATH_MAX];
        if (!installed_find("riscv/firmware.bin", path)) {
                snprintf(
                        error, RISCV_ERROR_SIZE,
                        "spancl/riscv/firmware.bin is not installed (SpanCL was built without clang)");
                return SP_E_NOENT;
        }
        return tool_read("/", path + 1, ret);
}

/* ---- options -------------------------------------------------------------------------------- */

struct arguments {
        const char *list[ARGV_MAX + 1];
        size_t count;
        char *text; /* of the options */
};

static void add(struct arguments *a, const char *word)
{
        if (a->count < ARGV_MAX)
                a->list[a->count++] = word;
}

/* Split in place: words between spaces, quotes as a shell has them. NULL at the end. */
static char *next_word(char **text)
{
        char *p = *text + strspn(*text, " \t\n"), *to = p, *from = p, quote = 0;
        if (!*p)
                return NULL;
        for (; *from && (quote || !strchr(" \t\n", *from)); from++) {
                if (quote ? *from == quote : *from == '"' || *from == '\'')
                        quote = quote ? 0 : *from;
                else if (*from == '\\' && (from[1] == '"' || from[1] == '\\' || from[1] == ' '))
                        *to++ = *++from;
                else
                        *to++ = *from;
        }
        *text = from + (*from != 0);
        *to = 0;
        return p;
}

static bool one_of(const char *word, const char *const *list)
{
        for (; *list; list++)
                if (!strcmp(word, *list))
                        return true;
        return false;
}

/* OpenCL's options, 5.8.4, which clang has by the same names; false: there is no such option. */
static bool add_options(struct arguments *a, const char *options, struct buf *log)
{
        static const char *const plain[] = { "-cl-single-precision-constant",
                                             "-cl-denorms-are-zero",
                                             "-cl-fp32-correctly-rounded-divide-sqrt",
                                             "-cl-opt-disable",
                                             "-cl-strict-aliasing",
                                             "-cl-mad-enable",
                                             "-cl-no-signed-zeros",
                                             "-cl-unsafe-math-optimizations",
                                             "-cl-finite-math-only",
                                             "-cl-fast-relaxed-math",
                                             "-cl-std=CL1.0",
                                             "-cl-std=CL1.1",
                                             "-cl-std=CL1.2",
                                             "-cl-std=CL3.0",
                                             "-w",
                                             "-Werror",
                                             NULL };
        static const char *const ignored[] = { "-cl-kernel-arg-info", "-cl-uniform-work-group-size",
                                               "-cl-no-subgroup-ifp", "-g", NULL };
        char *word, *rest = a->text = mem_strdup(options ? options : "");
        bool has_std = false;
        if (!rest)
                return true; /* noticed by the caller */
        while ((word = next_word(&rest))) {
                bool good = one_of(word, ignored);
                if (one_of(word, plain)) {
                        add(a, word);
                        has_std |= !strncmp(word, "-cl-std=", 8);
                        good = true;
                } else if (!strncmp(word, "-D", 2) || !strncmp(word, "-I", 2)) {
                        add(a, word);
                        good = word[2] != 0;
                        if (!good && (word = next_word(&rest))) {
                                add(a, word);
                                good = true;
                        }
                }
                if (!good) {
                        static const char text[] = "error: not an option of this compiler: ";
                        if (buf_put(log, text, sizeof(text) - 1) < 0 ||
                            (word && buf_put(log, word, strlen(word)) < 0) ||
                            buf_put(log, "\n", 1) < 0)
                                return false;
                        return false;
                }
        }
        if (!has_std)
                add(a, "-cl-std=CL1.2");
        return true;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void add_target(struct arguments *a, const struct riscv_compiler *c)
{
        add(a, c->clang);
        add(a, "--target=riscv32");
        add(a, "-march=rv32im");
        add(a, "-mabi=ilp32");
        add(a, "-mno-relax");
}

static int run(const char *folder, struct arguments *a, struct buf *log)
{
        char *argv[ARGV_MAX + 1];
        for (size_t i = 0; i < a->count; i++)
                argv[i] = (char *)(uintptr_t)a->list[i];
        argv[a->count] = NULL;
        return tool_run(folder, argv, log);
}

static cl_int status_of(int r, struct buf *log, cl_int failure)
{
        static const char text[] = "error: clang can't be run, or its files can't be written\n";
        if (r == SP_E_NOMEM)
                return CL_OUT_OF_HOST_MEMORY;
        if (r == SP_E_NOENT && buf_put(log, text, sizeof(text) - 1) < 0)
                return CL_OUT_OF_HOST_MEMORY;
        return r < 0 ? failure : CL_SUCCESS;
}

/* Compile OpenCL C to LLVM's assembly. Messages about text that SpanCL appends are messages about
 * the program, too. */
static int to_assembly(const struct riscv_compiler *c, const char *folder, const char *options,
                       struct buf *log, struct buf *ret)
{
        static const char *const fixed[] = {
                "-x",
                "cl",
                "program.cl",
                "-o",
                "program.ll",
                "-S",
                "-emit-llvm",
                "-O2",
                "-Xclang",
                "-disable-llvm-passes",
                "-fvisibility=hidden",
                "-fPIC",
                "-Wno-format",
                "-Wframe-larger-than=8192",
                "-Werror=frame-larger-than",
                "-fno-caret-diagnostics",
                "-fno-color-diagnostics",
                "-D__ENDIAN_LITTLE__=1",
                "-D__EMBEDDED_PROFILE__=1",
                "-Xclang",
                "-cl-ext=-all,+cl_khr_global_int32_base_atomics,+cl_khr_global_int32_extended_atomics,"
                "+cl_khr_local_int32_base_atomics,+cl_khr_local_int32_extended_atomics,"
                "+cl_khr_byte_addressable_store,+cles_khr_int64",
                "-cl-kernel-arg-info",
                "-D__opencl_c_int64=1",
                "-D__opencl_c_work_group_collective_functions=1",
                "-D__opencl_c_atomic_order_acq_rel=1",
                "-D__opencl_c_atomic_order_seq_cst=1",
                "-D__opencl_c_atomic_scope_device=1"
        };
        struct arguments a = { 0 };
        add_target(&a, c);
        for (size_t i = 0; i < array_size(fixed); i++)
                add(&a, fixed[i]);
        int r = add_options(&a, options, log) ? 0 : SP_E_INVAL;
        if (!r && !a.text)
                r = SP_E_NOMEM;
        if (!r)
                r = run(folder, &a, log);
        if (!r) {
                r = tool_read(folder, "program.ll", ret);
                r = r == SP_E_NOENT ? SP_E_INVAL : r; /* its exit status was lost */
        }
        mem_free(a.text);
        return r;
}

static int write_source(const char *folder, struct bytes source, const struct buf *more)
{
        static const char first[] = "# 1 \"program.cl\"\n";
        struct buf text = { 0 };
        int r = buf_put(&text, first, sizeof(first) - 1);
        if (!r)
                r = buf_put(&text, source.data, source.size);
        if (!r)
                r = buf_put(&text, "\n", 1);
        if (!r && more)
                r = buf_put(&text, more->data, more->size);
        if (!r)
                r = tool_write(folder, "program.cl", text.data, text.size);
        buf_fini(&text);
        return r;
}

static int to_object(const struct riscv_compiler *c, const char *folder, bool optimise,
                     struct bytes assembly, struct buf *log, struct buf *ret)
{
        struct buf adapted = { 0 };
        int r = kernels_adapt(assembly, &adapted);
        if (!r)
                r = tool_write(folder, "adapted.ll", adapted.data, adapted.size);
        buf_fini(&adapted);
        if (r < 0)
                return r;
        struct arguments a = { 0 };
        add_target(&a, c);
        add(&a, optimise ? "-O2" : "-O0");
        add(&a, "-fPIC");
        add(&a, "-ffunction-sections");
        add(&a, "-Wno-override-module");
        add(&a, "-Wframe-larger-than=8192");
        add(&a, "-Werror=frame-larger-than");
        add(&a, "-x");
        add(&a, "ir");
        add(&a, "adapted.ll");
        add(&a, "-c");
        add(&a, "-o");
        add(&a, "program.o");
        r = run(folder, &a, log);
        if (!r) {
                r = tool_read(folder, "program.o", ret);
                r = r == SP_E_NOENT ? SP_E_INVAL : r;
        }
        return r;
}

cl_int riscv_compile(const struct riscv_compiler *c, struct bytes source, const char *options,
                     struct buf *ret, struct buf *log)
{
        char folder[PATH_MAX];
        struct buf assembly = { 0 }, entries = { 0 };
        bool optimise = !options || !strstr(options, "-cl-opt-disable");
        struct arguments probe = { 0 };
        bool valid = add_options(&probe, options, log);
        mem_free(probe.text);
        if (!valid)
                return CL_INVALID_COMPILER_OPTIONS;
        int r = tool_folder(c->scratch_dir, folder);
        if (r < 0)
                return status_of(r, log, CL_COMPILE_PROGRAM_FAILURE);
        if (source.size && !((const char *)source.data)[source.size - 1])
                source.size--;
        r = write_source(folder, source, NULL);
        if (!r)
                r = to_assembly(c, folder, options, log, &assembly);
        if (!r)
                r = kernels_write(bytes_of(assembly.data, assembly.size), &entries, log);
        if (!r)
                r = write_source(folder, source, &entries);
        buf_fini(&assembly);
        if (!r) {
                struct buf again = { 0 };
                r = to_assembly(c, folder, options, &again, &assembly);
                if (r < 0 && buf_put(log, again.data, again.size) < 0)
                        r = SP_E_NOMEM;
                buf_fini(&again);
        }
        if (!r)
                r = to_object(c, folder, optimise, bytes_of(assembly.data, assembly.size), log,
                              ret);
        folder_remove(folder);
        buf_fini(&assembly);
        buf_fini(&entries);
        return status_of(r, log, CL_COMPILE_PROGRAM_FAILURE);
}

cl_int riscv_link(const struct riscv_compiler *c, const struct bytes *objects, size_t count,
                  bool library, struct buf *ret, struct buf *log)
{
        char folder[PATH_MAX], names[OBJECTS_MAX][32];
        struct arguments a = { 0 };
        int r = count > OBJECTS_MAX ? SP_E_NOENT : tool_folder(c->scratch_dir, folder);
        if (r < 0)
                return status_of(r, log, CL_LINK_PROGRAM_FAILURE);
        add_target(&a, c);
        add(&a, "-nostdlib");
        add(&a, "-fuse-ld=lld");
        add(&a, "-o");
        add(&a, "program.elf");
        for (size_t i = 0; !r && i < count; i++) {
                snprintf(names[i], sizeof(names[i]), "%zu.o", i);
                add(&a, names[i]);
                r = tool_write(folder, names[i], objects[i].data, objects[i].size);
        }
        if (library) {
                add(&a, "-Wl,-r");
        } else {
                add(&a, c->builtins);
                add(&a, "-Wl,-shared,-Bsymbolic,--gc-sections,--no-undefined,-z,notext,-s");
        }
        if (!r)
                r = run(folder, &a, log);
        if (!r) {
                r = tool_read(folder, "program.elf", ret);
                r = r == SP_E_NOENT ? SP_E_INVAL : r;
        }
        folder_remove(folder);
        return status_of(r, log, CL_LINK_PROGRAM_FAILURE);
}

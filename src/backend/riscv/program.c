#include "backend/riscv/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "os/elf.h"

enum { IMAGE_MAX = 16 << 20, KERNELS_MAX = 4096, RELATIVE = 3 /* R_RISCV_RELATIVE */ };

/* The file as it came: nothing in it is believed. */
struct file {
        struct bytes all;
        const char *error;
        Elf32_Ehdr header;
        struct bytes symbols, strings, fixes;
        uint8_t *image; /* for reading, at address 0 */
        uint32_t size;
};

static bool part(struct file *f, uint64_t at, uint64_t size, struct bytes *ret)
{
        if (at > f->all.size || size > f->all.size - at) {
                f->error = "it is shorter than it says";
                return false;
        }
        *ret = bytes_of((const uint8_t *)f->all.data + at, size);
        return true;
}

/* The i-th of records of `size` bytes. */
static bool record(struct bytes table, uint64_t i, void *ret, size_t size)
{
        if (i >= table.size / size)
                return false;
        memcpy(ret, (const uint8_t *)table.data + i * size, size);
        return true;
}

static bool read_header(struct file *f)
{
        if (!record(f->all, 0, &f->header, sizeof(f->header)) ||
            memcmp(f->header.e_ident, ELFMAG, SELFMAG) ||
            f->header.e_ident[EI_CLASS] != ELFCLASS32 || f->header.e_ident[EI_DATA] != ELFDATA2LSB)
                f->error = "it is not an ELF file of 32 bits";
        else if (f->header.e_machine != EM_RISCV || f->header.e_type != ET_DYN)
                f->error = "it is not a program for RISC-V";
        else if (f->header.e_phentsize != sizeof(Elf32_Phdr) ||
                 f->header.e_shentsize != sizeof(Elf32_Shdr))
                f->error = "its tables have other sizes";
        return !f->error;
}

static bool read_sections(struct file *f)
{
        struct bytes table;
        Elf32_Shdr s, names;
        if (!part(f, f->header.e_shoff, (uint64_t)f->header.e_shnum * sizeof(s), &table))
                return false;
        for (uint64_t i = 0; record(table, i, &s, sizeof(s)); i++) {
                if (s.sh_type == SHT_DYNSYM) {
                        if (!part(f, s.sh_offset, s.sh_size, &f->symbols) ||
                            !record(table, s.sh_link, &names, sizeof(names)) ||
                            !part(f, names.sh_offset, names.sh_size, &f->strings))
                                return false;
                } else if (s.sh_type == SHT_RELA && (s.sh_flags & SHF_ALLOC)) {
                        if (f->fixes.size || !part(f, s.sh_offset, s.sh_size, &f->fixes))
                                return false;
                }
        }
        return true;
}

static bool read_segments(struct file *f, uint8_t *image)
{
        struct bytes table, from;
        Elf32_Phdr p;
        uint64_t end = 0;
        if (!part(f, f->header.e_phoff, (uint64_t)f->header.e_phnum * sizeof(p), &table))
                return false;
        for (uint64_t i = 0; record(table, i, &p, sizeof(p)); i++) {
                if (p.p_type != PT_LOAD)
                        continue;
                if (p.p_filesz > p.p_memsz || (uint64_t)p.p_vaddr + p.p_memsz > IMAGE_MAX) {
                        f->error = "it is too large";
                        return false;
                }
                if ((uint64_t)p.p_vaddr + p.p_memsz > end)
                        end = (uint64_t)p.p_vaddr + p.p_memsz;
                if (!part(f, p.p_offset, p.p_filesz, &from))
                        return false;
                if (image && from.size)
                        memcpy(image + p.p_vaddr, from.data, from.size);
        }
        f->size = (uint32_t)end;
        return true;
}

/* Numbers that depend on where the program lies. */
static bool apply_fixes(struct file *f, uint8_t *image, uint32_t address)
{
        Elf32_Rela r;
        for (uint64_t i = 0; record(f->fixes, i, &r, sizeof(r)); i++) {
                if (ELF32_R_TYPE(r.r_info) != RELATIVE || r.r_offset > f->size ||
                    f->size - r.r_offset < 4) {
                        f->error = "it has a relocation that is not known";
                        return false;
                }
                bytes_put_u32(image + r.r_offset, address + (uint32_t)r.r_addend);
        }
        return true;
}

/* The symbol `prefix` `name`; false: there is none. */
static bool symbol(const struct file *f, const char *prefix, const char *name, Elf32_Sym *ret)
{
        size_t n = strlen(prefix), m = strlen(name);
        for (uint64_t i = 0; record(f->symbols, i, ret, sizeof(*ret)); i++) {
                if (ret->st_name >= f->strings.size || f->strings.size - ret->st_name <= n + m)
                        continue;
                const char *s = (const char *)f->strings.data + ret->st_name;
                if (!memcmp(s, prefix, n) && !memcmp(s + n, name, m + 1))
                        return true;
        }
        return false;
}

static bool inside(const struct file *f, const Elf32_Sym *s)
{
        return s->st_value <= f->size && s->st_size <= f->size - s->st_value;
}

/* ---- descriptions --------------------------------------------------------------------------- */

static char *next_field(char **p, char end)
{
        char *from = *p, *to = from ? strchr(from, end) : NULL;
        if (to)
                *to = 0;
        *p = to ? to + 1 : NULL;
        return from;
}

static bool read_arg(struct riscv_arg *a, char *line, const uint8_t *sizes)
{
        static const cl_kernel_arg_address_qualifier addresses[] = { CL_KERNEL_ARG_ADDRESS_PRIVATE,
                                                                     CL_KERNEL_ARG_ADDRESS_GLOBAL,
                                                                     CL_KERNEL_ARG_ADDRESS_CONSTANT,
                                                                     CL_KERNEL_ARG_ADDRESS_LOCAL };
        char *address = next_field(&line, '\t'), *type = next_field(&line, '\t');
        char *qualifiers = next_field(&line, '\t');
        if (!line || *address < '0' || *address > '3')
                return false;
        *a = (struct riscv_arg){ .name = line,
                                 .type = type,
                                 .address = addresses[*address - '0'],
                                 .qualifier = (cl_kernel_arg_type_qualifier)strtoul(qualifiers,
                                                                                    NULL, 10),
                                 .kind = *address == '0'   ? ARG_VALUE
                                         : *address == '3' ? ARG_LOCAL
                                                           : ARG_BUFFER,
                                 .at = bytes_get_u32(sizes),
                                 .size = bytes_get_u32(sizes + 4) };
        return a->at <= RISCV_ARGS_SIZE * 2 && a->size <= RISCV_ARGS_SIZE;
}

/* The text of spancl_info_NAME: ABI, attributes, required sizes, local memory, one line for each argument. */
static bool read_kernel(struct file *f, struct riscv_kernel *k, char *text)
{
        Elf32_Sym entry, args;
        char *abi = next_field(&text, '\n'), *attributes = next_field(&text, '\n');
        char *sizes = next_field(&text, '\n');
        if (!sizes || strtoul(abi, NULL, 10) != RISCV_ABI ||
            sscanf(sizes, "%zu %zu %zu", &k->required[0], &k->required[1], &k->required[2]) != 3 ||
            !symbol(f, "spancl_entry_", k->name, &entry) || !inside(f, &entry) ||
            !symbol(f, "spancl_args_", k->name, &args) || !inside(f, &args))
                return false;
        k->attributes = attributes;
        k->entry = entry.st_value;
        unsigned most = args.st_size / 8;
        k->args = mem_zalloc((most + 1) * sizeof(*k->args));
        if (!k->args)
                return false;
        while (text && *text) {
                char *line = next_field(&text, '\n');
                if (k->arg_count == most ||
                    !read_arg(&k->args[k->arg_count], line,
                              f->image + args.st_value + (size_t)k->arg_count * 8))
                        return false;
                const struct riscv_arg *a = &k->args[k->arg_count++];
                if (a->at + a->size > k->args_size)
                        k->args_size = a->at + a->size;
        }
        return k->args_size <= 2 * RISCV_ARGS_SIZE;
}

/* Variables of local memory are called KERNEL.NAME. */
static uint64_t local_of(const struct file *f, const char *kernel)
{
        size_t n = strlen(kernel);
        uint64_t size = 0;
        Elf32_Sym s;
        for (uint64_t i = 0; record(f->symbols, i, &s, sizeof(s)); i++) {
                if (s.st_name >= f->strings.size || f->strings.size - s.st_name <= n + 1)
                        continue;
                const char *name = (const char *)f->strings.data + s.st_name;
                if (!memcmp(name, kernel, n) && name[n] == '.')
                        size += s.st_size;
        }
        return size;
}

static bool starts(const char *text, size_t size, const char *prefix)
{
        size_t n = strlen(prefix);
        return size > n && !memcmp(text, prefix, n);
}

static int read_kernels(struct file *f, struct riscv_program *p)
{
        static const char prefix[] = "spancl_info_";
        Elf32_Sym s;
        size_t count = 0, used = 0, room = 0;
        for (uint64_t i = 0; record(f->symbols, i, &s, sizeof(s)); i++) {
                size_t left = s.st_name < f->strings.size ? f->strings.size - s.st_name : 0;
                const char *name = (const char *)f->strings.data + s.st_name;
                if (!starts(name, left, prefix))
                        continue;
                if (!memchr(name, 0, left) || !inside(f, &s) || ++count > KERNELS_MAX)
                        return SP_E_INVAL;
                room += strlen(name) + 1 + s.st_size + 1;
        }
        p->kernels = mem_zalloc((count + 1) * sizeof(*p->kernels));
        p->names = mem_zalloc(room + 1);
        if (!p->kernels || !p->names)
                return SP_E_NOMEM;
        for (uint64_t i = 0; record(f->symbols, i, &s, sizeof(s)); i++) {
                size_t left = s.st_name < f->strings.size ? f->strings.size - s.st_name : 0;
                const char *name = (const char *)f->strings.data + s.st_name;
                if (!starts(name, left, prefix))
                        continue;
                struct riscv_kernel *k = &p->kernels[p->kernel_count++];
                k->name = strcpy(p->names + used, name + strlen(prefix));
                used += strlen(k->name) + 1;
                char *text = memcpy(p->names + used, f->image + s.st_value, s.st_size);
                used += s.st_size + 1;
                k->local_size = local_of(f, k->name);
                if (!read_kernel(f, k, text))
                        return SP_E_INVAL;
        }
        return 0;
}

int riscv_program_new(struct buf *elf, struct riscv_program **ret, char error[RISCV_ERROR_SIZE])
{
        struct file f = { .all = bytes_of(elf->data, elf->size) };
        struct riscv_program *p = mem_zalloc(sizeof(*p));
        bool good = p && read_header(&f) && read_sections(&f) && read_segments(&f, NULL);
        int r = p ? SP_E_INVAL : SP_E_NOMEM;
        if (good) {
                f.image = mem_zalloc((size_t)f.size + 1);
                r = f.image ? SP_E_INVAL : SP_E_NOMEM;
                good = f.image && read_segments(&f, f.image) && apply_fixes(&f, f.image, 0);
        }
        if (good)
                r = read_kernels(&f, p);
        mem_free(f.image);
        if (r < 0) {
                snprintf(error, RISCV_ERROR_SIZE, "%s",
                         r == SP_E_NOMEM ? "out of memory"
                         : f.error       ? f.error
                                         : "its kernels are not described as this version does");
                if (p)
                        atomic_store(&p->refs, 1);
                riscv_program_unref(p);
                return r;
        }
        atomic_store(&p->refs, 1);
        p->elf = *elf;
        p->size = f.size;
        *elf = (struct buf){ 0 };
        *ret = p;
        return 0;
}

struct riscv_program *riscv_program_ref(struct riscv_program *p)
{
        if (p)
                atomic_fetch_add(&p->refs, 1);
        return p;
}

void riscv_program_unref(struct riscv_program *p)
{
        if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
                return;
        for (size_t i = 0; i < p->kernel_count; i++)
                mem_free(p->kernels[i].args);
        mem_free(p->kernels);
        mem_free(p->names);
        buf_fini(&p->elf);
        mem_free(p);
}

const struct riscv_kernel *riscv_program_find(const struct riscv_program *p, const char *name)
{
        for (size_t i = 0; i < p->kernel_count; i++)
                if (!strcmp(p->kernels[i].name, name))
                        return &p->kernels[i];
        return NULL;
}

/* All of it was checked when it was made. */
void riscv_program_load(const struct riscv_program *p, uint32_t address, uint8_t *ret)
{
        struct file f = { .all = bytes_of(p->elf.data, p->elf.size) };
        memset(ret, 0, p->size);
        if (read_header(&f) && read_sections(&f) && read_segments(&f, ret))
                (void)apply_fixes(&f, ret, address);
}

/* ---- what OpenCL is told -------------------------------------------------------------------- */

static void emit_arg(struct emit *e, const struct riscv_arg *a)
{
        size_t mark = emit_begin(e, INFO_KERNEL_ARG);
        emit_uint(e, CL_KERNEL_ARG_ADDRESS_QUALIFIER, a->address);
        emit_uint(e, CL_KERNEL_ARG_ACCESS_QUALIFIER, CL_KERNEL_ARG_ACCESS_NONE);
        emit_str(e, CL_KERNEL_ARG_TYPE_NAME, a->type);
        emit_data(e, CL_KERNEL_ARG_TYPE_QUALIFIER, &a->qualifier, sizeof(a->qualifier));
        emit_str(e, CL_KERNEL_ARG_NAME, a->name);
        emit_u64(e, INFO_ARG_KIND, a->kind);
        emit_u64(e, INFO_ARG_SIZE, a->kind == ARG_LOCAL ? 0 : a->size);
        emit_end(e, mark);
}

void riscv_program_describe(struct emit *e, const struct riscv_program *p, const unsigned *devices,
                            size_t device_count, size_t group_max)
{
        for (size_t n = 0; n < p->kernel_count; n++) {
                const struct riscv_kernel *k = &p->kernels[n];
                size_t mark = emit_begin(e, INFO_KERNEL);
                emit_str(e, CL_KERNEL_FUNCTION_NAME, k->name);
                emit_uint(e, CL_KERNEL_NUM_ARGS, k->arg_count);
                emit_str(e, CL_KERNEL_ATTRIBUTES, k->attributes);
                emit_u64(e, INFO_ARG_NATIVE_INFO, 1);
                for (unsigned i = 0; i < k->arg_count; i++)
                        emit_arg(e, &k->args[i]);
                for (size_t i = 0; i < device_count; i++) {
                        size_t one = 1;
                        cl_ulong local = k->local_size, private_size = RISCV_STACK_SIZE;
                        size_t device = emit_begin(e, INFO_KERNEL_DEVICE);
                        emit_u64(e, INFO_BUILD_DEVICE, devices[i]);
                        emit_data(e, CL_KERNEL_WORK_GROUP_SIZE, &group_max, sizeof(group_max));
                        emit_data(e, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, k->required,
                                  sizeof(k->required));
                        emit_data(e, CL_KERNEL_LOCAL_MEM_SIZE, &local, sizeof(local));
                        emit_data(e, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, &one,
                                  sizeof(one));
                        emit_data(e, CL_KERNEL_PRIVATE_MEM_SIZE, &private_size,
                                  sizeof(private_size));
                        emit_end(e, device);
                }
                emit_end(e, mark);
        }
}

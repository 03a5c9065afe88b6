#include "backend/riscv/kernels.h"

#include <spancl/riscv.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

enum { TEXT_SIZE = 2048, QUALIFIER_CONST = 1, QUALIFIER_RESTRICT = 2, QUALIFIER_VOLATILE = 4 };

/* Text with an error that sticks. */
struct writer {
        struct buf *out;
        int status;
};

static void put(struct writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct writer *w, const char *fmt, ...)
{
        char text[TEXT_SIZE];
        va_list args;
        va_start(args, fmt);
        int n = vsnprintf(text, sizeof(text), fmt, args);
        va_end(args);
        if (w->status >= 0 && (n < 0 || (size_t)n >= sizeof(text)))
                w->status = SP_E_INVAL;
        if (w->status >= 0)
                w->status = buf_put(w->out, text, (size_t)n);
}

/* ---- the text ------------------------------------------------------------------------------- */

static const char *find(struct bytes in, const char *what)
{
        return in.size ? memmem(in.data, in.size, what, strlen(what)) : NULL;
}

static struct bytes rest_of(struct bytes in, const char *from)
{
        return bytes_of(from, (size_t)((const char *)in.data + in.size - from));
}

static struct bytes line_at(struct bytes in, const char *from)
{
        struct bytes rest = rest_of(in, from);
        const char *end = memchr(rest.data, '\n', rest.size);
        return end ? bytes_of(from, (size_t)(end - from)) : rest;
}

/* The list that `key` of a function's line refers to: !{...}, without what is around. */
static bool metadata(struct bytes text, struct bytes line, const char *key, struct bytes *ret)
{
        char name[64];
        const char *at = find(line, key);
        if (!at)
                return false;
        snprintf(name, sizeof(name), "\n!%lu = ", strtoul(at + strlen(key), NULL, 10));
        at = find(text, name);
        if (!at)
                return false;
        struct bytes entry = line_at(text, at + 1);
        const char *open = find(entry, "!{");
        if (!open || entry.size < 3)
                return false;
        *ret = rest_of(entry, open + 2);
        ret->size--;
        return true;
}

/* The i-th element: a number behind `i32`, or what is in `!"..."`. */
static bool element(struct bytes list, unsigned i, struct bytes *ret)
{
        const char *p = list.data, *end = p + list.size;
        for (unsigned n = 0; p < end; n++) {
                while (p < end && (*p == ' ' || *p == ','))
                        p++;
                const char *from = p;
                if (end - p > 2 && p[0] == '!' && p[1] == '"') {
                        from = p += 2;
                        while (p < end && *p != '"')
                                p++;
                        *ret = bytes_of(from, (size_t)(p - from));
                        p += p < end;
                } else {
                        while (p < end && *p != ',')
                                p++;
                        *ret = bytes_of(from, (size_t)(p - from));
                }
                if (from == end)
                        return false;
                if (n == i)
                        return true;
        }
        return false;
}

static unsigned long number(struct bytes list, unsigned i)
{
        char text[32] = "";
        struct bytes e;
        if (element(list, i, &e) && e.size < sizeof(text))
                memcpy(text, e.data, e.size);
        const char *space = strchr(text, ' ');
        return space ? strtoul(space, NULL, 10) : 0;
}

static bool is(struct bytes a, const char *text)
{
        return a.size == strlen(text) && !memcmp(a.data, text, a.size);
}

static bool contains(struct bytes a, const char *text)
{
        return find(a, text) != NULL;
}

#define TEXT(b) (int)(b).size, (const char *)(b).data

/* ---- kernels -------------------------------------------------------------------------------- */

struct kernel {
        char name[512];
        struct bytes address, access, type, qualifier, names;
        unsigned count;
        struct bytes line;
};

static bool read_kernel(struct bytes text, struct bytes line, struct kernel *k)
{
        const char *at = find(line, " @");
        const char *end =
                at ? memchr(at, '(', line.size - (size_t)(at - (const char *)line.data)) : NULL;
        if (!end || (size_t)(end - at) - 2 >= sizeof(k->name))
                return false;
        memcpy(k->name, at + 2, (size_t)(end - at) - 2);
        k->name[end - at - 2] = 0;
        k->line = line;
        if (!metadata(text, line, "!kernel_arg_addr_space !", &k->address) ||
            !metadata(text, line, "!kernel_arg_access_qual !", &k->access) ||
            !metadata(text, line, "!kernel_arg_type !", &k->type) ||
            !metadata(text, line, "!kernel_arg_type_qual !", &k->qualifier) ||
            !metadata(text, line, "!kernel_arg_name !", &k->names))
                return false;
        struct bytes e;
        for (k->count = 0; element(k->address, k->count, &e);)
                k->count++;
        return true;
}

/* Types that there can be no value of here. */
static bool refuse(const struct kernel *k, unsigned i, struct writer *log)
{
        struct bytes type = { 0 }, access = { 0 }, name = { 0 }, qualifier = { 0 };
        element(k->type, i, &type);
        element(k->access, i, &access);
        element(k->names, i, &name);
        element(k->qualifier, i, &qualifier);
        const char *what = contains(qualifier, "pipe")                       ? "pipes"
                           : contains(type, "image") && contains(type, "d_") ? "images"
                           : contains(type, "image") && contains(type, "_t") ? "images"
                           : is(type, "sampler_t")                           ? "samplers"
                           : is(type, "queue_t") || is(type, "clk_event_t") ? "queues on the device"
                           : is(type, "event_t") || is(type, "reserve_id_t") ? "such arguments"
                                                                             : NULL;
        if (what)
                put(log, "error: kernel %s, argument %.*s (%.*s): this device has no %s\n", k->name,
                    TEXT(name), TEXT(type), what);
        return what != NULL;
}

static void put_info(struct writer *w, const struct kernel *k, struct bytes text)
{
        struct bytes sizes;
        bool required = metadata(text, k->line, "!reqd_work_group_size !", &sizes);
        put(w,
            "__attribute__((used, visibility(\"default\"))) __constant char spancl_info_%s[] =\n",
            k->name);
        put(w, "        \"%d\\n\"\n        \"", RISCV_ABI);
        if (required)
                put(w, "reqd_work_group_size(%lu,%lu,%lu)", number(sizes, 0), number(sizes, 1),
                    number(sizes, 2));
        struct bytes hint;
        if (metadata(text, k->line, "!work_group_size_hint !", &hint))
                put(w, "%swork_group_size_hint(%lu,%lu,%lu)", required ? " " : "", number(hint, 0),
                    number(hint, 1), number(hint, 2));
        put(w, "\\n\"\n        \"%lu %lu %lu\\n\"\n", required ? number(sizes, 0) : 0,
            required ? number(sizes, 1) : 0, required ? number(sizes, 2) : 0);
        for (unsigned i = 0; i < k->count; i++) {
                struct bytes type = { 0 }, qualifier = { 0 }, name = { 0 };
                element(k->type, i, &type);
                element(k->qualifier, i, &qualifier);
                element(k->names, i, &name);
                int bits = (contains(qualifier, "const") ? QUALIFIER_CONST : 0) |
                           (contains(qualifier, "restrict") ? QUALIFIER_RESTRICT : 0) |
                           (contains(qualifier, "volatile") ? QUALIFIER_VOLATILE : 0);
                put(w, "        \"%lu\\t%.*s\\t%d\\t%.*s\\n\"\n", number(k->address, i), TEXT(type),
                    bits, TEXT(name));
        }
        put(w, "        ;\n");
}

/* Where arguments lie: one behind the other, aligned. */
static void put_places(struct writer *w, const struct kernel *k)
{
        put(w, "enum {\n        spancl_end_%s_0 = 0,\n", k->name);
        for (unsigned i = 0; i < k->count; i++) {
                struct bytes type = { 0 };
                element(k->type, i, &type);
                if (number(k->address, i))
                        type = bytes_str("ulong");
                put(w,
                    "        spancl_at_%s_%u = (spancl_end_%s_%u + __alignof__(%.*s) - 1) / "
                    "__alignof__(%.*s) * __alignof__(%.*s),\n",
                    k->name, i, k->name, i, TEXT(type), TEXT(type), TEXT(type));
                put(w, "        spancl_end_%s_%u = spancl_at_%s_%u + sizeof(%.*s),\n", k->name,
                    i + 1, k->name, i, TEXT(type));
        }
        put(w,
            "};\n__attribute__((used, visibility(\"default\"))) __constant uint spancl_args_%s[] = {",
            k->name);
        for (unsigned i = 0; i < k->count; i++)
                put(w, " spancl_at_%s_%u, spancl_end_%s_%u - spancl_at_%s_%u,", k->name, i, k->name,
                    i + 1, k->name, i);
        put(w, "%s };\n", k->count ? "" : " 0, 0");
}

static void put_entry(struct writer *w, const struct kernel *k)
{
        static const char *const functions[] = { NULL, "spancl_global", "spancl_constant",
                                                 "spancl_local" };
        put(w,
            "__attribute__((visibility(\"default\"))) void spancl_entry_%s(const __private char "
            "*spancl_p)\n{\n        %s(",
            k->name, k->name);
        for (unsigned i = 0; i < k->count; i++) {
                unsigned long address = number(k->address, i);
                struct bytes type = { 0 };
                element(k->type, i, &type);
                put(w, "%s", i ? ", " : "");
                if (address && address < array_size(functions))
                        put(w, "%s(spancl_p + spancl_at_%s_%u)", functions[address], k->name, i);
                else
                        put(w, "*(const __private %.*s *)(spancl_p + spancl_at_%s_%u)", TEXT(type),
                            k->name, i);
        }
        put(w, ");\n}\n");
}

static void put_helpers(struct writer *w)
{
        put(w, "\n# 1 \"kernels\"\n"
               "static inline uint spancl_word(uint at)\n"
               "{\n"
               "        const __private uint *item;\n"
               "        __asm__(\"mv %%0, tp\" : \"=r\"(item));\n"
               "        return ((const __private uint *)*item)[at];\n"
               "}\n"
               "static inline uint spancl_address(const __private char *p, uint at)\n"
               "{\n"
               "        uint offset = *(const __private uint *)p;\n"
               "        return offset ? spancl_word(at) + offset : 0;\n"
               "}\n");
        put(w, "#define spancl_global(p) ((__global void *)spancl_address(p, %zu))\n",
            offsetof(struct riscv_group, data_memory) / 4);
        put(w, "#define spancl_constant(p) ((__constant void *)spancl_address(p, %zu))\n",
            offsetof(struct riscv_group, data_memory) / 4);
        put(w,
            "#define spancl_local(p) ((__local void *)(spancl_word(%zu) + *(const __private uint "
            "*)(p)))\n",
            offsetof(struct riscv_group, local_memory) / 4);
}

int kernels_write(struct bytes text, struct buf *ret, struct buf *log)
{
        struct writer w = { ret, 0 }, messages = { log, 0 };
        bool refused = false;
        put_helpers(&w);
        struct bytes rest = text;
        const char *at;
        while ((at = find(rest, "\ndefine "))) {
                struct bytes line = line_at(text, at + 1);
                struct kernel k;
                rest = rest_of(text, at + 1);
                if (!contains(line, "!kernel_arg_addr_space !") ||
                    contains(line, "@__clang_ocl_kern_imp_"))
                        continue;
                if (!read_kernel(text, line, &k))
                        return SP_E_INVAL;
                for (unsigned i = 0; i < k.count; i++)
                        refused |= refuse(&k, i, &messages);
                put_info(&w, &k, text);
                put_places(&w, &k);
                put_entry(&w, &k);
        }
        return w.status < 0          ? w.status
               : messages.status < 0 ? messages.status
               : refused             ? SP_E_UNSUPP
                                     : 0;
}

/* ---- adapting ------------------------------------------------------------------------------- */

int kernels_adapt(struct bytes text, struct buf *ret)
{
        static const struct {
                const char *from, *to;
        } changes[] = {
                { "spir_kernel ", "" },
                { "spir_func ", "" },
                { " = internal global ", " = protected global " },
        };
        const char *p = text.data, *end = p + text.size;
        int r = 0;
        while (!r && p < end) {
                const char *next = end;
                size_t which = 0;
                for (size_t i = 0; i < array_size(changes); i++) {
                        const char *found = find(rest_of(text, p), changes[i].from);
                        if (found && found < next) {
                                next = found;
                                which = i;
                        }
                }
                r = buf_put(ret, p, (size_t)(next - p));
                p = next;
                if (!r && next < end) {
                        r = buf_put(ret, changes[which].to, strlen(changes[which].to));
                        p += strlen(changes[which].from);
                }
        }
        return r;
}

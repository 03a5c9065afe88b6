#include "backend/almaif/spec.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { TIMEOUT_MS = 30000, SPIN_US = 50, NUMBER_SIZE = 32 };

/* A piece of the text. */
struct word {
        const char *at;
        size_t size;
};

static struct word trim(const char *at, const char *end)
{
        while (at < end && isspace((unsigned char)*at))
                at++;
        while (at < end && isspace((unsigned char)end[-1]))
                end--;
        return (struct word){ at, (size_t)(end - at) };
}

static bool is(struct word w, const char *text)
{
        return strlen(text) == w.size && !memcmp(w.at, text, w.size);
}

static bool copy(struct word w, char *to, size_t size)
{
        if (!w.size || w.size >= size)
                return false;
        memcpy(to, w.at, w.size);
        to[w.size] = 0;
        return true;
}

static bool number(struct word w, uint64_t *ret)
{
        char digits[NUMBER_SIZE], *end;
        if (!copy(w, digits, sizeof(digits)) || !isdigit((unsigned char)*digits))
                return false;
        *ret = strtoull(digits, &end, 0);
        return !*end;
}

/* Split a word into the parts before and behind the first (or last) `c`. False: there is no `c`. */
static bool split(struct word w, char c, bool last, struct word *before, struct word *after)
{
        const char *p = last ? memrchr(w.at, c, w.size) : memchr(w.at, c, w.size);
        if (!p)
                return false;
        *before = (struct word){ w.at, (size_t)(p - w.at) };
        *after = (struct word){ p + 1, (size_t)(w.at + w.size - p - 1) };
        return true;
}

/* ADDRESS+SIZE; the size may be left out if `optional`. */
static bool range(struct word w, bool optional, uint64_t *base, uint64_t *size)
{
        struct word a, b;
        if (split(w, '+', false, &a, &b))
                return number(a, base) && number(b, size) && *size && *base + *size > *base;
        return optional && number(w, base);
}

/* PATH[@OFFSET[+SIZE]] */
static bool file_place(struct place *p, struct word w)
{
        struct word path = w, at;
        if (split(w, '@', true, &path, &at) && !range(at, true, &p->base, &p->size))
                return false;
        return copy(path, p->path, sizeof(p->path)) && p->path[0] == '/';
}

static bool mem_place(struct place *p, struct word w)
{
        strcpy(p->path, "/dev/mem");
        return range(w, true, &p->base, &p->size);
}

/* NAME[+BYTES] */
static bool emu_place(struct place *p, struct word w)
{
        struct word name = w, size;
        return (!split(w, '+', true, &name, &size) || number(size, &p->data)) &&
               copy(name, p->path, sizeof(p->path));
}

/* CARD:KERNEL[@BASE][+SIZE]=XCLBIN; a kernel's name may be KERNEL:{INSTANCE}. */
static bool xrt_place(struct place *p, struct word w)
{
        struct word card, rest, kernel, file, name, number_of;
        if (!split(w, ':', false, &card, &rest) || !split(rest, '=', false, &kernel, &file))
                return false;
        if (split(kernel, '+', true, &name, &number_of)) {
                if (!number(number_of, &p->size))
                        return false;
                kernel = name;
        }
        if (split(kernel, '@', true, &name, &number_of)) {
                if (!number(number_of, &p->base))
                        return false;
                kernel = name;
        }
        uint64_t index;
        p->card = number(card, &index) ? (unsigned)index : 0;
        return number(card, &index) && index <= UINT16_MAX &&
               copy(kernel, p->kernel, sizeof(p->kernel)) && copy(file, p->path, sizeof(p->path));
}

static const struct {
        const struct window_ops *ops;
        bool (*parse)(struct place *p, struct word w);
        const char *form;
} places[] = {
        { &window_shm, file_place, "shm:/path[@OFFSET]" },
        { &window_emu, emu_place, "emu:NAME[+BYTES]" },
        { &window_mem, mem_place, "mem:ADDRESS[+SIZE]" },
        { &window_uio, file_place, "uio:/dev/uioN" },
        { &window_pci, file_place, "pci:/sys/bus/pci/devices/.../resourceN[@OFFSET]" },
        { &window_xrt, xrt_place, "xrt:CARD:KERNEL[@BASE][+SIZE]=XCLBIN" },
};

static const char *parse_place(struct almaif_spec *s, struct word w)
{
        struct word kind, rest;
        copy((struct word){ w.at, w.size < sizeof(s->text) ? w.size : sizeof(s->text) - 1 },
             s->text, sizeof(s->text));
        if (split(w, ':', false, &kind, &rest)) {
                for (size_t i = 0; i < array_size(places); i++) {
                        if (!is(kind, places[i].ops->name))
                                continue;
                        s->place.ops = places[i].ops;
                        return places[i].parse(&s->place, rest) ? NULL : places[i].form;
                }
        }
        return "shm:, emu:, mem:, uio:, pci: or xrt:";
}

/* ---- options -------------------------------------------------------------------------------- */

/* Numbers separated by `:`. */
static bool set_ids(struct almaif_spec *s, struct word w)
{
        for (bool more = true; more;) {
                struct word first = w, rest;
                uint64_t id;
                more = split(w, ':', false, &first, &rest);
                if (!number(first, &id) || id > UINT16_MAX || s->id_count == SPEC_IDS_MAX)
                        return false;
                s->ids[s->id_count++] = (uint16_t)id;
                w = rest;
        }
        return true;
}

static bool set_profile(struct almaif_spec *s, struct word w)
{
        s->profile = is(w, "v2") ? 2 : 3;
        s->completion_zero = s->profile == 2;
        return is(w, "v2") || is(w, "v3");
}

static bool set_completion(struct almaif_spec *s, struct word w)
{
        s->completion_zero = is(w, "zero");
        return s->completion_zero || is(w, "one");
}

static bool set_index(struct almaif_spec *s, struct word w)
{
        s->index_adds = is(w, "add");
        return s->index_adds || is(w, "set");
}

static bool set_args(struct almaif_spec *s, struct word w)
{
        s->args = is(w, "packed")   ? SPEC_ARGS_PACKED
                  : is(w, "stride") ? SPEC_ARGS_STRIDE
                                    : SPEC_ARGS_NATURAL;
        return s->args != SPEC_ARGS_NATURAL || is(w, "natural");
}

static bool set_shared(struct almaif_spec *s, struct word w)
{
        return range(w, false, &s->shared_base, &s->shared_size);
}

static bool set_image(struct almaif_spec *s, struct word w)
{
        return copy(w, s->image, sizeof(s->image));
}

static bool set_kernels(struct almaif_spec *s, struct word w)
{
        return copy(w, s->kernels, sizeof(s->kernels));
}

static bool set_name(struct almaif_spec *s, struct word w)
{
        return copy(w, s->name, sizeof(s->name));
}

static bool set_isa(struct almaif_spec *s, struct word w)
{
        return s->rv32im = is(w, "rv32im");
}

static bool set_clang(struct almaif_spec *s, struct word w)
{
        return copy(w, s->clang, sizeof(s->clang)) && s->clang[0] == '/';
}

static bool set_timeout(struct almaif_spec *s, struct word w)
{
        return number(w, &s->timeout_ms) && s->timeout_ms <= UINT32_MAX;
}

static bool set_spin(struct almaif_spec *s, struct word w)
{
        return number(w, &s->spin_us) && s->spin_us <= 1000000;
}

/* `profile` sets what others change: whatever their order, it comes first. */
static const struct {
        const char *name;
        bool (*set)(struct almaif_spec *s, struct word value);
        const char *values;
} options[] = {
        { "profile", set_profile, "v2, v3" },
        { "completion", set_completion, "zero, one" },
        { "index", set_index, "set, add" },
        { "args", set_args, "natural, packed, stride" },
        { "shared", set_shared, "ADDRESS+SIZE" },
        { "image", set_image, "a file" },
        { "kernels", set_kernels, "a file" },
        { "ids", set_ids, "numbers of kernels, separated by `:`" },
        { "isa", set_isa, "rv32im" },
        { "clang", set_clang, "a path" },
        { "name", set_name, "at most 63 bytes" },
        { "timeout", set_timeout, "milliseconds" },
        { "spin", set_spin, "microseconds, at most 1000000" },
};

/* The options that are `options[i]`; counts those found. */
static const char *apply(struct almaif_spec *s, struct word list, size_t i, size_t *found)
{
        for (const char *p = list.at, *end = list.at + list.size; p < end;) {
                const char *comma = memchr(p, ',', (size_t)(end - p));
                struct word w = trim(p, comma ? comma : end), name, value;
                p = comma ? comma + 1 : end;
                if (!split(w, '=', false, &name, &value) || !is(name, options[i].name))
                        continue;
                ++*found;
                if (!options[i].set(s, value))
                        return options[i].values;
        }
        return NULL;
}

static size_t count_of(struct word list)
{
        size_t n = list.size != 0;
        for (size_t i = 0; i < list.size; i++)
                n += list.at[i] == ',';
        return n;
}

static int parse_one(struct almaif_spec *s, struct word entry, char error[SPEC_ERROR_SIZE])
{
        *s = (struct almaif_spec){
                .profile = 2, .completion_zero = true, .timeout_ms = TIMEOUT_MS, .spin_us = SPIN_US
        };
        struct word place = entry, list = { NULL, 0 };
        split(entry, ',', false, &place, &list);
        place = trim(place.at, place.at + place.size);
        const char *wanted = parse_place(s, place);
        if (wanted) {
                snprintf(error, SPEC_ERROR_SIZE, "'%.*s': wanted is %s", (int)place.size, place.at,
                         wanted);
                return SP_E_INVAL;
        }
        size_t found = 0;
        for (size_t i = 0; i < array_size(options); i++) {
                wanted = apply(s, list, i, &found);
                if (wanted) {
                        snprintf(error, SPEC_ERROR_SIZE, "%s: %s= takes %s", s->text,
                                 options[i].name, wanted);
                        return SP_E_INVAL;
                }
        }
        if (found != count_of(list)) {
                snprintf(error, SPEC_ERROR_SIZE, "%s: an option in '%.*s' is not known", s->text,
                         (int)(list.size < 100 ? list.size : 100), list.at);
                return SP_E_INVAL;
        }
        return 0;
}

int almaif_specs_parse(const char *text, struct almaif_spec **ret, size_t *ret_count,
                       char error[SPEC_ERROR_SIZE])
{
        struct almaif_spec *specs = NULL;
        size_t count = 0;
        for (const char *p = text; *p;) {
                const char *end = strchrnul(p, ';');
                struct word entry = trim(p, end);
                p = *end ? end + 1 : end;
                if (!entry.size)
                        continue;
                struct almaif_spec *more = mem_realloc(specs, (count + 1) * sizeof(*more));
                if (more)
                        specs = more;
                int r = more ? parse_one(&specs[count], entry, error) : SP_E_NOMEM;
                if (r < 0) {
                        mem_free(specs);
                        return r;
                }
                count++;
        }
        *ret = specs;
        *ret_count = count;
        return 0;
}

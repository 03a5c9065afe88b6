#include "cli/trace/imported.h"

#include <inttypes.h>
#include <string.h>

#include "cli/trace/file.h"

enum {
        SIZE_LOOKS = 1024,      /* events between two looks at the file's size */
        SIZE_MARGIN = 16 << 20, /* bytes that are left for what follows */
};

/* ---- rows ----------------------------------------------------------------------------------- */

static bool process_index(struct imported *s, uint32_t process, uint32_t *ret)
{
        uint32_t i = 0;
        while (i < s->process_count && s->processes[i].process != process)
                i++;
        if (i == IMPORTED_PROCESSES)
                return false;
        if (i == s->process_count)
                s->processes[s->process_count++].process = process;
        *ret = i;
        return true;
}

struct imported_row *imported_row(struct imported *s, uint32_t process, uint64_t thread)
{
        uint32_t index;
        uint64_t h =
                (process * UINT64_C(0x9e3779b97f4a7c15) ^ thread) * UINT64_C(0x9e3779b97f4a7c15);
        for (h = (h >> 32) % IMPORTED_SLOTS; s->slots[h]; h = (h + 1) % IMPORTED_SLOTS) {
                struct imported_row *r = &s->rows[s->slots[h] - 1];
                if (r->process == process && r->thread == thread)
                        return r;
        }
        if (s->row_count == IMPORTED_ROWS || !process_index(s, process, &index))
                return NULL;
        struct imported_row *r = &s->rows[s->row_count];
        r->process = process;
        r->thread = thread;
        s->slots[h] = ++s->row_count;
        return r;
}

/* The number of a process in the timeline. Its place was found before. */
static unsigned number_of(struct imported *s, uint32_t process)
{
        uint32_t index = 0;
        (void)process_index(s, process, &index);
        return s->first + index;
}

void imported_name_process(struct imported *s, uint32_t process, const char *name)
{
        char text[2 * IMPORTED_TEXT + 4];
        uint32_t i;
        if (!process_index(s, process, &i) || s->processes[i].named)
                return;
        snprintf(text, sizeof(text), "%.*s%s%.*s", IMPORTED_TEXT - 1, s->name, *name ? ": " : "",
                 IMPORTED_TEXT - 1, name);
        timeline_process(s->out, s->first + i, text);
        s->processes[i].named = true;
}

void imported_name_row(struct imported *s, struct imported_row *r, const char *name)
{
        if (!r || r->named)
                return;
        timeline_thread(s->out, number_of(s, r->process), r->thread, name);
        r->named = true;
}

void imported_end(struct imported *s)
{
        char text[32];
        for (uint32_t i = 0; i < s->row_count; i++) {
                snprintf(text, sizeof(text), "%" PRIu64, s->rows[i].thread);
                imported_name_row(s, &s->rows[i], text);
        }
        for (uint32_t i = 0; i < s->process_count; i++) {
                snprintf(text, sizeof(text), "%" PRIu32, s->processes[i].process);
                imported_name_process(s, s->processes[i].process, text);
        }
}

/* ---- events --------------------------------------------------------------------------------- */

/* Bring a time to the timeline's clock. */
static uint64_t moved(const struct imported *s, uint64_t ns)
{
        uint64_t by = s->shift_ns < 0 ? -(uint64_t)s->shift_ns : (uint64_t)s->shift_ns;
        if (s->shift_ns < 0)
                return ns > by ? ns - by : 0;
        return ns < UINT64_MAX - by ? ns + by : UINT64_MAX;
}

/* May an event be added? */
static bool take(struct imported *s, bool has_row, uint64_t begin, uint64_t end)
{
        if (end < s->begin_ns || begin > s->end_ns) {
                s->outside++;
                return false;
        }
        /* A file that is too large could not be read again. */
        if (s->events % SIZE_LOOKS == 0 && ftell(s->out->out) > TRACE_FILE_SIZE_MAX - SIZE_MARGIN)
                s->room = 0;
        if (!has_row || !s->room) {
                s->left_out++;
                return false;
        }
        s->room--;
        s->events++;
        return true;
}

bool imported_slice(struct imported *s, const struct imported_row *r, uint64_t begin_ns,
                    uint64_t end_ns, const char *name)
{
        uint64_t begin = moved(s, begin_ns), end = moved(s, end_ns > begin_ns ? end_ns : begin_ns);
        if (!take(s, r, begin, end))
                return false;
        timeline_slice(s->out, number_of(s, r->process), r->thread,
                       begin > s->begin_ns ? begin : s->begin_ns, end < s->end_ns ? end : s->end_ns,
                       "imported", name);
        return true;
}

bool imported_counter(struct imported *s, uint32_t process, uint64_t ns, const char *name)
{
        uint32_t index = 0;
        ns = moved(s, ns);
        if (!take(s, process_index(s, process, &index), ns, ns))
                return false;
        timeline_counter(s->out, s->first + index, ns, name);
        return true;
}

#include "config/nearest.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

enum { WORD_MAX = 64 };

static unsigned least(unsigned a, unsigned b)
{
        return a < b ? a : b;
}

/* Levenshtein's algorithm with one row of the table. */
unsigned config_distance(const char *a, const char *b)
{
        unsigned row[WORD_MAX + 1];
        size_t n = strlen(b);
        if (n > WORD_MAX || strlen(a) > WORD_MAX)
                return UINT_MAX;
        for (size_t k = 0; k <= n; k++)
                row[k] = (unsigned)k;
        for (size_t i = 0; a[i]; i++) {
                unsigned corner = row[0]++;
                for (size_t k = 1; k <= n; k++) {
                        bool differ =
                                toupper((unsigned char)a[i]) != toupper((unsigned char)b[k - 1]);
                        unsigned replaced = corner + differ;
                        corner = row[k];
                        row[k] = least(replaced, least(row[k], row[k - 1]) + 1);
                }
        }
        return row[n];
}

const char *config_nearest(enum config_side side, const char *name)
{
        /* Without the prefix that all names have. */
        size_t prefix = strlen(side == CONFIG_CLIENT ? "SPANCL_" : "--");
        unsigned limit = strlen(name) > prefix ? (unsigned)((strlen(name) - prefix) / 3) : 0;
        const char *best = NULL;
        unsigned best_distance = (limit ? limit : 1) + 1;
        for (enum config_id id = 0; id < CONFIG_COUNT; id++) {
                const struct config_entry *e = config_entry(id);
                unsigned d = e->side == side ? config_distance(name, e->name) : UINT_MAX;
                if (d < best_distance) {
                        best = e->name;
                        best_distance = d;
                }
        }
        return best;
}

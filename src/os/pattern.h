/* Patterns of names, as shells have them: "*", "?", "[...]". */
#ifndef SPANCL_OS_PATTERN_H
#define SPANCL_OS_PATTERN_H

#include <fnmatch.h>
#include <stdbool.h>

static inline bool pattern_matches(const char *pattern, const char *name)
{
        return fnmatch(pattern, name, 0) == 0;
}

#endif

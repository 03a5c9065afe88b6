/* Absolute paths begin with a slash everywhere in this project: "/C:/folder" is the system's "C:\folder". */
#ifndef SPANCL_OS_WINDOWS_ABSOLUTE_H
#define SPANCL_OS_WINDOWS_ABSOLUTE_H

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>

/* Return a path of the application in the form that begins with a slash: `path`, or text in `room`. NULL: it is
 * relative, or too long. */
static inline const char *absolute_path(const char *path, char room[PATH_MAX])
{
        if (path[0] == '/')
                return path;
        if (!isalpha((unsigned char)path[0]) || path[1] != ':' ||
            (path[2] != '\\' && path[2] != '/') ||
            snprintf(room, PATH_MAX, "/%s", path) >= PATH_MAX)
                return NULL;
        for (char *p = room; *p; p++)
                if (*p == '\\')
                        *p = '/';
        return room;
}

#endif

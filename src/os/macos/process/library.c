#include "os/process/library.h"

#include <stddef.h>

/* The system does not tell. */
const char *library_path(struct library *l)
{
        (void)l;
        return NULL;
}

/* Shared libraries that are loaded while the program runs. Any thread. */
#ifndef SPANCL_OS_PROCESS_LIBRARY_H
#define SPANCL_OS_PROCESS_LIBRARY_H

struct library;

enum library_flags {
        LIBRARY_FOR_EVER = 1 << 0, /* never unload it */
        LIBRARY_LAZY = 1 << 1,     /* a function that it needs may be missing until it is called */
};

/* Load a library: a path, or a name that the system searches for. `flags`: enum library_flags. NULL: it can't be
 * loaded, and library_error has the reason. */
struct library *library_load(const char *name, unsigned flags);

/* The caller must not use the library's functions any more. */
void library_unload(struct library *l);

/* Return the address of a function or variable; NULL: it has none of this name. */
void *library_symbol(struct library *l, const char *name);

/* Return the path of the library's file. It is the library's; NULL: it is not known. */
const char *library_path(struct library *l);

/* Return the reason of this thread's last failure, until its next call. */
const char *library_error(void);

#endif

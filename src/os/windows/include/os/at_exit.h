/* A function that runs when the process exits in order, while its other threads still run. A destructor of a library
 * runs too late on Windows: the system has ended the other threads by then, and these may have held locks. */
#ifndef SPANCL_OS_WINDOWS_AT_EXIT_H
#define SPANCL_OS_WINDOWS_AT_EXIT_H

/* Make the program's C library call `run` once: msvcrt or the UCRT. A statically linked C library does not call it. */
void at_exit_register(void (*run)(void));

/* Begin the definition of such a function. */
#define AT_EXIT(name)                                                  \
        static void name(void);                                        \
        __attribute__((constructor)) static void name##_register(void) \
        {                                                              \
                at_exit_register(name);                                \
        }                                                              \
        static void name(void)

#endif

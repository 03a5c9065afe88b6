/* A function that runs when the process exits in order, while its other threads still run. A destructor of a library
 * runs later on Windows: then the system has ended the other threads, which may hold locks. */
#ifndef SPANCL_OS_WINDOWS_AT_EXIT_H
#define SPANCL_OS_WINDOWS_AT_EXIT_H

/* Have `run` called once by the C library of the program: msvcrt or the UCRT. A program that has a C library of its
 * own, linked statically, does not call it. */
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

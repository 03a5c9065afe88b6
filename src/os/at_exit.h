/* A function that runs when the process exits in order, while its other threads still run. */
#ifndef SPANCL_OS_AT_EXIT_H
#define SPANCL_OS_AT_EXIT_H

/* Begin the definition of such a function. */
#define AT_EXIT(name) __attribute__((destructor)) static void name(void)

#endif

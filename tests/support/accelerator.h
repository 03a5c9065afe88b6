/* An accelerator for tests: the emulator as a process of its own, which ends with the test. */
#ifndef SPANCL_TESTS_ACCELERATOR_H
#define SPANCL_TESTS_ACCELERATOR_H

#include <sys/types.h>

enum { ACCELERATOR_PATH_SIZE = 96 };

struct accelerator {
        pid_t pid;
        char path[ACCELERATOR_PATH_SIZE]; /* of its file */
        int own_path;                     /* it goes with it */
};

/* Start an accelerator with these options (NULL at the end) in a new file, or in `path`. Return
 * when its registers are there. */
void accelerator_start(struct accelerator *a, const char *path, const char *const *options);

/* Also of zeroed memory, and twice. */
void accelerator_stop(struct accelerator *a);

#endif

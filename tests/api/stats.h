/* What a fresh process of this program sends and receives, by SPANCL_STATS. */
#ifndef SPANCL_TEST_API_STATS_H
#define SPANCL_TEST_API_STATS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"

/* Run argv[0] with these arguments. `end` is "from" or "to": the client's end of the link; `what` is
 * "frames", "messages" or "bytes". */
static inline long stats_of(char *const argv[], const char *end, const char *what)
{
        char path[] = "/tmp/spancl-stats.XXXXXX", report[4096], key[32];
        int fd = mkstemp(path);
        CHECK(fd >= 0);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (!pid) {
                setenv("SPANCL_STATS", path, 1);
                execv(argv[0], argv);
                _exit(127);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        ssize_t n = read(fd, report, sizeof(report) - 1);
        CHECK(n > 0);
        report[n] = '\0';
        close(fd);
        unlink(path);
        snprintf(key, sizeof(key), "\"%s\": \"client\"", end);
        const char *at = strstr(report, key);
        snprintf(key, sizeof(key), "\"%s\": ", what);
        at = at ? strstr(at, key) : NULL;
        CHECK(at);
        return strtol(at + strlen(key), NULL, 10);
}

#endif

/* Counters of a fresh process of this program: the bytes and messages that it sends and receives,
 * and its waits, as SPANCL_STATS reports them. */
#ifndef SPANCL_TEST_API_STATS_H
#define SPANCL_TEST_API_STATS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"

enum { STATS_MAX = 4096 };

/* Run argv[0] with these arguments; `report` gets the output of SPANCL_STATS. */
static inline void stats_run(char *const argv[], char report[STATS_MAX])
{
        char path[] = "/tmp/spancl-stats.XXXXXX";
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
        ssize_t n = read(fd, report, STATS_MAX - 1);
        CHECK(n > 0);
        report[n] = '\0';
        close(fd);
        unlink(path);
}

/* The number behind this key, at or after `at`. */
static inline long stats_number(const char *at, const char *key)
{
        char text[32];
        snprintf(text, sizeof(text), "\"%s\": ", key);
        at = at ? strstr(at, text) : NULL;
        CHECK(at);
        return strtol(at + strlen(text), NULL, 10);
}

/* `end` is "from" or "to": the client's end of the link; `what` is "frames", "messages" or "bytes". */
static inline long stats_of(char *const argv[], const char *end, const char *what)
{
        char report[STATS_MAX], key[32];
        stats_run(argv, report);
        snprintf(key, sizeof(key), "\"%s\": \"client\"", end);
        return stats_number(strstr(report, key), what);
}

/* Return how often the program waited for servers. */
static inline long stats_waits(char *const argv[])
{
        char report[STATS_MAX];
        stats_run(argv, report);
        return stats_number(report, "waits");
}

#endif

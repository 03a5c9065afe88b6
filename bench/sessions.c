/* bench_sessions ADDRESS N: opens N idle sessions of one server and holds them until standard
 * input ends. Prints their number when there are N, or the reason why there are no more. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "loop/dial.h"

enum { TIMEOUT_MS = 120000 };

int main(int argc, char **argv)
{
        int wanted = argc == 3 ? atoi(argv[2]) : 0, count = 0;
        struct rlimit files = { (rlim_t)wanted + 64, (rlim_t)wanted + 64 };
        struct conn **conns = calloc((size_t)(wanted > 0 ? wanted : 1), sizeof(*conns));
        if (wanted <= 0 || !conns) {
                fprintf(stderr, "usage: bench_sessions ADDRESS N\n");
                return 2;
        }
        (void)setrlimit(RLIMIT_NOFILE, &files);
        for (; count < wanted; count++) {
                struct dial_params p = { .address = argv[1],
                                         .timeout_ms = TIMEOUT_MS,
                                         .name = "idle" };
                struct dial_reply reply;
                if (getrandom(p.session_id, sizeof(p.session_id), 0) != sizeof(p.session_id) ||
                    getrandom(p.key, sizeof(p.key), 0) != sizeof(p.key))
                        break;
                if (loop_connect(&p, &conns[count], &reply) < 0) {
                        fprintf(stderr, "bench_sessions: %s\n", reply.text);
                        break;
                }
        }
        printf("%d\n", count);
        fflush(stdout);
        while (getchar() != EOF)
                ;
        for (int i = 0; i < count; i++)
                conn_close(conns[i]);
        free(conns);
        return count < wanted;
}

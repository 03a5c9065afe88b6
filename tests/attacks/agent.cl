/* The attacks as a kernel: one work-item runs one of them in a worker. result: outcome, errno. */
#include "sandbox/attacks/attack.h"
#include "sandbox/attacks/files.c"
#include "sandbox/attacks/ipc.c"
#include "sandbox/attacks/kernel.c"
#include "sandbox/attacks/limits.c"
#include "sandbox/attacks/metadata.c"
#include "sandbox/attacks/namespaces.c"
#include "sandbox/attacks/processes.c"
#include "sandbox/attacks/run.c"
#include "sandbox/attacks/sockets.c"
#include "sandbox/attacks/worker.c"

kernel void attack(global const char *params, global int *result, int id)
{
        struct attack a;
        a.params = params;
        result[0] = attack_run(id, &a);
        result[1] = a.error;
}

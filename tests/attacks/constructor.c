/* A shared library that takes the place of a kernel's machine code in a program binary. The
 * loader runs its constructor in the worker, as it does a kernel. The constructor reports on
 * standard output, which is the client's, and then attacks the files in FOLDER. */
#include "sandbox/attacks/attack.h"

__attribute__((constructor)) static void attack_everything(void)
{
        static const char said[] = "constructed\n";
        (void)SYS3(write, 1, said, sizeof(said) - 1);
        (void)SYS3(fchmodat, AT_CWD, FOLDER "/prey", 0600);
        (void)SYS4(openat, AT_CWD, FOLDER "/prey", O_WRITE | O_TRUNCATE, 0);
        (void)SYS3(unlinkat, AT_CWD, FOLDER "/prey", 0);
        (void)SYS3(symlinkat, "/etc", AT_CWD, FOLDER "/made");
        (void)SYS2(kill, BYSTANDER, SIGNAL_KILL);
        (void)SYS2(kill, SUPERVISOR, SIGNAL_KILL);
}

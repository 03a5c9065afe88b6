/* Parts of os/process/process.h that POSIX lacks. */
#include "os/process/process.h"

#include <signal.h>
#include <sys/prctl.h>

void process_name(const char *name)
{
        (void)prctl(PR_SET_NAME, name);
}

void process_end_with_parent(void)
{
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

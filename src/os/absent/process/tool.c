/* process/tool.h for systems where the client runs no compilers: Windows, and Android, where an application may not run
 * programs from its own folder. */
#include "os/process/tool.h"

int tool_execute(const char *folder, const char *out, char *const *argv)
{
        (void)folder, (void)out, (void)argv;
        return SP_E_NOENT;
}

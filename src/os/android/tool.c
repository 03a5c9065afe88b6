/* process/tool.h for Android: an application may not run programs from its own folder, and a phone has no compiler in
 * its system's. */
#include "os/process/tool.h"

int tool_execute(const char *folder, const char *out, char *const *argv)
{
        (void)folder;
        (void)out;
        (void)argv;
        return SP_E_NOENT;
}

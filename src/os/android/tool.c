/* process/tool.h for Android. An application may not run programs from its own folder, and the system's folders have no
 * compiler. */
#include "os/process/tool.h"

int tool_execute(const char *folder, const char *out, char *const *argv)
{
        (void)folder;
        (void)out;
        (void)argv;
        return SP_E_NOENT;
}

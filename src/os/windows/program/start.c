/* The start of programs: their arguments in UTF-8, and output as the program writes it, without other line breaks. */
#include <fcntl.h>
#include <io.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/windows/process/start.h"
#include "os/windows/wide.h"

#include <windows.h>

int main(int argc, char **argv);
int wmain(int argc, wchar_t **argv);

int wmain(int argc, wchar_t **argv)
{
        enum { ARGUMENT_MAX = 3 * 32768 }; /* of the system, in UTF-8 */
        char **all = calloc((size_t)argc + 1, sizeof(*all)), *text = malloc(ARGUMENT_MAX);
        bool ok = all && text;
        for (int i = 0; ok && i < argc; i++)
                ok = wide_text(argv[i], text, ARGUMENT_MAX) && (all[i] = _strdup(text));
        free(text);
        if (!ok)
                return 126;
        (void)_setmode(1, _O_BINARY);
        (void)_setmode(2, _O_BINARY);
        (void)setvbuf(stderr, NULL, _IONBF,
                      0); /* the C library buffers it if it is a pipe or file */
        (void)SetConsoleOutputCP(CP_UTF8);
        start_adopt();
        return main(argc, all);
}

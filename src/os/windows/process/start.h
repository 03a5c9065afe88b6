/* New processes. Any thread; start_self: one. */
#ifndef SPANCL_OS_WINDOWS_PROCESS_START_H
#define SPANCL_OS_WINDOWS_PROCESS_START_H

#include <stdbool.h>
#include <sys/types.h>

#include <windows.h>

/* Start the program `argv[0]`: a path, or a name that PATH has. It inherits the standard handles of this process, but
 * `output`, if that is not NULL, in the place of the standard output. The caller closes *ret. False: errno gives the
 * reason. A batch file is refused (ENOEXEC): cmd.exe would read its arguments as commands. */
bool start_program(char *const argv[], HANDLE output, HANDLE *ret);

/* Compose the line that has these arguments, for the system to split. The caller frees it. NULL: errno gives the
 * reason. */
wchar_t *start_command_line(char *const argv[]);

enum { START_CONTROL = 3 }; /* the first descriptor behind the standard ones, as on Linux */

/* The descriptors and the job of a process that start_self starts. The descriptors are sockets, or those of the C
 * library. -1: none. */
struct start_with {
        int control, error; /* the new process's START_CONTROL, and its standard output and error */
        HANDLE job;         /* in which it begins; NULL: a job that ends it with this process */
};

/* Start this program anew, as a child (process.h): it inherits only the descriptors of `with` and the environment.
 * -1: errno gives the reason. */
pid_t start_self(char *const argv[], const struct start_with *with);

/* In a process that start_self has started: make its control socket the descriptor START_CONTROL, for packets of its
 * parent, whose descriptors it takes. Does nothing in other processes. */
void start_adopt(void);

/* Wait for its end and close it. Returns the exit status that the system has. False: it is not known. */
bool start_wait(HANDLE process, DWORD *ret_status);

#endif

/* The access of other users to a file or folder, by its owner and its access control list. No state; any thread. */
#ifndef SPANCL_OS_WINDOWS_ACCESS_H
#define SPANCL_OS_WINDOWS_ACCESS_H

#include <stdbool.h>

#include <windows.h>

struct access {
        bool foreign; /* neither this process's user, nor an administrator or the system owns it */
        bool read, write; /* other users can */
        unsigned owner;   /* the last number of the owner's identifier */
};

/* Judge an owner and a list. As in the system, a NULL list gives all users every right. Entries that deny rights do not
 * count. */
void access_judge(PSID owner, PACL list, struct access *ret);

/* The same for an open file, which needs READ_CONTROL. False: errno gives the reason. */
bool access_of(HANDLE file, struct access *ret);

/* Return the attributes of new files and folders for this process's user, administrators and the system alone. Those of
 * a folder hold for new files in it, too. Static; any thread. NULL: errno gives the reason. */
SECURITY_ATTRIBUTES *access_private(void);

#endif

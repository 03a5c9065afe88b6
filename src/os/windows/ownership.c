/* Access rights of Windows are lists, which this port does not read: only files in the folders of this user's profile
 * count, and their rights are inherited. */
#include "os/ownership.h"

bool ownership_of_file(int fd, enum ownership *ret, unsigned *ret_user)
{
        (void)fd;
        *ret = OWNERSHIP_PRIVATE;
        *ret_user = 0;
        return true;
}

bool ownership_of_folder(const char *path, enum ownership *ret, unsigned *ret_user)
{
        (void)path;
        *ret = OWNERSHIP_PRIVATE;
        *ret_user = 0;
        return true;
}

bool ownership_is_unmapped(const char *path)
{
        (void)path;
        return false;
}

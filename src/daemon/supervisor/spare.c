#include "daemon/supervisor/spare.h"

#include <fcntl.h>
#include <unistd.h>

bool spare_fill(struct spare *s)
{
        for (int i = 0; i < SPARE_COUNT; i++) {
                if (s->fds[i] > 0)
                        continue;
                s->fds[i] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
                if (s->fds[i] < 0)
                        return false;
        }
        return true;
}

void spare_give(struct spare *s)
{
        for (int i = 0; i < SPARE_COUNT; i++) {
                if (s->fds[i] > 0)
                        close(s->fds[i]);
                s->fds[i] = 0;
        }
}

#include "daemon/supervisor/spare.h"
#include "os/file.h"

bool spare_fill(struct spare *s)
{
        for (int i = 0; i < SPARE_COUNT; i++) {
                if (s->fds[i] > 0)
                        continue;
                s->fds[i] = file_duplicate(FILE_STDERR);
                if (s->fds[i] < 0)
                        return false;
        }
        return true;
}

void spare_give(struct spare *s)
{
        for (int i = 0; i < SPARE_COUNT; i++) {
                if (s->fds[i] > 0)
                        (void)file_close(s->fds[i]);
                s->fds[i] = 0;
        }
}

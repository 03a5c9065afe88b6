#include "backend/native/room.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/folder.h"

enum {
        LITTLE = 4 << 20
}; /* bytes: a compiler that met the end has removed some of its files again */

void room_note(char text[ROOM_NOTE_MAX])
{
        /* In a session's own root, only the folders of the drivers are on the disk: what is above them
         * is a file system of 1 MiB, which is always nearly full. */
        static const struct {
                const char *variable, *folder, *what;
        } folders[] = {
                { "TMPDIR", "", "temporary files" },
                { "POCL_CACHE_DIR", "", "compiled programs" },
                { "XDG_CACHE_HOME", "/pocl", "compiled programs" },
                { "CUDA_CACHE_PATH", "", "compiled programs" },
        };
        *text = 0;
        for (size_t i = 0; i < array_size(folders); i++) {
                uint64_t left;
                bool names;
                char path[PATH_MAX];
                const char *base = secure_getenv(folders[i].variable);
                if (!base ||
                    snprintf(path, sizeof(path), "%s%s", base, folders[i].folder) >= PATH_MAX ||
                    !folder_room(path, &left, &names))
                        continue;
                if (left >= LITTLE && names)
                        continue;
                snprintf(
                        text, ROOM_NOTE_MAX,
                        "The disk for %s is full on the machine that built this (%llu KiB%s left).\n",
                        folders[i].what, (unsigned long long)left >> 10,
                        names ? "" : " and no file names");
                log_warn("build", "a build failed, and the disk of %s is full", path);
                return;
        }
}

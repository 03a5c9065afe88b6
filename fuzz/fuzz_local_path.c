/* The paths of a worker's requests to be connected on its host (daemon/dialler/local_path.h). The dialler
 * connects only to the sockets of servers, and no descriptor stays open. The first byte of the
 * input chooses the beginning of the path. */
#include "fuzz/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/dialler/local_path.h"
#include "daemon/system/scratch.h"
#include "daemon/system/tree.h"

static char base[64], folder[SCRATCH_PATH_MAX], path[SCRATCH_PATH_MAX + 16];
static int listener, lock;

static void clean_up(void)
{
        tree_remove(base);
}

static void listen_at(int fd, const char *where)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        fuzz_check(snprintf(a.sun_path, sizeof(a.sun_path), "%s", where) < (int)sizeof(a.sun_path));
        fuzz_check(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 64) == 0);
}

/* A server's socket, and things beside it that are none. */
static void begin(void)
{
        char other[SCRATCH_PATH_MAX + 16];
        int lured = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        snprintf(base, sizeof(base), "/tmp/fuzz-local-path.XXXXXX");
        fuzz_check(mkdtemp(base) != NULL && setenv("TMPDIR", base, 1) == 0);
        atexit(clean_up);
        fuzz_check(scratch_make(folder, &lock) == 0);
        snprintf(path, sizeof(path), "%s/" LOCAL_PATH_NAME, folder);
        listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        listen_at(listener, path);
        snprintf(other, sizeof(other), "%s/other", folder);
        listen_at(lured, other);
        snprintf(other, sizeof(other), "%s/spancld.aaaaaa", base);
        fuzz_check(symlink(folder, other) == 0);
        snprintf(other, sizeof(other), "%s/spancld.bbbbbb", base);
        fuzz_check(mkdir(other, 0700) == 0);
        snprintf(other, sizeof(other), "%s/spancld.bbbbbb/" LOCAL_PATH_NAME, base);
        fuzz_check(symlink(path, other) == 0);
}

static int next_descriptor(void)
{
        int fd = dup(STDERR_FILENO);
        close(fd);
        return fd;
}

static size_t put(char *to, size_t at, size_t room, const void *data, size_t n)
{
        n = n < room - at ? n : room - at;
        memcpy(to + at, data, n);
        return at + n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static char asked[4096];
        struct conn *conn = NULL;
        if (!*base)
                begin();
        int free_one = next_descriptor();
        const char *begins[] = { "", base, folder, path };
        const char *first = begins[size ? data[0] % 4 : 0];
        size_t n = put(asked, 0, sizeof(asked) - 1, first, strlen(first));
        if (size)
                n = put(asked, n, sizeof(asked) - 1, data + 1, size - 1);
        asked[n] = 0;
        int r = local_path_connect(asked, &conn);
        fuzz_check(r == 0 || r == SP_E_REFUSED);
        fuzz_check((r == 0) == !strcmp(asked, path));
        int came = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        fuzz_check((came >= 0) == (r == 0));
        if (came >= 0)
                close(came);
        conn_close(conn);
        fuzz_check(next_descriptor() == free_one);
        return 0;
}

#include "support/check.h"

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

/* A base folder for what is believed in, with a server's socket in it. */
static char base[64], folder[SCRATCH_PATH_MAX], path[SCRATCH_PATH_MAX + 8];
static int listener, lock;

static int listen_at(const char *where)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        snprintf(a.sun_path, sizeof(a.sun_path), "%s", where);
        assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
        assert_int_equal(listen(fd, 64), 0);
        return fd;
}

static int begin(void **state)
{
        (void)state;
        strcpy(base, "/tmp/test-local-path.XXXXXX");
        assert_non_null(mkdtemp(base));
        assert_int_equal(setenv("TMPDIR", base, 1), 0);
        assert_int_equal(scratch_make(folder, &lock), 0);
        snprintf(path, sizeof(path), "%s/" LOCAL_PATH_NAME, folder);
        listener = listen_at(path);
        return 0;
}

static int end(void **state)
{
        (void)state;
        close(listener);
        close(lock);
        tree_remove(base);
        return 0;
}

static bool is_connected(const char *to)
{
        struct conn *conn;
        int r = local_path_connect(to, &conn);
        assert_true(!r || r == SP_E_REFUSED);
        if (!r)
                conn_close(conn);
        return !r;
}

/* As `path`, but in the folder `name` beside it. */
static const char *beside(const char *name)
{
        static char text[SCRATCH_PATH_MAX + 16];
        snprintf(text, sizeof(text), "%s/%s/" LOCAL_PATH_NAME, base, name);
        return text;
}

static void make_folder(const char *name)
{
        char text[SCRATCH_PATH_MAX];
        snprintf(text, sizeof(text), "%s/%s", base, name);
        assert_int_equal(mkdir(text, 0700), 0);
}

TEST(the_socket_of_a_server_is_connected_to)
{
        assert_true(is_connected(path));
        int came = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        assert_true(came >= 0);
        close(came);
}

TEST(nothing_else_is)
{
        char text[2 * SCRATCH_PATH_MAX];
        assert_false(is_connected("/"));
        assert_false(is_connected(LOCAL_PATH_NAME));
        assert_false(is_connected(folder));
        /* In the folder, but by another name; or not by the plain path. */
        snprintf(text, sizeof(text), "%s/other", folder);
        int other = listen_at(text);
        assert_false(is_connected(text));
        snprintf(text, sizeof(text), "%s/./" LOCAL_PATH_NAME, folder);
        assert_false(is_connected(text));
        snprintf(text, sizeof(text), "%s/x/../" LOCAL_PATH_NAME, folder);
        assert_false(is_connected(text));
        snprintf(text, sizeof(text), "%s/../%s", folder, strrchr(folder, '/') + 1);
        assert_false(is_connected(text));
        /* A folder that is a link, or whose name is that of none. */
        snprintf(text, sizeof(text), "%s/spancld.aaaaaa", base);
        assert_int_equal(symlink(folder, text), 0);
        assert_false(is_connected(beside("spancld.aaaaaa")));
        make_folder("spanclx.aaaaaa");
        int named = listen_at(beside("spanclx.aaaaaa"));
        assert_false(is_connected(beside("spanclx.aaaaaa")));
        /* Workers may make links, files and folders of other names there. */
        make_folder("spancld.bbbbbb");
        assert_int_equal(symlink(path, beside("spancld.bbbbbb")), 0);
        assert_false(is_connected(beside("spancld.bbbbbb")));
        make_folder("spancld.cccccc");
        FILE *file = fopen(beside("spancld.cccccc"), "w");
        assert_non_null(file);
        fclose(file);
        assert_false(is_connected(beside("spancld.cccccc")));
        make_folder("spancld.dddddd");
        snprintf(text, sizeof(text), "%s/other", folder);
        assert_int_equal(link(text, beside("spancld.dddddd")), 0);
        assert_false(is_connected(beside("spancld.dddddd")));
        /* Nobody listens there any more. */
        make_folder("spancld.eeeeee");
        close(listen_at(beside("spancld.eeeeee")));
        assert_false(is_connected(beside("spancld.eeeeee")));
        /* Longer than any. */
        memset(text, 'a', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        assert_false(is_connected(text));
        close(other);
        close(named);
        assert_true(accept4(listener, NULL, NULL, SOCK_CLOEXEC) < 0);
}

TEST(the_folder_and_the_socket_have_to_be_of_the_same_user)
{
        if (geteuid()) {
                skip();
                return;
        }
        make_folder("spancld.ffffff");
        int fd = listen_at(beside("spancld.ffffff"));
        char text[SCRATCH_PATH_MAX];
        snprintf(text, sizeof(text), "%s/spancld.ffffff", base);
        assert_true(is_connected(beside("spancld.ffffff")));
        assert_int_equal(chown(text, 12345, 12345), 0);
        assert_false(is_connected(beside("spancld.ffffff")));
        close(fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_socket_of_a_server_is_connected_to, begin, end),
                cmocka_unit_test_setup_teardown(nothing_else_is, begin, end),
                cmocka_unit_test_setup_teardown(
                        the_folder_and_the_socket_have_to_be_of_the_same_user, begin, end),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

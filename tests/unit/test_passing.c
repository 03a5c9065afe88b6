/* Packets over Unix sockets between processes, one of which may have ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/passing.h"

static void say(int socket, const char *text)
{
        char copy[16];
        struct iovec iov = { strcpy(copy, text), strlen(text) };
        assert_int_equal(passing_send(socket, &iov, 1, NULL, 0), strlen(text));
}

static ssize_t hear(int socket, char text[16])
{
        struct iovec iov = { text, 15 };
        int fd;
        ssize_t n = passing_receive(socket, &iov, 1, &fd, 1);
        text[n > 0 ? n : 0] = 0;
        return n;
}

/* Linux reports the reset first: net/unix/af_unix.c, unix_release_sock. */
static void last_words_are_heard_of_one_that_has_not_read_all(void **state)
{
        int pair[2];
        char text[16];
        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        say(pair[0], "unread");
        say(pair[1], "first");
        say(pair[1], "last");
        close(pair[1]);
        assert_int_equal(hear(pair[0], text), 5);
        assert_string_equal(text, "first");
        assert_int_equal(hear(pair[0], text), 4);
        assert_string_equal(text, "last");
        assert_int_equal(hear(pair[0], text), SP_E_LINK);
        close(pair[0]);
}

static void nothing_is_heard_of_one_that_has_said_nothing(void **state)
{
        int pair[2];
        char text[16];
        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(hear(pair[0], text), SP_E_AGAIN);
        say(pair[0], "unread");
        close(pair[1]);
        assert_int_equal(hear(pair[0], text), SP_E_LINK);
        close(pair[0]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(last_words_are_heard_of_one_that_has_not_read_all),
                cmocka_unit_test(nothing_is_heard_of_one_that_has_said_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

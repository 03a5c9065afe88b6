#include "base/journal.h"

#include <string.h>

#include "os/file.h"
#include "os/net/socket.h"

static struct {
        int fd; /* valid if journal_open has returned true */
        struct socket_address at;
} journal;

/* Return true if somebody listens there. */
static bool is_open(const struct socket_address *at)
{
        int fd = socket_new_datagrams(at);
        bool open = fd >= 0 && socket_connect(fd, at);
        if (fd >= 0)
                (void)file_close(fd);
        return open;
}

bool journal_open(const char *path)
{
        struct socket_address at;
        if (!socket_address_of_path(path, &at) || !is_open(&at))
                return false;
        int fd = socket_new_datagrams(&at);
        if (fd < 0)
                return false;
        journal.fd = fd;
        journal.at = at;
        return true;
}

static size_t put(char *out, size_t n, const char *key, const char *value, size_t size)
{
        size_t head = strlen(key), room = LOG_LINE_MAX - n;
        const char *end = memchr(value, '\n', size);
        if (end)
                size = (size_t)(end - value);
        if (head + 1 >= room)
                return n;
        size = size < room - head - 1 ? size : room - head - 1;
        memcpy(out + n, key, head);
        memcpy(out + n + head, value, size);
        out[n + head + size] = '\n';
        return n + head + size + 1;
}

size_t journal_compose(const struct log_line *line, char out[LOG_LINE_MAX])
{
        /* As syslog(3) numbers them. */
        static const char *const priorities[] = { "3", "4", "6", "7" };
        int level = log_level_parse(line->level);
        size_t n = put(out, 0, "PRIORITY=", priorities[level < 0 ? LOG_INFO : level], 1);
        n = put(out, n, "SYSLOG_IDENTIFIER=", "spancld", strlen("spancld"));
        n = put(out, n, "SPANCL_COMPONENT=", line->component, strlen(line->component));
        if (line->about)
                n = put(out, n, "SPANCL_CLIENT=", line->about, strlen(line->about));
        return put(out, n, "MESSAGE=", (const char *)line->text.data, line->text.size);
}

bool journal_send(const char *entry, size_t size)
{
        /* The address goes with each entry, because the journal may have started again. */
        return socket_send_to(journal.fd, &journal.at, entry, size);
}

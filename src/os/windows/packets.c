#include "os/windows/packets.h"

#include <assert.h>
#include <errno.h>
#include <io.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/net/socket.h"
#include "os/passing.h"
#include "os/windows/descriptor.h"

enum {
        PACKET_MAX = 1 << 16, /* bytes, without the records */
        ROOM_MS = 100,        /* for the rest of a packet whose beginning was sent */
};

enum kind { KIND_SOCKET, KIND_PACKETS, KIND_FILE };

struct header {
        uint32_t size; /* of the packet's bytes */
        uint32_t count;
};

/* A descriptor on its way. */
struct record {
        uint32_t kind;
        uint32_t refuses; /* of KIND_PACKETS: passing_refuse was called */
        uint64_t handle;  /* of KIND_FILE: in the receiver's process */
        int64_t other;    /* of KIND_PACKETS: the process with the other end */
        WSAPROTOCOL_INFOW info;
};

struct packet {
        struct header header;
        struct record records[PASSING_MAX];
        uint8_t data[PACKET_MAX];
};

struct end {
        struct end *next;
        int fd, pair; /* `pair`: the other end, if this process has it; -1 */
        pid_t other;  /* the process with the other end */
        HANDLE held;  /* of that process, without `pair`: no other one gets its number */
        bool takes, refuses;
        size_t have; /* bytes of `incoming` */
        struct packet *incoming;
};

/* Guards the list and its items, and keeps each packet whole: threads of the dialler send on one socket. */
static struct lock lock = LOCK_INIT;
static struct end *ends;

static struct end *find(int fd)
{
        struct end *e = ends;
        while (e && e->fd != fd)
                e = e->next;
        return e;
}

static bool add(int fd, int pair, pid_t other, bool takes)
{
        struct end *e = calloc(1, sizeof(*e));
        if (!e)
                return false;
        *e = (struct end){ .fd = fd, .pair = pair, .other = other, .takes = takes };
        if (pair < 0)
                e->held = OpenProcess(SYNCHRONIZE, FALSE, (DWORD)other);
        if (pair < 0 && !e->held) /* it has ended */
                e->other = 0;
        lock_take(&lock);
        e->next = ends;
        ends = e;
        lock_release(&lock);
        return true;
}

bool packets_begin(const int pair[2])
{
        const pid_t self = (pid_t)GetCurrentProcessId();
        if (!add(pair[0], pair[1], self, false))
                return false;
        if (add(pair[1], pair[0], self, false))
                return true;
        packets_forget(pair[0]);
        return false;
}

bool packets_adopt(int fd, pid_t other, bool takes)
{
        return add(fd, -1, other, takes);
}

static void given(const struct end *e, pid_t pid)
{
        struct end *other = e->pair < 0 ? NULL : find(e->pair);
        if (other)
                other->other = pid;
}

void packets_given(int fd, pid_t pid)
{
        lock_take(&lock);
        struct end *e = find(fd);
        if (e)
                given(e, pid);
        lock_release(&lock);
}

void packets_forget(int fd)
{
        lock_take(&lock);
        struct end **at = &ends, *e = NULL;
        while (*at && (*at)->fd != fd)
                at = &(*at)->next;
        if (*at) {
                e = *at;
                *at = e->next;
        }
        for (struct end *other = ends; e && other; other = other->next)
                if (other->pair == fd)
                        other->pair = -1;
        lock_release(&lock);
        if (e && e->held)
                CloseHandle(e->held);
        if (e)
                free(e->incoming);
        free(e);
}

void passing_refuse(int socket)
{
        lock_take(&lock);
        struct end *e = find(socket);
        if (e) {
                e->takes = false;
                e->refuses = true;
        }
        lock_release(&lock);
}

/* ---- sending --------------------------------------------------------------------------------- */

static bool copy_file(int fd, pid_t to, uint64_t *ret)
{
        HANDLE process = OpenProcess(PROCESS_DUP_HANDLE, FALSE, (DWORD)to), copy;
        bool ok = process && DuplicateHandle(GetCurrentProcess(), (HANDLE)_get_osfhandle(fd),
                                             process, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS);
        if (process)
                CloseHandle(process);
        if (ok)
                *ret = (uint64_t)(uintptr_t)copy;
        return ok;
}

/* Copy a descriptor into the process `to`. */
static bool put_record(struct record *r, int fd, pid_t to)
{
        *r = (struct record){ .kind = KIND_FILE };
        if (!descriptor_is_socket(fd))
                return copy_file(fd, to, &r->handle);
        struct end *e = find(fd);
        r->kind = e ? KIND_PACKETS : KIND_SOCKET;
        if (e) {
                r->refuses = e->refuses;
                r->other = e->other;
                given(e, to);
        }
        return WSADuplicateSocketW(descriptor_socket(fd), (DWORD)to, &r->info) == 0;
}

static bool has_room(SOCKET s, int timeout_ms)
{
        WSAPOLLFD p = { .fd = s, .events = POLLOUT };
        return WSAPoll(&p, 1, timeout_ms) > 0 && p.revents == POLLOUT;
}

/* Send all. A packet that was sent in part would make the next ones unreadable, so the connection ends then. */
static int send_all(SOCKET s, const char *data, size_t size)
{
        uint64_t until_ns = clock_now_ns() + ROOM_MS * 1000000ull;
        for (size_t sent = 0; sent < size;) {
                int n = send(s, data + sent, (int)(size - sent), 0);
                if (n > 0) {
                        sent += (size_t)n;
                        continue;
                }
                if (n < 0 && WSAGetLastError() == WSAEWOULDBLOCK && !sent)
                        return SP_E_AGAIN;
                if (n < 0 && WSAGetLastError() == WSAEWOULDBLOCK &&
                    has_room(s, clock_poll_ms(until_ns)))
                        continue;
                (void)shutdown(s, SD_BOTH);
                return SP_E_LINK;
        }
        return 0;
}

ssize_t passing_send(int socket, struct iovec *iov, size_t n, const int *fds, size_t count)
{
        SOCKET s = descriptor_socket(socket);
        size_t size = 0, at = 0;
        assert(count <= PASSING_MAX);
        for (size_t i = 0; i < n; i++)
                size += iov[i].iov_len;
        if (size > PACKET_MAX)
                return SP_E_LINK;
        const struct header h = { .size = (uint32_t)size, .count = (uint32_t)count };
        const size_t records = count * sizeof(struct record), whole = sizeof(h) + records + size;
        char *all = malloc(whole);
        if (!all)
                return SP_E_AGAIN;
        memcpy(all, &h, sizeof(h));
        for (size_t i = 0; i < n; i++) {
                memcpy(all + sizeof(h) + records + at, iov[i].iov_base, iov[i].iov_len);
                at += iov[i].iov_len;
        }
        int r = 0;
        lock_take(&lock);
        const struct end *e = find(socket);
        if (!e)
                r = SP_E_LINK;
        else if (count && !has_room(s, 0)) /* before handles are copied */
                r = SP_E_AGAIN;
        for (size_t i = 0; i < count && !r; i++) {
                struct record one;
                r = put_record(&one, fds[i], e->other) ? 0 : SP_E_LINK;
                memcpy(all + sizeof(h) + i * sizeof(one), &one, sizeof(one));
        }
        if (!r)
                r = send_all(s, all, whole);
        lock_release(&lock);
        free(all);
        return r < 0 ? r : (ssize_t)size;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static int take_record(const struct record *r)
{
        WSAPROTOCOL_INFOW info = r->info;
        if (r->kind == KIND_FILE)
                return descriptor_of_file((HANDLE)(uintptr_t)r->handle);
        int fd = descriptor_of(WSASocketW(FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO,
                                          FROM_PROTOCOL_INFO, &info, 0, WSA_FLAG_OVERLAPPED),
                               false);
        if (fd < 0 || r->kind != KIND_PACKETS || packets_adopt(fd, (pid_t)r->other, !r->refuses))
                return fd;
        (void)file_close(fd);
        return -1;
}

/* Receive up to `size` bytes of the packet. 0: it has as many; SP_E_AGAIN, SP_E_LINK. */
static int fill(struct end *e, size_t size)
{
        while (e->have < size) {
                int n = recv(descriptor_socket(e->fd), (char *)e->incoming + e->have,
                             (int)(size - e->have), 0);
                if (n <= 0)
                        return n < 0 && WSAGetLastError() == WSAEWOULDBLOCK ? SP_E_AGAIN
                                                                            : SP_E_LINK;
                e->have += (size_t)n;
        }
        return 0;
}

/* The records and the bytes follow each other, whatever their number, so the records come first into their places. */
static int receive_packet(struct end *e)
{
        struct packet *p = e->incoming;
        int r = fill(e, sizeof(p->header));
        if (!r && (p->header.size > PACKET_MAX || p->header.count > PASSING_MAX))
                r = SP_E_LINK;
        return r < 0 ? r
                     : fill(e, sizeof(p->header) + p->header.count * sizeof(p->records[0]) +
                                       p->header.size);
}

/* Receive the next packet into `incoming`. Returns the socket's end, or NULL. This thread alone receives from the
 * socket and closes it. */
static struct end *receive_whole(int socket, int *ret)
{
        lock_take(&lock);
        struct end *e = find(socket);
        lock_release(&lock);
        if (e && !e->incoming)
                e->incoming = malloc(sizeof(*e->incoming));
        *ret = !e ? SP_E_LINK : !e->incoming ? SP_E_AGAIN : receive_packet(e);
        return *ret < 0 ? NULL : e;
}

static const char *data_of(const struct packet *p)
{
        return (const char *)p->records + p->header.count * sizeof(p->records[0]);
}

ssize_t passing_peek(int socket, void *ret, size_t size)
{
        int r;
        const struct end *e = receive_whole(socket, &r);
        if (!e)
                return r;
        if (size > e->incoming->header.size)
                size = e->incoming->header.size;
        memcpy(ret, data_of(e->incoming), size);
        return (ssize_t)size;
}

ssize_t passing_receive(int socket, struct iovec *iov, size_t n, int *ret_fds, size_t max)
{
        for (size_t i = 0; i < max; i++)
                ret_fds[i] = -1;
        int r;
        struct end *e = receive_whole(socket, &r);
        if (!e)
                return r;
        struct packet *p = e->incoming;
        const char *data = data_of(p);
        size_t left = p->header.size;
        e->have = 0;
        for (size_t i = 0; i < p->header.count && e->takes; i++) {
                int fd = take_record(&p->records[i]);
                if (i < max)
                        ret_fds[i] = fd;
                else if (fd >= 0)
                        (void)file_close(fd);
        }
        for (size_t i = 0; i < n && left; i++) {
                size_t part = left < iov[i].iov_len ? left : iov[i].iov_len;
                memcpy(iov[i].iov_base, data, part);
                data += part;
                left -= part;
        }
        if (!left && p->header.size)
                return (ssize_t)p->header.size;
        for (size_t i = 0; i < max; i++) {
                if (ret_fds[i] >= 0)
                        (void)file_close(ret_fds[i]);
                ret_fds[i] = -1;
        }
        return SP_E_PROTO;
}

/* Attacks on services of this host through sockets, and kinds of sockets that a session does not
 * need. */
#include "sandbox/attacks/attack.h"

enum {
        FAMILY_UNIX = 1,
        FAMILY_INET = 2,
        FAMILY_INET6 = 10,
        FAMILY_NETLINK = 16,
        FAMILY_PACKET = 17,
        FAMILY_ALG = 38,
        FAMILY_VSOCK = 40,
        FAMILIES = 64,
        STREAM = 1,
        DATAGRAM = 2,
        RAW = 3,
        NAMES = 16, /* bytes of an address of FAMILY_INET */
};

static i64 socket_of(i64 family, i64 type, i64 protocol)
{
        return SYS3(socket, family, type | O_CLOSE | 04000, protocol); /* SOCK_NONBLOCK */
}

static int has_socket(struct attack *a, i64 family, i64 type, i64 protocol)
{
        return judge_fd(a, socket_of(family, type, protocol));
}

int attack_unix_socket(struct attack *a)
{
        return has_socket(a, FAMILY_UNIX, STREAM, 0);
}

int attack_netlink_route(struct attack *a)
{
        return has_socket(a, FAMILY_NETLINK, RAW, 0);
}

int attack_netlink_sockets(struct attack *a)
{
        return has_socket(a, FAMILY_NETLINK, RAW, 4);
}

int attack_netlink_audit(struct attack *a)
{
        return has_socket(a, FAMILY_NETLINK, RAW, 9);
}

int attack_netlink_filter(struct attack *a)
{
        return has_socket(a, FAMILY_NETLINK, RAW, 12);
}

int attack_netlink_generic(struct attack *a)
{
        return has_socket(a, FAMILY_NETLINK, RAW, 16);
}

int attack_packet_socket(struct attack *a)
{
        return has_socket(a, FAMILY_PACKET, RAW, 0x300);
}

int attack_raw_socket(struct attack *a)
{
        return has_socket(a, FAMILY_INET, RAW, 1);
}

int attack_ping_socket(struct attack *a)
{
        return has_socket(a, FAMILY_INET, DATAGRAM, 1);
}

int attack_vsock_socket(struct attack *a)
{
        return has_socket(a, FAMILY_VSOCK, STREAM, 0);
}

int attack_crypto_socket(struct attack *a)
{
        return has_socket(a, FAMILY_ALG, 5, 0);
}

int attack_sctp_socket(struct attack *a)
{
        return has_socket(a, FAMILY_INET, STREAM, 132);
}

int attack_mptcp_socket(struct attack *a)
{
        return has_socket(a, FAMILY_INET, STREAM, 262);
}

int attack_rare_sockets(struct attack *a)
{
        int outcome = ATTACK_HELD;
        for (i64 family = 3; family < FAMILIES && outcome == ATTACK_HELD; family++)
                for (i64 type = STREAM; type <= 5 && outcome == ATTACK_HELD; type++)
                        if (family != FAMILY_INET6 && family != FAMILY_NETLINK)
                                outcome = has_socket(a, family, type, 0);
        return outcome;
}

/* 127.0.0.1 */
static void loopback(u8 *out, i64 port)
{
        fill(out, NAMES, 0);
        out[0] = FAMILY_INET;
        out[2] = (u8)(port >> 8);
        out[3] = (u8)port;
        out[4] = 127;
        out[7] = 1;
}

static int connects(struct attack *a, i64 family, i64 type, const void *name, i64 size)
{
        i64 fd = SYS3(socket, family, type | O_CLOSE, 0);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS3(connect, fd, name, size);
        (void)SYS1(close, fd);
        return judge(a, r);
}

int attack_connect_to_service(struct attack *a)
{
        u8 name[NAMES];
        loopback(name, N(tcp));
        return connects(a, FAMILY_INET, STREAM, name, sizeof(name));
}

/* Connect to the server itself, which takes a connection over loopback for a client of this host. */
int attack_connect_to_server(struct attack *a)
{
        u8 name[NAMES];
        loopback(name, N(port));
        return connects(a, FAMILY_INET, STREAM, name, sizeof(name));
}

int attack_connect_by_ipv6(struct attack *a)
{
        u8 name[28];
        i64 port = N(tcp);
        fill(name, sizeof(name), 0); /* ::ffff:127.0.0.1 */
        name[0] = FAMILY_INET6;
        name[2] = (u8)(port >> 8);
        name[3] = (u8)port;
        name[18] = name[19] = 0xff;
        name[20] = 127;
        name[23] = 1;
        return connects(a, FAMILY_INET6, STREAM, name, sizeof(name));
}

int attack_send_to_service(struct attack *a)
{
        u8 name[NAMES];
        char byte = 0;
        loopback(name, N(udp));
        i64 fd = socket_of(FAMILY_INET, DATAGRAM, 0);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS6(sendto, fd, &byte, 1, 0, name, sizeof(name));
        (void)SYS1(close, fd);
        return judge(a, r);
}

int attack_connect_quickly(struct attack *a)
{
        u8 name[NAMES];
        char byte = 0;
        loopback(name, N(tcp));
        i64 fd = SYS3(socket, FAMILY_INET, STREAM | O_CLOSE, 0);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS6(sendto, fd, &byte, 1, 0x20000000, name, sizeof(name)); /* MSG_FASTOPEN */
        (void)SYS1(close, fd);
        return judge(a, r);
}

/* A listener in a network namespace is unreachable, and the other service is not in it. */
static int judge_listener(struct attack *a, i64 r)
{
        return r < 0 ? judge(a, r) : attack_connect_to_service(a);
}

static int listens(struct attack *a, int everywhere)
{
        u8 name[NAMES];
        loopback(name, 0);
        if (everywhere)
                fill(name + 4, 4, 0);
        i64 fd = socket_of(FAMILY_INET, STREAM, 0);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS3(bind, fd, name, sizeof(name));
        if (r >= 0)
                r = SYS2(listen, fd, 1);
        (void)SYS1(close, fd);
        return judge_listener(a, r);
}

int attack_listen_everywhere(struct attack *a)
{
        return listens(a, 1);
}

int attack_listen_on_loopback(struct attack *a)
{
        return listens(a, 0);
}

/* listen() without bind() takes any port. */
int attack_listen_unbound(struct attack *a)
{
        i64 fd = socket_of(FAMILY_INET, STREAM, 0);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS2(listen, fd, 1);
        (void)SYS1(close, fd);
        return judge_listener(a, r);
}

int attack_mark_packets(struct attack *a)
{
        i32 mark = 1;
        i64 fd = socket_of(FAMILY_INET, STREAM, 0);
        if (fd < 0)
                return judge(a, fd);
        i64 r = SYS5(setsockopt, fd, 1, 36, &mark, 4);
        (void)SYS1(close, fd);
        return judge(a, r);
}

static int connects_unix(struct attack *a, i64 text, int abstract)
{
        char path[PATH_SIZE];
        u8 name[110];
        u32 at = 0;
        fill(name, sizeof(name), 0);
        put_param(path, &at, text);
        for (u32 i = 0; i < at && i < 106; i++)
                name[2 + i + (abstract != 0)] = (u8)path[i];
        name[0] = FAMILY_UNIX;
        return connects(a, FAMILY_UNIX, STREAM, name, 2 + at + 1);
}

int attack_connect_to_unix_service(struct attack *a)
{
        return connects_unix(a, P(unix_socket), 0);
}

int attack_connect_to_abstract_service(struct attack *a)
{
        return connects_unix(a, P(abstract_socket), 1);
}

int attack_connect_to_local_socket(struct attack *a)
{
        return connects_unix(a, P(local_socket), 0);
}

/* Pairs are made without socket(). A connected pair is not asked for its family. */
int attack_connect_a_pair(struct attack *a)
{
        char path[PATH_SIZE];
        u8 name[110];
        u32 at = 0;
        i32 pair[2];
        fill(name, sizeof(name), 0);
        name[0] = FAMILY_UNIX;
        put_param(path, &at, P(unix_socket));
        for (u32 i = 0; i < at && i < 106; i++)
                name[2 + i] = (u8)path[i];
        i64 r = SYS4(socketpair, FAMILY_UNIX, DATAGRAM, 0, pair);
        if (r < 0)
                return judge(a, r);
        r = SYS3(connect, pair[0], name, 2 + at + 1);
        (void)SYS1(close, pair[0]);
        (void)SYS1(close, pair[1]);
        return r == -91 ? ATTACK_BREACHED : judge(a, r); /* EPROTOTYPE: it was found */
}

/* The service manager's notification protocol (sd_notify(3)): a datagram to $NOTIFY_SOCKET. */
#ifndef SPANCL_DAEMON_NOTIFY_H
#define SPANCL_DAEMON_NOTIFY_H

/* Send `state`, such as "READY=1"; nothing happens without a service manager. */
void notify_send(const char *state);

#endif

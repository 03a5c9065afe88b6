/* Sets of descriptors, and the sockets in them that are closed. */
#ifndef SPANCL_OS_WINDOWS_EVENT_SET_H
#define SPANCL_OS_WINDOWS_EVENT_SET_H

/* Take this socket out of all sets, or free the set whose descriptor it is. file_close() calls it first. Any thread. */
void event_set_forget(int fd);

#endif

/* Room on the disks that a build writes to: drivers do not say that one is full. No state. */
#ifndef SPANCL_BACKEND_NATIVE_ROOM_H
#define SPANCL_BACKEND_NATIVE_ROOM_H

enum { ROOM_NOTE_MAX = 160 };

/* A sentence for the log of a build that has failed, with a newline; "" where there is room. spancld's own log says which
 * disk it is. */
void room_note(char text[ROOM_NOTE_MAX]);

#endif

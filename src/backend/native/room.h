/* Free space on the disks that a build writes to, because drivers do not report a full disk. No
 * state. */
#ifndef SPANCL_BACKEND_NATIVE_ROOM_H
#define SPANCL_BACKEND_NATIVE_ROOM_H

enum { ROOM_NOTE_MAX = 160 };

/* Write a sentence for the log of a failed build, with a newline; "" if there is enough space.
 * spancld's own log says which disk is full. */
void room_note(char text[ROOM_NOTE_MAX]);

#endif

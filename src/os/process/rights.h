/* The rights of processes that read packets of strangers, as those of discovery do. */
#ifndef SPANCL_OS_PROCESS_RIGHTS_H
#define SPANCL_OS_PROCESS_RIGHTS_H

/* Give up the rights that the program does not need: root becomes nobody, and the process starts no other one and
 * has limits of memory and descriptors. Call it once, at the start. A right that can't be given up stays; a line on
 * standard error reports if it is root's. */
void rights_drop(void);

/* The same in two steps, for a program that starts threads between them. */
void rights_drop_but_threads(void);
void rights_end_threads(void);

/* Only the first of this: root becomes nobody, without further groups, for all threads. Returns an errno: it stays
 * root; 0. */
int rights_become_nobody(void);

#endif

/* Files by their descriptors. A failed call leaves its reason in errno. No state. */
#ifndef SPANCL_OS_FILE_H
#define SPANCL_OS_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

enum { FILE_STDIN, FILE_STDOUT, FILE_STDERR }; /* the program's standard input, output and error */

/* Return true if a file or folder of this path exists; if this user may read it; may execute it. */
bool file_exists(const char *path);
bool file_is_readable(const char *path);
bool file_is_executable(const char *path);

/* Find the absolute path of a file, without symbolic links. False: there is no such file. */
bool file_real_path(const char *path, char ret[PATH_MAX]);

/* Open a regular file for reading. `follow`: the path may be a symbolic link. Never waits, as
 * opening a FIFO may. Returns the descriptor, or -1. */
SP_NODISCARD int file_open(const char *path, bool follow, uint64_t *ret_size);

/* Make the file, or empty it, and open it for writing; this user alone may use it. A symbolic link
 * is refused. Returns the descriptor, or -1. */
SP_NODISCARD int file_create(const char *path);

/* The same, as a stream. NULL: errno gives the reason. */
SP_NODISCARD FILE *file_create_stream(const char *path);

/* The same as file_create for a new file. `path` ends with "XXXXXX", which letters replace. */
SP_NODISCARD int file_create_unique(char *path);

/* Open a file, also a device, for reading and writing. `create`: make it if there is none, for this user alone. -1. */
SP_NODISCARD int file_open_both(const char *path, bool create);

/* The same for a device whose accesses must reach it in their order, past all caches. */
SP_NODISCARD int file_open_uncached(const char *path);

/* Open the same file anew, for reading and writing: with locks of its own. -1. */
SP_NODISCARD int file_open_again(int fd);

/* Make a file without a name that takes memory only. -1. */
SP_NODISCARD int file_create_in_memory(void);

/* Make the file, or take an empty one, and open it for writing; its owner's group may read it. It is locked for this
 * open file, which forks share; no other open file can lock it. `replace`: also take one that is not empty, and empty
 * it. A symbolic link and all but regular files are refused. -1: EEXIST: it is not empty; EWOULDBLOCK: another open
 * file has it. */
SP_NODISCARD int file_take(const char *path, bool replace);

/* Continue to read or write from here on. */
SP_NODISCARD bool file_seek(int fd, uint64_t at);

SP_NODISCARD bool file_resize(int fd, uint64_t size);

/* Lock bytes of the file for this descriptor, until it is closed. False: EAGAIN or EACCES: another one has the lock. */
SP_NODISCARD bool file_lock_bytes(int fd, uint64_t at, uint64_t size);

/* Return another descriptor of the same file, above the standard ones, or -1. */
SP_NODISCARD int file_duplicate(int fd);

/* Close it. False: bytes written before may be lost. */
bool file_close(int fd);

/* Read up to `size` bytes. Returns how many; 0: the end; -1. */
SP_NODISCARD int64_t file_read(int fd, void *ret, size_t size);

/* Read or write all `size` bytes, or return false. */
SP_NODISCARD bool file_read_all(int fd, void *ret, size_t size);
SP_NODISCARD bool file_write_all(int fd, const void *data, size_t size);

/* Have reads and writes of it return at once, never wait. */
SP_NODISCARD bool file_never_wait(int fd);

/* Have them wait. */
SP_NODISCARD bool file_wait(int fd);

/* Make a pipe: [0] is read, and [1] is written to. No other program inherits it. */
SP_NODISCARD bool file_pipe(int ret[2]);

/* Make a pipe hold so many bytes, if the system permits. */
void file_widen_pipe(int fd, size_t size);

/* Make the descriptor `place` another one of the same file; what it was is closed. Programs inherit it. */
SP_NODISCARD bool file_put(int fd, int place);

/* Have no program inherit it that starts from now on. False: there is no such descriptor. */
SP_NODISCARD bool file_keep_from_programs(int fd);

/* Write what was written to it to the disk. */
SP_NODISCARD bool file_sync(int fd);

/* Make this user and group its owners; only root can. */
SP_NODISCARD bool file_give(int fd, unsigned user, unsigned group);

/* Rename a file within a file system. `replace`: an existing file `to` is replaced; else false with EEXIST. */
SP_NODISCARD bool file_move(const char *from, const char *to, bool replace);

/* Remove a file that is no folder. False: errno gives the reason. */
bool file_unlink(const char *path);

/* Set the time of the file's last change to now. */
void file_touch(int fd);

/* Return true if a person reads it at a terminal. */
bool file_is_terminal(int fd);

/* Replace the file `path` by `size` bytes of `data`, at once and on the disk. A missing folder is made, for this user
 * alone. The mode of the old file remains; a new one is this user's alone. False: the old file stays. */
SP_NODISCARD bool file_replace(const char *path, const void *data, size_t size);

/* Return true if `path` is a symbolic link. */
bool file_is_link(const char *path);

/* Make `path` a symbolic link to `target`. False: it exists, or can't be made. */
SP_NODISCARD bool file_link(const char *target, const char *path);

#endif

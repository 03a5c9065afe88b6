/* POSIX's status of an ended process: here its exit code in the second byte. */
#ifndef SPANCL_OS_WINDOWS_POSIX_SYS_WAIT_H
#define SPANCL_OS_WINDOWS_POSIX_SYS_WAIT_H

#define WIFEXITED(status)        (((status)&0x7f) == 0)
#define WEXITSTATUS(status)      (((status) >> 8) & 0xff)
#define WIFSIGNALED(status)      (((status)&0x7f) != 0)
#define WTERMSIG(status)         ((status)&0x7f)
#define W_EXITCODE(code, signal) ((code) << 8 | (signal))

#endif

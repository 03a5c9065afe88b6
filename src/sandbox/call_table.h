/* The rules of calls.def as a table, for the filter and its test. */
#ifndef SPANCL_SANDBOX_CALL_TABLE_H
#define SPANCL_SANDBOX_CALL_TABLE_H

#include <sys/syscall.h>

enum rule {
        ABSENT,
        REFUSE,
        EXPECTED,
        ALLOW,
        FILES,
        SANITIZER,
        CLONE,
        FCNTL,
        PRCTL,
        SELF,
        PIN,       /* as SELF; runtimes name each thread and go on without */
        BOTH_SELF, /* SELF for the second argument, too */
        PRIORITY,
        PRIORITY_IO,
        PERSONALITY,
        FAMILY,
        /* Refused because it could redirect a connection that the supervisor handed over. */
        NETWORK,
        CONNECT, /* as NETWORK */
        PAIR,
        IOCTL,
};

static const struct call {
        const char *name;
        unsigned number;
        enum rule rule;
} calls[] = {
#define CALL(NAME, RULE)          { #NAME, SYS_##NAME, RULE },
#define LATER(NAME, NUMBER, RULE) { #NAME, NUMBER, RULE },
#include "sandbox/calls.def"
#undef CALL
#undef LATER
};

#endif

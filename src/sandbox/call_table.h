/* calls.def as a table, for the filter and its test. */
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
        PIN,       /* SELF, but runtimes name each of their threads, and go on if they can't */
        BOTH_SELF, /* the second argument, too */
        PRIORITY,
        PRIORITY_IO,
        PERSONALITY,
        FAMILY,
        NETWORK, /* a connection that was handed over could be turned elsewhere */
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

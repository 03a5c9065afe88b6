/* What a machine gives the firmware that runs on it: filled in before the firmware is entered, which then sets
 * `fault`. Functions keep to the C calling convention. */
#ifndef SPANCL_MACHINE_H
#define SPANCL_MACHINE_H

#include <stdint.h>

struct machine {
        void (*idle)(uint32_t us); /* something else may be done for about so long */
        void (*ready)(void);       /* the firmware has begun: not in reset any more */
        /* Where to go on, on any stack, after an instruction that cannot be executed. */
        void (*fault)(void);
};

#endif

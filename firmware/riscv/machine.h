/* The interface between the firmware and the machine that it runs on. The machine fills it in
 * before it enters the firmware; the firmware then sets `fault`. Functions keep to the C calling
 * convention. */
#ifndef SPANCL_MACHINE_H
#define SPANCL_MACHINE_H

#include <stdint.h>

struct machine {
        void (*idle)(uint32_t us); /* the machine may do something else for about so long */
        void (*ready)(void);       /* the firmware has begun: the device is not in reset any more */
        /* The machine jumps here, on any stack, after an instruction that cannot be executed. */
        void (*fault)(void);
};

#endif

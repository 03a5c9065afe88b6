/* Run an attack by its number, because OpenCL C has no pointers to functions. */
#include "sandbox/attacks/attack.h"

#define RUN_SELF(name)   attack_##name(a)
#define RUN_SERVER(name) attack_##name(a)
#define RUN_CLIENT(name) ATTACK_NOT_APPLICABLE /* no system call makes this attack */

static int attempt(int id, struct attack *a)
{
        switch (id) {
#define ATTACK(group, name, judge, wall, sentence) \
        case ATTACK_ID_##name:                     \
                return RUN_##judge(name);
#include "sandbox/attacks/attacks.def"
#undef ATTACK
        default:
                return ATTACK_NOT_APPLICABLE;
        }
}

int attack_run(int id, struct attack *a)
{
        a->missing = a->error = 0;
        int outcome = attempt(id, a);
        return a->missing ? ATTACK_NOT_APPLICABLE : outcome;
}

/* Attacks on other processes' System V objects, by their numbers, and on those that a session
 * leaves. */
#include "sandbox/attacks/attack.h"

enum { STATUS = 2 /* IPC_STAT */ };

int attack_attach_segment(struct attack *a)
{
        i64 r = SYS3(shmat, N(segment), 0, 010000); /* SHM_RDONLY */
        if (r > 0 || r < -PAGE) {
                (void)SYS1(shmdt, r);
                return ATTACK_BREACHED;
        }
        return judge(a, r);
}

int attack_inspect_messages(struct attack *a)
{
        u64 status[32];
        return judge(a, SYS3(msgctl, N(messages), STATUS, status));
}

int attack_inspect_semaphores(struct attack *a)
{
        return judge(a, SYS4(semctl, N(semaphores), 0, 12, 0)); /* GETVAL */
}

/* The runner then searches for objects with this key. */
int attack_leave_segment(struct attack *a)
{
        i64 r = SYS3(shmget, N(key), 4096, 01600);
        return r < 0 ? judge(a, r) : ATTACK_DONE;
}

int attack_leave_messages(struct attack *a)
{
        i64 r = SYS2(msgget, N(key), 01600);
        return r < 0 ? judge(a, r) : ATTACK_DONE;
}

int attack_leave_semaphores(struct attack *a)
{
        i64 r = SYS3(semget, N(key), 1, 01600);
        return r < 0 ? judge(a, r) : ATTACK_DONE;
}

int attack_leave_queue(struct attack *a)
{
        char name[PATH_SIZE];
        u32 at = 0;
        put_text(name, &at, "spancl-attack.");
        put_number(name, &at, (u64)N(key));
        i64 r = SYS4(mq_open, name, O_BOTH | O_CREATE, 0600, 0);
        return r < 0 ? judge(a, r) : ATTACK_DONE;
}

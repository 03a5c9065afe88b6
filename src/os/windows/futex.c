/* Futexes of this process alone: the port shares no memory with other processes. */
#include "os/futex.h"

#include <windows.h>

void futex_wait(void *word, uint32_t seen, uint64_t timeout_ns)
{
        uint64_t ms = (timeout_ns + 999999) / 1000000;
        (void)WaitOnAddress(word, &seen, sizeof(seen), ms < INFINITE ? (DWORD)ms : INFINITE);
}

void futex_wake(void *word)
{
        WakeByAddressAll(word);
}

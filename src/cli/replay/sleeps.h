/* The cost of waking up on this host, for a replay (cli/replay/replay.h). A core that has slept for milliseconds wakes
 * up late, and its first instructions are slow. No state. */
#ifndef SPANCL_CLI_REPLAY_SLEEPS_H
#define SPANCL_CLI_REPLAY_SLEEPS_H

#include "cli/replay/replay.h"

/* Measure by how much longer one thread waits for another's answer if both have slept for a while before. Takes about
 * half a second. Costs that can't be measured are 0. */
void sleeps_measure(struct replay_sleep ret[REPLAY_SLEEPS]);

#endif

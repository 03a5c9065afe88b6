/* Faults of the client's configuration that a user should know: values that are not allowed, names that
 * nothing reads, files that do not count. The program goes on with the values that each sentence
 * names. */
#ifndef SPANCL_CONFIG_FAULTS_H
#define SPANCL_CONFIG_FAULTS_H

/* Call `out` with a sentence for each. Reads the environment, so no thread may change it meanwhile. */
void config_faults(void (*out)(void *user, const char *text), void *user);

#endif

/* The client's settings in configuration files, which have the names of its environment variables. The
 * first call reads the files: the system's client.conf and client.conf.d, the same of this user, and
 * the profile that SPANCL_PROFILE names. Each file overrides those before it.
 *
 * The values lie in static memory, of bounded size. Any thread; no thread may change the environment
 * during the first call. */
#ifndef SPANCL_CONFIG_SETTINGS_H
#define SPANCL_CONFIG_SETTINGS_H

#include "config/entries.h"

struct config_setting {
        const char *value; /* NULL: no file sets it */
        const char *file;
        unsigned line;
};

const struct config_setting *config_setting(enum config_id id);

/* Call `out` with a sentence for each file and line that does not count, and why. */
void config_settings_faults(void (*out)(void *user, const char *text), void *user);

/* Forget all settings, and read those of these folders, NULL for none. A program that has written a file
 * calls it, while no other thread uses settings. */
void config_settings_read(const char *system_folder, const char *user_folder);

/* Find the file of a profile: "lab" is profiles/lab.conf in `folder`. A name has letters, digits and
 * ".-_", and does not begin with a dot. False: it is no such name, or too long. */
bool config_profile_path(const char *folder, const char *name, char *ret, size_t size);

#endif

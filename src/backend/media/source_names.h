/* The values NAME=URL of --media-source, and what they share with those of --media-sink. Stateless. */
#ifndef SPANCL_BACKEND_MEDIA_SOURCE_NAMES_H
#define SPANCL_BACKEND_MEDIA_SOURCE_NAMES_H

#include "config/options.h"

enum { MEDIA_SOURCES_MAX = 64 };

/* Return the bytes of the name; 0: this is no NAME=URL. */
size_t media_source_name(const char *value);

/* Check form, number and names of all sources. False: `ret_wrong` says what is wrong, without a URL. */
bool media_sources_check(const struct config_options *o, char *ret_wrong, size_t size);

/* Return the bytes at the start of `value` that can be a name; 0: there is none, or it is too long. */
size_t media_name_length(const char *value);

/* Check all values of an option that gives names. `name_of`: as media_source_name; `form`: what follows "number N is
 * not ". False: as above. */
bool media_names_check(const struct config_options *o, enum config_id id,
                       size_t (*name_of)(const char *value), const char *form, char *ret_wrong,
                       size_t size);

/* Return true if a URL of this option has the name of a user, and perhaps a password. */
bool media_urls_have_users(const struct config_options *o, enum config_id id);

#endif

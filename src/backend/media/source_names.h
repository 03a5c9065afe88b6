/* The values NAME=URL of --media-source. Stateless. */
#ifndef SPANCL_BACKEND_MEDIA_SOURCE_NAMES_H
#define SPANCL_BACKEND_MEDIA_SOURCE_NAMES_H

#include "config/options.h"

enum { MEDIA_SOURCES_MAX = 64 };

/* Return the bytes of the name; 0: this is no NAME=URL. */
size_t media_source_name(const char *value);

/* Check form, number and names of all sources. False: `ret_wrong` says what is wrong, without a URL. */
bool media_sources_check(const struct config_options *o, char *ret_wrong, size_t size);

/* Return true if a URL has the name of a user, and perhaps a password. */
bool media_sources_have_users(const struct config_options *o);

#endif

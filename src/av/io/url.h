/* The URLs of sources: what kind they are, and what their streams may reach. Stateless. */
#ifndef SPANCL_AV_IO_URL_H
#define SPANCL_AV_IO_URL_H

#include <stdbool.h>
#include <stddef.h>

/* The file of a URL; NULL: it has none. */
const char *url_file(const char *url);

/* The graph of a URL `lavfi:GRAPH`; NULL: it is none. */
const char *url_graph(const char *url);

/* Return true if libavformat needs the network for the URL. */
bool url_is_network(const char *url);

enum { URL_PROTOCOLS_MAX = 160 };

/* Write the protocols of libavformat, with commas between them, that a stream of this URL may use. A server's answer,
 * or a playlist in a stream, then leads to no file and to no other kind of server. False: the URL is a file or a graph,
 * or it does not begin with `SCHEME://`. */
bool url_protocols(const char *url, char ret[URL_PROTOCOLS_MAX]);

#endif

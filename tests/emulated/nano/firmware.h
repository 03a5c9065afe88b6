/* The start of each firmware of these tests: the network, and a session of the nano client. */
#ifndef SPANCL_TESTS_FIRMWARE_H
#define SPANCL_TESTS_FIRMWARE_H

#include "spancl_nano.h"

/* Start lwIP and the client, by the arguments "PORT RANDOM KEY": the server's port on the emulator's host, a random
 * number, and the key for TLS in hexadecimal digits or "-". Returns the arguments behind these. */
const char *firmware_begin(void);

/* Take the next number of the arguments. */
uint32_t firmware_number(const char **arguments);

/* End the firmware with a message if `status` is an error. */
void firmware_must(cl_int status, const char *what);

#endif

/* spancl doctor: checks each thing between a program and the devices of servers, and says how to mend
 * the first one that fails. */
#ifndef SPANCL_CLI_DOCTOR_H
#define SPANCL_CLI_DOCTOR_H

int command_doctor(int argc, char **argv);

#endif

/* spancl trace: run a program, write a timeline of it and of its servers, and summarise that. */
#ifndef SPANCL_CLI_TRACE_TRACE_H
#define SPANCL_CLI_TRACE_TRACE_H

int command_trace(int argc, char **argv);

#endif

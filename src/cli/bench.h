/* spancl bench: measures the times of the same operations over a link alone, native OpenCL and SpanCL. */
#ifndef SPANCL_CLI_BENCH_H
#define SPANCL_CLI_BENCH_H

int command_bench(int argc, char **argv);

#endif

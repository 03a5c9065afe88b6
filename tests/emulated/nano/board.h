/* QEMU's board mps2-an385: start, clock, output, and its network device LAN9118. */
#ifndef SPANCL_TESTS_BOARD_H
#define SPANCL_TESTS_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct netif;

/* Write a text, or a number, to the first UART. */
void board_print(const char *text);
void board_print_number(uint32_t n);

/* Copy the command line that QEMU was given, with a NUL. */
void board_arguments(char *to, size_t size);

/* End the emulator with this status. */
void board_exit(int status) __attribute__((noreturn));

/* Sleep until the clock's next ms. */
void board_sleep(void);

/* The most bytes of the stack that were in use. */
size_t board_stack_used(void);

/* Start the network device / hand its received frames to lwIP. */
void board_network(struct netif *n);
bool board_poll(void);

#endif

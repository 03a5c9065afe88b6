/* The format of ELF files: its structures and constants, as the system's header has them. */
#ifndef SPANCL_OS_ELF_H
#define SPANCL_OS_ELF_H

#include <elf.h>

#endif

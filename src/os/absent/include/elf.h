/* The parts of the ELF format that programs of accelerators have (32 bits), as the header of Linux names them. */
#ifndef SPANCL_OS_ABSENT_ELF_H
#define SPANCL_OS_ABSENT_ELF_H

#include <stdint.h>

enum {
        EI_CLASS = 4,
        EI_DATA = 5,
        ELFCLASS32 = 1,
        ELFDATA2LSB = 1,
        ET_REL = 1,
        ET_DYN = 3,
        EM_RISCV = 243,
        PT_LOAD = 1,
        SHT_RELA = 4,
        SHT_DYNSYM = 11,
        SHF_ALLOC = 2
};
#define ELFMAG          "\177ELF"
#define SELFMAG         4
#define ELF32_R_TYPE(i) ((i)&0xff)
#define ELF32_R_SYM(i)  ((i) >> 8)

typedef struct {
        unsigned char e_ident[16];
        uint16_t e_type, e_machine;
        uint32_t e_version, e_entry, e_phoff, e_shoff, e_flags;
        uint16_t e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx;
} Elf32_Ehdr;

typedef struct {
        uint32_t p_type, p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_flags, p_align;
} Elf32_Phdr;

typedef struct {
        uint32_t sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, sh_info,
                sh_addralign, sh_entsize;
} Elf32_Shdr;

typedef struct {
        uint32_t st_name, st_value, st_size;
        unsigned char st_info, st_other;
        uint16_t st_shndx;
} Elf32_Sym;

typedef struct {
        uint32_t r_offset, r_info;
        int32_t r_addend;
} Elf32_Rela;

#endif

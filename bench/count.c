/* A plugin of QEMU that counts executed instructions by their address. It writes to a file one number of 64 bits for
 * each two bytes of the addresses from BASE on: count.so,counts=FILE,base=BASE,size=SIZE. Instructions elsewhere are
 * counted together, in the number behind these. The file is always up to date, also if the emulator is killed.
 *
 * QEMU's packages have no header for plugins, so the used part of its interface (version 1) is declared here. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
                                                enum qemu_plugin_op op, void *to, uint64_t value);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*f)(qemu_plugin_id_t id,
                                                     struct qemu_plugin_tb *tb));

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv);

static uint64_t *counts, base, size;

static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
        (void)id;
        for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
                struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
                const uint64_t at = qemu_plugin_insn_vaddr(insn) - base;
                qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
                                                           &counts[(at < size ? at : size) / 2], 1);
        }
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
        const char *file = NULL;
        (void)info;
        for (int i = 0; i < argc; i++) {
                if (!strncmp(argv[i], "counts=", 7))
                        file = argv[i] + 7;
                else if (!strncmp(argv[i], "base=", 5))
                        base = strtoull(argv[i] + 5, NULL, 0);
                else if (!strncmp(argv[i], "size=", 5))
                        size = strtoull(argv[i] + 5, NULL, 0);
        }
        const size_t bytes = (size / 2 + 1) * sizeof(*counts);
        const int fd = file ? open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
        if (fd < 0 || ftruncate(fd, (off_t)bytes))
                return -1;
        counts = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (counts == MAP_FAILED)
                return -1;
        qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
        return 0;
}

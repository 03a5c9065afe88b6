#include "cli/profile/energy.h"

#include <inttypes.h>

void energy_text(FILE *to, const struct ledger_file *l)
{
        if (l->energy_count)
                fprintf(to, "\n%-24s %-24s %10s\n", "Energy", "on", "joules");
        for (size_t i = 0; i < l->energy_count; i++) {
                const struct ledger_file_energy *e = &l->energies[i];
                fprintf(to, "%-24s %-24s %10.3f\n", e->name, ledger_server_name(l, e->server),
                        (double)e->energy_uj / 1e6);
        }
}

void energy_json(struct json_writer *w, const struct ledger_file *l)
{
        json_begin(w, "energy", '[');
        for (size_t i = 0; i < l->energy_count; i++) {
                const struct ledger_file_energy *e = &l->energies[i];
                json_begin(w, NULL, '{');
                json_put_text(w, "server", ledger_server_name(l, e->server));
                json_put_u64(w, "device", e->device);
                json_put_text(w, "name", e->name);
                json_put_real(w, "joules", (double)e->energy_uj / 1e6, 3);
                json_end(w, '}');
        }
        json_end(w, ']');
}

/* The states of a command: the transitions that are legal are those of the page's diagram. */
#include "support/check.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/command/command_state.h"

static const char *const names[] = {
        [COMMAND_NEW] = "new",
        [COMMAND_HELD] = "held",
        [COMMAND_READY] = "ready",
        [COMMAND_SUBMITTING] = "submitting",
        [COMMAND_IN_FLIGHT] = "in_flight",
        [COMMAND_COMPLETED_EARLY] = "completed_early",
        [COMMAND_DONE] = "done",
};
static_assert(array_size(names) == COMMAND_STATES, "each state has its name in the diagram");

static enum command_state state_of(const char *name)
{
        for (size_t i = 0; i < array_size(names); i++)
                if (!strcmp(names[i], name))
                        return (enum command_state)i;
        fail_msg("the diagram's state %s is unknown", name);
        return COMMAND_STATES;
}

/* Mark the transitions of the page's first diagram. */
static void read_diagram(FILE *page, bool drawn[COMMAND_STATES][COMMAND_STATES])
{
        char line[256], from[32], to[32];
        bool inside = false;
        while (fgets(line, sizeof(line), page)) {
                if (inside && !strncmp(line, "```", 3))
                        return;
                inside |= !strncmp(line, "stateDiagram", 12);
                if (inside && sscanf(line, " %31[a-z_] --> %31[a-z_]:", from, to) == 2)
                        drawn[state_of(from)][state_of(to)] = true;
        }
        fail_msg("the page has no diagram");
}

TEST(the_legal_transitions_are_those_of_the_diagram)
{
        const char *folder = getenv("SPANCL_SOURCE_DIR");
        bool drawn[COMMAND_STATES][COMMAND_STATES] = { 0 };
        char path[4096];
        if (!folder)
                skip();
        snprintf(path, sizeof(path), "%s/docs/internals/engine-completion.md", folder);
        FILE *page = fopen(path, "r");
        assert_non_null(page);
        read_diagram(page, drawn);
        fclose(page);
        for (enum command_state from = 0; from < COMMAND_STATES; from++)
                for (enum command_state to = 0; to < COMMAND_STATES; to++) {
                        if (engine_command_state_leads(from, to) != drawn[from][to])
                                print_error("from %s to %s\n", names[from], names[to]);
                        assert_int_equal(engine_command_state_leads(from, to), drawn[from][to]);
                }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_legal_transitions_are_those_of_the_diagram),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

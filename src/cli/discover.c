#include "cli/discover.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/discover.h"
#include "cli/json_output.h"
#include "config/servers.h"
#include "os/clock.h"
#include "os/condition.h"
#include "os/file.h"

enum { SETTLE_MS = 3000, TEXT_MAX = DISCOVER_TEXT_MAX, PLACE_MAX = DISCOVER_PLACE_MAX };

/* The servers, as discovery has reported them last. */
struct view {
        struct lock lock;
        struct condition changed;
        struct discover_item *items;
        size_t count;
        bool settled, news;
};

static bool on_found(void *user, const struct discovery_item *items, size_t count, bool settled)
{
        struct view *v = user;
        struct discover_item *copy = mem_zalloc((count + 1) * sizeof(*copy));
        for (size_t i = 0; copy && i < count; i++) {
                copy[i].record = *items[i].record;
                copy[i].source = items[i].source;
                copy[i].use = items[i].use;
        }
        lock_take(&v->lock);
        if (copy) {
                mem_free(v->items);
                v->items = copy;
                v->count = count;
        }
        v->settled = settled;
        v->news = true;
        condition_signal(&v->changed);
        lock_release(&v->lock);
        return false;
}

/* ---- texts ---------------------------------------------------------------------------------- */

static const char *types_of(const struct discovered *d, char ret[TEXT_MAX])
{
        static const char *const names[] = { "cpu", "gpu", "accelerator", "custom" };
        *ret = 0;
        for (size_t i = 0; i < array_size(names); i++)
                if (d->types & 1u << i)
                        snprintf(ret + strlen(ret), TEXT_MAX - strlen(ret), "%s%s", *ret ? "," : "",
                                 names[i]);
        return ret;
}

const char *discover_place(const struct discovered *d, char ret[PLACE_MAX])
{
        snprintf(ret, PLACE_MAX, strchr(d->addresses[0], ':') ? "[%s]:%u" : "%s:%u",
                 d->addresses[0], d->port);
        return ret;
}

const char *discover_state(const struct discover_item *i, char ret[TEXT_MAX])
{
        char place[PLACE_MAX];
        switch (i->use) {
        case DISCOVERED_USED:
        case DISCOVERED_USED_HERE:
                return "used by default";
        case DISCOVERED_NOT_PAIRED:
                snprintf(ret, TEXT_MAX, "not paired: spancl pair %s",
                         discover_place(&i->record, place));
                return ret;
        case DISCOVERED_FOREIGN:
                return "not usable: pocl";
        case DISCOVERED_OTHER:
                break;
        }
        snprintf(ret, TEXT_MAX, "not usable: protocol %" PRIu64, i->record.protocol);
        return ret;
}

/* ---- output --------------------------------------------------------------------------------- */

static void print_line(const char *event, const struct discover_item *i)
{
        const struct discovered *d = &i->record;
        char types[TEXT_MAX], state[TEXT_MAX];
        printf("{\"event\":\"%s\"", event);
        json_output_member(',', "source", i->source);
        json_output_member(',', "id", d->id);
        if (strcmp(event, "gone") != 0) {
                json_output_member(',', "name", d->name);
                printf(",\"addresses\":[");
                for (unsigned k = 0; k < d->address_count; k++) {
                        printf(k ? "," : "");
                        json_output_text(d->addresses[k]);
                }
                printf("],\"port\":%u", d->port);
                json_output_member(',', "types", types_of(d, types));
                if (*d->key)
                        json_output_member(',', "key", d->key);
                if (d->protocol)
                        printf(",\"protocol\":%" PRIu64, d->protocol);
                printf(",\"load\":%" PRIu64, d->load);
                json_output_member(',', "kind", d->kind == DISCOVERED_POCL ? "pocl" : "spancl");
                json_output_member(',', "state", discover_state(i, state));
        }
        printf("}\n");
}

static const struct discover_item *find(const struct discover_item *items, size_t count,
                                        const struct discover_item *like)
{
        for (size_t i = 0; i < count; i++)
                if (items[i].source == like->source && !strcmp(items[i].record.id, like->record.id))
                        return &items[i];
        return NULL;
}

static void print_changes(const struct view *old, const struct view *now)
{
        for (size_t i = 0; i < now->count; i++) {
                const struct discover_item *it = &now->items[i];
                const struct discover_item *had = find(old->items, old->count, it);
                if (!had || had->use != it->use ||
                    memcmp(&had->record, &it->record, sizeof(it->record)) != 0)
                        print_line(had ? "changes" : "appears", it);
        }
        for (size_t i = 0; i < old->count; i++)
                if (!find(now->items, now->count, &old->items[i]))
                        print_line("gone", &old->items[i]);
}

static void print_table(const struct view *now, bool watch)
{
        if (watch && file_is_terminal(FILE_STDOUT))
                printf("\x1b[H\x1b[J");
        printf("%-20s%-12s%-28s%-18s%-10s%5s  %s\n", "NAME", "SOURCE", "ADDRESS", "KEY", "TYPES",
               "LOAD", "STATE");
        for (size_t i = 0; i < now->count; i++) {
                const struct discovered *d = &now->items[i].record;
                char place[PLACE_MAX], types[TEXT_MAX], state[TEXT_MAX];
                printf("%-19s %-11.11s %-27s %-17.16s %-9s %5" PRIu64 "  %s\n", d->name,
                       now->items[i].source, discover_place(d, place), *d->key ? d->key : "-",
                       types_of(d, types), d->load, discover_state(&now->items[i], state));
                for (unsigned k = 1; k < d->address_count; k++)
                        printf("%32s%s\n", "", d->addresses[k]);
        }
        if (watch)
                printf("\n");
}

/* ---- the command ---------------------------------------------------------------------------- */

/* Take what is new; the caller frees the items of `ret`. */
static void take(struct view *v, bool until_settled, struct view *ret)
{
        uint64_t until = clock_now_ns() + SETTLE_MS * 1000000ull;
        bool in_time = true;
        lock_take(&v->lock);
        while (until_settled ? !v->settled && in_time : !v->news) {
                if (until_settled)
                        in_time = condition_wait_until(&v->changed, &v->lock, until);
                else
                        condition_wait(&v->changed, &v->lock);
        }
        *ret = (struct view){ .items = v->items, .count = v->count };
        v->items = NULL;
        v->count = 0;
        v->news = false;
        lock_release(&v->lock);
}

static void show(struct view *v, bool watch, bool json)
{
        struct view shown = { 0 }, now;
        do {
                take(v, !watch, &now);
                if (json)
                        print_changes(&shown, &now);
                else
                        print_table(&now, watch);
                fflush(stdout);
                mem_free(shown.items);
                shown = now;
        } while (watch && !ferror(stdout));
        mem_free(shown.items);
}

/* Begin to search, with `v` as the place of what is found. */
static int begin(const char *sources, struct view *v, struct discovery **ret)
{
        char *error = NULL;
        lock_init(&v->lock);
        condition_init(&v->changed);
        int r = discovery_new(*sources && strcmp(sources, "auto") ? sources : "mdns", on_found, v,
                              ret, &error);
        if (r < 0) {
                fprintf(stderr, "spancl: %s\n", error ? error : status_text(r));
                mem_free(error);
                condition_fini(&v->changed);
        }
        return r;
}

int discover_once(struct discover_item **ret_items, size_t *ret_count,
                  struct discovery **ret_discovery)
{
        static struct view v; /* the discovery's thread has it until discovery_free */
        struct view now;
        v = (struct view){ 0 };
        int r = begin(config_sources(), &v, ret_discovery);
        if (r < 0)
                return r;
        take(&v, true, &now);
        *ret_items = now.items;
        *ret_count = now.count;
        return 0;
}

int command_discover(int argc, char **argv)
{
        const char *sources = config_sources();
        bool watch = false, json = false;
        for (int i = 0; i < argc; i++) {
                if (!strcmp(argv[i], "--watch")) {
                        watch = true;
                } else if (!strcmp(argv[i], "--json")) {
                        json = true;
                } else if (argv[i][0] != '-' && i == argc - 1) {
                        sources = argv[i];
                } else {
                        return command_usage("discover");
                }
        }
        struct view v = { 0 };
        struct discovery *d;
        if (begin(sources, &v, &d) < 0)
                return 2;
        show(&v, watch, json);
        discovery_free(d);
        mem_free(v.items);
        condition_fini(&v.changed);
        return 0;
}

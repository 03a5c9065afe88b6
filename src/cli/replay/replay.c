#include "cli/replay/replay.h"

#include "base/mem.h"

enum { QUESTION = 64, NOTIFICATION = 64 /* bytes of messages */ };

enum event_kind {
        RUN,    /* a thread begins its step */
        PASS,   /* its step is over */
        ARRIVE, /* a command's message is at the server */
        END,    /* a command is complete */
        ASKED,  /* the server is asked about a command that is complete */
};

struct event {
        uint64_t ns;
        uint64_t order; /* among those at the same time */
        uint32_t index; /* of a thread or a command */
        enum event_kind kind;
};

struct command_state {
        uint64_t data_ns;  /* when its bulk data is at the other side */
        uint64_t known_ns; /* when the client knows that it is complete; UINT64_MAX: it is not */
        uint64_t ended_ns; /* of one that is asked for; UINT64_MAX: it runs */
        uint64_t asked_ns; /* when the server is asked; UINT64_MAX: nobody waits */
        uint32_t missing;  /* dependencies that are not complete, and its own message */
        uint32_t followers, next_ready;
        uint32_t waiters; /* the first thread that waits for it */
};

/* A link's directions: when messages and data that were sent have left. */
struct link_state {
        uint64_t messages_up_ns, messages_down_ns, bulk_up_ns, bulk_down_ns;
};

struct server_state {
        uint32_t busy; /* slots */
        uint32_t ready, last_ready;
};

struct thread_state {
        uint64_t since_ns;    /* when it began to wait */
        uint32_t next;        /* step */
        uint32_t next_waiter; /* of the same command */
        uint32_t next_child;  /* of those that begin after the same step */
};

/* An edge from a command to one that depends on it. */
struct follower {
        uint32_t command, next;
};

struct state {
        const struct replay_run *run;
        const struct replay_link *links;
        struct replay_without without;
        struct command_state *commands;
        struct link_state *link_states;
        struct server_state *servers;
        struct thread_state *threads;
        struct follower *followers;
        uint32_t *children; /* of each step, the first thread that begins after it */
        struct event *heap;
        size_t heap_count;
        uint64_t order, end_ns;
        size_t running; /* threads with steps */
};

static uint64_t later(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

static uint64_t add(uint64_t a, uint64_t b)
{
        return a > REPLAY_TIME_MAX || b > REPLAY_TIME_MAX - a ? REPLAY_TIME_MAX : a + b;
}

static uint64_t travel_ns(const struct replay_link *l, uint64_t bytes)
{
        double ns = l->bytes_per_s ? (double)bytes * 1e9 / (double)l->bytes_per_s : 0;
        return ns < (double)REPLAY_TIME_MAX ? (uint64_t)ns : REPLAY_TIME_MAX;
}

/* Send data that takes `ns` behind earlier data. Returns when the last byte is there. */
static uint64_t send_for(const struct replay_link *l, uint64_t *left_ns, uint64_t now, uint64_t ns)
{
        *left_ns = add(later(*left_ns, now), ns);
        return add(*left_ns, l->round_trip_ns / 2);
}

static uint64_t send_over(const struct replay_link *l, uint64_t *left_ns, uint64_t now,
                          uint64_t bytes)
{
        return send_for(l, left_ns, now, travel_ns(l, bytes));
}

/* The cost of a message to a thread that has slept so long: between two lengths in proportion. */
static uint64_t wake_ns(const struct replay_run *r, uint64_t slept)
{
        struct replay_sleep before = { 0, 0 };
        for (size_t i = 0; i < REPLAY_SLEEPS; before = r->sleeps[i++]) {
                const struct replay_sleep *s = &r->sleeps[i];
                double part = slept < s->ns && s->ns > before.ns
                                      ? (double)(slept - before.ns) / (double)(s->ns - before.ns)
                                      : 1;
                if (slept < s->ns)
                        return (uint64_t)((double)before.cost_ns +
                                          part * ((double)s->cost_ns - (double)before.cost_ns));
        }
        return before.cost_ns;
}

/* While a thread waits for a command, so does the server for its message. Both sleep longer than in the recording, and
 * wake up. */
static uint64_t later_wakes_ns(const struct state *s, const struct replay_step *step,
                               uint64_t waited)
{
        uint64_t was = wake_ns(s->run, step->slept_ns), is = wake_ns(s->run, waited);
        return !s->without.program && is > was ? 2 * (is - was) : 0;
}

/* How long bulk data takes. Both hosts work while bytes travel, so a slower link hides the time of their work.
 * A faster one saves the bytes' own time only. */
static uint64_t bulk_ns(const struct state *s, const struct replay_command *m, uint64_t bytes)
{
        const struct replay_link *l = &s->links[m->server];
        const struct replay_link recorded = { 0, s->run->servers[m->server].bytes_per_s };
        uint64_t was = travel_ns(&recorded, bytes), is = travel_ns(l, bytes);
        if (l->bytes_per_s && l->bytes_per_s <= recorded.bytes_per_s)
                return later(is, m->carry_ns);
        return add(is, m->carry_ns > was ? m->carry_ns - was : 0);
}

/* ---- events: a binary heap ------------------------------------------------------------------ */

static bool is_before(const struct event *a, const struct event *b)
{
        return a->ns != b->ns ? a->ns < b->ns : a->order < b->order;
}

/* There is room: a thread and a command have one event at a time. */
static void put(struct state *s, uint64_t ns, enum event_kind kind, uint32_t index)
{
        struct event e = { ns, s->order++, index, kind };
        size_t i = s->heap_count++;
        for (; i && is_before(&e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
                s->heap[i] = s->heap[(i - 1) / 2];
        s->heap[i] = e;
}

static struct event take(struct state *s)
{
        struct event first = s->heap[0], last = s->heap[--s->heap_count];
        size_t i = 0;
        for (size_t child; (child = 2 * i + 1) < s->heap_count; i = child) {
                if (child + 1 < s->heap_count && is_before(&s->heap[child + 1], &s->heap[child]))
                        child++;
                if (!is_before(&s->heap[child], &last))
                        break;
                s->heap[i] = s->heap[child];
        }
        s->heap[i] = last;
        return first;
}

/* ---- commands ------------------------------------------------------------------------------- */

static void begin(struct state *s, uint32_t c, uint64_t now)
{
        const struct replay_command *m = &s->run->commands[c];
        const struct replay_link *l = &s->links[m->server];
        uint64_t begin = add(now, s->without.program ? 0 : m->before_ns);
        begin = later(begin, s->commands[c].data_ns);
        if (m->down_bytes > REPLAY_INLINE) /* it leaves while the device reads */
                s->commands[c].data_ns = send_for(l, &s->link_states[m->server].bulk_down_ns, begin,
                                                  bulk_ns(s, m, m->down_bytes));
        put(s, add(begin, s->without.devices ? 0 : m->device_ns), END, c);
}

/* Begin a command whose message has arrived and whose dependencies are complete, or have it wait for a slot. */
static void ready(struct state *s, uint32_t c, uint64_t now)
{
        const struct replay_command *m = &s->run->commands[c];
        struct server_state *server = &s->servers[m->server];
        if (m->kind != REPLAY_KERNEL) {
                begin(s, c, now);
        } else if (server->busy < s->run->servers[m->server].slots) {
                server->busy++;
                begin(s, c, now);
        } else {
                s->commands[c].next_ready = REPLAY_NONE;
                *(server->ready == REPLAY_NONE ? &server->ready
                                               : &s->commands[server->last_ready].next_ready) = c;
                server->last_ready = c;
        }
}

static void satisfy(struct state *s, uint32_t c, uint64_t now)
{
        if (--s->commands[c].missing == 0)
                ready(s, c, now);
}

/* The client learns that a command is complete. */
static void notify(struct state *s, uint32_t c, uint64_t now)
{
        const struct replay_command *m = &s->run->commands[c];
        struct command_state *state = &s->commands[c];
        uint64_t bytes = NOTIFICATION + (m->down_bytes <= REPLAY_INLINE ? m->down_bytes : 0);
        state->known_ns = send_over(&s->links[m->server],
                                    &s->link_states[m->server].messages_down_ns, now, bytes);
        if (m->down_bytes > REPLAY_INLINE)
                state->known_ns = later(state->known_ns, state->data_ns);
        for (uint32_t t = state->waiters; t != REPLAY_NONE; t = s->threads[t].next_waiter) {
                const struct replay_step *step = &s->run->steps[s->threads[t].next];
                uint64_t wakes = later_wakes_ns(s, step, state->known_ns - s->threads[t].since_ns);
                put(s, add(state->known_ns, s->without.program ? 0 : add(step->ns, wakes)), PASS,
                    t);
        }
}

static void end(struct state *s, uint32_t c, uint64_t now)
{
        const struct replay_command *m = &s->run->commands[c];
        struct server_state *server = &s->servers[m->server];
        struct command_state *state = &s->commands[c];
        state->ended_ns = now;
        if (!m->asked)
                notify(s, c, now);
        else if (state->asked_ns <= now)
                notify(s, c, now);
        else if (state->asked_ns != UINT64_MAX)
                put(s, state->asked_ns, ASKED, c);
        for (uint32_t f = s->commands[c].followers; f != REPLAY_NONE; f = s->followers[f].next)
                satisfy(s, s->followers[f].command, now);
        if (m->kind != REPLAY_KERNEL)
                return;
        uint32_t next = server->ready;
        if (next == REPLAY_NONE) {
                server->busy--;
                return;
        }
        server->ready = s->commands[next].next_ready;
        begin(s, next, now);
}

/* A thread sends the command. */
static void send_command(struct state *s, uint32_t c, uint64_t now)
{
        const struct replay_command *m = &s->run->commands[c];
        const struct replay_link *l = &s->links[m->server];
        struct link_state *link = &s->link_states[m->server];
        bool bulk = m->up_bytes > REPLAY_INLINE;
        uint64_t arrives = send_over(l, &link->messages_up_ns, now,
                                     m->message_bytes + (bulk ? 0 : m->up_bytes));
        uint64_t opened = m->opens ? add(now, REPLAY_OPEN_TRIPS * l->round_trip_ns) : now;
        if (bulk)
                s->commands[c].data_ns =
                        send_for(l, &link->bulk_up_ns, opened, bulk_ns(s, m, m->up_bytes));
        else if (m->opens) /* the server sends as soon as the hello is there */
                s->commands[c].data_ns = opened - l->round_trip_ns / 2;
        put(s, arrives, ARRIVE, c);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void schedule(struct state *s, uint32_t t, uint64_t now)
{
        const struct replay_thread *thread = &s->run->threads[t];
        struct thread_state *state = &s->threads[t];
        s->end_ns = later(s->end_ns, now);
        if (state->next == thread->first + thread->count) {
                s->running--;
                return;
        }
        uint64_t own = s->run->steps[state->next].own_ns;
        put(s, add(now, s->without.program ? 0 : own), RUN, t);
}

/* The thread's step is over. */
static void pass(struct state *s, uint32_t t, uint64_t now)
{
        uint32_t step = s->threads[t].next++;
        for (uint32_t c = s->children[step]; c != REPLAY_NONE; c = s->threads[c].next_child)
                schedule(s, c, add(now, s->without.program ? 0 : s->run->threads[c].begin_ns));
        schedule(s, t, now);
}

/* Wait for a command. */
static void wait_for(struct state *s, uint32_t t, uint64_t now, uint64_t own)
{
        const struct replay_step *step = &s->run->steps[s->threads[t].next];
        struct command_state *c = &s->commands[step->target];
        const struct replay_command *m = &s->run->commands[step->target];
        if (m->asked && c->asked_ns == UINT64_MAX) {
                c->asked_ns = send_over(&s->links[m->server],
                                        &s->link_states[m->server].messages_up_ns, now, QUESTION);
                if (c->ended_ns != UINT64_MAX)
                        put(s, c->asked_ns, ASKED, step->target);
        }
        if (c->known_ns != UINT64_MAX) {
                uint64_t waits = c->known_ns > now ? c->known_ns - now : 0;
                own = add(own, later_wakes_ns(s, step, waits));
                put(s, waits ? add(c->known_ns, own) : now, PASS, t);
                return;
        }
        s->threads[t].since_ns = now;
        s->threads[t].next_waiter = c->waiters;
        c->waiters = t;
}

static void run_step(struct state *s, uint32_t t, uint64_t now)
{
        const struct replay_step *step = &s->run->steps[s->threads[t].next];
        const struct replay_link *l;
        uint64_t own = s->without.program ? 0 : step->ns, until;
        switch ((enum replay_action)step->action) {
        case REPLAY_SEND:
                send_command(s, step->target, now);
                pass(s, t, now);
                break;
        case REPLAY_ANSWER:
                until = add(now, step->trips * s->links[step->target].round_trip_ns);
                put(s, add(until, own), PASS, t);
                break;
        case REPLAY_TAKEN:
                l = &s->links[s->run->commands[step->target].server];
                until = add(s->commands[step->target].data_ns, l->round_trip_ns / 2);
                put(s, add(later(now, until), own), PASS, t);
                break;
        case REPLAY_WAIT:
                wait_for(s, t, now, own);
        }
}

/* ---- the run -------------------------------------------------------------------------------- */

static bool is_well_formed(const struct replay_run *r, const struct replay_link *links,
                           struct command_state *commands)
{
        uint64_t step_at = 0, edges = 0;
        if (r->server_count > REPLAY_SERVERS_MAX || r->thread_count > REPLAY_THREADS_MAX ||
            r->command_count > REPLAY_ENTRIES_MAX || r->step_count > REPLAY_ENTRIES_MAX ||
            r->after_count > REPLAY_ENTRIES_MAX)
                return false;
        for (size_t i = 0; i < r->server_count; i++)
                if (!r->servers[i].slots || links[i].round_trip_ns > REPLAY_TRIP_MAX)
                        return false;
        for (size_t i = 0; i < r->command_count; i++) {
                const struct replay_command *m = &r->commands[i];
                if (m->server >= r->server_count || m->after > r->after_count ||
                    m->after_count > r->after_count - m->after)
                        return false;
                edges += m->after_count;
                if (edges > r->after_count) /* more edges than the array has places */
                        return false;
                for (uint32_t k = 0; k < m->after_count; k++)
                        if (r->after[m->after + k] >= i)
                                return false;
        }
        for (size_t i = 0; i < r->thread_count; i++) {
                const struct replay_thread *t = &r->threads[i];
                if (t->first < step_at || t->first > r->step_count ||
                    t->count > r->step_count - t->first ||
                    (t->after_step != REPLAY_NONE && t->after_step >= r->step_count))
                        return false;
                step_at = (uint64_t)t->first + t->count;
        }
        for (size_t i = 0; i < r->step_count; i++) {
                const struct replay_step *p = &r->steps[i];
                bool command = p->action != REPLAY_ANSWER;
                if (p->action > REPLAY_ANSWER ||
                    p->target >= (command ? r->command_count : r->server_count))
                        return false;
                if (p->action == REPLAY_SEND && commands[p->target].missing++)
                        return false; /* it is sent twice */
        }
        return true;
}

static int make(struct state *s)
{
        const struct replay_run *r = s->run;
        s->commands = mem_zalloc((r->command_count + 1) * sizeof(*s->commands));
        s->link_states = mem_zalloc((r->server_count + 1) * sizeof(*s->link_states));
        s->servers = mem_zalloc((r->server_count + 1) * sizeof(*s->servers));
        s->threads = mem_zalloc((r->thread_count + 1) * sizeof(*s->threads));
        s->followers = mem_alloc((r->after_count + 1) * sizeof(*s->followers));
        s->children = mem_alloc((r->step_count + 1) * sizeof(*s->children));
        s->heap = mem_alloc((r->command_count + r->thread_count + 1) * sizeof(*s->heap));
        return s->commands && s->link_states && s->servers && s->threads && s->followers &&
                               s->children && s->heap
                       ? 0
                       : SP_E_NOMEM;
}

static void prepare(struct state *s)
{
        const struct replay_run *r = s->run;
        uint32_t edge = 0;
        for (size_t i = 0; i < r->command_count; i++) {
                s->commands[i].known_ns = UINT64_MAX;
                s->commands[i].ended_ns = s->commands[i].asked_ns = UINT64_MAX;
                s->commands[i].missing = r->commands[i].after_count + 1;
                s->commands[i].followers = s->commands[i].waiters = REPLAY_NONE;
        }
        for (size_t i = 0; i < r->command_count; i++) {
                const struct replay_command *m = &r->commands[i];
                for (uint32_t k = 0; k < m->after_count; k++, edge++) {
                        struct command_state *on = &s->commands[r->after[m->after + k]];
                        s->followers[edge] = (struct follower){ (uint32_t)i, on->followers };
                        on->followers = edge;
                }
        }
        for (size_t i = 0; i < r->server_count; i++)
                s->servers[i].ready = REPLAY_NONE;
        for (size_t i = 0; i < r->step_count; i++)
                s->children[i] = REPLAY_NONE;
        for (uint32_t i = 0; i < r->thread_count; i++) {
                const struct replay_thread *t = &r->threads[i];
                s->threads[i].next = t->first;
                s->running++;
                if (t->after_step != REPLAY_NONE) {
                        s->threads[i].next_child = s->children[t->after_step];
                        s->children[t->after_step] = i;
                }
        }
        for (uint32_t i = 0; i < r->thread_count; i++)
                if (r->threads[i].after_step == REPLAY_NONE)
                        schedule(s, i, s->without.program ? 0 : r->threads[i].begin_ns);
}

static void run_all(struct state *s)
{
        while (s->heap_count) {
                struct event e = take(s);
                switch (e.kind) {
                case RUN:
                        run_step(s, e.index, e.ns);
                        break;
                case PASS:
                        pass(s, e.index, e.ns);
                        break;
                case ARRIVE:
                        satisfy(s, e.index, e.ns);
                        break;
                case END:
                        end(s, e.index, e.ns);
                        break;
                case ASKED:
                        notify(s, e.index, e.ns);
                }
        }
}

int replay(const struct replay_run *run, const struct replay_link *links,
           struct replay_without without, uint64_t *ret_ns)
{
        struct state s = { .run = run, .links = links, .without = without };
        uint64_t trip = 0;
        int r = make(&s);
        if (r == 0 && !is_well_formed(run, links, s.commands))
                r = SP_E_PROTO;
        if (r == 0) {
                prepare(&s);
                run_all(&s);
                for (size_t i = 0; i < run->server_count; i++)
                        trip = later(trip, links[i].round_trip_ns);
                if (s.running)
                        r = SP_E_PROTO;
                else
                        *ret_ns = add(add(s.end_ns, without.program ? 0 : run->own_ns),
                                      trip * run->own_trips);
        }
        mem_free(s.commands);
        mem_free(s.link_states);
        mem_free(s.servers);
        mem_free(s.threads);
        mem_free(s.followers);
        mem_free(s.children);
        mem_free(s.heap);
        return r;
}

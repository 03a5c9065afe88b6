#include "support/program_state.h"

/* ---- dependencies --------------------------------------------------------------------------- */

void program_wait_for(struct program *p, cl_event e)
{
        for (cl_uint i = 0; i < p->wait_count; i++)
                if (p->waits[i] == e)
                        return;
        if (!e)
                return; /* could not be had */
        if (p->wait_count == WAITS)
                program_fail(p, "wait list too long", WAITS);
        p->waits[p->wait_count++] = e;
}

/* Does the queue itself run `a` before a command enqueued now? */
static bool ordered(const struct queue *q, const struct access *a)
{
        return a->queue == q && (q->in_order || a->number <= q->barrier);
}

/* Make the next command of `q` wait for everything that conflicts with this use. */
static void depend(struct program *p, struct queue *q, struct root *root, size_t begin, size_t end,
                   bool write)
{
        for (struct access *a = root->accesses; a; a = a->next) {
                if (a->waited || a->end <= begin || end <= a->begin || !(a->write || write))
                        continue;
                if (ordered(q, a) && (!a->event || rng_chance(&p->rng, 70)))
                        continue;
                if (!a->event) {
                        /* Its queue is in order: a marker behind it is complete after it. */
                        ok(p, clEnqueueMarkerWithWaitList(a->queue->q, 0, NULL, &a->event));
                        a->queue->number++;
                }
                program_wait_for(p, a->event);
        }
}

void program_prepare(struct program *p, struct queue *q, const struct use *uses, unsigned count)
{
        p->wait_count = 0;
        for (unsigned i = 0; i < count; i++)
                depend(p, q, uses[i].root, uses[i].begin, uses[i].end, uses[i].write);
        if (rng_chance(&p->rng, 10) && p->recent[0]) {
                cl_event e = p->recent[rng_below(&p->rng, RECENT)];
                if (e)
                        program_wait_for(p, e);
        }
        if (rng_chance(&p->rng, 4) && p->gate_count < 4) {
                cl_int err;
                cl_event gate = clCreateUserEvent(p->context, &err);
                ok(p, err);
                if (gate)
                        p->gates[p->gate_count++] = gate;
                program_wait_for(p, gate);
        } else if (rng_chance(&p->rng, 4) && p->gate_count) {
                program_wait_for(p, p->gates[rng_below(&p->rng, p->gate_count)]);
        }
}

cl_event *program_waits(struct program *p)
{
        return p->wait_count ? p->waits : NULL;
}

cl_event *program_event_for(struct program *p, struct queue *q, cl_event *e)
{
        *e = NULL;
        return q->in_order && rng_chance(&p->rng, 40) ? NULL : e;
}

static void CL_CALLBACK on_complete(cl_event e, cl_int status, void *user)
{
        struct program *p = user;
        if (status != CL_COMPLETE && !p->broken)
                program_fail(p, "callback: the command failed", status);
        p->callbacks_called++;
}

void program_enqueued(struct program *p, struct queue *q, cl_event e, const struct use *uses,
                      unsigned count)
{
        q->number++;
        for (unsigned i = 0; i < count; i++) {
                struct access *a = program_need(p, malloc(sizeof(*a)));
                *a = (struct access){ uses[i].root->accesses,
                                      uses[i].begin,
                                      uses[i].end,
                                      uses[i].write,
                                      q,
                                      q->number,
                                      e,
                                      false };
                uses[i].root->accesses = a;
                if (e)
                        ok(p, clRetainEvent(e));
        }
        if (!e)
                return;
        if (rng_chance(&p->rng, 10)) {
                cl_int r = clSetEventCallback(e, CL_COMPLETE, on_complete, p);
                ok(p, r);
                p->callbacks_asked += r == CL_SUCCESS;
        }
        cl_event *slot = &p->recent[rng_below(&p->rng, RECENT)];
        if (*slot)
                ok(p, clReleaseEvent(*slot));
        *slot = e;
}

/* ---- what blocks ---------------------------------------------------------------------------- */

void program_open_gates(struct program *p)
{
        while (p->gate_count) {
                cl_event gate = p->gates[--p->gate_count];
                ok(p, clSetUserEventStatus(gate, CL_COMPLETE));
                struct opened *o = program_need(p, malloc(sizeof(*o)));
                *o = (struct opened){ p->opened, gate };
                p->opened = o;
        }
}

void program_release_all(struct program *p)
{
        program_open_gates(p);
        for (unsigned i = 0; i < p->queue_count; i++)
                ok(p, clFlush(p->queues[i].q));
}

void program_finish(struct program *p, struct queue *q)
{
        program_release_all(p);
        ok(p, clFinish(q->q));
        for (unsigned i = 0; i < p->root_count; i++)
                for (struct access *a = p->roots[i].accesses; a; a = a->next)
                        a->waited |= a->queue == q;
}

void program_wait(struct program *p, cl_uint count, const cl_event *events)
{
        program_release_all(p);
        ok(p, clWaitForEvents(count, events));
        for (unsigned i = 0; i < p->root_count; i++)
                for (struct access *a = p->roots[i].accesses; a; a = a->next)
                        for (cl_uint k = 0; k < count; k++)
                                a->waited |= a->event == events[k];
}

void program_query(struct program *p)
{
        cl_event e = p->recent[rng_below(&p->rng, RECENT)];
        cl_int status;
        if (e)
                ok(p, clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                                     NULL));
}

static void drop_accesses(struct program *p)
{
        for (unsigned i = 0; i < p->root_count; i++) {
                struct access *a;
                while ((a = p->roots[i].accesses)) {
                        p->roots[i].accesses = a->next;
                        if (a->event)
                                ok(p, clReleaseEvent(a->event));
                        free(a);
                }
        }
}

void program_compare(struct program *p, const uint8_t *got, const uint8_t *expected, size_t size,
                     unsigned command, const char *what)
{
        for (size_t i = 0; i < size && !p->broken; i++)
                if (got[i] != expected[i])
                        sim_fail(p->sim, "command %u: %s: byte %zu of %zu is 0x%02x, not 0x%02x",
                                 command, what, i, size, got[i], expected[i]);
}

void program_compare_pending(struct program *p)
{
        struct pending *r;
        while ((r = p->pending)) {
                p->pending = r->next;
                program_compare(p, r->got, r->expected, r->size, r->command, "read");
                free(r->got);
                free(r->expected);
                free(r);
        }
        struct opened *o;
        while ((o = p->opened)) {
                p->opened = o->next;
                ok(p, clReleaseEvent(o->event));
                free(o);
        }
        struct source *s;
        while ((s = p->sources)) {
                p->sources = s->next;
                free(s->data);
                free(s);
        }
}

void program_finish_all(struct program *p)
{
        say(p, "%u finish all\n", p->command);
        program_release_all(p);
        for (unsigned i = 0; i < p->queue_count; i++)
                ok(p, clFinish(p->queues[i].q));
        for (unsigned i = 0; i < p->root_count; i++) {
                for (struct access *a = p->roots[i].accesses; a; a = a->next) {
                        cl_int status = 1;
                        if (!a->event)
                                continue;
                        ok(p, clGetEventInfo(a->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                             sizeof(status), &status, NULL));
                        /* Its server may be away: the session is over soon, and what was in it. */
                        for (unsigned n = 0; status > 0 && p->broken && p->params->restart; n++) {
                                sim_run(p->sim, 1000000);
                                if (n == 100000)
                                        program_fail(p, "still open", status);
                                ok(p, clGetEventInfo(a->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                     sizeof(status), &status, NULL));
                        }
                        if ((status > CL_COMPLETE && !p->params->broken) || (status && !p->broken))
                                program_fail(p, "not complete after clFinish", status);
                }
        }
        drop_accesses(p);
        if (!p->params->broken) /* else commands may be open, whatever clFinish was told */
                program_compare_pending(p);
}

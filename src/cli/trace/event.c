#include "cli/trace/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The readers of values pass over blanks also when they find another value. */
const char *trace_value_at(struct json *j)
{
        while (j->at < j->end && *j->at && strchr(" \t\r\n", *j->at))
                j->at++;
        return j->at;
}

/* As far as it is printable. */
void trace_value_text(struct json *j, char *ret, size_t size)
{
        const char *at = trace_value_at(j);
        *ret = 0;
        if (!json_text(j, ret, size) && j->at == at)
                json_skip(j);
}

uint64_t trace_value_number(struct json *j)
{
        const char *at = trace_value_at(j);
        uint64_t v = 0;
        if (!json_number(j, &v) && j->at == at)
                json_skip(j);
        return v;
}

bool trace_value_opens(struct json *j)
{
        if (json_open(j, '{'))
                return true;
        json_skip(j);
        return false;
}

bool trace_value_arg(struct json *j, struct trace_arg *ret)
{
        const char *at = trace_value_at(j);
        char digits[40];
        if (at == j->end)
                return false;
        if (*at == '"') {
                ret->kind = TRACE_ARG_TEXT;
                trace_value_text(j, ret->text, sizeof(ret->text));
                return true;
        }
        if (!json_skip(j) || !(*at == '-' || (*at >= '0' && *at <= '9')))
                return false;
        snprintf(digits, sizeof(digits), "%.*s", (int)(j->at - at), at);
        bool whole = digits[strspn(digits, "0123456789")] == 0 && strlen(digits) < 20;
        ret->kind = whole ? TRACE_ARG_NUMBER : TRACE_ARG_REAL;
        ret->number = whole ? strtoull(digits, NULL, 10) : 0;
        ret->real = strtod(digits, NULL);
        return true;
}

/* Microseconds with up to three digits behind the point, in ns; 0: it is another value. */
static uint64_t take_us(struct json *j)
{
        const char *p = trace_value_at(j);
        if (!json_skip(j))
                return 0;
        uint64_t v = 0;
        int digits = -1; /* behind the point */
        for (; p < j->at && digits < 3; p++) {
                if (*p == '.' && digits < 0) {
                        digits = 0;
                        continue;
                }
                if (*p < '0' || *p > '9' || v > UINT64_MAX / 10000)
                        return 0;
                v = v * 10 + (uint64_t)(*p - '0');
                digits += digits >= 0;
        }
        for (int i = digits < 0 ? 0 : digits; i < 3; i++)
                v *= 10;
        return v;
}

static void take_args(struct json *j, struct trace_event *e)
{
        bool first = true;
        char member[TRACE_EVENT_NAME];
        if (!trace_value_opens(j))
                return;
        while (json_member(j, &first, member, sizeof(member))) {
                struct trace_arg *a = &e->args[e->arg_count];
                if (e->arg_count == TRACE_EVENT_ARGS || !*member) {
                        json_skip(j);
                } else if (trace_value_arg(j, a)) {
                        memcpy(a->name, member, sizeof(a->name));
                        e->arg_count++;
                }
        }
}

bool trace_event_read(struct json *j, struct trace_event *ret)
{
        bool first = true;
        char member[TRACE_EVENT_NAME], phase[4];
        ret->phase = 0;
        ret->process = 0;
        ret->thread = ret->begin_ns = ret->duration_ns = 0;
        ret->name[0] = ret->category[0] = ret->id[0] = 0;
        ret->arg_count = 0; /* the others need not be cleared */
        if (!json_open(j, '{'))
                return false;
        while (json_member(j, &first, member, sizeof(member))) {
                if (!strcmp(member, "ph")) {
                        trace_value_text(j, phase, sizeof(phase));
                        ret->phase = phase[0] && phase[1] ? '?' : phase[0];
                } else if (!strcmp(member, "pid")) {
                        ret->process = (uint32_t)trace_value_number(j);
                } else if (!strcmp(member, "tid")) {
                        ret->thread = trace_value_number(j);
                } else if (!strcmp(member, "ts")) {
                        ret->begin_ns = take_us(j);
                } else if (!strcmp(member, "dur")) {
                        ret->duration_ns = take_us(j);
                } else if (!strcmp(member, "name")) {
                        trace_value_text(j, ret->name, sizeof(ret->name));
                } else if (!strcmp(member, "cat")) {
                        trace_value_text(j, ret->category, sizeof(ret->category));
                } else if (!strcmp(member, "id")) {
                        trace_value_text(j, ret->id, sizeof(ret->id));
                } else if (!strcmp(member, "args")) {
                        take_args(j, ret);
                } else {
                        json_skip(j);
                }
        }
        return !j->bad;
}

int trace_read_all(const char *text, size_t size, const struct trace_reader *r, void *user)
{
        struct json j = { .at = text, .end = text + size };
        bool first = true, one = true, found = false;
        char member[TRACE_EVENT_NAME];
        struct trace_event e;
        if (!json_open(&j, '{'))
                return SP_E_PROTO;
        while (json_member(&j, &first, member, sizeof(member))) {
                if (!strcmp(member, "traceEvents") && !found && json_open(&j, '[')) {
                        found = true;
                        while (json_element(&j, &one)) {
                                const char *at = trace_value_at(&j);
                                if (!trace_event_read(&j, &e))
                                        return SP_E_PROTO;
                                r->event(user, &e, at);
                        }
                } else if (!strcmp(member, "otherData")) {
                        r->other(user, &j);
                } else {
                        json_skip(&j);
                }
        }
        return found && json_ends(&j) ? 0 : SP_E_PROTO;
}

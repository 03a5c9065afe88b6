#include "daemon/supervisor/reserving.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/supervisor/supervising.h"
#include "daemon/supervisor/workers.h"
#include "os/clock.h"
#include "os/host_user.h"
#include "os/process/process.h"
#include "proto/info.h"
#include "session/hello.h"

enum {
        TEXT_MAX = 256, /* also the longest name of an exchange */
        REPORTED_MAX = 64,
        WORD_MAX = 64,
        CHECK_MS = 60000, /* at most, because the wall clock may jump */
};

static void free_text(char **text)
{
        mem_free(*text);
}

static uint64_t now_s(void)
{
        return clock_wall_ns() / 1000000000;
}

/* Append a reservation. SP_E_NOMEM. */
static int add(struct reservations *r, const struct reservation *what, const char *who,
               const char *name)
{
        struct reserved *all = mem_realloc(r->all, (r->count + 1) * sizeof(*all));
        if (!all)
                return SP_E_NOMEM;
        r->all = all;
        all[r->count] = (struct reserved){ .what = *what };
        snprintf(all[r->count].who, sizeof(all->who), "%s", who);
        snprintf(all[r->count].name, sizeof(all->name), "%s", name);
        bytes_tame(all[r->count].name, sizeof(all->name));
        r->count++;
        return 0;
}

/* ---- --reserve ------------------------------------------------------------------------------ */

/* Take "DEVICE=user:NAME" or "DEVICE=token" off the text. 1; 0: the end; SP_E_INVAL. */
static int next_option(const char **text, struct reservation *ret, char ret_word[WORD_MAX])
{
        char number[WORD_MAX];
        const char *p = *text, *left = number;
        size_t n = strcspn(p, "=,"), size = p[n] == '=' ? strcspn(p + n + 1, ",") : 0;
        if (!*p)
                return 0;
        if (n >= sizeof(number) || !size || size >= WORD_MAX)
                return SP_E_INVAL;
        snprintf(number, sizeof(number), "%.*s", (int)n, p);
        snprintf(ret_word, WORD_MAX, "%.*s", (int)size, p + n + 1);
        if (reservation_next(&left, 0, ret) <= 0 || *left || ret->until_s ||
            (strcmp(ret_word, KEYS_PSK_TOKEN) != 0 &&
             (strncmp(ret_word, "user:", 5) != 0 || !ret_word[5])))
                return SP_E_INVAL;
        p += n + 1 + size;
        if (*p && !*++p)
                return SP_E_INVAL;
        *text = p;
        return 1;
}

bool reserving_check(const char *text)
{
        struct reservation what;
        char word[WORD_MAX];
        int r;
        while ((r = next_option(&text, &what, word)) > 0)
                ;
        return !r;
}

int reserving_init(struct supervisor *s)
{
        const char *text = config_option_text(s->options, CONFIG_reserve);
        struct reservation what;
        struct host_user user;
        char word[WORD_MAX], who[GATE_WHO_MAX];
        int r = 0;
        while (!r && next_option(&text, &what, word) > 0) {
                bool token = !strcmp(word, KEYS_PSK_TOKEN), known = token;
                if (!token)
                        known = host_user_find(word + 5, &user);
                if (token)
                        strcpy(who, KEYS_PSK_TOKEN);
                else
                        snprintf(who, sizeof(who), "user %u", known ? user.user : 0);
                if (!known)
                        log_warn(LOG, "--reserve: there is no user %s, so nobody gets device %u",
                                 word + 5, what.device);
                r = add(&s->reservations, &what, known ? who : "",
                        token ? "clients that have the token" : word);
        }
        s->reservations.fixed = s->reservations.count;
        return r;
}

void reserving_fini(struct supervisor *s)
{
        mem_free(s->reservations.all);
        s->reservations = (struct reservations){ 0 };
}

/* ---- terms of a filter ---------------------------------------------------------------------- */

static bool has_term(const char *filter, const char *term)
{
        size_t n = strlen(term);
        for (const char *p = strstr(filter, term); p; p = strstr(p + 1, term))
                if (!p[n] || p[n] == ',')
                        return true;
        return false;
}

/* Return true if the device is reserved for the client, too. */
static bool is_for(const struct reservations *r, unsigned device, const char *who)
{
        for (size_t i = 0; i < r->count; i++)
                if (r->all[i].what.device == device && *r->all[i].who &&
                    !strcmp(r->all[i].who, who))
                        return true;
        return false;
}

void reserving_apply(const struct supervisor *s, struct gate_grant *grant)
{
        const struct reservations *r = &s->reservations;
        size_t used = 0;
        *grant->reserved = 0;
        for (size_t i = 0; i < r->count; i++) {
                char term[16];
                size_t n = (size_t)snprintf(term, sizeof(term), "!%u", r->all[i].what.device);
                if (is_for(r, r->all[i].what.device, grant->who) || has_term(grant->reserved, term))
                        continue;
                if (used + n + 2 > sizeof(grant->reserved)) {
                        strcpy(grant->reserved, "!all");
                        return;
                }
                used += (size_t)snprintf(grant->reserved + used, sizeof(grant->reserved) - used,
                                         "%s%s", used ? "," : "", term);
        }
}

/* ---- changes -------------------------------------------------------------------------------- */

/* Count the sessions of other clients that may have the device. */
static size_t count_others(const struct supervisor *s, unsigned device)
{
        char term[16];
        size_t n = 0;
        snprintf(term, sizeof(term), "!%u", device);
        list_each(w, &s->workers, struct worker, link)
        {
                n += w->state == WORKER_BUSY && !w->gone &&
                     !is_for(&s->reservations, device, w->grant.who) &&
                     !has_term(w->grant.reserved, term) && strcmp(w->grant.reserved, "!all") != 0;
        }
        return n;
}

static bool is_in(const struct reserved *one, const struct reserved *all, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (one->what.device == all[i].what.device &&
                    one->what.until_s == all[i].what.until_s && !strcmp(one->who, all[i].who) &&
                    !strcmp(one->name, all[i].name))
                        return true;
        return false;
}

/* Write "device 0 (NAME) is reserved for CLIENT until DATE". */
static void describe(const struct supervisor *s, const struct reserved *one, char ret[TEXT_MAX])
{
        char end[RESERVATION_DATE];
        snprintf(ret, TEXT_MAX, "device %u (%s) is reserved for %.100s%s", one->what.device,
                 health_name(s, one->what.device), one->name, reservation_end(&one->what, end));
}

static void report_new(const struct supervisor *s, const struct reserved *one)
{
        char text[TEXT_MAX];
        size_t others = count_others(s, one->what.device);
        describe(s, one, text);
        if (others)
                log_info(LOG, "%s; %zu sessions of others began before and keep it", text, others);
        else
                log_info(LOG, "%s", text);
}

/* The reservations were `old`. Return true if they have changed. */
static bool report_changes(const struct supervisor *s, const struct reserved *old, size_t count)
{
        const struct reservations *r = &s->reservations;
        bool changed = false;
        for (size_t i = 0; i < r->count; i++) {
                if (is_in(&r->all[i], old, count))
                        continue;
                changed = true;
                report_new(s, &r->all[i]);
        }
        for (size_t i = 0; i < count; i++) {
                if (is_in(&old[i], r->all, r->count))
                        continue;
                changed = true;
                log_info(LOG, "the reservation of device %u for %s is over", old[i].what.device,
                         old[i].name);
        }
        return changed;
}

/* Add the reservations of a client's line. One that is malformed keeps its client out, see the gate. */
static int add_line(struct reservations *r, const struct keys_entry *e)
{
        const char *left = e->settings;
        struct keys_setting setting;
        while (keys_setting(&left, &setting)) {
                char text[KEYS_SETTINGS_MAX + 1], who[GATE_WHO_MAX], hex[KEYS_HEX + 1];
                const char *p = text;
                struct reservation what;
                if (setting.key.size != 7 || memcmp(setting.key.data, "reserve", 7) != 0)
                        continue;
                snprintf(text, sizeof(text), "%.*s", (int)setting.value.size,
                         (const char *)setting.value.data);
                if (!reservation_is_list(text)) {
                        log_warn(LOG, "clients has a reservation for %s that is malformed",
                                 e->name);
                        continue;
                }
                keys_hex(e->fingerprint, hex);
                snprintf(who, sizeof(who), "key %s", hex);
                while (reservation_next(&p, 0, &what) > 0)
                        if (add(r, &what, who, e->name) < 0)
                                return SP_E_NOMEM;
        }
        return 0;
}

/* Read the list. Errors leave `ret` without memory to free. */
static int read_list(const struct supervisor *s, struct reservations *ret)
{
        auto_clean(free_text) char *list = NULL;
        struct reservations fresh = { .fixed = s->reservations.fixed };
        struct keys_entry e;
        unsigned bad = 0;
        int r = gate_clients(&s->gate, &list);
        if (r == SP_E_NOENT)
                r = 0;
        for (size_t i = 0; i < fresh.fixed && !r; i++)
                r = add(&fresh, &s->reservations.all[i].what, s->reservations.all[i].who,
                        s->reservations.all[i].name);
        for (const char *p = list ? list : ""; !r && keys_next(&p, &e, &bad);)
                r = add_line(&fresh, &e);
        if (r < 0)
                mem_free(fresh.all);
        else
                *ret = fresh;
        return r;
}

/* Drop those that are over, and find out when the next one is. */
static void drop_old(struct reservations *r)
{
        uint64_t now = now_s(), first_s = UINT64_MAX;
        size_t kept = 0;
        for (size_t i = 0; i < r->count; i++) {
                if (reservation_is_over(&r->all[i].what, now))
                        continue;
                if (r->all[i].what.until_s && r->all[i].what.until_s < first_s)
                        first_s = r->all[i].what.until_s;
                r->all[kept++] = r->all[i];
        }
        r->count = kept;
        uint64_t ms = first_s == UINT64_MAX ? 0 : (first_s - now) * 1000;
        r->check_ns = ms ? clock_now_ns() + (ms < CHECK_MS ? ms : CHECK_MS) * MS : 0;
}

/* Read the list if it has changed. False: it has not, or can't be read. */
static bool read_anew(const struct supervisor *s, struct reservations *ret)
{
        const struct reservations *r = &s->reservations;
        struct file_info file = { 0 };
        char path[KEYS_PATH_MAX + 32];
        snprintf(path, sizeof(path), "%s/%s", s->gate.folder, KEYS_CLIENTS);
        if (*s->gate.folder && !file_info(path, true, &file))
                file = (struct file_info){ 0 };
        if ((r->read && file_is_unchanged(&file, &r->file)) || read_list(s, ret) < 0)
                return false;
        ret->read = true;
        ret->file = file;
        return true;
}

static int copy_of(const struct reservations *r, struct reservations *ret)
{
        *ret = *r;
        ret->all = mem_alloc(r->count * sizeof(*r->all));
        if (ret->all)
                memcpy(ret->all, r->all, r->count * sizeof(*r->all));
        return ret->all ? 0 : SP_E_NOMEM;
}

void reserving_refresh(struct supervisor *s)
{
        struct reservations *r = &s->reservations, old = *r, fresh;
        bool due = r->check_ns && r->check_ns <= clock_now_ns();
        if (!read_anew(s, &fresh)) {
                if (!due)
                        return;
                if (copy_of(&old, &fresh) < 0) {
                        r->check_ns += CHECK_MS * MS;
                        return;
                }
        }
        *r = fresh;
        drop_old(r);
        if (report_changes(s, old.all, old.count))
                workers_retire(s);
        mem_free(old.all);
}

void reserving_expire(struct supervisor *s, uint64_t now_ns)
{
        if (s->reservations.check_ns && s->reservations.check_ns <= now_ns)
                reserving_refresh(s);
}

uint64_t reserving_deadline(const struct supervisor *s)
{
        return s->reservations.check_ns ? s->reservations.check_ns : UINT64_MAX;
}

/* ---- reports -------------------------------------------------------------------------------- */

const char *reserving_reason(const struct supervisor *s, const struct gate_grant *grant)
{
        static char text[TEXT_MAX];
        const struct reservations *r = &s->reservations;
        for (size_t i = 0; i < r->count; i++) {
                if (is_for(r, r->all[i].what.device, grant->who))
                        continue;
                describe(s, &r->all[i], text);
                return text;
        }
        return NULL;
}

const char *reserving_excuse(const struct supervisor *s, const struct gate_grant *grant)
{
        static char text[TEXT_MAX + 64];
        const char *reason = reserving_reason(s, grant);
        if (!reason)
                return NULL;
        snprintf(text, sizeof(text), "this server has no device for this session: %s", reason);
        return text;
}

static int put_block(const struct supervisor *s, const struct reserved *one, struct buf *b)
{
        const char *name = health_name(s, one->what.device);
        size_t mark;
        int r = info_begin(b, INFO_RESERVED, &mark);
        if (!r)
                r = info_put_u64(b, INFO_RESERVED_DEVICE, one->what.device);
        if (!r)
                r = info_put(b, INFO_RESERVED_NAME, name, strlen(name));
        if (!r)
                r = info_put(b, INFO_RESERVED_CLIENT, one->name, strlen(one->name));
        if (!r && one->what.until_s)
                r = info_put_u64(b, INFO_RESERVED_UNTIL, one->what.until_s);
        if (!r)
                info_end(b, mark);
        return r;
}

int reserving_report(const struct supervisor *s, struct buf *out)
{
        int r = 0;
        for (size_t i = 0; i < s->reservations.count && i < REPORTED_MAX && !r; i++) {
                auto_clean(buf_fini) struct buf block = { 0 };
                char text[TEXT_MAX];
                describe(s, &s->reservations.all[i], text);
                r = put_block(s, &s->reservations.all[i], &block);
                const struct wire_session_stats m = {
                        .process = (uint64_t)process_self(),
                        .name = bytes_str(text),
                        .links = bytes_of(block.data, block.size),
                };
                if (!r)
                        r = hello_put_stats(out, &m);
        }
        return r;
}

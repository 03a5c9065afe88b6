#include "transport/keys.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "config/variables.h"
#include "os/file.h"
#include "os/file_info.h"
#include "os/folder.h"
#include "os/host.h"
#include "os/process/process.h"

enum { TOKEN_MIN = 20, LOCK_MS = 1000 };

/* The letters of a code, without the ones that look like digits (Crockford). */
static const char letters[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

__attribute__((format(printf, 3, 4))) static int fail(char text[KEYS_TEXT_MAX], int status,
                                                      const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(text, KEYS_TEXT_MAX, fmt, ap);
        va_end(ap);
        return status;
}

int keys_folder(const char *given, char ret[KEYS_PATH_MAX])
{
        const size_t size = KEYS_PATH_MAX - 64; /* a file's name comes behind it */
        if (!given || !*given)
                given = config_text(CONFIG_keys);
        if (!*given)
                return config_user_folder(ret, size);
        return (size_t)snprintf(ret, size, "%s", given) < size ? 0 : SP_E_LIMIT;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Root may look after a service's keys. */
static bool own(const struct file_info *f)
{
        return f->owner == process_user() || !f->owner || !process_user();
}

/* A file that root writes into a service's folder must belong to the service. */
static bool give_to_owner(int fd, const char *folder)
{
        struct file_info f;
        return process_user() || (file_info(folder, true, &f) && file_give(fd, f.owner, f.group));
}

/* Root has mounted the folder read-only: nobody can put a file there, so only the files have to be private. */
static bool is_mounted_secret(const char *folder, const struct file_info *f)
{
        return !f->owner && folder_is_read_only(folder);
}

static int check_folder(const char *folder, char text[KEYS_TEXT_MAX])
{
        struct file_info f;
        if (!file_info(folder, true, &f))
                return fail(text, errno == ENOENT ? SP_E_NOENT : SP_E_INVAL, "%s: %s", folder,
                            strerror(errno));
        if (f.kind != FILE_IS_FOLDER)
                return fail(text, SP_E_INVAL, "%s is not a folder", folder);
        if (!own(&f) || ((f.mode & 077) && !is_mounted_secret(folder, &f)))
                return fail(text, SP_E_AUTH,
                            "%s holds keys and is not private to this user: chmod 700 %s", folder,
                            folder);
        return 0;
}

/* The bits of a file's mode that other users may not have. Certificates are no secret, but nobody
 * else may change the set of keys that SpanCL believes. Root may let a group read a service's
 * secrets: Kubernetes does (fsGroup). */
static unsigned not_for_others(bool is_public, const struct file_info *f)
{
        return is_public ? 022 : f->owner ? 077 : 037;
}

static int check_file(const char *path, bool is_public, const struct file_info *f,
                      char text[KEYS_TEXT_MAX])
{
        if (!own(f) || (f->mode & not_for_others(is_public, f)))
                return fail(text, SP_E_AUTH, "%s is not private to this user: chmod 600 %s", path,
                            path);
        if (f->size > KEYS_FILE_MAX)
                return fail(text, SP_E_LIMIT, "%s is too large", path);
        return 0;
}

static int read_all(int fd, const char *path, char **ret, char text[KEYS_TEXT_MAX])
{
        auto_clean(buf_fini) struct buf b = { 0 };
        for (;;) {
                int r = buf_reserve(&b, 4096);
                if (r < 0)
                        return fail(text, r, "out of memory");
                int64_t n = file_read(fd, b.data + b.size, 4095);
                if (n < 0 || b.size > KEYS_FILE_MAX)
                        return fail(text, SP_E_INVAL, "%s can't be read", path);
                b.size += (size_t)n;
                if (!n)
                        break;
        }
        b.data[b.size] = 0;
        *ret = (char *)steal(b.data);
        return 0;
}

int keys_read(const char *folder, const char *file, char **ret, char text[KEYS_TEXT_MAX])
{
        char path[KEYS_PATH_MAX];
        struct file_info f;
        uint64_t size;
        int r = check_folder(folder, text);
        if (r < 0)
                return r;
        snprintf(path, sizeof(path), "%s/%s", folder, file);
        int fd = file_open(path, true, &size);
        if (fd < 0 && errno == EINVAL)
                return fail(text, SP_E_INVAL, "%s is not a file", path);
        if (fd < 0)
                return fail(text, errno == ENOENT ? SP_E_NOENT : SP_E_INVAL, "%s: %s", path,
                            strerror(errno));
        if (!file_info_of(fd, &f))
                r = fail(text, SP_E_INVAL, "%s: %s", path, strerror(errno));
        if (!r)
                r = check_file(path, !strcmp(file, KEYS_AUTHORITY), &f, text);
        if (!r)
                r = read_all(fd, path, ret, text);
        (void)file_close(fd);
        return r;
}

static int make_folder(const char *folder, char text[KEYS_TEXT_MAX])
{
        if (folder_make(folder) < 0)
                return fail(text, SP_E_INVAL, "%s can't be made: %s", folder, strerror(errno));
        return check_folder(folder, text);
}

int keys_write(const char *folder, const char *file, const char *data, bool fresh,
               char text[KEYS_TEXT_MAX])
{
        char path[KEYS_PATH_MAX], temp[KEYS_PATH_MAX];
        if (strlen(data) > KEYS_FILE_MAX)
                return fail(text, SP_E_LIMIT, "%s/%s would be too large", folder, file);
        int r = make_folder(folder, text);
        if (r < 0)
                return r;
        snprintf(path, sizeof(path), "%s/%s", folder, file);
        snprintf(temp, sizeof(temp), "%s/.%s.XXXXXX", folder, file);
        int fd = file_create_unique(temp);
        if (fd < 0)
                return fail(text, SP_E_INVAL, "%s can't be written: %s", path, strerror(errno));
        bool ok = give_to_owner(fd, folder) && file_write_all(fd, data, strlen(data)) &&
                  file_sync(fd);
        ok &= file_close(fd);
        if (ok)
                ok = file_move(temp, path, !fresh);
        int error = errno;
        if (!ok)
                (void)file_unlink(temp);
        if (ok)
                return 0;
        return fail(text, error == EEXIST ? SP_E_BUSY : SP_E_INVAL, "%s can't be written: %s", path,
                    strerror(error));
}

void keys_remove(const char *folder, const char *file)
{
        char path[KEYS_PATH_MAX];
        snprintf(path, sizeof(path), "%s/%s", folder, file);
        (void)file_unlink(path);
}

int keys_lock(const char *folder, char text[KEYS_TEXT_MAX])
{
        int r = check_folder(folder, text);
        int fd = r < 0 ? -1 : folder_lock(folder, LOCK_MS);
        if (r == 0 && fd < 0)
                r = errno == EWOULDBLOCK
                            ? fail(text, SP_E_BUSY, "another program is changing %s", folder)
                            : fail(text, SP_E_INVAL, "%s: %s", folder, strerror(errno));
        return r < 0 ? r : fd;
}

/* ---- the last connections ------------------------------------------------------------------- */

static void seen_path(const char *folder, const char *hex, char ret[KEYS_PATH_MAX + KEYS_HEX])
{
        snprintf(ret, KEYS_PATH_MAX + KEYS_HEX, "%s/" KEYS_SEEN "/%.*s", folder, KEYS_HEX, hex);
}

void keys_saw(const char *folder, const char hex[KEYS_HEX + 1])
{
        char path[KEYS_PATH_MAX + KEYS_HEX];
        seen_path(folder, "", path);
        if (!folder_make_new(path) && errno != EEXIST)
                return;
        seen_path(folder, hex, path);
        int fd = file_create(path);
        if (fd < 0)
                return;
        file_touch(fd);
        (void)file_close(fd);
}

uint64_t keys_seen(const char *folder, const char hex[KEYS_HEX + 1])
{
        char path[KEYS_PATH_MAX + KEYS_HEX];
        struct file_info info;
        seen_path(folder, hex, path);
        return file_info(path, true, &info) ? info.changed_ns / 1000000000 : 0;
}

void keys_unsee(const char *folder, const char hex[KEYS_HEX + 1])
{
        char path[KEYS_PATH_MAX + KEYS_HEX];
        seen_path(folder, hex, path);
        (void)file_unlink(path);
}

/* ---- identities ----------------------------------------------------------------------------- */

/* The name of a certificate; nothing checks it. */
static void own_name(char ret[64])
{
        host_name(ret, 64);
        if (!*ret)
                strcpy(ret, "spancl");
}

static int make_identity(const struct crypto_ops *crypto, const char *folder,
                         char text[KEYS_TEXT_MAX])
{
        char host[64];
        own_name(host);
        char *pem = crypto->identity_new(host);
        if (!pem)
                return fail(text, SP_E_NOMEM, "a key pair can't be made");
        int r = keys_write(folder, KEYS_IDENTITY, pem, true, text);
        explicit_bzero(pem, strlen(pem));
        free(pem);
        return r == SP_E_BUSY ? 0 : r; /* another process was faster */
}

int keys_identity(const struct crypto_ops *crypto, const char *folder, char **ret_pem,
                  uint8_t ret[CRYPTO_FINGERPRINT], char text[KEYS_TEXT_MAX])
{
        char *pem;
        int r = keys_read(folder, KEYS_IDENTITY, &pem, text);
        if (r == SP_E_NOENT) {
                r = make_identity(crypto, folder, text);
                if (!r)
                        r = keys_read(folder, KEYS_IDENTITY, &pem, text);
        }
        if (r < 0)
                return r;
        if (!crypto->identity_fingerprint(pem, ret)) {
                explicit_bzero(pem, strlen(pem));
                mem_free(pem);
                return fail(text, SP_E_INVAL, "%s/%s has no certificate", folder, KEYS_IDENTITY);
        }
        *ret_pem = pem;
        return 0;
}

int keys_rotate(const struct crypto_ops *crypto, const char *folder, char text[KEYS_TEXT_MAX])
{
        char host[64], *old;
        int r = keys_read(folder, KEYS_IDENTITY, &old, text);
        if (r < 0)
                return r;
        own_name(host);
        char *pem = crypto->identity_next(old, host);
        explicit_bzero(old, strlen(old));
        mem_free(old);
        if (!pem)
                return fail(text, SP_E_INVAL,
                            "the certificate in %s/%s was not made here: whoever issued it has to "
                            "issue the next one",
                            folder, KEYS_IDENTITY);
        r = keys_write(folder, KEYS_IDENTITY, pem, false, text);
        explicit_bzero(pem, strlen(pem));
        free(pem);
        return r;
}

/* ---- lists ---------------------------------------------------------------------------------- */

void keys_hex(const uint8_t fingerprint[CRYPTO_FINGERPRINT], char ret[KEYS_HEX + 1])
{
        for (int i = 0; i < CRYPTO_FINGERPRINT; i++)
                snprintf(ret + 2 * i, 3, "%02x", fingerprint[i]);
}

static int digit(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool keys_unhex(const char *hex, uint8_t ret[CRYPTO_FINGERPRINT])
{
        for (int i = 0; i < CRYPTO_FINGERPRINT; i++) {
                int hi = digit(hex[2 * i]), lo = hi < 0 ? -1 : digit(hex[2 * i + 1]);
                if (lo < 0)
                        return false;
                ret[i] = (uint8_t)(hi << 4 | lo);
        }
        return true;
}

/* The next word of a line that ends at `end`: its size, 0: none. */
static size_t word(const char **p, const char *end)
{
        while (*p < end && strchr(" \t\r", **p))
                ++*p;
        const char *from = *p;
        while (from < end && !strchr(" \t\r", *from))
                from++;
        return (size_t)(from - *p);
}

static bool take_text(const char *p, size_t n, char ret[KEYS_NAME_MAX + 1])
{
        if (!n || n > KEYS_NAME_MAX)
                return false;
        memcpy(ret, p, n);
        ret[n] = 0;
        return true;
}

/* The size of a setting's key, which is followed by '='; 0: it is none. */
static size_t setting_key(const char *p, size_t n)
{
        size_t size = 0;
        while (size < n && ((p[size] >= 'a' && p[size] <= 'z') || (size && p[size] == '-')))
                size++;
        return size < n && p[size] == '=' && size + 1 < n ? size : 0;
}

static bool has_setting(const char *settings, struct bytes key)
{
        struct keys_setting s;
        while (keys_setting(&settings, &s))
                if (s.key.size == key.size && !memcmp(s.key.data, key.data, key.size))
                        return true;
        return false;
}

static bool add_setting(char *settings, const char *p, size_t n)
{
        size_t have = strlen(settings), blank = have > 0;
        if (have + blank + n > KEYS_SETTINGS_MAX)
                return false;
        if (blank)
                settings[have++] = ' ';
        memcpy(settings + have, p, n);
        settings[have + n] = 0;
        return true;
}

/* "KEY=VALUE" or "own". Each comes once. */
static bool parse_word(const char *p, size_t n, struct keys_entry *ret)
{
        const struct {
                const char *key;
                char *value;
        } fields[] = {
                { "devices", ret->devices },
                { "user", ret->user },
                { "host", ret->host },
        };
        if (n == 3 && !memcmp(p, "own", 3) && !ret->own) {
                ret->own = true;
                return true;
        }
        size_t key = setting_key(p, n);
        if (!key)
                return false;
        for (size_t i = 0; i < array_size(fields); i++)
                if (key == strlen(fields[i].key) && !memcmp(p, fields[i].key, key))
                        return !*fields[i].value &&
                               take_text(p + key + 1, n - key - 1, fields[i].value);
        return !has_setting(ret->settings, bytes_of(p, key)) && add_setting(ret->settings, p, n);
}

bool keys_setting(const char **settings, struct keys_setting *ret)
{
        const char *p = *settings, *end = p + strlen(p);
        size_t n = word(&p, end), key = setting_key(p, n);
        if (!key)
                return false;
        ret->key = bytes_of(p, key);
        ret->value = bytes_of(p + key + 1, n - key - 1);
        *settings = p + n;
        return true;
}

bool keys_is_name(const char *name)
{
        struct bytes left = bytes_str(name);
        uint32_t c;
        if (!left.size || left.size > KEYS_NAME_MAX)
                return false;
        while (left.size) {
                size_t n = bytes_utf8(left, &c);
                if (!n || !bytes_printable(c) || c == ' ')
                        return false;
                left = bytes_of((const char *)left.data + n, left.size - n);
        }
        return true;
}

/* "FINGERPRINT NAME [KEY=VALUE]... [own]" */
static bool parse_entry(const char *p, const char *end, struct keys_entry *ret)
{
        struct keys_entry e = { 0 };
        if (word(&p, end) != KEYS_HEX || !keys_unhex(p, e.fingerprint))
                return false;
        p += KEYS_HEX;
        size_t n = word(&p, end);
        if (!take_text(p, n, e.name))
                return false;
        for (p += n; (n = word(&p, end)); p += n)
                if (!parse_word(p, n, &e))
                        return false;
        *ret = e;
        return true;
}

bool keys_next(const char **text, struct keys_entry *ret, unsigned *bad)
{
        while (**text) {
                const char *p = *text, *end = p + strcspn(p, "\n");
                *text = *end ? end + 1 : end;
                if (!word(&p, end) || *p == '#')
                        continue;
                if (parse_entry(p, end, ret))
                        return true;
                ++*bad;
        }
        return false;
}

bool keys_find(const char *text, const uint8_t fingerprint[CRYPTO_FINGERPRINT], const char *name,
               struct keys_entry *ret)
{
        unsigned bad = 0;
        while (keys_next(&text, ret, &bad))
                if (!memcmp(ret->fingerprint, fingerprint, CRYPTO_FINGERPRINT) &&
                    (!name || !strcmp(ret->name, "*") || !strcasecmp(ret->name, name)))
                        return true;
        return false;
}

bool keys_knows(const char *text, const char *name)
{
        struct keys_entry e;
        unsigned bad = 0;
        while (keys_next(&text, &e, &bad))
                if (!strcasecmp(e.name, name))
                        return true;
        return false;
}

static int put_word(struct buf *b, const char *key, const char *value)
{
        int r = *value ? buf_put(b, key, strlen(key)) : 0;
        return r < 0 ? r : buf_put(b, value, strlen(value));
}

static int put_line(struct buf *b, const struct keys_entry *e)
{
        char hex[KEYS_HEX + 1];
        keys_hex(e->fingerprint, hex);
        const struct {
                const char *key, *value;
        } words[] = {
                { "", hex },
                { " ", e->name },
                { " devices=", e->devices },
                { " user=", e->user },
                { " host=", e->host },
                { " ", e->settings },
                { " ", e->own ? "own" : "" },
        };
        int r = 0;
        for (size_t i = 0; i < array_size(words) && !r; i++)
                r = put_word(b, words[i].key, words[i].value);
        return r < 0 ? r : buf_put(b, "\n", 1);
}

/* All lines but those that `e` replaces. */
static int keep_others(struct buf *b, const char *old, const struct keys_entry *e, bool by_name)
{
        int r = 0;
        while (*old && !r) {
                const char *end = old + strcspn(old, "\n");
                struct keys_entry have;
                bool same =
                        parse_entry(old, end, &have) &&
                        (by_name ? !strcasecmp(have.name, e->name)
                                 : !memcmp(have.fingerprint, e->fingerprint, CRYPTO_FINGERPRINT));
                if (!same)
                        r = buf_put(b, old, (size_t)(end - old));
                if (!r && !same)
                        r = buf_put(b, "\n", 1);
                old = *end ? end + 1 : end;
        }
        return r;
}

int keys_put(const char *folder, const char *file, const struct keys_entry *e, bool by_name,
             char text[KEYS_TEXT_MAX])
{
        auto_clean(buf_fini) struct buf b = { 0 };
        char *old = NULL;
        int r = keys_read(folder, file, &old, text);
        if (r < 0 && r != SP_E_NOENT)
                return r;
        r = old ? keep_others(&b, old, e, by_name) : 0;
        mem_free(old);
        if (!r)
                r = put_line(&b, e);
        if (!r)
                r = buf_put(&b, "", 1);
        return r < 0 ? fail(text, r, "out of memory")
                     : keys_write(folder, file, (char *)b.data, false, text);
}

/* Has the list this key under exactly this name? */
static bool has_name(const char *list, const struct keys_entry *of, const char *name)
{
        struct keys_entry e;
        unsigned bad = 0;
        while (keys_next(&list, &e, &bad))
                if (!memcmp(e.fingerprint, of->fingerprint, CRYPTO_FINGERPRINT) &&
                    !strcasecmp(e.name, name))
                        return true;
        return false;
}

/* Write a list without those of its entries that `drops` names. SP_E_NOENT: it names none. */
static int drop_entries(const char *folder, const char *file,
                        bool (*drops)(const char *list, const struct keys_entry *e,
                                      const void *what),
                        const void *what, char text[KEYS_TEXT_MAX])
{
        auto_clean(buf_fini) struct buf b = { 0 };
        char *list;
        bool any = false;
        int r = keys_read(folder, file, &list, text);
        if (r < 0)
                return r;
        for (const char *line = list; *line && !r;) {
                const char *end = line + strcspn(line, "\n"), *next = *end ? end + 1 : end;
                struct keys_entry e;
                bool drop = parse_entry(line, end, &e) && drops(list, &e, what);
                any |= drop;
                if (!drop)
                        r = buf_put(&b, line, (size_t)(next - line));
                line = next;
        }
        mem_free(list);
        if (!r)
                r = buf_put(&b, "", 1);
        if (r < 0)
                return fail(text, r, "out of memory");
        return any ? keys_write(folder, file, (char *)b.data, false, text) : SP_E_NOENT;
}

static bool is_of_name(const char *list, const struct keys_entry *e, const void *name)
{
        return strcmp(e->name, "*") != 0 && has_name(list, e, name);
}

int keys_forget(const char *folder, const char *file, const char *name, char text[KEYS_TEXT_MAX])
{
        snprintf(text, KEYS_TEXT_MAX, "%s is not known", name);
        return drop_entries(folder, file, is_of_name, name, text);
}

static bool is_of_key(const char *list, const struct keys_entry *e, const void *fingerprint)
{
        (void)list;
        return !memcmp(e->fingerprint, fingerprint, CRYPTO_FINGERPRINT);
}

int keys_drop(const char *folder, const char *file, const uint8_t fingerprint[CRYPTO_FINGERPRINT],
              char text[KEYS_TEXT_MAX])
{
        snprintf(text, KEYS_TEXT_MAX, "%s/%s does not have this key", folder, file);
        return drop_entries(folder, file, is_of_key, fingerprint, text);
}

int keys_replace(const char *folder, const char *file, const uint8_t old[CRYPTO_FINGERPRINT],
                 const uint8_t fresh[CRYPTO_FINGERPRINT], char text[KEYS_TEXT_MAX])
{
        char *list, from[KEYS_HEX + 1], to[KEYS_HEX + 1];
        int r = keys_read(folder, file, &list, text);
        if (r < 0)
                return r;
        keys_hex(old, from);
        keys_hex(fresh, to);
        bool any = false;
        for (char *line = list; *line;) {
                char *end = line + strcspn(line, "\n"), *at = line + strspn(line, " \t\r");
                struct keys_entry e;
                if (parse_entry(line, end, &e) && !strncmp(at, from, KEYS_HEX)) {
                        memcpy(at, to, KEYS_HEX);
                        any = true;
                }
                line = *end ? end + 1 : end;
        }
        r = any ? keys_write(folder, file, list, false, text)
                : fail(text, SP_E_NOENT, "%s/%s does not have this key", folder, file);
        mem_free(list);
        return r;
}

/* ---- pairing -------------------------------------------------------------------------------- */

void keys_code_new(const uint8_t random[KEYS_CODE_LETTERS], char ret[KEYS_CODE_MAX])
{
        size_t at = 0;
        for (int i = 0; i < KEYS_CODE_LETTERS; i++) {
                if (i && i % 4 == 0)
                        ret[at++] = '-';
                ret[at++] = letters[random[i] % 32];
        }
        ret[at] = 0;
}

bool keys_code_parse(const char *typed, char ret[KEYS_CODE_MAX])
{
        size_t n = 0;
        for (; *typed; typed++) {
                char c = *typed;
                if (c == '-' || c == ' ')
                        continue;
                if (c >= 'a' && c <= 'z')
                        c = (char)(c - 'a' + 'A');
                c = c == 'O' ? '0' : c == 'I' || c == 'L' ? '1' : c;
                if (!strchr(letters, c) || n == KEYS_CODE_LETTERS)
                        return false;
                ret[n++] = c;
        }
        ret[n] = 0;
        return n == KEYS_CODE_LETTERS;
}

bool keys_pairing_parse(const char *text, struct keys_pairing *ret)
{
        struct keys_pairing p = { 0 };
        if (strlen(text) < KEYS_HEX + 4 || !keys_unhex(text, p.secret) || text[KEYS_HEX] != ' ')
                return false;
        unsigned long long until;
        int end = 0;
        if (sscanf(text + KEYS_HEX + 1, "%19llu %5u\n%n", &until, &p.tries, &end) != 2 ||
            text[KEYS_HEX + 1 + end])
                return false;
        p.until_s = until;
        *ret = p;
        return true;
}

int keys_pairing_write(const char *folder, const struct keys_pairing *p, char text[KEYS_TEXT_MAX])
{
        char hex[KEYS_HEX + 1], line[KEYS_HEX + 64];
        keys_hex(p->secret, hex);
        snprintf(line, sizeof(line), "%s %llu %u\n", hex, (unsigned long long)p->until_s, p->tries);
        int r = keys_write(folder, KEYS_PAIRING, line, false, text);
        explicit_bzero(hex, sizeof(hex));
        explicit_bzero(line, sizeof(line));
        return r;
}

int keys_token(const struct crypto_ops *crypto, const char *folder, struct crypto_psk *ret,
               char text[KEYS_TEXT_MAX])
{
        char *token;
        int r = keys_read(folder, KEYS_TOKEN, &token, text);
        if (r < 0)
                return r;
        token[strcspn(token, "\r\n")] = 0;
        *ret = (struct crypto_psk){ .name = KEYS_PSK_TOKEN };
        if (strlen(token) < TOKEN_MIN)
                r = fail(text, SP_E_INVAL,
                         "%s/%s is too short to be a secret: at least %d characters, random ones "
                         "(openssl rand -hex 16)",
                         folder, KEYS_TOKEN, TOKEN_MIN);
        else if (!crypto->stretch(token, "spancl token", 1, ret->secret))
                r = fail(text, SP_E_NOMEM, "out of memory");
        explicit_bzero(token, strlen(token));
        mem_free(token);
        return r;
}

#include "discover/dns_message.h"

#include <string.h>

enum { HEADER = 12, QUESTION = 4, RECORD = 10, POINTERS_MAX = 32, NAME_BYTES_MAX = 255 };

static unsigned get16(const uint8_t *p)
{
        return (unsigned)p[0] << 8 | p[1];
}

bool dns_name(const struct dns_message *m, size_t at, char ret[DNS_NAME_MAX + 1], size_t *ret_end)
{
        size_t n = 0, bytes = 0;
        bool jumped = false;
        for (unsigned pointers = 0; at < m->size;) {
                unsigned length = m->data[at++];
                if (length >= 0xc0) {
                        if (at >= m->size || ++pointers > POINTERS_MAX)
                                return false;
                        if (!jumped)
                                *ret_end = at + 1;
                        jumped = true;
                        at = (length & 0x3f) << 8 | m->data[at];
                        continue;
                }
                bytes += length + 1;
                if (length > 63 || bytes > NAME_BYTES_MAX || length > m->size - at)
                        return false;
                if (!length) {
                        if (!jumped)
                                *ret_end = at;
                        ret[n ? n - 1 : 0] = 0; /* without the last dot */
                        return true;
                }
                for (unsigned i = 0; i < length; i++) {
                        char c = (char)m->data[at++];
                        if (!c)
                                return false;
                        if (c == '.' || c == '\\')
                                ret[n++] = '\\';
                        ret[n++] = c;
                }
                ret[n++] = '.';
        }
        return false;
}

void dns_label(const char *name, char ret[DNS_NAME_MAX + 1])
{
        size_t n = 0;
        for (; *name && *name != '.'; name++) {
                if (*name == '\\')
                        name++;
                ret[n++] = *name;
        }
        ret[n] = 0;
}

bool dns_begin(struct dns_message *m, const void *data, size_t size)
{
        char name[DNS_NAME_MAX + 1];
        *m = (struct dns_message){ data, size, HEADER, 0 };
        if (size < HEADER)
                return false;
        for (unsigned n = get16(m->data + 4); n; n--) {
                if (!dns_name(m, m->at, name, &m->at) || size - m->at < QUESTION)
                        return false;
                m->at += QUESTION;
        }
        m->left = get16(m->data + 6);
        return true;
}

bool dns_next(struct dns_message *m, struct dns_record *ret)
{
        char name[DNS_NAME_MAX + 1];
        if (!m->left || !dns_name(m, m->at, name, &m->at) || m->size - m->at < RECORD)
                return false;
        const uint8_t *p = m->data + m->at;
        m->left--;
        m->at += RECORD;
        ret->type = get16(p);
        ret->ttl_s = (uint32_t)get16(p + 4) << 16 | get16(p + 6);
        ret->size = get16(p + 8);
        ret->at = m->at;
        if (ret->size > m->size - m->at)
                return false;
        m->at += ret->size;
        return true;
}

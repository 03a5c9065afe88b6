/* Intrusive doubly linked list. A list is a struct list as its head; init it with list_init. */
#ifndef SPANCL_BASE_LIST_H
#define SPANCL_BASE_LIST_H

#include <stdbool.h>

#include "base/mem.h"

struct list {
        struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
        l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
        return l->next == l;
}

static inline void list_append(struct list *head, struct list *node)
{
        node->prev = head->prev;
        node->next = head;
        head->prev->next = node;
        head->prev = node;
}

/* Take `node` out; it is then an empty list of its own, so removing twice is harmless. */
static inline void list_remove(struct list *node)
{
        node->prev->next = node->next;
        node->next->prev = node->prev;
        list_init(node);
}

#define list_entry(p, type, member) container_of(p, type, member)

/* Iterate; the current entry may be removed. */
#define list_each(it, head, type, member)                                 \
        for (type *it = list_entry((head)->next, type, member),           \
                  *it##_next = list_entry(it->member.next, type, member); \
             &it->member != (head);                                       \
             it = it##_next, it##_next = list_entry(it->member.next, type, member))

#endif

/* list.h - a doubly linked list through nodes that live inside their owners.
 *
 * The list owns nothing. A node that is all zero counts as not linked, so owners from mem_alloc
 * need no set-up; a head does (list_init). */
#ifndef SLINC_BASE_LIST_H
#define SLINC_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list { /* a head, or a node: they look the same */
    struct list *next, *prev;
};

void list_init(struct list *head);

/* The node must not be in a list; pushing one that is aborts. */
void list_push_back(struct list *head, struct list *node);
void list_push_before(struct list *place, struct list *node); /* in front of a linked node */

void list_remove(struct list *node); /* does nothing when it is in no list */

bool list_is_empty(const struct list *head);
bool list_is_linked(const struct list *node);

struct list *list_first(const struct list *head); /* NULL when empty */
struct list *list_pop_front(struct list *head);   /* NULL when empty */

/* The owner of a node: list_item(node, struct pod, link). */
#define list_item(node, type, member) ((type *)(void *)((char *)(node) - offsetof(type, member)))

/* `list_each(struct pod, pod, &pods, link) { ... }` walks from front to back. The body may remove
 * or free the current item, and no other one that follows it. `break` and `continue` work. */
#define list_each(type, item, head, member)                                                        \
    for (struct list_walk item##_walk = list_walk_start(head); list_walk_next(&item##_walk);)      \
        for (type *item = list_item(item##_walk.at, type, member); item##_walk.inside;             \
             item##_walk.inside = false)

/* The inner loop above runs once; `inside` is how the outer one learns that it ended by break. */
struct list_walk {
    const struct list *head;
    struct list *at, *next;
    bool inside;
};

struct list_walk list_walk_start(const struct list *head);
bool list_walk_next(struct list_walk *walk);

#endif

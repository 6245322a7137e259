/* list.c - linking and unlinking.
 *
 * Holds: the list is a ring through its head; a node is in a list if and only if its next is
 * neither NULL nor itself. */
#include "base/list.h"

#include <stdio.h>
#include <stdlib.h>

void list_init(struct list *head)
{
    head->next = head->prev = head;
}

bool list_is_linked(const struct list *node)
{
    return node->next && node->next != node;
}

bool list_is_empty(const struct list *head)
{
    return !list_is_linked(head);
}

void list_push_before(struct list *place, struct list *node)
{
    if (list_is_linked(node)) {
        fputs("list: the node is in a list already\n", stderr);
        abort(); /* going on would tie two lists together */
    }
    node->next = place;
    node->prev = place->prev;
    place->prev->next = node;
    place->prev = node;
}

void list_push_back(struct list *head, struct list *node)
{
    list_push_before(head, node);
}

void list_remove(struct list *node)
{
    if (!list_is_linked(node))
        return;
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

struct list *list_first(const struct list *head)
{
    return list_is_empty(head) ? NULL : head->next;
}

struct list *list_pop_front(struct list *head)
{
    struct list *node = list_first(head);

    if (node)
        list_remove(node);
    return node;
}

struct list_walk list_walk_start(const struct list *head)
{
    return (struct list_walk){ .head = head, .next = head->next };
}

bool list_walk_next(struct list_walk *walk)
{
    if (walk->inside || walk->next == walk->head)
        return false;
    walk->at = walk->next;
    walk->next = walk->at->next; /* remembered now, so that the body may free the current item */
    walk->inside = true;
    return true;
}

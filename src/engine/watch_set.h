/* watch_set.h - the caches of a program and the informers that fill them, some of them optional.
 *
 * An optional kind is one that not every API server has (a custom resource of others). It is looked
 * for now and then; while it is absent its cache stays empty, and that is a fact like any other. */
#ifndef SLINC_ENGINE_WATCH_SET_H
#define SLINC_ENGINE_WATCH_SET_H

#include "engine/health.h"
#include "kube/informer.h"

enum { WATCH_SET_MAX = 64 };

struct watch_row {
    struct kube_cache *cache;
    const char *label_selector, *field_selector; /* NULL: all objects */
    bool is_optional;
};

enum watch_state {
    WATCH_UNKNOWN, /* not read yet, or the server cannot be asked */
    WATCH_PRESENT, /* read at least once */
    WATCH_ABSENT,  /* the server does not know this kind */
};

struct watch_set;

/* Rows are copied; caches, client, rand and namespaces are borrowed and outlive the set.
 * namespaces: only these are watched; count 0 means all. */
struct watch_set *watch_set_new(struct kube_client *client, struct rand *rand,
                                const struct watch_row *rows, unsigned count,
                                const char *const *namespaces, unsigned namespace_count,
                                unsigned page);
void watch_set_start(struct watch_set *set);
void watch_set_free(struct watch_set *set); /* no cache changes any more */

enum watch_state watch_set_state(const struct watch_set *set, const struct kube_cache *cache);

/* Kinds that every server has must be read for the program to be ready; the others are shown. */
void watch_set_add_health(const struct watch_set *set, struct health *health);

#endif

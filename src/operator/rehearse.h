/* rehearse.h - what the operator would do first in a world, told and not done.
 *
 * The plans of all custom resources are made, and their actions are read: which pods they replace,
 * and because of which fields. `slinc doctor --takeover` asks this before another operator's
 * objects are taken over. Values of fields are never told, except images. */
#ifndef SLINC_OPERATOR_REHEARSE_H
#define SLINC_OPERATOR_REHEARSE_H

#include "operator/world.h"

enum rehearsed {
    REHEARSED_ROLLS,   /* pods are replaced */
    REHEARSED_CHANGES, /* something else that exists is changed */
    REHEARSED_FAILS,   /* a step of the plan cannot be done */
    REHEARSED_REFUSED, /* the webhook refuses the custom resource */
    REHEARSED_WARNED,  /* the webhook warns */
};

/* text: one sentence; borrowed. */
typedef void (*rehearse_tell)(void *context, enum rehearsed what, const char *text);

/* Makes the plans of all custom resources of the world. Where it does not speak to Slurm, workers
 * go without a drain: say that it does. */
void operator_rehearse(const struct operator_world *world, rehearse_tell tell, void *context);

/* What the webhook says of a custom resource. old: as it is now, or NULL. */
void operator_rehearse_review(const struct operator_world *world, const char *kind,
                              const struct json *old, const struct json *object, rehearse_tell tell,
                              void *context);

/* Appends where two values differ, as paths with ", " between; at most some. Of images also both
 * values. What only the first has is told if there is no other difference: false is returned then.
 */
bool operator_rehearse_paths(const struct json *from, const struct json *to, struct buf *out);

#endif

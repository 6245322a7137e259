/* effect.h - what an action will change, laid over its cache from planning until it is known.
 * Private to the layer. */
#ifndef SLINC_ENGINE_EFFECT_H
#define SLINC_ENGINE_EFFECT_H

#include "engine/plan.h"

struct effect {
    struct kube_cache *cache;
    const char *ns, *name;        /* in the plan's arena; name NULL: not known beforehand */
    struct kube_overlay *overlay; /* NULL: nothing is laid */
};

/* Lays it, if the action has a cache and its effect can be foretold; else just remembers where. */
void effect_lay(struct effect *effect, const struct action *action, struct arena *arena,
                const struct clock *clock);

/* The action went well, and this is the answer. When it does not show the object (a bind is
 * answered by a Status) the prediction stays until the watch does. */
void effect_done(struct effect *effect, const struct action *action,
                 const struct kube_answer *answer);
void effect_failed(struct effect *effect); /* it did not happen, or nobody can say */

/* The answer did not tell; this is what a direct read found after it, or NULL. */
void effect_read(struct effect *effect, const struct kube_object *found);
/* Whether a direct read could tell if the action took effect. */
bool effect_can_be_read(const struct effect *effect);

#endif

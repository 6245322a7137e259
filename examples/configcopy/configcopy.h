/* configcopy.h - a small controller: ConfigMaps of one namespace, copied to many.
 *
 * A ConfigMap of the source namespace that is labelled `configcopy.slinc.dev/copy: "true"` is
 * copied, under its own name, to every namespace labelled `configcopy.slinc.dev/target: "true"`.
 * Copies are kept equal and go when their source, its label, or the label of their namespace goes.
 * A copy carries a label and an annotation that name its source; a ConfigMap without both is
 * somebody else's and is never touched.
 *
 * This is the example of docs/engine-tutorial.md and the first subject of the simulator. */
#ifndef SLINC_EXAMPLES_CONFIGCOPY_H
#define SLINC_EXAMPLES_CONFIGCOPY_H

#include "engine/engine.h"

#define CONFIGCOPY_COPY    "configcopy.slinc.dev/copy"    /* label of a source */
#define CONFIGCOPY_TARGET  "configcopy.slinc.dev/target"  /* label of a namespace */
#define CONFIGCOPY_MANAGED "configcopy.slinc.dev/managed" /* label of a copy */
#define CONFIGCOPY_SOURCE  "configcopy.slinc.dev/source"  /* annotation of a copy: "ns/name" */

extern const struct kube_kind configcopy_configmap_kind, configcopy_namespace_kind;

struct configcopy {
    const char *source_ns;
    struct kube_cache *configmaps, *namespaces;
    struct controller_watch watches[2];
    struct controller controller; /* for engine_add; its keys are names of ConfigMaps */
};

/* All are borrowed. */
void configcopy_init(struct configcopy *copy, const char *source_ns, struct kube_cache *configmaps,
                     struct kube_cache *namespaces);

/* What to do about the ConfigMaps of one name. Pure: reads the caches, fills the plan. */
int configcopy_plan(const struct configcopy *copy, struct str name, struct plan *plan,
                    struct err *err);

#endif

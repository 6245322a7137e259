/* kinds.h - the custom resources of the operator, the kinds of their children, and what they refer
 * to. All but pods and Nodes keep their JSON trees: there are few of them, and their fields are
 * read by name. */
#ifndef SLINC_OPERATOR_KINDS_H
#define SLINC_OPERATOR_KINDS_H

#include "operator/spec.h"

struct operator_kind {
    const struct kube_kind *kind;
    size_t cache;                    /* its offset in struct operator_world */
    const char *selector;            /* of labels: only these objects are watched; NULL: all */
    const struct spec_field *fields; /* of a custom resource */
    bool is_optional;                /* not every API server has it */
    bool is_read_by_name;            /* not watched: struct kube_reader */
};

extern const struct operator_kind operator_kinds[];
extern const size_t operator_kind_count;

/* By name ("RestApi"); NULL: none. */
const struct kube_kind *operator_kind_of(const char *name);
/* The fields of its spec; NULL: it is none of ours. */
const struct spec_field *operator_fields_of(const char *name);

/* The tree of an object of these kinds. */
const struct json *operator_tree(const struct kube_object *object);
/* Its spec; absent for an object that has none. */
const struct json *operator_spec(const struct kube_object *object);

#endif

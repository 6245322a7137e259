/* spec.h - the fields of the custom resources as tables, one row for each field.
 *
 * Plans read defaults here, the webhook its checks, a revision which fields are part of it. The
 * definitions in charts/slurm-operator-crds, docs/crds.md and a part of the schema of charts/slurm
 * are written from what `slinc operator --print-fields` prints (dev/slincdev/crds.py). */
#ifndef SLINC_OPERATOR_SPEC_H
#define SLINC_OPERATOR_SPEC_H

#include "base/buf.h"
#include "kube/object.h"

struct admit_check;

enum spec_trait {
    SPEC_REQUIRED = 1 << 0, /* the definition asks for it */
    SPEC_FIXED = 1 << 1,    /* cannot be changed; of a reference: its name */
    SPEC_NAMED = 1 << 2,    /* the name of this reference must not be empty */
    SPEC_ROLLS = 1 << 3,    /* a change replaces the workers of a NodeSet */
    SPEC_AS_IS = 1 << 4,    /* a value of the chart slurm, which has it under the same name */
};

struct spec_field {
    const char *path; /* below spec: "ssh.enabled"; "[]" stands for the items of a list */
    /* "boolean", "string", "time", "one of A B", "count" (a number from 0 on), "number", "port",
     * "amount" (a number or a percentage), "object", "Ref", "KeyRef", or a type of Kubernetes that
     * kube/types.h knows; "[]" before one of them. dev/slincdev/crds.py has the schema of each. */
    const char *type;
    const char *absent; /* what its absence means, as JSON; NULL: nothing */
    unsigned traits;
    const char *words; /* for the definition and the reference */
    /* What the webhook checks when it is new or changed, beside type and traits; what it refuses,
     * in words. */
    void (*check)(struct admit_check *check, const struct json *value);
    const char *refuses;
};

/* Each ends with a row without a path. */
extern const struct spec_field spec_controller[], spec_accounting[], spec_restapi[],
    spec_loginset[], spec_nodeset[], spec_token[];

/* The value at "ssh.enabled" of a spec. */
const struct json *spec_at(const struct json *spec, const char *path);

/* A field of a custom resource, or what its absence means. */
bool spec_flag(const struct kube_object *object, const char *path);
int64_t spec_number(const struct kube_object *object, const char *path);

/* Whether the value says the same as its absence. */
bool spec_is_absent(const struct spec_field *field, const struct json *value);

/* All rows, one in a line, their columns with tabs between. */
void spec_print(struct buf *out);

#endif

/* object.h - an object as the cache keeps it: small, immutable, shared by reference count.
 *
 * Hot kinds (pods, nodes) are projected at decode into a struct by a table of fields, one row per
 * field; everything else keeps its JSON tree. Both begin with struct kube_object. One object is one
 * block of memory, strings included. */
#ifndef SLINC_KUBE_OBJECT_H
#define SLINC_KUBE_OBJECT_H

#include "codec/json.h"
#include "kube/resource.h"

#include <stdint.h>

enum {
    KUBE_MAX_NAME = 512,       /* bytes of a name or a namespace; Kubernetes has 253 */
    KUBE_MAX_BLOCK = 64 << 20, /* bytes of one object in memory */
    KUBE_MAX_FIELDS = 48,      /* rows of one table */
    KUBE_MAX_RULE = 1 << 20,   /* bytes of a rule that is kept as text */
};

struct kube_pair {
    struct str key, value;
};

struct kube_pairs { /* labels, annotations: sorted by key */
    const struct kube_pair *at;
    unsigned count;
};

struct kube_owner {                        /* the controller among the ownerReferences */
    const char *group, *kind, *name, *uid; /* "" when there is none; group also of the core's */
};

struct kube_object {
    unsigned refs; /* private */
    unsigned size; /* private: bytes of the block */
    const struct kube_kind *kind;
    const char *ns, *name, *uid; /* ns is "" for cluster-scoped objects */
    const char *version;         /* resourceVersion as the server wrote it */
    uint64_t version_number;     /* the same as a number; 0 when it is none */
    int64_t generation;
    int64_t created_us, deleted_us; /* wall clock; deleted_us 0 = not being deleted */
    struct kube_owner owner;
    struct kube_pairs labels, annotations;
    const struct str *finalizers;
    unsigned finalizer_count;
    const struct kube_object *base; /* private: a prediction leans on the object it changes */
};

/* An object that kept its tree: `((const struct kube_tree *)object)->root`. */
struct kube_tree {
    struct kube_object object;
    const struct json *root;
    struct json_doc *doc; /* private */
};

enum kube_field_type {
    KUBE_STR,
    KUBE_I64,
    KUBE_BOOL,
    KUBE_TIME,
    KUBE_QUANTITY_MILLI,
    KUBE_QUANTITY
};

/* One projected field: where it is in the JSON, where it goes. Absent fields are "" or 0. */
struct kube_field {
    const char *path[5]; /* NULL-terminated */
    enum kube_field_type type;
    size_t offset; /* const char *, int64_t or bool */
};

struct kube_decoder; /* hands out memory of the block; see object.c */

struct kube_kind {
    const struct kube_resource *resource;
    size_t size;                     /* of the struct; 0 = a tree is kept */
    const struct kube_field *fields; /* ends with an empty path */
    /* What a table cannot say: lists, sums over containers. NULL for none. Called twice, first to
     * count the memory, then to fill: must ask for the same memory both times, and bound its lists.
     * The root may also be a merge patch, over a copy of the object: what is absent there must be
     * left as it is. */
    int (*decode_more)(struct kube_decoder *decoder, const struct json *root, void *object,
                       struct err *err);
    /* Trees only: what nobody reads and is not kept, as "status.images"; ends with NULL, and may
     * be NULL. metadata.managedFields always goes. */
    const char *const *drop;
};

/* By group and kind: others have a Job, too. The version may be any. */
bool kube_owner_is(const struct kube_owner *owner, const struct kube_kind *kind);

/* A new object with one reference. Fails when metadata lacks a name, uid or resourceVersion. */
int kube_object_decode(const struct kube_kind *kind, const struct json *root,
                       const struct kube_object **ret_object, struct err *err);
/* The same for an object that is about to be created: it has no uid and no version yet. */
int kube_object_predicted(const struct kube_kind *kind, const struct json *root,
                          const struct kube_object **ret_object, struct err *err);
const struct kube_object *kube_object_ref(const struct kube_object *object);
void kube_object_unref(const struct kube_object *object); /* takes NULL */

/* The object as it will be once this merge patch has been taken: the prediction laid over the
 * cache. Fields that the kind does not project are ignored. */
int kube_object_patched(const struct kube_object *object, const struct json *merge_patch,
                        const struct kube_object **ret_object, struct err *err);

/* Of a prediction the object that it leans on, as it was seen; of any other itself. */
const struct kube_object *kube_object_seen(const struct kube_object *object);

/* False, and nothing is written, when there is no such key. */
bool kube_pairs_find(const struct kube_pairs *pairs, struct str key, struct str *ret_value);
struct str kube_pairs_get(const struct kube_pairs *pairs, const char *key, bool *ret_found);
bool kube_object_has_finalizer(const struct kube_object *object, const char *name);

/* For decode_more. While counting, texts come back as "", pairs as none, and memory from alloc is
 * there to be written and then forgotten. */
bool kube_decoder_is_counting(const struct kube_decoder *decoder);
/* As json_get, but filling takes what counting found, call by call: look-ups are most of the work.
 */
const struct json *kube_decoder_get(struct kube_decoder *decoder, const struct json *object,
                                    const char *key);
void *kube_decoder_alloc(struct kube_decoder *decoder, size_t size); /* zeroed */
const char *kube_decoder_str(struct kube_decoder *decoder, struct str text);
struct kube_pairs kube_decoder_pairs(struct kube_decoder *decoder, const struct json *object);
/* A copy of a text made while decoding; `what` names it when it did not fit its buffer. */
int kube_decoder_text(struct kube_decoder *decoder, const struct buf *text, const char *what,
                      const char **ret_text, struct err *err);
/* A part of the JSON as text, for a rule that is read later; "" when there is none. */
int kube_decoder_rule(struct kube_decoder *decoder, const struct json *rule, const char *what,
                      const char **ret_text, struct err *err);
/* A quantity in whole units or thousandths, rounded up; at most INT64_MAX. Absent or null is 0. */
int kube_quantity(const struct json *value, bool milli, int64_t *ret_amount, struct err *err);

#endif

/* api_private.h - what the files of the API server model share. */
#ifndef SLINC_SIM_API_PRIVATE_H
#define SLINC_SIM_API_PRIVATE_H

#include "api_store.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/rand.h"
#include "codec/selector.h"

enum {
    API_MAX_KINDS = 64,
    API_MAX_OBJECTS = 100000, /* of one kind */
    API_MAX_BODY = 3 << 20,   /* what the real one takes */
    API_MAX_ANSWER = 64 << 20,
    API_MAX_HOOKS = 8,
    API_HISTORY = 20000, /* events kept; older ones are compacted away */
};

/* One version of one object: immutable, shared by the table and the history. */
struct api_doc {
    unsigned refs;
    uint64_t version;
    struct json_doc *doc;
};

struct api_event {
    const struct api_kind *kind;
    char *key; /* "namespace/name" */
    uint64_t version;
    struct api_doc *old, *next; /* NULL: it was, or is, not there */
    struct api_doc *gone;       /* of deletions: the last version, under the deletion's number */
};

struct api_table {
    const struct api_kind *kind;
    struct map objects; /* "namespace/name" -> struct api_doc */
};

struct api_store {
    const struct clock *clock;
    struct rand rand;
    struct api_table tables[API_MAX_KINDS];
    unsigned table_count;
    struct map uids; /* uid -> NULL: what is there */
    uint64_t version, uid_count;
    uint64_t compacted; /* history begins behind this version */
    struct api_event *events;
    size_t event_count, event_capacity;
    struct {
        api_hook hook;
        void *context;
    } hooks[API_MAX_HOOKS];
    unsigned hook_count;
    struct {
        api_listener listener;
        void *context;
    } listeners[API_MAX_HOOKS];
    unsigned listener_count;
    bool may_have_work;
};

/* One call on its way through the server. Texts live in the arena. */
struct api_call {
    struct api_store *store;
    struct api_answer *answer;
    struct arena *arena;
    struct json_build *build;
    struct api_table *table;
    const struct api_kind *kind;
    const char *method, *user;
    const char *ns, *name, *subresource; /* "" where there is none */
    const char *group, *version;         /* as asked for; with no table: what is in these */
    struct str query;
    struct str content_type;
    struct str text;         /* the body as it came */
    const struct json *body; /* parsed; NULL when there was none */
};

/* ---- api_store.c: tables and history ---- */
struct api_doc *api_doc_ref(struct api_doc *doc);
void api_doc_unref(struct api_doc *doc);
const struct json *api_root(const struct api_doc *doc); /* takes NULL */
char *api_key(struct arena *arena, const char *ns, const char *name);
struct api_doc *api_get(const struct api_table *table, const char *key);
struct api_table *api_table_of(const struct api_store *store, const char *plural);
/* Writes `next` (NULL: deletes) under a new version, unless nothing would change. Borrowed. */
struct api_doc *api_commit(struct api_call *call, const char *key, struct json_mut *next);

/* ---- api_path.c: from method and target to a call ---- */
int api_route(struct api_call *call, const struct api_request *request);
/* The decoded value of a query parameter; "" when it is absent. */
struct str api_query(const struct api_call *call, const char *name);

/* ---- api_status.c: refusals; each returns -class ---- */
int api_refuse_not_found(struct api_call *call, const struct api_kind *kind, const char *name);
int api_refuse_no_resource(struct api_call *call);
int api_refuse_method(struct api_call *call);
int api_refuse_media_type(struct api_call *call);
int api_refuse_exists(struct api_call *call, const struct json *old, const char *name);
int api_refuse_modified(struct api_call *call, const char *name);
int api_refuse_stale_precondition(struct api_call *call, const char *what, struct str asked,
                                  struct str found);
int api_refuse_uid(struct api_call *call, struct str asked, struct str found);
int api_refuse_bad_request(struct api_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int api_refuse_patch(struct api_call *call);
int api_refuse_forbidden(struct api_call *call, const char *name, const char *why);
int api_refuse_terminating(struct api_call *call, const char *name);
int api_refuse_expired(struct api_call *call, const char *message);
int api_refuse_future(struct api_call *call, uint64_t version);
int api_refuse_unclassified(struct api_call *call, const char *message); /* 500, no reason */
int api_refuse_plain(struct api_call *call, int status, const char *message);
int api_refuse_binding(struct api_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* One wrong field. */
struct api_wrong {
    const char *reason, *field, *message;
    unsigned times;   /* how often it stands among the causes; 0 = once */
    bool by_resource; /* the server names the resource here, not the kind */
};
int api_refuse_invalid(struct api_call *call, const char *name, const struct api_wrong *wrong);
void api_write_expired(struct buf *out, const char *message); /* the Status in an ERROR event */

/* ---- api_answer.c: what goes well ---- */
void api_answer_object(struct api_call *call, int status, const struct json *object);
void api_answer_done_status(struct api_call *call, int status);
void api_answer_deleted(struct api_call *call, const char *name, struct str uid);
void api_write_api_version(struct buf *out, const struct api_kind *kind);

/* ---- api_meta.c: what the server keeps in metadata ---- */
struct json_mut *api_metadata(struct api_call *call, struct json_mut *object);
struct str api_meta_str(const struct json *object, const char *field);
bool api_is_deleting(const struct json *object);
bool api_has_finalizers(const struct json *object);
int api_check_name(struct api_call *call, const char *name);
void api_put_time(struct api_call *call, struct json_mut *metadata, const char *field,
                  int64_t seconds_from_now);
/* Fills what the server fills; -class with a refusal in the answer. */
int api_prepare_create(struct api_call *call, struct json_mut *object, const char **ret_name);
/* `*next` becomes what will be stored over `old`. */
int api_prepare_update(struct api_call *call, const struct json *old, struct json_mut **next);
void api_normalise(struct api_call *call, struct json_mut **object);
int api_run_hooks(struct api_call *call, const struct json *old, struct json_mut *next);
/* After the hooks: what they took back is no change. */
void api_count_generation(struct api_call *call, const struct json *old, struct json_mut *next);

/* ---- the verbs ---- */
int api_do_get(struct api_call *call);
int api_do_list(struct api_call *call);
int api_do_create(struct api_call *call);
int api_do_update(struct api_call *call);
int api_do_patch(struct api_call *call);
int api_do_delete(struct api_call *call);
int api_do_bind(struct api_call *call);
int api_do_discover(struct api_call *call);

/* ---- api_strategic.c: what a strategic merge patch makes of an object ---- */
int api_apply_strategic(struct api_call *call, const struct json *old, struct json_mut **ret_next);

/* ---- api_select.c: which objects a list or a watch is about ---- */
enum { API_MAX_FIELD_RULES = 4 };

struct api_field_rule { /* of a field selector */
    struct str name, value;
    bool equal;
};

struct api_selection {
    const struct api_kind *kind;
    const char *ns; /* "" = all */
    const struct selector *labels;
    struct api_field_rule fields[API_MAX_FIELD_RULES];
    size_t field_count;
    bool narrow; /* has selectors */
};
/* Texts live in `arena`. */
int api_select(struct api_call *call, struct arena *arena, struct api_selection *ret_selection);
bool api_is_selected(const struct api_selection *selection, const struct json *object);

#endif

/* nodeset_records.c - what the records of Slurm's nodes say of workers: the comment that names the
 * pod, topology and features of the Node; and records of workers that are no more.
 *
 * Holds: a comment of others stays; a feature that does not begin with "k8s/" stays; a record is
 * deleted only if it names this NodeSet, or says nothing and can be no one else's, nothing runs on
 * it, and its worker is gone or has not started yet; that of a worker that comes back is not
 * deleted while others drain it. */
#include "base/map.h"
#include "codec/digest.h"
#include "engine/event_action.h"
#include "operator/names.h"
#include "operator/nodeset.h"
#include "operator/slurm_actions.h"
#include "operator/worker_conf.h"

#include <stdlib.h>

enum { MAX_TEXT = 16 << 10, INPUTS_DIGITS = 12, MAX_FEATURES = 256 };

#define FEATURE_PREFIX "k8s/"

/* Fields of a node that are to change: made with the first. */
static struct json_mut *fields_of(const struct nodeset *nodeset, struct json_mut **fields)
{
    if (!*fields)
        *fields = json_new_object(nodeset->sync.build);
    return *fields;
}

/* ---- the comment ---- */

/* What slurmd registers with and a record keeps: extraConf and the limits of the pod. */
static const char *registration_inputs(const struct nodeset *nodeset)
{
    const struct json *spec = nodeset->sync.spec;
    struct arena *arena = nodeset->sync.plan->arena;
    auto_buf struct buf text = { .max = MAX_TEXT };
    char digest[DIGEST_HEX];

    buf_add_text(&text, worker_conf(arena, nodeset->sync.object));
    json_write_canonical(json_at(spec, "slurmd", "resources", "limits"), &text);
    json_write_canonical(json_at(spec, "template", "spec", "resources", "limits"), &text);
    digest_sha256(buf_str(&text), digest);
    return arena_strndup(arena, digest, INPUTS_DIGITS);
}

static void add_member(struct buf *text, const char *key, const char *value)
{
    if (value[0] == '\0')
        return;
    buf_printf(text, "%s\"%s\":", text->len > 1 ? "," : "", key);
    json_escape(text, str_of(value));
}

static struct str revision_of(const struct worker *worker)
{
    return kube_pairs_get(&worker->pod->object.labels, LABEL_REVISION, NULL);
}

/* Scripts read the first three. The last ones are ours: what the node registered with (only known
 * of workers that are up to date) and with which revision; the machine, as the UID of its Node; and
 * the reason of others that the end of the pod would overwrite. */
struct comment {
    const char *inputs, *revision, *machine, *drain; /* "": not known, or none */
};

static void write_comment(const struct nodeset *nodeset, const struct worker *worker,
                          const struct comment *comment, struct buf *text)
{
    buf_add_char(text, '{');
    add_member(text, "namespace", worker->pod->object.ns);
    add_member(text, "podName", worker->pod->object.name);
    add_member(text, "node", worker->pod->node_name);
    add_member(text, "nodeSetName", nodeset->sync.object->name);
    add_member(text, "nodeSetUID", nodeset->sync.object->uid);
    add_member(text, "inputs", comment->inputs);
    add_member(text, "revision", comment->revision);
    add_member(text, "machine", comment->machine);
    add_member(text, "drain", comment->drain);
    buf_add_char(text, '}');
}

/* Whether the comment is one of an operator; an empty one is nobody's. */
static bool is_comment_ours(const struct json *comment)
{
    return json_exists(json_get(comment, "podName")) && json_exists(json_get(comment, "namespace"));
}

static struct json_doc *parse_comment(const char *text)
{
    struct json_doc *doc = NULL;

    return json_parse(str_of(text), MAX_TEXT, &doc, NULL) == 0 ? doc : NULL;
}

/* Who drained the node may have meant another machine: another Node, or one that took the place of
 * a Node under its name. */
static void tell_old_drain(struct nodeset *nodeset, const struct worker *worker,
                           const struct json *before, const char *drain)
{
    struct str node = json_str(json_get(before, "node"));
    struct str machine = json_str(json_get(before, "machine"));
    bool is_other_node = node.len > 0 && !str_is(node, worker->pod->node_name);
    bool is_other_machine =
        machine.len > 0 && worker->node && !str_is(machine, worker->node->object.uid);

    if (!drain[0] || (!is_other_node && !is_other_machine))
        return;
    (void)plan_event_done(nodeset->sync.plan, nodeset->sync.object, KUBE_EVENT_WARNING, "OldDrain",
                          "Info",
                          "node %s was drained on Node " STR_FMT " (%s) and is on %sNode %s now: "
                          "undrain it if the reason is gone",
                          worker->slurm_name, STR_ARG(node), drain,
                          is_other_node ? "" : "another machine, ", worker->pod->node_name);
}

/* ---- drains of others ---- */

/* The reason of others for which the node is drained now, or was until the end of the last pod. */
static const char *drain_of_others(const struct nodeset *nodeset, const struct worker *worker)
{
    const char *lost = worker_lost_drain(nodeset->sync.plan->arena, worker);

    if (slurm_node_is_draining(worker->record) && !slurm_reason_is_ours(worker->record))
        return worker->record->reason;
    return lost ? lost : "";
}

bool nodeset_drain_would_be_lost(const struct nodeset *nodeset, const struct worker *worker)
{
    auto_json_doc struct json_doc *doc = NULL;
    const char *drain;

    if (worker->knowledge != SLURM_PRESENT || !(drain = drain_of_others(nodeset, worker))[0])
        return false;
    doc = parse_comment(worker->record->comment);
    return !str_is(json_str(json_get(json_root(doc), "drain")), drain);
}

/* Whether the record holds a drain of others, which would go with it. Before the pod has a Node it
 * is not known whether it is the one that was drained. */
static bool has_drain_of_others(const struct nodeset *nodeset, const struct worker *worker)
{
    auto_json_doc struct json_doc *doc = NULL;

    if (drain_of_others(nodeset, worker)[0])
        return true;
    doc = parse_comment(worker->record->comment);
    return worker->pod->node_name[0] == '\0' && slurm_node_is_draining(worker->record) &&
           json_str(json_get(json_root(doc), "drain")).len > 0;
}

/* ---- records that are no longer true ---- */

/* A record that says other things than the worker registers with, of the pod before. */
static bool is_of_other_inputs(const struct nodeset *nodeset, const struct worker *worker,
                               const char *inputs, bool is_of_other_revision)
{
    auto_json_doc struct json_doc *doc = parse_comment(worker->record->comment);
    struct str before = json_str(json_get(json_root(doc), "inputs"));
    struct str revision = json_str(json_get(json_root(doc), "revision"));

    return before.len > 0 && !str_is(before, inputs) &&
           (!is_of_other_revision ||
            (revision.len > 0 && !str_eq(revision, revision_of(worker)))) &&
           str_is(json_str(json_get(json_root(doc), "nodeSetUID")), nodeset->sync.object->uid);
}

/* It registered before the record could be deleted, so the old record won: it is replaced. Another
 * hash alone is no reason: that may be the work of another version of the operator. */
bool nodeset_record_is_stale(const struct nodeset *nodeset, const struct worker *worker)
{
    struct str revision = revision_of(worker);

    if (worker->knowledge != SLURM_PRESENT || !worker->is_healthy || revision.len == 0 ||
        worker->record->comment[0] == '\0' || strstr(worker->record->comment, revision.at) ||
        has_drain_of_others(nodeset, worker))
        return false;
    return is_of_other_inputs(nodeset, worker, registration_inputs(nodeset), true);
}

/* Slurm keeps what a node registered with first. When that changes, the record goes between the end
 * of the old pod and the start of the new one; also that of a worker from before GPUs counted. */
static bool is_outdated(const struct nodeset *nodeset, const struct worker *worker,
                        const char *inputs)
{
    return worker->is_current && strcmp(worker->pod->phase, "Pending") == 0 && !worker->is_busy &&
           (is_of_other_inputs(nodeset, worker, inputs, false) ||
            (worker->record->comment[0] && !worker->record->gres[0] &&
             worker_gres(nodeset->sync.plan->arena, nodeset->sync.object)[0])) &&
           !has_drain_of_others(nodeset, worker);
}

/* ---- what the comment should be ---- */

static void want_comment(struct nodeset *nodeset, const struct worker *worker, const char *inputs,
                         struct json_mut **fields)
{
    const char *live = worker->record->comment;
    struct comment comment = { .inputs = inputs,
                               .revision = revision_of(worker).at,
                               .machine = worker->node ? worker->node->object.uid : "",
                               .drain = drain_of_others(nodeset, worker) };
    auto_buf struct buf wanted = { .max = MAX_TEXT };
    auto_json_doc struct json_doc *doc = NULL;

    if (!worker->is_healthy &&
        (!worker->pod->node_name[0] || !nodeset_drain_would_be_lost(nodeset, worker)))
        return;
    write_comment(nodeset, worker, &comment, &wanted);
    if (worker->is_current && worker->node && strcmp(live, buf_text(&wanted)) == 0)
        return;
    doc = parse_comment(live);
    if (!worker->is_healthy || !worker->is_current ||
        is_of_other_inputs(nodeset, worker, inputs, true)) {
        comment.inputs = json_str(json_get(json_root(doc), "inputs")).at;
        comment.revision = json_str(json_get(json_root(doc), "revision")).at;
    }
    if (!worker->node)
        comment.machine = json_str(json_get(json_root(doc), "machine")).at;
    buf_clear(&wanted);
    write_comment(nodeset, worker, &comment, &wanted);
    if (strcmp(live, buf_text(&wanted)) == 0 ||
        (live[0] != '\0' && !is_comment_ours(json_root(doc))))
        return;
    tell_old_drain(nodeset, worker, json_root(doc), comment.drain);
    json_put_str(nodeset->sync.build, fields_of(nodeset, fields), "comment", buf_str(&wanted));
}

/* ---- topology ---- */

static struct str node_annotation(const struct worker *worker, const char *name)
{
    return worker->node ? kube_pairs_get(&worker->node->object.annotations, name, NULL) : STR("");
}

/* Slurm may show a topology in other words than it was given: what was sent once is not sent again.
 */
static bool wants_topology(const struct nodeset *nodeset, const struct worker *worker)
{
    struct str wanted = node_annotation(worker, ANNOTATION_TOPOLOGY);

    return wanted.len > 0 && !str_is(wanted, worker->record->topology) &&
           !worker_conf_has_topology(nodeset->sync.plan->arena, nodeset->sync.object) &&
           !str_eq(wanted, kube_pairs_get(&worker->pod->object.annotations,
                                          ANNOTATION_TOPOLOGY_APPLIED, NULL));
}

static void plan_topology_mark(struct nodeset *nodeset, const struct worker *worker)
{
    const struct kube_object *pod = &worker->pod->object;
    struct str topology = node_annotation(worker, ANNOTATION_TOPOLOGY);

    (void)plan_merge_patch(
        nodeset->sync.plan, nodeset->sync.world->pods, &kube_pods, pod->ns, pod->name, NULL, NULL,
        json_format(nodeset->sync.build,
                    "{'metadata':{'uid':%s,'annotations':{'" ANNOTATION_TOPOLOGY_APPLIED "':%s}}}",
                    pod->uid, arena_strndup(nodeset->sync.plan->arena, topology.at, topology.len)));
}

/* ---- features ---- */

struct features {
    struct str at[MAX_FEATURES];
    size_t count;
};

static int compare_words(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void add_feature(struct features *features, struct str word)
{
    for (size_t i = 0; i < features->count; i++)
        if (str_eq(features->at[i], word))
            return;
    if (word.len > 0 && features->count < MAX_FEATURES)
        features->at[features->count++] = word;
}

/* What the record has of others, and what the Node's annotation wants, sorted. */
static void wanted_features(struct arena *arena, const char *live, struct str annotation,
                            struct features *ret_features)
{
    struct str rest = str_of(live), word;

    ret_features->count = 0;
    while (str_next(&rest, ',', &word))
        if (!str_starts(word, STR(FEATURE_PREFIX)))
            add_feature(ret_features, word);
    rest = annotation;
    while (annotation.len > 0 && str_next(&rest, ',', &word)) {
        word = str_trim(word);
        if (word.len > 0)
            add_feature(ret_features,
                        str_of(arena_printf(arena, FEATURE_PREFIX STR_FMT, STR_ARG(word))));
    }
    qsort(ret_features->at, ret_features->count, sizeof(ret_features->at[0]), compare_words);
}

static bool has_features(const char *live, const struct features *features)
{
    struct features now = { .count = 0 };
    struct str rest = str_of(live), word;

    while (str_next(&rest, ',', &word))
        add_feature(&now, word);
    qsort(now.at, now.count, sizeof(now.at[0]), compare_words);
    for (size_t i = 0; now.count == features->count && i < now.count; i++)
        if (!str_eq(now.at[i], features->at[i]))
            return false;
    return now.count == features->count;
}

static void put_features(struct json_build *build, struct json_mut *fields, const char *key,
                         const struct features *features)
{
    struct json_mut *list = json_put_array(build, fields, key);

    for (size_t i = 0; i < features->count; i++)
        json_push_str(build, list, features->at[i]);
}

static void want_features(struct nodeset *nodeset, const struct worker *worker,
                          struct json_mut **fields)
{
    struct arena *arena = nodeset->sync.plan->arena;
    const struct slurm_node *record = worker->record;
    struct str annotation = node_annotation(worker, ANNOTATION_FEATURES);
    struct features features, active;

    if (!worker->node || (annotation.len == 0 && !strstr(record->features, FEATURE_PREFIX) &&
                          !strstr(record->active_features, FEATURE_PREFIX)))
        return;
    wanted_features(arena, record->features, annotation, &features);
    wanted_features(arena, record->active_features, annotation, &active);
    if (has_features(record->features, &features) && has_features(record->active_features, &active))
        return;
    put_features(nodeset->sync.build, fields_of(nodeset, fields), "features", &features);
    put_features(nodeset->sync.build, fields_of(nodeset, fields), "features_act", &active);
}

/* ---- what is written ---- */

void nodeset_plan_records(struct nodeset *nodeset)
{
    struct plan *plan = nodeset->sync.plan;
    const char *inputs = registration_inputs(nodeset);

    for (size_t i = 0; i < nodeset->count && plan_has_room(plan); i++) {
        const struct worker *worker = &nodeset->workers[i];
        struct json_mut *fields = NULL;
        struct str topology = node_annotation(worker, ANNOTATION_TOPOLOGY);

        if (!worker_is_live(worker) || worker->knowledge != SLURM_PRESENT ||
            worker->pod->object.uid[0] == '\0')
            continue;
        if (is_outdated(nodeset, worker, inputs)) {
            plan_slurm_node_delete(plan, nodeset->controller, worker->slurm_name);
            continue;
        }
        want_comment(nodeset, worker, inputs, &fields);
        want_features(nodeset, worker, &fields);
        if (wants_topology(nodeset, worker))
            json_put_str(nodeset->sync.build, fields_of(nodeset, &fields), "topology_str",
                         topology);
        if (fields)
            plan_slurm_node_update(plan, nodeset->controller, worker->slurm_name, fields);
    }
}

void nodeset_plan_record_marks(struct nodeset *nodeset)
{
    for (size_t i = 0; i < nodeset->count && plan_has_room(nodeset->sync.plan); i++) {
        const struct worker *worker = &nodeset->workers[i];

        if (worker_is_live(worker) && worker->knowledge == SLURM_PRESENT &&
            worker->pod->object.uid[0] && wants_topology(nodeset, worker))
            plan_topology_mark(nodeset, worker);
    }
}

/* ---- records of workers that are no more ---- */

/* Whether a Node still stands for this record: then its worker comes back. */
static bool has_node(const struct nodeset *nodeset, const struct json *comment, const char *name)
{
    struct str node_name = json_str(json_get(comment, "node"));
    const struct kube_object *node = kube_cache_get(nodeset->sync.world->nodes, "", node_name.at);

    return node_name.len == 0 ||
           (node && nodeset->is_daemonset && str_is(worker_hostname_on(node), name));
}

static bool has_worker(const struct nodeset *nodeset, const char *name)
{
    for (size_t i = 0; i < nodeset->count; i++)
        if (strcmp(nodeset->workers[i].slurm_name, name) == 0)
            return true;
    return false;
}

static bool has_hostname_of_node(const struct operator_world *world, const char *name)
{
    struct kube_cache_walk walk = kube_cache_walk(world->nodes);
    const struct kube_object *node;

    while ((node = kube_cache_next(&walk)))
        if (str_is(worker_hostname_on(node), name))
            return true;
    return false;
}

/* Its worker left before the comment was written. Then the operator's reason and a name that nobody
 * else gives say whose it was. */
static bool is_ours_by_name(const struct nodeset *nodeset, const struct slurm_node *record)
{
    const struct operator_world *world = nodeset->sync.world;
    const struct kube_object **all;
    size_t count;

    if (record->comment[0] || !slurm_reason_is_ours(record) ||
        !nodeset_makes_name(nodeset->sync.object, record->name))
        return false;
    all = nodesets_of(world, nodeset->sync.plan->arena, nodeset->controller, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i]->uid, nodeset->sync.object->uid) != 0 &&
            nodeset_makes_name(all[i], record->name))
            return false;
    return !has_hostname_of_node(world, record->name);
}

/* Whether a worker is about to come under a name that was there before. */
static bool is_one_missing(const struct nodeset *nodeset)
{
    int64_t missing = nodeset->is_daemonset ? 0 : nodeset->replicas;

    for (size_t i = 0; i < nodeset->count; i++)
        missing -= worker_is_live(&nodeset->workers[i]) && !nodeset->workers[i].is_other_mode;
    return missing > 0;
}

/* A node that does not respond, or whose pod said so when it ended: slurmctld notices the end of
 * slurmd minutes later. A worker that is replaced takes over the record, with a drain of others. */
static bool has_ended(const struct slurm_node *record, bool is_missing)
{
    return slurm_node_has(record, "DOWN") &&
           (slurm_node_has(record, "NOT_RESPONDING") ||
            (!is_missing && strcmp(record->reason, REASON_TERMINATING) == 0));
}

/* spec.pruneSlurmNodeRecords NodeNotFound: records that name this NodeSet, whose slurmd has ended,
 * and whose Node (DaemonSet mode) or worker (StatefulSet mode) is gone. */
void nodeset_plan_prune(struct nodeset *nodeset)
{
    const struct sync *sync = &nodeset->sync;
    bool is_missing = is_one_missing(nodeset);
    struct slurm_cache_walk walk;
    const struct slurm_object *object;

    if (nodeset_slurm_trouble(nodeset) ||
        !str_is(json_str(json_get(sync->spec, "pruneSlurmNodeRecords")), "NodeNotFound"))
        return;
    walk = slurm_cache_walk(nodeset->facts->nodes);
    while ((object = slurm_cache_next(&walk)) && plan_has_room(sync->plan)) {
        const struct slurm_node *record = slurm_node_of(object);
        auto_json_doc struct json_doc *doc = NULL;

        if (!has_ended(record, is_missing) || slurm_view_is_busy(nodeset->facts, record) ||
            has_worker(nodeset, record->name) ||
            slurm_view_node(sync->world, nodeset->facts, record->name, NULL) != SLURM_PRESENT)
            continue;
        doc = parse_comment(record->comment);
        if (!is_ours_by_name(nodeset, record) &&
            (!str_is(json_str(json_get(json_root(doc), "nodeSetUID")), sync->object->uid) ||
             has_node(nodeset, json_root(doc), record->name)))
            continue;
        plan_slurm_node_delete(sync->plan, nodeset->controller, record->name);
        (void)plan_event_done(sync->plan, sync->object, KUBE_EVENT_NORMAL, "DefunctSlurmNodePruned",
                              "Delete", "deleting the record of node %s: its worker is gone",
                              record->name);
    }
}

/* worker.c - what is known of one worker, and why it is drained. */
#include "operator/worker.h"

#include "codec/timestamp.h"
#include "operator/names.h"
#include "operator/worker_identity.h"

#include <stdio.h>

enum { MAX_REASON = 4096, MAX_REASON_LETTERS = 256, MAX_COMMENT = 16 << 10 };

static const char *const state_names[WORKER_STATES] = {
    [WORKER_WANTED] = "wanted",           [WORKER_CREATED] = "created",
    [WORKER_REGISTERING] = "registering", [WORKER_SERVING] = "serving",
    [WORKER_DRAINING] = "draining",       [WORKER_DRAINED] = "drained",
    [WORKER_LEAVING] = "leaving",         [WORKER_FAILED] = "failed",
};

static const char *const cause_names[CAUSES] = {
    [CAUSE_NONE] = "",         [CAUSE_PERSON] = "",
    [CAUSE_NODE] = "node",     [CAUSE_UNREGISTERED] = "unregistered",
    [CAUSE_UPDATE] = "update", [CAUSE_SCALE_IN] = "scale-in",
    [CAUSE_DELETE] = "delete",
};

const char *worker_state_name(enum worker_state state)
{
    return state_names[state];
}

const char *worker_cause_name(enum worker_cause cause)
{
    return cause_names[cause];
}

bool worker_is_condemned(const struct worker *worker)
{
    return worker->cause >= CAUSE_UNREGISTERED;
}

bool worker_is_live(const struct worker *worker)
{
    return worker->state != WORKER_LEAVING && worker->state != WORKER_FAILED;
}

bool slurm_reason_is_ours(const struct slurm_node *node)
{
    return str_starts(str_of(node->reason), STR(REASON_PREFIX));
}

/* ---- marks ---- */

/* The Slinky operator cordons pods too and leaves no other mark than its reason in Slurm. A reason
 * that says that the pod was cordoned follows what a person did. */
static enum worker_cause mark_of_another(const struct worker *worker)
{
    struct str reason = str_of(worker->record ? worker->record->reason : "");

    if (!worker->is_cordoned || !worker->record || !slurm_reason_is_ours(worker->record) ||
        str_ends(reason, STR(" was cordoned")))
        return CAUSE_NONE;
    return str_ends(reason, STR("for scale-in")) ? CAUSE_SCALE_IN : CAUSE_NODE;
}

static enum worker_cause mark_of(const struct worker *worker)
{
    bool found = false;
    struct str text =
        kube_pairs_get(&worker->pod->object.annotations, ANNOTATION_CORDONED_BY, &found);

    if (str_ends(text, STR(CORDONED_TOO)))
        text.len -= sizeof(CORDONED_TOO) - 1;
    for (int cause = 0; found && cause < CAUSES; cause++)
        if (cause_names[cause][0] && str_is(text, cause_names[cause]))
            return (enum worker_cause)cause;
    return mark_of_another(worker);
}

/* ---- the state ---- */

static bool is_up(const struct slurm_node *node)
{
    return !slurm_words_has(&node->state, SLURM_NODE_DOWN) &&
           !slurm_words_has(&node->state, SLURM_NODE_FUTURE) &&
           !slurm_words_has(&node->state, SLURM_NODE_NOT_RESPONDING);
}

static enum worker_state state_of(const struct slurm_facts *facts, const struct worker *worker)
{
    const struct slurm_node *record = worker->knowledge == SLURM_ABSENT ? NULL : worker->record;

    if (worker->pod->object.deleted_us != 0)
        return WORKER_LEAVING;
    if (kube_pod_is_finished(worker->pod))
        return WORKER_FAILED;
    if (record && slurm_node_is_draining(record))
        return worker->knowledge == SLURM_PRESENT && slurm_view_is_drained(facts, record)
                   ? WORKER_DRAINED
                   : WORKER_DRAINING;
    if (!worker->is_healthy)
        return WORKER_CREATED;
    return record && is_up(record) ? WORKER_SERVING : WORKER_REGISTERING;
}

static bool is_other_mode(const struct kube_object *nodeset, const struct kube_object *pod)
{
    bool found = false;
    struct str mode = kube_pairs_get(&pod->labels, LABEL_SCALING_MODE, &found);

    return found && str_is(mode, "DaemonSet") != nodeset_is_daemonset(nodeset);
}

static struct str annotation(const struct kube_object *object, const char *name)
{
    bool found = false;

    return kube_pairs_get(&object->annotations, name, &found);
}

struct worker worker_read(const struct operator_world *world, struct arena *arena,
                          const struct slurm_facts *facts, const struct kube_object *nodeset,
                          const struct kube_object *pod, int64_t min_ready_us)
{
    struct worker worker = { .pod = kube_pod_of(pod) };
    const struct kube_object *node;

    node =
        worker.pod->node_name[0] ? kube_cache_get(world->nodes, "", worker.pod->node_name) : NULL;
    worker.node = node ? kube_node_of(node) : NULL;
    worker.ordinal = worker_ordinal(nodeset, pod->name);
    worker.slurm_name = worker_slurm_name(arena, worker.pod, facts ? facts->nodes : NULL);
    worker.knowledge = worker.slurm_name[0]
                           ? slurm_view_node(world, facts, worker.slurm_name, &worker.record)
                           : SLURM_UNREAD;
    worker.is_busy = worker.record && slurm_view_is_busy(facts, worker.record);
    worker.is_cordoned = str_is(annotation(pod, ANNOTATION_POD_CORDON), "true");
    worker.mark = mark_of(&worker);
    worker.is_cordoned_by_person =
        worker.is_cordoned &&
        (worker.mark == CAUSE_NONE ||
         str_ends(annotation(pod, ANNOTATION_CORDONED_BY), STR(CORDONED_TOO)));
    worker.is_healthy =
        pod->deleted_us == 0 && worker.pod->ready && strcmp(worker.pod->phase, "Running") == 0;
    worker.is_available =
        worker.is_healthy && worker.pod->ready_since_us + min_ready_us <= world->wall_us;
    worker.is_other_mode = is_other_mode(nodeset, pod);
    worker.state = state_of(facts, &worker);
    (void)str_to_i64(annotation(pod, ANNOTATION_POD_DELETION_COST), INT32_MIN, INT32_MAX,
                     &worker.deletion_cost, NULL);
    (void)timestamp_parse(annotation(pod, ANNOTATION_POD_DEADLINE), &worker.deadline_us, NULL);
    return worker;
}

/* ---- drains of others ---- */

const char *worker_lost_drain(struct arena *arena, const struct worker *worker)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct str drain;

    if (worker->knowledge != SLURM_PRESENT || !slurm_node_is_draining(worker->record) ||
        strcmp(worker->record->reason, REASON_TERMINATING) != 0 ||
        json_parse(str_of(worker->record->comment), MAX_COMMENT, &doc, NULL) < 0)
        return NULL;
    drain = json_str(json_get(json_root(doc), "drain"));
    return drain.len > 0 &&
                   str_is(json_str(json_get(json_root(doc), "node")), worker->pod->node_name)
               ? arena_strndup(arena, drain.at, drain.len)
               : NULL;
}

/* ---- reasons ---- */

/* As Slurm takes it: one line, without control characters, of at most 256 letters. */
static void add_clean(struct buf *out, struct str text)
{
    struct str rest = str_trim(text);

    for (unsigned letters = 0; rest.len > 0 && letters < MAX_REASON_LETTERS; letters++) {
        size_t size = str_utf8_char(rest);
        unsigned char c = (unsigned char)rest.at[0];

        if (strchr("\t\r\n", c))
            buf_add_char(out, ' ');
        else if (size > 0 && c >= 0x20 && c != 0x7f)
            buf_add(out, rest.at, size);
        rest = str_sub(rest, size > 0 ? size : 1, rest.len);
    }
}

/* What the Node's conditions say, of the types that are passed on: "(reason: message); ..." */
static void add_conditions(struct buf *out, const struct operator_world *world,
                           const struct kube_node *node)
{
    struct str rest = str_of(world->propagated_conditions), type;

    while (str_next(&rest, ',', &type)) {
        char name[KUBE_MAX_NAME];
        const struct kube_condition *condition;

        (void)snprintf(name, sizeof(name), STR_FMT, STR_ARG(str_trim(type)));
        condition = kube_condition_of(node->conditions, node->condition_count, name);
        if (condition && strcmp(condition->status, "True") == 0)
            buf_printf(out, "%s(%s: %s)", out->len > 0 ? "; " : "", condition->reason,
                       condition->message);
    }
}

static void add_node_reason(struct buf *out, const struct operator_world *world,
                            const struct worker *worker)
{
    auto_buf struct buf conditions = { .max = MAX_REASON };
    struct str given = STR("");

    if (worker->node) {
        given = annotation(&worker->node->object, ANNOTATION_NODE_CORDON_REASON);
        add_conditions(&conditions, world, worker->node);
    }
    if (str_trim(given).len > 0)
        add_clean(out, given);
    else if (conditions.len > 0)
        add_clean(out, buf_str(&conditions));
    else
        buf_printf(out, "Node (%s) was cordoned, Pod (%s/%s) must be cordoned",
                   worker->pod->node_name, worker->pod->object.ns, worker->pod->object.name);
}

const char *worker_drain_reason(const struct operator_world *world, struct arena *arena,
                                const struct worker *worker)
{
    static const char *const texts[CAUSES] = {
        [CAUSE_PERSON] = "was cordoned",
        [CAUSE_UNREGISTERED] = "is pending termination: it did not register",
        [CAUSE_UPDATE] = "is pending termination for an update",
        [CAUSE_SCALE_IN] = "is pending termination for scale-in",
        [CAUSE_DELETE] = "is pending termination: its NodeSet is deleted",
    };
    auto_buf struct buf reason = { .max = MAX_REASON };

    buf_add_text(&reason, REASON_PREFIX);
    if (worker->cause == CAUSE_NODE)
        add_node_reason(&reason, world, worker);
    else
        buf_printf(&reason, "Pod (%s/%s) %s", worker->pod->object.ns, worker->pod->object.name,
                   texts[worker->cause]);
    return arena_strndup(arena, reason.data, reason.len);
}

/* nodeset_daemon.c - DaemonSet mode: one worker on every Node that the template fits.
 *
 * Holds: of several workers on one Node the busiest stays, then the oldest; a Node that is not in
 * the cache any more is the cluster's to clean up, and its worker is left alone. */
#include "base/map.h"
#include "operator/names.h"
#include "operator/nodeset.h"

/* The Node that the pod must run on, as worker_pod wrote it; "" when it does not say. */
static const char *wanted_node(struct arena *arena, const struct kube_pod *pod)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *term;
    struct str name;

    if (pod->node_name[0])
        return pod->node_name;
    if (!pod->rare || json_parse(str_of(pod->rare->node_affinity), KUBE_MAX_RULE, &doc, NULL) < 0)
        return "";
    term = json_item(json_get(json_root(doc), "nodeSelectorTerms"), 0);
    name = json_str(json_item(json_get(json_item(json_get(term, "matchFields"), 0), "values"), 0));
    return arena_strndup(arena, name.at, name.len);
}

static void condemn(struct worker *worker, const char *why)
{
    worker->cause = CAUSE_SCALE_IN;
    worker->why = why;
}

static bool is_better(const struct worker *a, const struct worker *b)
{
    if (a->is_busy != b->is_busy)
        return a->is_busy;
    if (a->pod->object.created_us != b->pod->object.created_us)
        return a->pod->object.created_us < b->pod->object.created_us;
    return strcmp(a->pod->object.name, b->pod->object.name) < 0;
}

static bool has_hostname_of(const struct worker *worker, const struct kube_object *node)
{
    bool found = false;
    struct str label = kube_pairs_get(&worker->pod->object.labels, LABEL_POD_HOSTNAME, &found);

    return worker->pod->host_network || !found || str_eq(label, worker_hostname_on(node));
}

/* Whether this worker stays on its Node; the one that was to stay before may have to go. */
static void place(struct daemon_slot *slot, struct worker *worker)
{
    if (!worker_is_live(worker)) {
        slot->is_taken = true;
    } else if (!has_hostname_of(worker, slot->node)) {
        condemn(worker, "HostnameMismatch");
    } else if (!slot->kept) {
        slot->kept = worker;
    } else if (is_better(worker, slot->kept)) {
        condemn(slot->kept, NULL);
        slot->kept = worker;
    } else {
        condemn(worker, NULL);
    }
}

/* Slurm still has the node of a worker that was on this Node. */
static bool was_there(const struct nodeset *nodeset, const struct kube_object *node)
{
    struct str hostname = worker_hostname_on(node);
    const struct slurm_node *record = NULL;

    (void)slurm_view_node(nodeset->sync.world, nodeset->facts,
                          arena_strndup(nodeset->sync.plan->arena, hostname.at, hostname.len),
                          &record);
    return record != NULL;
}

/* A slot for every Node that the template fits, and for those whose worker may stay. */
static void read_slots(struct nodeset *nodeset, struct map *by_node)
{
    const struct operator_world *world = nodeset->sync.world;
    struct kube_cache_walk walk = kube_cache_walk(world->nodes);
    const struct kube_object *node;

    nodeset->slots = arena_alloc_array(nodeset->sync.plan->arena,
                                       kube_cache_count(world->nodes) + 1, sizeof(*nodeset->slots));
    while ((node = kube_cache_next(&walk))) {
        struct node_fit_result result = node_fit(nodeset->fit, kube_node_of(node));
        struct daemon_slot *slot = &nodeset->slots[nodeset->slot_count];

        if (node->deleted_us != 0 || (!result.may_start && !result.may_return && !result.may_stay))
            continue;
        *slot = (struct daemon_slot){ .node = node,
                                      .may_start = result.may_start,
                                      .may_stay = result.may_stay,
                                      .was_there = !result.may_start && result.may_return &&
                                                   was_there(nodeset, node) };
        (void)map_put(by_node, str_of(node->name), slot, NULL);
        nodeset->slot_count++;
    }
}

/* Nodes that only let a worker stay, and have none, are no places for one. */
static void drop_empty_slots(struct nodeset *nodeset)
{
    size_t count = 0;

    for (size_t i = 0; i < nodeset->slot_count; i++) {
        const struct daemon_slot *slot = &nodeset->slots[i];

        if (slot->kept || slot->is_taken || slot->may_start || slot->was_there)
            nodeset->slots[count++] = *slot;
    }
    nodeset->slot_count = count;
}

void nodeset_choose_daemons(struct nodeset *nodeset)
{
    const struct operator_world *world = nodeset->sync.world;
    struct arena *arena = nodeset->sync.plan->arena;
    auto_map struct map by_node;
    size_t missing = 0;

    map_init(&by_node, &(struct map_options){ .max = SIZE_MAX / 2, .borrow_keys = true });
    if (!nodeset->fit)
        return; /* a step says why; nobody has to go */
    read_slots(nodeset, &by_node);
    for (size_t i = 0; i < nodeset->count; i++) {
        struct worker *worker = &nodeset->workers[i];
        const char *name = wanted_node(arena, worker->pod);
        struct daemon_slot *slot = map_get(&by_node, str_of(name));

        if (worker->is_other_mode)
            continue;
        if (slot && slot->may_stay)
            place(slot, worker);
        else if (worker_is_live(worker) && kube_cache_get(world->nodes, "", name))
            condemn(worker, NULL);
    }
    drop_empty_slots(nodeset);
    for (size_t i = 0; i < nodeset->slot_count; i++)
        missing += !nodeset->slots[i].kept;
    for (size_t i = 0; i < nodeset->count; i++)
        if (nodeset->workers[i].is_other_mode && missing == 0)
            nodeset->workers[i].cause = CAUSE_SCALE_IN;
}

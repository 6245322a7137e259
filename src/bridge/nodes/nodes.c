/* nodes.c - what to do about one node.
 *
 * Reads    the Kubernetes node and the Slurm node of one name, Slurm's partitions.
 * Returns  actions; does no I/O.
 * Holds    with Slurm's caches unfilled or slurmctld suspected, nothing is done at all; a record
 *          that is not EXTERNAL, or that another bridge marked, is never changed but for the drain
 *          that shows a cordon; a drain, a reason or a node that somebody else made stays theirs; a
 *          record is deleted only when it was read drained and idle. */
#include "bridge/nodes/nodes.h"

#include "bridge/nodes/node_show.h"
#include "bridge/nodes/node_spec.h"
#include "bridge/nodes/node_state.h"
#include "bridge/slurm/slurm_action.h"
#include "bridge/world/names.h"
#include "codec/slurmconf.h"
#include "device/registered.h"

enum {
    SECOND_US = 1000000,
    LOOK_FOR_KINDS_US = SECOND_US,
    LOOK_FOR_IDLE_US = 5 * SECOND_US, /* changes of the record come sooner */
    LOOK_FOR_PARTITION_US = 30 * SECOND_US,
    LOOK_FOR_ANSWER_US = 30 * SECOND_US, /* what was refused is tried again */
    WAIT_FOR_KINDS_US = 60 * SECOND_US,  /* that the server may not let us read */
    MAX_ACTION_TEXT = 1 << 20,
};

/* ---- looking ---- */

struct look {
    const struct bridge_world *world;
    struct arena *arena;
    const char *name;  /* in Slurm */
    const char *asked; /* the name that its Kubernetes node asks for, where that is another; NULL */
    const char *former; /* the record that Slurm still has for the node that asks for this name */
    const struct kube_node *kube;
    const struct slurm_node *slurm;
    enum node_owner owner;
    const char *marked_node, *whose;
    const char *claimed_by; /* another bridge, which its Kubernetes node is left to; "" */
    bool has_label, is_labelled, is_external, has_spec;
    struct node_spec spec;      /* of a labelled node */
    const char *missing;        /* a partition that Slurm does not have */
    const char *trouble, *says; /* what people should hear about: reason and message */
    const char *refused;        /* by Slurm, and still wanted: in words; NULL */
    enum node_intent intent;
    const char *why;
};

static void find_trouble(struct look *look)
{
    struct err err = { .class = 0 };

    if (!look->is_labelled)
        return;
    if (look->asked && slurm_node_is_busy(look->slurm)) {
        look->trouble = "SlurmNameChanged";
        look->says =
            arena_printf(look->arena, "Slurm node %s has work; it becomes \"%s\" when it is idle",
                         look->name, look->asked);
    } else if (look->is_external && look->owner == NODE_OTHERS) {
        look->trouble = "SlurmNodeTaken";
        look->says =
            arena_printf(look->arena, "Slurm node %s belongs to %s", look->name, look->whose);
    } else if (!look->slurm && conf_check_node_name(str_of(look->name), &err) < 0) {
        look->trouble = "SlurmNameInvalid";
        look->says = arena_strdup(look->arena, err.text);
    } else if (look->missing) {
        look->trouble = "SlurmPartitionMissing";
        look->says = arena_printf(
            look->arena, "could not validate partition \"%s\": partition not found", look->missing);
    }
}

/* A node that asks for another name than its record has, and has work under that one, gets the new
 * record when the old one is gone: two would promise Slurm the node twice. */
static void look_for_kube(struct look *look)
{
    const struct bridge_world *world = look->world;
    struct str name = str_of(look->name);
    const struct kube_node *asking = world_node_asking_for(world, name);

    look->kube = world_node_by_slurm_name(world, name);
    if (!look->kube && asking && look->slurm && node_is_of_others(look->slurm, world->owner))
        look->kube = asking; /* which says so */
    else if (!look->kube && asking)
        look->former = world_record_name(world, asking);
    if (look->kube && !str_is(name, world_slurm_name(look->kube)))
        look->asked = world_slurm_name(look->kube);
}

static void look_at_kube(struct look *look)
{
    if (!look->kube)
        return;
    (void)kube_pairs_get(&look->kube->object.labels, BRIDGE_EXTERNAL_LABEL, &look->has_label);
    look->claimed_by = node_claimed_by(look->world, look->kube);
    look->is_labelled =
        look->has_label && look->kube->object.deleted_us == 0 && !look->claimed_by[0];
    if (!look->is_labelled)
        return;
    look->has_spec = node_spec_of(look->world, look->kube, look->arena, &look->spec);
    look->missing = node_spec_missing(&look->spec, look->world, look->arena);
}

/* ---- the intent ---- */

static enum node_intent because(struct look *look, enum node_intent intent, const char *why)
{
    look->why = why;
    return intent;
}

/* A name that both systems know, and a record that is not ours to make or remove. */
static enum node_intent judge_foreign(struct look *look)
{
    if (!look->kube)
        return because(look, NODE_LEAVE, "Kubernetes has no such node");
    if (!look->is_external)
        return because(look, NODE_SHARE, "slurmd runs on it");
    return because(look, NODE_SHARE, "an external node that somebody else made");
}

static bool is_out_by_others(const struct slurm_node *slurm)
{
    return node_is_out(slurm) && !node_is_out_by_us(slurm);
}

static bool has_right_size(const struct look *look)
{
    return node_spec_size(&look->spec, look->slurm) == NODE_SIZE_RIGHT;
}

/* How long the difference must still last; 0 or less: it has lasted. */
static int64_t resize_left_us(const struct look *look)
{
    return node_sizes_since(look->world->node_sizes, str_of(look->name)) +
           look->world->config->resize_after_s * SECOND_US - look->world->facts.now_us;
}

/* A busy node is drained only when Slurm was promised what is not there, or where that is
 * configured. One that a bridge before ours made, and measured by other rules, is taken over as it
 * is until it is idle. */
static bool wants_resize(const struct look *look)
{
    bool may_drain = look->owner != NODE_UNMARKED && !node_is_inherited(look->slurm);

    switch (node_spec_size(&look->spec, look->slurm)) {
    case NODE_SIZE_RIGHT:
        return false;
    case NODE_SIZE_DEVICES: /* no mistake that passes */
        break;
    case NODE_SIZE_DIFFERS:
        if (resize_left_us(look) > 0)
            return false;
        break;
    case NODE_SIZE_OVERCOMMITTED:
        return resize_left_us(look) <= 0 && (!slurm_node_is_busy(look->slurm) || may_drain);
    }
    return !slurm_node_is_busy(look->slurm) || (may_drain && look->world->config->drains_to_resize);
}

/* Slurm takes a node into the partitions of new features only when nodes are made or removed. An
 * idle one can as well be that node; a busy one is not drained for it. */
static bool wants_recreation(const struct look *look)
{
    if (!look->slurm || !look->has_spec ||
        wanted_gres_are_foreign(&look->world->config->devices, look->slurm))
        return false;
    if (!has_right_size(look))
        return wants_resize(look);
    return !look->missing && !slurm_node_is_busy(look->slurm) && !is_out_by_others(look->slurm) &&
           node_spec_moves(&look->spec, look->slurm, look->world, look->arena);
}

static enum node_intent judge(struct look *look)
{
    if (!look->slurm && !look->is_labelled)
        return because(look, NODE_LEAVE, "Slurm has no such node, and none is wanted");
    if (look->claimed_by[0] && !(look->is_external && look->owner == NODE_OURS))
        return because(look, NODE_LEAVE, "another bridge claimed its Kubernetes node first");
    if (look->is_external && look->owner == NODE_OTHERS)
        return because(look, NODE_LEAVE, "it is marked as another bridge's");
    if (look->slurm && !look->is_external)
        return judge_foreign(look);
    if (!look->is_labelled && look->owner == NODE_UNMARKED)
        return judge_foreign(look);
    if (!look->kube)
        return because(look, NODE_RETIRE, "its Kubernetes node is gone");
    if (look->claimed_by[0])
        return because(look, NODE_RETIRE, "another bridge claimed its Kubernetes node first");
    if (!look->is_labelled)
        return because(look, NODE_RETIRE, "its Kubernetes node lost the label or is being deleted");
    if (look->asked)
        return because(look, NODE_RETIRE, "its Kubernetes node asks for another name");
    if (look->trouble && !look->slurm && !look->missing)
        return because(look, NODE_LEAVE, look->says);
    if (wants_recreation(look))
        return because(look, NODE_RECREATE, "its size, gres or partitions are others now");
    if (look->kube->unschedulable)
        return because(look, NODE_CORDON, "its Kubernetes node is unschedulable");
    if (!look->kube->ready)
        return because(look, NODE_CORDON, "its Kubernetes node is not ready");
    return because(look, NODE_SERVE, "its Kubernetes node is ready");
}

static struct look look_at(const struct bridge_world *world, struct str slurm_name,
                           struct arena *arena)
{
    struct look look = {
        .world = world,
        .arena = arena,
        .name = arena_strndup(arena, slurm_name.at, slurm_name.len),
        .slurm = world_slurm_node(world, slurm_name),
        .marked_node = "",
        .whose = "",
        .claimed_by = "",
    };

    look_for_kube(&look);
    look_at_kube(&look);
    if (world->facts.is_uninstalling)
        look.is_labelled = false; /* whatever people want: there is nobody to see to it */
    if (look.slurm) {
        look.is_external = node_is_external(look.slurm);
        look.owner =
            node_owner(look.slurm, look.world->owner, look.arena, &look.marked_node, &look.whose);
    }
    find_trouble(&look);
    look.intent = judge(&look);
    return look;
}

bool node_size_differs(const struct bridge_world *world, struct str slurm_name, struct arena *arena)
{
    struct look look = look_at(world, slurm_name, arena);

    return look.slurm && look.has_spec && !has_right_size(&look);
}

enum node_intent node_intent(const struct bridge_world *world, struct str slurm_name,
                             struct arena *arena, const char **ret_why)
{
    struct look look = look_at(world, slurm_name, arena);

    *ret_why = look.why;
    return look.intent;
}

/* ---- in Slurm ---- */

static const char *reason_of_cordon(const struct look *look)
{
    return arena_printf(look->arena, BRIDGE_REASON " Corresponding Kubernetes node (%s) is %s",
                        look->kube->object.name,
                        look->kube->unschedulable ? "unschedulable" : "not ready");
}

static void plan_mark(const struct look *look, struct plan *plan)
{
    const char *devices = registered_devices(look->slurm, look->arena);
    bool inherited = look->owner == NODE_UNMARKED && look->has_spec && !has_right_size(look);
    bool is_new = !devices && look->has_spec && *look->spec.gres.devices &&
                  wanted_gres_are_of(&look->spec.gres, look->slurm);

    if (is_new)
        devices = look->spec.gres.devices;
    if (is_new || look->owner != NODE_OURS)
        node_plan_mark(plan, look->name, look->world->owner, look->kube->object.name,
                       inherited || node_is_inherited(look->slurm), devices ? devices : "");
}

/* A server that does not let us read a kind keeps nothing waiting for ever. */
static bool is_being_read(const struct bridge_world *world, enum optional_kind kind)
{
    return world->optional[kind].cache && world->optional[kind].state == WATCH_UNKNOWN &&
           world->facts.now_us - world->facts.leading_us < WAIT_FOR_KINDS_US;
}

/* The creation cannot carry the mark; a node whose mark got lost on the way is adopted later. */
static void plan_make(const struct look *look, struct plan *plan)
{
    const struct bridge_world *world = look->world;
    struct slurm_node_ask ask;

    if (look->missing) {
        plan_wait(plan, "%s", look->says);
        plan_look_again(plan, LOOK_FOR_PARTITION_US);
        return;
    }
    if (!look->has_spec) {
        plan_wait(plan, "node %s has not said what it can give", look->kube->object.name);
        return;
    }
    node_spec_describe(&look->spec, look->name, plan->arena, &ask);
    plan_slurm_create_node(plan, &ask);
    plan_next_stage(plan);
    node_plan_mark(plan, look->name, world->owner, look->kube->object.name, false,
                   look->spec.gres.devices);
    plan_look_again(plan, LOOK_FOR_ANSWER_US);
}

static void put_words(struct json_build *build, struct json_mut *fields, const char *key,
                      const char *list)
{
    struct json_mut *array = json_put_array(build, fields, key);
    struct str rest = str_of(list), word;

    while (str_next(&rest, ',', &word))
        json_push_str(build, array, word);
}

/* What can be changed while work is on it. */
static void plan_equal(const struct look *look, struct plan *plan)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *fields = json_new_object(build);
    const struct node_spec *spec = &look->spec;

    if (look->missing) {
        plan_wait(plan, "%s", look->says);
        plan_look_again(plan, LOOK_FOR_PARTITION_US);
    } else if (!node_spec_has_features_of(spec, look->slurm)) {
        put_words(build, fields, "features", spec->features);
        put_words(build, fields, "features_act", spec->features);
    }
    if (!str_is(str_of(look->slurm->topology), spec->topology))
        json_put_text(build, fields, "topology_str", spec->topology);
    if (!str_is(str_of(look->slurm->address), spec->address))
        put_words(build, fields, "address", spec->address);
    if (json_mut_len(fields) == 0)
        return;
    plan_slurm_update_node(plan, look->name, fields);
    plan_look_again(plan, LOOK_FOR_ANSWER_US);
}

/* Only time and the end of its work bring a node to its size. */
static void wait_for_size(const struct look *look, struct plan *plan)
{
    int64_t left_us;

    if (!look->has_spec || has_right_size(look))
        return;
    left_us = resize_left_us(look);
    if (wanted_gres_are_foreign(&look->world->config->devices, look->slurm))
        plan_wait(plan, "it keeps its size: its gres %s is not of this bridge, and would be lost",
                  look->slurm->gres);
    else if (left_us > 0) {
        plan_wait(plan, "it has another size, which must last");
        plan_look_again(plan, left_us);
    } else
        plan_wait(plan, "it has another size, and gets it in Slurm when it is idle");
}

static void plan_serve(const struct look *look, struct plan *plan)
{
    const char *outside;

    if (!look->slurm) {
        plan_make(look, plan);
        return;
    }
    plan_mark(look, plan);
    plan_equal(look, plan);
    if (!node_plan_undrain(plan, look->slurm))
        plan_look_again(plan, LOOK_FOR_ANSWER_US);
    wait_for_size(look, plan);
    outside = node_spec_outside(&look->spec, look->slurm, plan->arena);
    if (outside && !look->missing)
        plan_wait(plan,
                  "Slurm has it not in partition %s yet: it looks when a node is made or removed, "
                  "and at scontrol reconfigure",
                  outside);
}

/* One that is not there yet is made when it can serve: no job can slip in before a drain. */
static void plan_cordon(const struct look *look, struct plan *plan)
{
    if (!look->slurm) {
        plan_wait(plan, "not made in Slurm: %s", look->why);
        return;
    }
    plan_mark(look, plan);
    plan_equal(look, plan);
    if (!node_plan_drain(plan, look->slurm, reason_of_cordon(look)))
        plan_look_again(plan, LOOK_FOR_ANSWER_US);
    wait_for_size(look, plan);
}

/* A cordon shows on a node of slurmd's too. Whether it is ready is slurmd's own business. */
static void plan_share(const struct look *look, struct plan *plan)
{
    bool is_settled = look->kube->unschedulable
                          ? node_plan_drain(plan, look->slurm, reason_of_cordon(look))
                          : node_plan_undrain(plan, look->slurm);

    if (!is_settled)
        plan_look_again(plan, LOOK_FOR_ANSWER_US);
}

/* Read directly before the deletion where our cache may be behind: it is only gone if the API
 * server says so. A label that is not there, or a deletion that began, was seen. */
static const struct action_unless *unless_it_is_there(const struct look *look,
                                                      struct action_unless *ret_unless)
{
    if (look->kube || !*look->marked_node ||
        kube_cache_get(look->world->nodes, "", look->marked_node))
        return NULL;
    *ret_unless = (struct action_unless){ .resource = &kube_nodes, .name = look->marked_node };
    return ret_unless;
}

static void plan_remove(const struct look *look, const char *doing, struct plan *plan)
{
    const char *reason =
        arena_printf(look->arena, BRIDGE_REASON " %s external node %s", doing, look->name);

    if (node_plan_drain(plan, look->slurm, reason)) {
        /* One read showed it drained and idle, so it was both at once; nothing has started there
         * since, unless somebody ended the drain, and then Slurm refuses. */
        struct action_unless unless;

        plan_look_again(plan, LOOK_FOR_IDLE_US);
        if (slurm_node_is_busy(look->slurm))
            plan_wait(plan, "%s; it is drained and still has work", look->why);
        else if (slurm_cache_known_us(look->world->slurm_nodes, look->name) <
                 look->world->facts.leading_us)
            plan_wait(plan, "%s; its state was read before we began to lead", look->why);
        else
            plan_slurm_delete_node(plan, look->name, unless_it_is_there(look, &unless));
        return;
    }
    plan_wait(plan, "%s; it is being drained", look->why);
    plan_look_again(plan, LOOK_FOR_IDLE_US);
}

/* ---- in Kubernetes ---- */

static struct node_word word_of(const struct slurm_node *slurm)
{
    const char *reason = *slurm->reason ? slurm->reason : "no reason was given";

    if (slurm_words_has(&slurm->state, SLURM_NODE_DRAIN))
        return (struct node_word){ false, "Drained", reason };
    if (slurm_words_has(&slurm->state, SLURM_NODE_DOWN))
        return (struct node_word){ false, "Down", reason };
    if (slurm_words_has(&slurm->state, SLURM_NODE_FAIL))
        return (struct node_word){ false, "Failing", reason };
    return (struct node_word){ true, "InService", "Slurm gives it work" };
}

/* Nothing is written for a node that is well and always was, nor for drains that only show what
 * Kubernetes knows itself. */
static void show_state(const struct look *look, struct plan *plan)
{
    struct node_word word;

    if (!look->slurm || look->intent == NODE_LEAVE) {
        node_hide_condition(look->world, look->kube, plan);
        return;
    }
    word = word_of(look->slurm);
    if (node_has_condition(look->kube) || is_out_by_others(look->slurm))
        (void)node_show_condition(look->world, look->kube, &word, plan);
}

/* Why the record is made again when the node is idle; NULL: it is right, or is made again now. */
static const char *why_made_again(const struct look *look)
{
    const struct wanted_gres *gres = &look->spec.gres;
    const char *has, *should;

    if (!look->slurm || !look->has_spec || !look->is_labelled || look->intent == NODE_LEAVE ||
        look->intent == NODE_SHARE || look->intent == NODE_RETIRE ||
        !slurm_node_is_busy(look->slurm) || is_out_by_others(look->slurm) ||
        wanted_gres_are_foreign(&look->world->config->devices, look->slurm) ||
        node_spec_size(&look->spec, look->slurm) != NODE_SIZE_DEVICES)
        return NULL;
    has = registered_devices(look->slurm, look->arena);
    should = has ? gres->devices : wanted_gres_text(gres, look->arena);
    has = has ? has : look->slurm->gres;
    return arena_printf(look->arena,
                        "Slurm has the devices %s, and should have %s%s%s; its record is made "
                        "again when the node is idle",
                        *has ? has : "none", should && *should ? should : "none",
                        *gres->tainted ? ": " : "", gres->tainted);
}

static void say(const struct look *look, const struct kube_node *node, const struct node_word *word,
                struct plan *plan)
{
    if (node_show_condition(look->world, node, word, plan))
        plan_event(plan, &node->object, KUBE_EVENT_WARNING, word->reason, "%s", word->message);
}

/* Lent nodes that ask for the name of another one hear why Slurm gives them no work. */
static void show_others(const struct look *look, struct plan *plan)
{
    const struct bridge_world *world = look->world;
    struct kube_index_walk walk =
        kube_cache_by(world->nodes, world->nodes_by_slurm_name, str_of(look->name));
    const char *has = look->kube ? look->kube->object.name : look->marked_node;
    const struct kube_object *object;

    if (!has[0] || look->owner == NODE_OTHERS || world->facts.is_uninstalling)
        return;
    while ((object = kube_index_next(&walk)) != NULL) {
        const char *record = world_record_name(world, kube_node_of(object));
        bool is_lent;

        (void)kube_pairs_get(&object->labels, BRIDGE_EXTERNAL_LABEL, &is_lent);
        if (is_lent && strcmp(object->name, has) != 0 &&
            (!record[0] || strcmp(record, look->name) == 0))
            say(look, kube_node_of(object),
                &(struct node_word){ false, "SlurmNodeTaken",
                                     arena_printf(look->arena,
                                                  "Slurm node %s is that of Kubernetes node %s",
                                                  look->name, has) },
                plan);
    }
}

static void show(const struct look *look, struct plan *plan)
{
    struct node_word word = { false, look->trouble, look->says };
    const char *again = why_made_again(look);
    bool is_being_made;

    if (!look->kube)
        return;
    if (look->claimed_by[0] && look->has_label)
        plan_event(plan, &look->kube->object, KUBE_EVENT_WARNING, "SlurmNodeClaimed",
                   "%s does not give it to Slurm: it belongs to %s, whose taint it has",
                   look->world->config->scheduler_name, look->claimed_by);
    if (look->claimed_by[0])
        return;
    /* While a node is drained away its taint stays: its last work is still there. One that is just
     * being made keeps the taint of its predecessor. */
    is_being_made = look->intent == NODE_SERVE && look->has_spec && !look->missing;
    if (look->intent != NODE_RETIRE && (look->slurm || !is_being_made)) {
        if (!look->slurm || look->intent == NODE_LEAVE || look->world->facts.is_uninstalling)
            node_hide_taint(look->world, look->kube, plan);
        else
            node_show_taint(look->world, look->kube, plan);
    }
    if (!look->trouble && look->refused)
        word = (struct node_word){ look->slurm && !node_is_out(look->slurm), "SlurmNodeRefused",
                                   look->refused };
    if (!word.reason && again)
        word = (struct node_word){ !node_is_out(look->slurm), "DevicesDiffer", again };
    if (!word.reason)
        show_state(look, plan);
    else
        say(look, look->kube, &word, plan);
}

/* ---- the plan ---- */

/* Nothing wakes a node when that has been read. NULL: none is. */
static const char *kind_being_read(const struct bridge_world *world)
{
    if (is_being_read(world, OPTIONAL_DAEMONSETS))
        return "DaemonSets are being read, whose pods take from the size of nodes";
    /* Devices that are read later reach Slurm only when the node is idle. */
    if (is_being_read(world, OPTIONAL_SLICES) || is_being_read(world, OPTIONAL_TAINT_RULES))
        return "the devices of nodes are being read";
    return NULL;
}

/* What is not known is no reason to do anything. NULL: all is known. */
static const char *what_is_unknown(const struct bridge_world *world, struct arena *arena)
{
    if (!kube_cache_is_synced(world->nodes))
        return "the nodes of Kubernetes are not known yet";
    if (!world->facts.slurm_synced)
        return "Slurm's nodes and partitions are not known yet";
    if (world->facts.is_suspicious)
        return arena_printf(arena, "slurmctld may have been restarted: %s",
                            world->facts.suspicion ? world->facts.suspicion : "");
    return kind_being_read(world);
}

static int plan_in_slurm(const struct look *look, struct plan *plan, struct err *err)
{
    switch (look->intent) {
    case NODE_LEAVE:
        if (look->trouble)
            plan_wait(plan, "%s", look->says);
        if (look->former) {
            plan_wait(plan, "the Kubernetes node that asks for this name has work as %s",
                      look->former);
            plan_look_again(plan, LOOK_FOR_IDLE_US);
        }
        return 0;
    case NODE_SHARE:
        plan_share(look, plan);
        return 0;
    case NODE_SERVE:
        plan_serve(look, plan);
        return 0;
    case NODE_CORDON:
        plan_cordon(look, plan);
        return 0;
    case NODE_RECREATE:
        /* What others took out of service must come back as it was: a new record would lose that.
         */
        plan_mark(look, plan);
        if (is_out_by_others(look->slurm))
            plan_wait(plan, "%s; somebody else took it out of service: %s", look->why,
                      look->slurm->reason);
        else
            plan_remove(look, "re-creating", plan);
        return 0;
    case NODE_RETIRE:
        plan_remove(look, "removing", plan);
        return 0;
    }
    return err_set(err, ERR_BUG, "node %s: intent %d", look->name, (int)look->intent);
}

static const char *why_refused(const struct look *look, const struct action *action)
{
    auto_buf struct buf action_text;
    struct str verb, rest;
    const char *why;

    buf_init(&action_text, MAX_ACTION_TEXT);
    action->type->write(action, &action_text);
    why = node_refusals_why(look->world->node_refusals, str_of(look->name), buf_str(&action_text));
    (void)str_cut(str_of(action->what), ' ', &verb, &rest);
    return why ? arena_printf(look->arena, "Slurm refused to " STR_FMT " node %s: %s",
                              STR_ARG(verb), look->name, why)
               : NULL;
}

/* Of what would be done now; what nobody wants any more does not count, nor has it to be heard of.
 */
static const char *find_refusal(const struct look *look)
{
    const struct node_refusals *refusals = look->world->node_refusals;
    const char *why = NULL;
    struct err err = { .class = 0 };
    struct plan plan;

    plan_init(&plan, look->arena);
    if (!refusals || !node_refusals_have(refusals, str_of(look->name)) ||
        plan_in_slurm(look, &plan, &err) < 0)
        return NULL;
    list_each (const struct action, action, &plan.actions, link)
        why = why ? why : why_refused(look, action);
    return why;
}

int nodes_plan(const struct bridge_world *world, struct str slurm_name, struct plan *plan,
               struct err *err)
{
    const char *unknown = what_is_unknown(world, plan->arena);
    struct look look;

    if (unknown) {
        plan_wait(plan, "%s", unknown);
        /* All else wakes all nodes (wake.c). */
        if (kind_being_read(world))
            plan_look_again(plan, LOOK_FOR_KINDS_US);
        return 0;
    }
    look = look_at(world, slurm_name, plan->arena);
    look.refused = find_refusal(&look);
    show(&look, plan);
    show_others(&look, plan);
    return plan_in_slurm(&look, plan, err);
}

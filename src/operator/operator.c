/* operator.c - the program: what is watched, which changes concern which custom resource, and what
 * people are told.
 *
 * Every row of operator_plans is a controller of the engine. It is planned again when its custom
 * resource, one of its children or an object that it refers to changes. */
#include "operator/operator.h"

#include "base/log.h"
#include "base/mem.h"
#include "codec/sshkey.h"
#include "engine/event_action.h"
#include "engine/made_secret.h"
#include "engine/watch_set.h"
#include "kube/event.h"
#include "kube/kinds.h"
#include "operator/events.h"
#include "operator/names.h"
#include "operator/nodeset_mounted.h"
#include "operator/plans.h"
#include "operator/slurm_actions.h"
#include "operator/slurm_clusters.h"
#include "operator/worker_identity.h"

#include <stdio.h>

enum {
    MAX_WATCHES = OPERATOR_MAX_WATCHES + 1,
    MAX_KEY = 2 * KUBE_MAX_NAME,
    MAX_WHO = MAX_KEY + 64,
    PAUSE_FACTOR = 8, /* a NodeSet of thousands of workers changes faster than it is planned */
};

struct kind_controller {
    struct slurm_operator *program;
    const struct operator_plan *row;
    struct controller controller;
    struct controller_watch watches[MAX_WATCHES];
    unsigned watch_count;
    struct kube_recorder *recorder;
};

struct slurm_operator {
    struct loop *loop;
    struct rand rand;
    struct kube_client *client, *lease_client;
    struct metrics *metrics;
    struct operator_world world;
    struct watch_set *watches;
    struct kube_lease *lease;
    struct engine *engine;
    struct made_secrets *made_secrets;
    struct slurm_clusters *slurm;  /* NULL: it does not speak to Slurm */
    struct kind_controller *kinds; /* one for each of operator_plans */
};

/* ---- which changes concern which custom resource ---- */

static void enqueue(struct controller *controller, const char *ns, const char *name)
{
    char key[MAX_KEY];
    int length = snprintf(key, sizeof(key), "%s/%s", ns, name);

    if (length > 0 && length < MAX_KEY)
        engine_enqueue(controller, (struct str){ key, (size_t)length });
}

static bool is_our_child(const struct kube_object *object)
{
    return strcmp(object->owner.group, OPERATOR_GROUP) == 0;
}

static void wake_owner(struct controller *controller, const struct kube_object *object)
{
    const struct kind_controller *kind = controller->context;

    if (is_our_child(object) && strcmp(object->owner.kind, kind->row->kind) == 0)
        enqueue(controller, object->ns, object->owner.name);
}

static void wake_referring(struct controller *controller, const struct kube_object *object)
{
    const struct kind_controller *kind = controller->context;
    const struct operator_world *world = &kind->program->world;
    const struct kube_object *found;
    struct kube_index_walk walk;
    char key[MAX_KEY];

    (void)snprintf(key, sizeof(key), "%s/%s", object->ns, object->name);
    walk = kube_cache_by(operator_world_cache(world, kind->row->kind), world->by_controller,
                         str_of(key));
    while ((found = kube_index_next(&walk)))
        enqueue(controller, found->ns, found->name);
}

static void wake_instance(struct controller *controller, const struct kube_object *object)
{
    bool found = false;
    struct str name = kube_pairs_get(&object->labels, LABEL_INSTANCE, &found);

    if (found)
        enqueue(controller, object->ns, name.at);
}

static void wake_namespace(struct controller *controller, const struct kube_object *object)
{
    const struct kind_controller *kind = controller->context;
    struct kube_cache_walk walk =
        kube_cache_walk(operator_world_cache(&kind->program->world, kind->row->kind));
    const struct kube_object *found;

    if (is_our_child(object))
        return;
    while ((found = kube_cache_next(&walk)))
        if (strcmp(found->ns, object->ns) == 0)
            enqueue(controller, found->ns, found->name);
}

static void wake_reloading(struct controller *controller, const struct kube_object *object)
{
    const struct kind_controller *kind = controller->context;
    struct kube_cache_walk walk = kube_cache_walk(kind->program->world.nodesets);
    const struct kube_object *found;

    while ((found = kube_cache_next(&walk)))
        if (strcmp(found->ns, object->ns) == 0 && nodeset_reloads(found))
            enqueue(controller, found->ns, found->name);
}

static void on_wake_siblings(struct controller *controller, const struct kube_object *old,
                             const struct kube_object *next)
{
    if (old && next &&
        json_equal(json_get(operator_spec(old), "controllerRef"),
                   json_get(operator_spec(next), "controllerRef")))
        return;
    wake_namespace(controller, next ? next : old);
}

/* ---- Nodes: they report themselves every few minutes, and little of that concerns workers ---- */

static bool same_pairs(const struct kube_pairs *a, const struct kube_pairs *b)
{
    for (unsigned i = 0; a->count == b->count && i < a->count; i++)
        if (!str_eq(a->at[i].key, b->at[i].key) || !str_eq(a->at[i].value, b->at[i].value))
            return false;
    return a->count == b->count;
}

static bool same_taints(const struct kube_node *a, const struct kube_node *b)
{
    for (unsigned i = 0; a->taint_count == b->taint_count && i < a->taint_count; i++)
        if (strcmp(a->taints[i].key, b->taints[i].key) != 0 ||
            strcmp(a->taints[i].value, b->taints[i].value) != 0 ||
            a->taints[i].effect != b->taints[i].effect)
            return false;
    return a->taint_count == b->taint_count;
}

static bool concerns_workers(const struct kube_object *old, const struct kube_object *next)
{
    return !old || !next || (old->deleted_us != 0) != (next->deleted_us != 0) ||
           kube_node_of(old)->unschedulable != kube_node_of(next)->unschedulable ||
           !same_pairs(&old->labels, &next->labels) ||
           !same_pairs(&old->annotations, &next->annotations) ||
           !same_taints(kube_node_of(old), kube_node_of(next));
}

static void on_wake_node(struct controller *controller, const struct kube_object *old,
                         const struct kube_object *next)
{
    const struct kind_controller *kind = controller->context;
    const struct operator_world *world = &kind->program->world;
    const char *name = next ? next->name : old->name;
    struct kube_cache_walk all = kube_cache_walk(world->nodesets);
    struct kube_index_walk on_node = kube_cache_by(world->pods, world->pods_by_node, str_of(name));
    const struct kube_object *found;

    if (!concerns_workers(old, next))
        return;
    while ((found = kube_index_next(&on_node)))
        wake_owner(controller, found);
    while ((found = kube_cache_next(&all)))
        if (nodeset_is_daemonset(found))
            enqueue(controller, found->ns, found->name);
}

/* The queue keeps a key once, so both states of the object may name it. */
#define MAP(wake)                                                                                  \
    static void on_##wake(struct controller *controller, const struct kube_object *old,            \
                          const struct kube_object *next)                                          \
    {                                                                                              \
        if (old)                                                                                   \
            wake(controller, old);                                                                 \
        if (next)                                                                                  \
            wake(controller, next);                                                                \
    }

MAP(wake_owner)
MAP(wake_referring)
MAP(wake_instance)
MAP(wake_namespace)
MAP(wake_reloading)

static const controller_map maps[] = {
    [WAKE_OWNER] = on_wake_owner,         [WAKE_REFERRING] = on_wake_referring,
    [WAKE_INSTANCE] = on_wake_instance,   [WAKE_NAMESPACE] = on_wake_namespace,
    [WAKE_RELOADING] = on_wake_reloading, [WAKE_SIBLINGS] = on_wake_siblings,
    [WAKE_NODE] = on_wake_node,
};

/* ---- what people are told ---- */

static const struct kube_object *object_of(const struct kind_controller *kind, struct str key)
{
    struct kube_cache *cache = operator_world_cache(&kind->program->world, kind->row->kind);
    char text[MAX_KEY];
    char *slash;

    if (key.len >= sizeof(text))
        return NULL;
    memcpy(text, key.at, key.len);
    text[key.len] = '\0';
    slash = strchr(text, '/');
    if (!slash)
        return NULL;
    *slash = '\0';
    return kube_cache_get(cache, text, slash + 1);
}

static void tell(const struct kind_controller *kind, struct str key, enum kube_event_type type,
                 const char *reason, const char *action, const char *note)
{
    const struct kube_object *object = object_of(kind, key);

    if (!object)
        return;
    kube_event(kind->recorder,
               &(struct kube_event_object){ .api_version = OPERATOR_GROUP "/" OPERATOR_VERSION,
                                            .kind = kind->row->kind,
                                            .ns = object->ns,
                                            .name = object->name,
                                            .uid = object->uid },
               type, reason, action, "%s", note);
}

static void on_answered(void *context, const struct controller *controller, struct str key,
                        const struct action *action, const struct kube_answer *answer)
{
    const struct kind_controller *kind = controller->context;
    struct operator_event event = { .reason = NULL };
    char note[KUBE_EVENT_MAX_NOTE];

    (void)context;
    for (const struct action_news *news = answer->outcome == KUBE_DONE ? action->news : NULL; news;
         news = news->next)
        tell(kind, key, news->is_warning ? KUBE_EVENT_WARNING : KUBE_EVENT_NORMAL, news->reason,
             "Sync", news->text);
    if (!operator_event_of(action, answer, &event))
        return;
    (void)snprintf(note, sizeof(note), "%s%s%s", action->what,
                   event.type == KUBE_EVENT_WARNING ? ": " : "",
                   event.type == KUBE_EVENT_WARNING ? answer->message : "");
    tell(kind, key, event.type, event.reason, event.action, note);
}

static void on_step_failed(void *context, const struct controller *controller, struct str key,
                           const char *failure)
{
    (void)context;
    tell(controller->context, key, KUBE_EVENT_WARNING, "SyncFailed", "Sync", failure);
}

/* The plan that writes the status shows it in the condition Degraded, and when it is over. */
static void on_trouble(void *context, const struct controller *controller, struct str key,
                       const struct action *action, const struct kube_answer *answer)
{
    struct slurm_operator *program = context;
    const struct kind_controller *kind = controller->context;
    char text[KUBE_EVENT_MAX_NOTE];

    if (action)
        (void)snprintf(text, sizeof(text), "%s: %s", action->what, answer->message);
    operator_world_refuse(&program->world, kind->row->controller, key, action ? text : NULL);
    for (unsigned i = 0; i < operator_plan_count; i++)
        if (strcmp(program->kinds[i].row->kind, kind->row->kind) == 0)
            engine_enqueue(&program->kinds[i].controller, key);
}

/* ---- the program ---- */

static int plan_key(struct controller *controller, struct str key, struct plan *plan,
                    struct err *err)
{
    const struct kind_controller *kind = controller->context;
    struct operator_world *world = &kind->program->world;
    char who[MAX_WHO];

    (void)snprintf(who, sizeof(who), "%s " STR_FMT, kind->row->controller, STR_ARG(key));
    world->wall_us = clock_wall_us(loop_clock(kind->program->loop));
    world->loop_us = loop_now_us(kind->program->loop);
    kube_reader_begin(world->secret_reader, str_of(who));
    operator_plan_key(kind->row, world, key, plan);
    switch (kube_reader_end(world->secret_reader, err)) {
    case KUBE_KNOWN:
        break;
    case KUBE_NOT_READ_YET:
        plan_clear(plan);
        plan_wait(plan, "Secrets are being read");
        break;
    case KUBE_UNREADABLE:
        return -err->class;
    }
    return 0;
}

/* The plan that waits for these Secrets, by "controller namespace/name". */
static void on_secrets_read(void *context, struct str who)
{
    struct slurm_operator *program = context;
    struct str name, key;

    if (str_cut(who, ' ', &name, &key))
        for (unsigned i = 0; i < operator_plan_count; i++)
            if (str_is(name, program->kinds[i].row->controller))
                engine_enqueue(&program->kinds[i].controller, key);
}

/* An engine waits for the caches that its controllers watch, and not every server has this kind: so
 * its changes are listened to here. */
static void on_service_monitor(void *context, const struct kube_object *old,
                               const struct kube_object *next)
{
    struct slurm_operator *program = context;

    for (unsigned i = 0; i < operator_plan_count; i++)
        on_wake_owner(&program->kinds[i].controller, old, next);
}

static bool may_act(void *context)
{
    const struct slurm_operator *program = context;

    return kube_lease_is_held(program->lease);
}

static void add_kind(struct slurm_operator *program, unsigned at, const char *identity)
{
    struct kind_controller *kind = &program->kinds[at];
    struct operator_world *world = &program->world;

    kind->program = program;
    kind->row = &operator_plans[at];
    kind->recorder = kube_recorder_new(
        program->client, &(struct kube_recorder_options){ .controller = kind->row->controller,
                                                          .instance = identity });
    kind->watches[kind->watch_count++] =
        (struct controller_watch){ operator_world_cache(world, kind->row->kind), NULL };
    for (const struct operator_watch *watch = kind->row->watches; watch->kind; watch++)
        kind->watches[kind->watch_count++] =
            (struct controller_watch){ operator_world_cache(world, watch->kind),
                                       maps[watch->wake] };
    kind->controller = (struct controller){ .name = kind->row->controller,
                                            .watches = kind->watches,
                                            .watch_count = kind->watch_count,
                                            .plan = plan_key,
                                            .context = kind,
                                            .pause_factor = PAUSE_FACTOR };
    engine_add(program->engine, &kind->controller);
}

static struct watch_set *watch_all(struct slurm_operator *program,
                                   const struct operator_options *options)
{
    struct watch_row rows[WATCH_SET_MAX];
    unsigned count = 0;

    for (size_t i = 0; i < operator_kind_count; i++)
        if (!operator_kinds[i].is_read_by_name)
            rows[count++] = (struct watch_row){
                .cache =
                    operator_world_cache(&program->world, operator_kinds[i].kind->resource->kind),
                .label_selector = operator_kinds[i].selector,
                .is_optional = operator_kinds[i].is_optional,
            };
    return watch_set_new(program->client, &program->rand, rows, count, options->namespaces,
                         options->namespace_count, options->page);
}

static void on_slurm_nodes(void *context, struct str key)
{
    struct slurm_operator *program = context;
    struct kube_index_walk walk =
        kube_cache_by(program->world.nodesets, program->world.by_controller, key);
    const struct kube_object *nodeset;

    while ((nodeset = kube_index_next(&walk)))
        for (unsigned i = 0; i < operator_plan_count; i++)
            if (strcmp(program->kinds[i].row->kind, "NodeSet") == 0)
                enqueue(&program->kinds[i].controller, nodeset->ns, nodeset->name);
}

/* The Controller shows what Slurm said, and so does its Accounting. */
static void on_slurm(void *context, struct str key)
{
    struct slurm_operator *program = context;
    struct kind_controller *kinds = program->kinds;
    const struct kube_object *controller = NULL, *accounting = NULL;

    for (unsigned i = 0; i < operator_plan_count; i++)
        if (strcmp(kinds[i].row->kind, "Controller") == 0) {
            engine_enqueue(&kinds[i].controller, key);
            controller = object_of(&kinds[i], key);
        }
    if (controller)
        accounting = operator_world_ref(program->world.accountings, controller, "accountingRef");
    for (unsigned i = 0; accounting && i < operator_plan_count; i++)
        if (strcmp(kinds[i].row->kind, "Accounting") == 0)
            enqueue(&kinds[i].controller, accounting->ns, accounting->name);
    on_slurm_nodes(context, key);
}

static void add_slurm(struct slurm_operator *program, const struct operator_links *links,
                      uint64_t seed)
{
    if (!links->connect_slurm)
        return;
    program->slurm = slurm_clusters_new(
        &(struct slurm_clusters_options){ .loop = links->loop,
                                          .world = &program->world,
                                          .connect = links->connect_slurm,
                                          .connect_context = links->connect_context,
                                          .changed = on_slurm,
                                          .nodes_changed = on_slurm_nodes,
                                          .may_act = may_act,
                                          .changed_context = program,
                                          .seed = seed });
    engine_add_service(program->engine, &action_slurm_cluster, program->slurm);
    program->world.speaks_slurm = true;
}

/* Events that a plan tells of itself are those of NodeSets. */
static void add_events(struct slurm_operator *program)
{
    for (unsigned i = 0; i < operator_plan_count; i++)
        if (strcmp(program->kinds[i].row->controller, "nodeset-controller") == 0)
            engine_add_service(program->engine, &action_event, program->kinds[i].recorder);
}

struct slurm_operator *operator_new(const struct operator_links *links,
                                    const struct operator_options *options)
{
    struct slurm_operator *program = mem_alloc(sizeof(*program));

    program->loop = links->loop;
    rand_init(&program->rand, options->seed);
    program->client = kube_client_new(links->loop, links->api);
    program->lease_client = kube_client_new(links->loop, links->lease_api);
    program->metrics = metrics_new();
    operator_world_init(&program->world, loop_clock(links->loop));
    if (options->dns_domain)
        program->world.dns_domain = options->dns_domain;
    if (options->propagated_conditions)
        program->world.propagated_conditions = options->propagated_conditions;
    if (options->max_unregistered > 0)
        program->world.max_unregistered = options->max_unregistered;
    program->watches = watch_all(program, options);
    program->world.secret_reader = kube_reader_new(
        program->client, program->world.secrets, &program->rand,
        &(struct kube_reader_options){ .is_read = on_secrets_read, .context = program });
    program->lease = kube_lease_new(program->lease_client, &program->rand,
                                    &(struct kube_lease_options){ .ns = options->lease_ns,
                                                                  .name = OPERATOR_LEASE,
                                                                  .identity = options->identity });
    program->engine = engine_new(program->client, &program->rand, program->metrics,
                                 &(struct engine_options){ .may_act = may_act,
                                                           .may_act_context = program,
                                                           .answered = on_answered,
                                                           .step_failed = on_step_failed,
                                                           .trouble = on_trouble,
                                                           .trouble_context = program,
                                                           .each_alone = true });
    program->made_secrets = made_secrets_new(&(struct made_secret_options){
        program->client, options->host_keys_program, "host-keys", sshkey_host_files });
    engine_add_service(program->engine, &action_made_secret, program->made_secrets);
    program->kinds = mem_alloc_array(operator_plan_count, sizeof(*program->kinds));
    for (unsigned i = 0; i < operator_plan_count; i++)
        add_kind(program, i, options->identity);
    kube_cache_listen(program->world.service_monitors, on_service_monitor, program);
    add_events(program);
    add_slurm(program, links, options->seed);
    return program;
}

static void on_lease(void *context, bool held)
{
    struct slurm_operator *program = context;

    log_info(held ? "leading" : "no longer leading");
    if (!held) {
        kube_reader_forget(program->world.secret_reader);
        return;
    }
    engine_wake(program->engine);
    if (program->slurm)
        slurm_clusters_start(program->slurm);
}

void operator_start(struct slurm_operator *program)
{
    watch_set_start(program->watches);
    kube_lease_start(program->lease, on_lease, program);
    engine_start(program->engine);
}

/* First those who call, then what is called. */
void operator_free(struct slurm_operator *program)
{
    if (!program)
        return;
    watch_set_free(program->watches);
    engine_free(program->engine);
    made_secrets_free(program->made_secrets);
    slurm_clusters_free(program->slurm);
    kube_lease_free(program->lease);
    for (unsigned i = 0; i < operator_plan_count; i++)
        kube_recorder_free(program->kinds[i].recorder);
    mem_free(program->kinds);
    metrics_free(program->metrics);
    kube_reader_free(program->world.secret_reader);
    operator_world_done(&program->world);
    kube_client_free(program->client);
    kube_client_free(program->lease_client);
    mem_free(program);
}

bool operator_is_leader(const struct slurm_operator *program)
{
    return kube_lease_is_held(program->lease);
}

struct engine *operator_engine(const struct slurm_operator *program)
{
    return program->engine;
}

struct kube_lease *operator_lease(const struct slurm_operator *program)
{
    return program->lease;
}

struct metrics *operator_metrics(const struct slurm_operator *program)
{
    return program->metrics;
}

void operator_add_health(struct slurm_operator *program, struct health *health)
{
    watch_set_add_health(program->watches, health);
    health_watch_reader(health, program->world.secrets, program->world.secret_reader);
}

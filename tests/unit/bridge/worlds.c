/* worlds.c - makes a world that was written as YAML real: the caches and what is known beside them.
 * What is in the caches is added by worlds_kube.c and worlds_slurm.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bridge/submit/submit_queue.h"
#include "slurm/capacity.h"
#include "slurm/job_layouts.h"
#include "worlds_check.h"
#include "worlds_private.h"

#include "kube/volume_kinds.h"

static const struct slurm_owner small_owner = { .cluster = { CLUSTER, sizeof(CLUSTER) - 1 },
                                                .release = { RELEASE, sizeof(RELEASE) - 1 } };

enum {
    LISTED_S = 20
}; /* when all jobs were last listed: after the take-over delay, where now is */

const char *small_world_key(struct small_world *small, const char *pod)
{
    if (strchr(pod, '/'))
        return arena_printf(&small->arena, "default/%s", pod);
    return arena_printf(&small->arena, "default/uid-%s", pod);
}

/* ---- facts ---- */

static void set_facts(struct small_world *small, const struct json *given)
{
    const struct json *facts = json_get(given, "facts");
    struct bridge_facts *out = &small->world.facts;
    int64_t now = json_i64_or(json_get(given, "now"), 100);

    *out = (struct bridge_facts){
        .now_us = (LED_FROM_S + now) * SECOND_US,
        .wall_us = (WORLDS_EPOCH_S + now) * SECOND_US,
        .slurm_skew_us = json_i64_or(json_get(facts, "slurm_ahead"), 0) * SECOND_US,
        .agent_is_up = json_bool_or(json_get(facts, "agent"), false),
        .is_uninstalling = json_bool_or(json_get(facts, "uninstalling"), false),
        .leading_us = LED_FROM_S * SECOND_US,
        .leading_wall_us = WORLDS_EPOCH_S * INT64_C(1000000),
        .kill_wait_s = json_i64_or(json_get(facts, "kill_wait"), 0),
        .takeover_delay_us = json_i64_or(json_get(facts, "takeover_delay"), 15) * SECOND_US,
        .no_takeover_delay = json_bool_or(json_get(facts, "no_takeover_delay"), false),
        .slurm_synced = json_bool_or(json_get(facts, "synced"), true),
        .is_suspicious = json_get(facts, "suspicious") != NULL,
        .suspicion = member(small, facts, "suspicious", ""),
        .knows_job_visibility = !str_is(json_str(json_get(facts, "sees")), "nothing"),
        .job_visibility =
            str_is(json_str(json_get(facts, "sees")), "part") ? SLURM_SEES_PART : SLURM_SEES_ALL,
        .job_visibility_why = "PrivateData has jobs",
        .pause_us = json_get(facts, "pause")
                        ? (LED_FROM_S + json_i64_or(json_get(facts, "pause"), 0)) * SECOND_US
                        : 0,
        .pause_why = "Slurm has as many jobs as it takes",
        .denied_us = json_get(facts, "denied")
                         ? (LED_FROM_S + json_i64_or(json_get(facts, "denied"), 0)) * SECOND_US
                         : 0,
        .trouble = member(small, facts, "trouble", ""),
        .trouble_us = (LED_FROM_S + json_i64_or(json_get(facts, "trouble_since"), 0)) * SECOND_US,
        .immediate_jobs_last = json_bool_or(json_get(facts, "interactive"), true),
        .restarted_us =
            json_get(facts, "restarted")
                ? (LED_FROM_S + json_i64_or(json_get(facts, "restarted"), 0)) * SECOND_US
                : 0,
        .rebooking = (size_t)json_i64_or(json_get(facts, "rebooking"), 0),
        .unsubmitted = (size_t)json_i64_or(json_get(facts, "unsubmitted"), 1),
        .queued = (size_t)json_i64_or(json_get(facts, "queued"), 0),
        .slurm_user = member(small, facts, "user", "slurm"),
        .max_jobs = json_i64_or(json_get(facts, "max_jobs"), 10000),
        .waiting_pods = (size_t)json_i64_or(json_get(facts, "waiting_pods"), 1),
        .bind_takes_metadata = json_bool_or(json_get(facts, "bind_takes_metadata"), true),
    };
}

/* ---- caches ---- */

/* Objects are added to caches that were listed as empty just before second 0; the last whole list
 * of jobs can be later. */
static void sync_slurm(struct slurm_cache *cache, int64_t at_us)
{
    struct slurm_merge *merge = slurm_merge_new(cache, at_us);

    while (!slurm_merge_commit(merge, NULL, NULL))
        continue;
    slurm_merge_free(merge);
}

static void list_kube(struct small_world *small, bool begins)
{
    const struct bridge_world *world = &small->world;
    struct kube_cache *const caches[] = { world->pods,
                                          world->nodes,
                                          world->jobs,
                                          world->replicasets,
                                          world->statefulsets,
                                          world->optional[OPTIONAL_PODGROUPS].cache,
                                          world->optional[OPTIONAL_WORKLOADS].cache,
                                          world->optional[OPTIONAL_COSCHEDULING].cache,
                                          world->optional[OPTIONAL_LWS].cache,
                                          world->optional[OPTIONAL_JOBSETS].cache,
                                          world->optional[OPTIONAL_DEVICE_CLASSES].cache,
                                          world->optional[OPTIONAL_SLICES].cache,
                                          world->optional[OPTIONAL_CLAIMS].cache,
                                          world->optional[OPTIONAL_DAEMONSETS].cache };

    for (size_t i = 0; i < sizeof(caches) / sizeof(caches[0]); i++) {
        if (begins)
            kube_cache_relist_begin(caches[i]);
        else
            kube_cache_relist_end(caches[i], 5);
    }
}

static const struct kube_kind *const optional_kinds[OPTIONAL_KINDS] = {
    [OPTIONAL_PODGROUPS] = &kube_podgroup_kind,
    [OPTIONAL_WORKLOADS] = &kube_workload_kind,
    [OPTIONAL_COSCHEDULING] = &kube_coscheduling_kind,
    [OPTIONAL_LWS] = &kube_lws_kind,
    [OPTIONAL_JOBSETS] = &kube_jobset_kind,
    [OPTIONAL_DEVICE_CLASSES] = &device_class_kind,
    [OPTIONAL_SLICES] = &device_slice_kind,
    [OPTIONAL_TAINT_RULES] = &device_taint_rule_kind,
    [OPTIONAL_CLAIMS] = &device_claim_kind,
    [OPTIONAL_DAEMONSETS] = &kube_daemonset_kind,
};

static void make_caches(struct small_world *small)
{
    struct bridge_world *world = &small->world;
    struct filter_hooks hooks;

    world->pods = kube_cache_new(&kube_pod_kind, &small->clock);
    world->nodes = kube_cache_new(&kube_node_kind, &small->clock);
    world->jobs = kube_cache_new(&kube_job_kind, &small->clock);
    world->replicasets = kube_cache_new(&kube_replicaset_kind, &small->clock);
    world->statefulsets = kube_cache_new(&kube_statefulset_kind, &small->clock);
    for (size_t i = 0; i < OPTIONAL_KINDS; i++)
        world->optional[i] =
            (struct optional){ .cache = kube_cache_new(optional_kinds[i], &small->clock),
                               .state = WATCH_PRESENT };
    small->claims = kube_cache_new(&kube_claim_kind, &small->clock);
    small->volumes = kube_cache_new(&kube_volume_kind, &small->clock);
    small->classes = kube_cache_new(&kube_storage_class_kind, &small->clock);
    world->volumes = small->volumes;
    hooks = world_filter_hooks(world);
    world->filter = filter_new(&(struct filter_caches){ .pods = world->pods,
                                                        .nodes = world->nodes,
                                                        .claims = small->claims,
                                                        .volumes = small->volumes,
                                                        .classes = small->classes },
                               &hooks);
    world_add_indexes(world);
    submit_queue_add_index(world);
    small->jobs = slurm_cache_new(&slurm_job_kind, small->loop, &small_owner);
    small->nodes = slurm_cache_new(&slurm_node_kind, small->loop, NULL);
    small->partitions = slurm_cache_new(&slurm_partition_kind, small->loop, NULL);
    world->slurm_jobs = small->jobs;
    world->slurm_nodes = small->nodes;
    small->reservations = slurm_cache_new(&slurm_reservation_kind, small->loop, NULL);
    world->slurm_partitions = small->partitions;
    world->slurm_reservations = small->reservations;
    world->unit_states = small->unit_states = unit_states_new();
    world->layouts = small->layouts = job_layouts_new();
    world->capacity = small->capacity = capacity_new(small->loop, small->jobs, small->nodes);
    world->foreign_nodes =
        foreign_nodes_new(small->nodes, world->nodes, world->nodes_by_slurm_name, &small_owner);
}

/* ---- all of it ---- */

static void read_config(struct small_world *small, const struct json *given)
{
    auto_buf struct buf text;
    struct err err = { .class = 0 };

    buf_init(&text, 10000);
    if (json_get(given, "config"))
        json_write(json_get(given, "config"), &text); /* JSON is YAML */
    if (bridge_config_parse(buf_str(&text), &small->config, &err) < 0)
        fail_msg("config: %s", err.text);
    if (small->config.warnings[0])
        fail_msg("config: %s", small->config.warnings);
}

void small_world_init(struct small_world *small, const struct json *given)
{
    const struct json *facts = json_get(given, "facts");
    bool is_fenced = json_i64_or(json_get(given, "now"), 100) < LISTED_S;
    int64_t listed_s = json_i64_or(json_get(facts, "listed"), is_fenced ? 1 : LISTED_S);
    struct err err = { .class = 0 };

    *small = (struct small_world){ .loop = NULL };
    if (world_check_given(given, &err) < 0)
        fail_msg("%s", err.text);
    arena_init(&small->arena, 1u << 26);
    clock_init_virtual(&small->clock, WORLDS_EPOCH_S * (int64_t)SECOND_US);
    small->loop = loop_new_virtual(&small->clock);
    read_config(small, given);
    small->world.config = &small->config;
    small->world.owner = &small_owner;
    make_caches(small);
    sync_slurm(small->jobs, LED_FROM_S * SECOND_US - 1);
    sync_slurm(small->nodes, LED_FROM_S * SECOND_US - 1);
    sync_slurm(small->partitions, LED_FROM_S * SECOND_US - 1);
    sync_slurm(small->reservations, LED_FROM_S * SECOND_US - 1);
    list_kube(small, true);
    small_world_add_kube(small, given);
    list_kube(small, false);
    small_world_add_slurm(small, given);
    loop_run(small->loop); /* changes are told from the loop */
    small_world_list_jobs(small, given, (LED_FROM_S + listed_s) * SECOND_US);
    small_world_add_submits(small, given);
    set_facts(small, given);
    clock_advance_to_us(&small->clock, small->world.facts.now_us);
}

void small_world_done(struct small_world *small)
{
    struct bridge_world *world = &small->world;

    capacity_free(small->capacity);
    foreign_nodes_free(world->foreign_nodes);
    unit_states_free(small->unit_states);
    job_layouts_free(small->layouts);
    slurm_cache_free(small->jobs);
    slurm_cache_free(small->nodes);
    slurm_cache_free(small->partitions);
    slurm_cache_free(small->reservations);
    filter_free(world->filter);
    kube_cache_free(small->claims);
    kube_cache_free(small->volumes);
    kube_cache_free(small->classes);
    for (size_t i = 0; i < OPTIONAL_KINDS; i++)
        kube_cache_free(world->optional[i].cache);
    kube_cache_free(world->pods);
    kube_cache_free(world->nodes);
    kube_cache_free(world->jobs);
    kube_cache_free(world->replicasets);
    kube_cache_free(world->statefulsets);
    bridge_config_done(&small->config);
    loop_free(small->loop);
    arena_done(&small->arena);
}

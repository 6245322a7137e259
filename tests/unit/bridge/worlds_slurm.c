/* worlds_slurm.c - Slurm's side of a small world: its nodes and jobs in their caches, and what the
 * bridge remembers of its submits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bridge/run/exclude.h"
#include "bridge/unit/job_change.h"
#include "slurm/capacity.h"
#include "slurm/job_layouts.h"
#include "worlds_private.h"

#include "bridge/unit/translate.h"
#include "codec/json_format.h"
#include "slurm/submit.h"

#include <stdio.h>

/* ---- what a job was asked with ---- */

/* The annotations that the unit's job was asked with. */
static const struct kube_object *asker_of(const struct json *annotations)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);
    struct json_mut *metadata = json_put_object(build, root, "metadata");
    const struct kube_object *object = NULL;
    struct err err = { .class = 0 };

    json_put_text(build, metadata, "name", "asker");
    json_put_text(build, metadata, "namespace", "default");
    json_put_text(build, metadata, "uid", "uid-asker");
    json_put_str(build, metadata, "resourceVersion", STR("5"));
    json_put(build, metadata, "annotations", json_copy(build, annotations));

    auto_json_doc struct json_doc *doc = json_freeze(root);

    if (kube_object_decode(&kube_pod_kind, json_root(doc), &object, &err) < 0)
        fail_msg("%s", err.text);
    return object;
}

/* Of "podgroup/g" it is "g". */
static const char *last_part(const char *unit)
{
    const char *slash = strrchr(unit, '/');

    return slash ? slash + 1 : unit;
}

/* What is asked for with these annotations, for so many of the unit's pods. */
static const struct job_desc *said_by(struct small_world *small, const char *unit,
                                      const struct json *annotations, const struct json *row)
{
    enum { MAX_PODS = 8 };
    struct kube_index_walk walk = kube_cache_by(small->world.pods, small->world.pods_by_unit,
                                                str_of(small_world_key(small, unit)));
    int64_t count = json_i64_or(json_get(row, "pods"), 1);
    const struct kube_object *object = NULL, *asker = asker_of(annotations);
    const struct kube_pod *pods[MAX_PODS];
    struct translate_from from = { .config = &small->config,
                                   .pods = pods,
                                   .owner = asker,
                                   .name = strchr(unit, '/') ? last_part(unit) : NULL,
                                   .is_gang = strchr(unit, '/') != NULL };
    struct job_desc *desc = arena_alloc(&small->arena, sizeof(*desc));
    struct err err = { .class = 0 };

    while (from.pod_count < count && from.pod_count < MAX_PODS &&
           (object = kube_index_next(&walk)) != NULL)
        pods[from.pod_count++] = kube_pod_of(object);
    if (translate(&from, &small->arena, desc, &err) < 0)
        fail_msg("said: %s", err.text);
    job_desc_keep(desc, &small->arena);
    kube_object_unref(asker);
    return desc;
}

/* Of the ask, or of an update that would make it another. */
static struct field_hashes marks_of(struct small_world *small, const char *unit,
                                    const struct json *annotations, const struct json *row)
{
    auto_json_build struct json_build *build = json_build_new();
    const struct json *changed = json_get(row, "changed");
    struct field_hashes hashes, noted;

    field_hashes_of(said_by(small, unit, annotations, row), &hashes);
    if (!changed || !job_change(build, json_new_object(build), said_by(small, unit, changed, row),
                                &hashes, false, &noted))
        return hashes;
    return noted;
}

/* As a member of the comment. */
static const char *note_of(struct small_world *small, const char *unit, const struct json *row)
{
    struct field_hashes hashes;
    auto_buf struct buf note = { .max = SLURM_MAX_NOTE };

    if (json_is_string(json_get(row, "noted")))
        return arena_printf(&small->arena, ",\"note\":\"%s\"", member(small, row, "noted", ""));
    hashes = marks_of(small, unit, json_get(row, "noted"), row);
    field_hashes_write(&hashes, &note);
    return arena_printf(&small->arena, ",\"note\":\"%s\"", buf_text(&note));
}

/* ---- nodes and jobs ---- */

static void put_slurm(struct slurm_cache *cache, const struct slurm_kind *kind,
                      const struct json_mut *root, int64_t at_us)
{
    auto_json_doc struct json_doc *doc = json_freeze(root);
    const struct slurm_object *object = NULL;
    struct err err = { .class = 0 };

    if (slurm_object_decode(kind, json_root(doc), &object, &err) < 0)
        fail_msg("%s", err.text);
    slurm_cache_seen(cache, object, at_us);
    slurm_object_unref(object);
}

static void put_words(struct json_build *build, struct json_mut *root, const char *key,
                      const char *words, char separator)
{
    struct json_mut *list = json_put_array(build, root, key);
    struct str rest = str_of(words), word;

    while (str_next(&rest, separator, &word))
        json_push_str(build, list, word);
}

/* Of the object that its group is named by, as in the keys of its jobs. */
static const char *uid_of_unit(struct small_world *small, const char *unit)
{
    const struct bridge_world *world = &small->world;
    struct kube_index_walk walk =
        kube_cache_by(world->pods, world->pods_by_unit, str_of(small_world_key(small, unit)));
    const struct kube_object *pod = kube_index_next(&walk);
    const struct kube_object *object =
        pod && strchr(unit, '/') ? world_group_object(world, kube_pod_of(pod)) : NULL;

    return object ? object->uid : "";
}

static void put_job_marks(struct small_world *small, struct json_build *build,
                          struct json_mut *root, const struct json *row)
{
    const char *pod = member(small, row, "pod", "a");
    const char *uid = member(small, row, "uid", uid_of_unit(small, pod));
    const char *key = arena_printf(&small->arena, "%s%s%s.%s", small_world_key(small, pod),
                                   uid[0] ? "@" : "", uid, member(small, row, "attempt", "1"));
    const char *note = json_get(row, "noted") ? note_of(small, pod, row) : "";
    auto_buf struct buf names = { .max = SLURM_MAX_COMMENT };

    buf_printf(&names, "\"default/%s\"", pod);
    for (int64_t i = 1; i < json_i64_or(json_get(row, "pods"), 1); i++)
        buf_printf(&names, ",\"default/%s-%d\"", pod, (int)i);
    json_put_text(
        build, root, "admin_comment",
        arena_printf(
            &small->arena,
            "{\"pods\":[%s],\"v\":1,\"cluster\":\"%s\",\"release\":\"%s\",\"unit\":\"%s\"%s}",
            buf_text(&names), member(small, row, "cluster", CLUSTER),
            member(small, row, "release", RELEASE), key, note));
    json_put_text(build, root, "extra",
                  arena_printf(&small->arena, "%s %s %s", key,
                               member(small, row, "cluster", CLUSTER),
                               member(small, row, "release", RELEASE)));
}

/* Members that are no shorthand of ours are Slurm's own. */
static void copy_the_rest(struct json_build *build, struct json_mut *root, const struct json *row,
                          const char *const *shorthands)
{
    struct json_iter iter = json_iter(row);
    struct str key;
    const struct json *value;

    while (json_next_member(&iter, &key, &value)) {
        bool is_shorthand = false;

        for (size_t i = 0; shorthands[i]; i++)
            is_shorthand |= str_is(key, shorthands[i]);
        if (!is_shorthand)
            json_put_key(build, root, key, json_copy(build, value));
    }
}

/* Slurm counts from 1970. */
static void put_time(struct json_build *build, struct json_mut *root, const char *key,
                     const struct json *second)
{
    if (second)
        json_put_i64(build, root, key, WORLDS_EPOCH_S + json_i64_or(second, 0));
}

/* What the job has on its nodes, as slurmrestd says it. */
static void add_layout(struct small_world *small, const struct json *row)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *body = json_new_object(build);
    struct err err = { .class = 0 };

    if (!json_get(row, "layout"))
        return;
    json_put(build, body, "nodes", json_copy(build, json_get(row, "layout")));

    auto_json_doc struct json_doc *doc = json_freeze(body);

    if (job_layouts_put(small->layouts, json_i64_or(json_get(row, "id"), 7), "", json_root(doc),
                        &err) < 0)
        fail_msg("layout: %s", err.text);
}

static void add_job(struct small_world *small, const struct json *row)
{
    static const char *const shorthands[] = { "id",      "pod",       "attempt", "state", "cluster",
                                              "reason",  "read",      "pods",    "noted", "changed",
                                              "foreign", "submitted", "ended",   "uid",   "layout",
                                              "release", "written",   "missing", NULL };
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);

    json_put_i64(build, root, "job_id", json_i64_or(json_get(row, "id"), 7));
    json_put_text(build, root, "sluid",
                  arena_printf(&small->arena, "s%s", member(small, row, "id", "7")));
    json_put_text(build, root, "partition", "slurm-bridge");
    json_put_text(build, root, "name", last_part(member(small, row, "pod", "a")));
    json_put_text(build, root, "state_reason", member(small, row, "reason", "None"));
    put_words(build, root, "job_state", member(small, row, "state", "PENDING"), '+');
    put_words(build, root, "flags", "EXTERNAL_JOB", '+');
    if (!str_starts(str_of(member(small, row, "state", "PENDING")), STR("PENDING")))
        json_put_i64(build, root, "start_time", WORLDS_EPOCH_S); /* it was read whole */
    if (!json_get(row, "foreign"))
        put_job_marks(small, build, root, row);
    put_time(build, root, "submit_time", json_get(row, "submitted"));
    put_time(build, root, "end_time", json_get(row, "ended"));
    copy_the_rest(build, root, row, shorthands);
    put_slurm(small->jobs, &slurm_job_kind, root,
              (LED_FROM_S + json_i64_or(json_get(row, "read"), 0)) * SECOND_US);
    add_layout(small, row);
}

static void add_write(struct small_world *small, const struct json *row)
{
    if (json_get(row, "written"))
        slurm_cache_wrote(small->jobs, member(small, row, "id", "7"),
                          (LED_FROM_S + json_i64_or(json_get(row, "written"), 0)) * SECOND_US);
}

/* The last whole list of jobs. */
void small_world_list_jobs(struct small_world *small, const struct json *given, int64_t at_us)
{
    struct slurm_merge *merge = slurm_merge_new(small->jobs, at_us);
    struct json_iter rows = json_iter(json_get(given, "jobs"));
    const struct json *row;
    bool misses_some = false;

    while (json_next_item(&rows, &row)) {
        const struct slurm_object *job =
            slurm_cache_get(small->jobs, member(small, row, "id", "7"));

        if (json_bool_or(json_get(row, "missing"), false))
            misses_some = true;
        else
            slurm_merge_add(merge, slurm_object_ref(job));
    }
    if (misses_some)
        assert_true(slurm_merge_commit(merge, NULL, NULL));
    else
        slurm_cache_unchanged(small->jobs, at_us);
    slurm_merge_free(merge);
    each(small, given, "jobs", add_write);
}

static void add_slurm_node(struct small_world *small, const struct json *row)
{
    static const char *const shorthands[] = { "cpus", "memory", "state", "partitions", NULL };
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);
    int64_t cpus = json_i64_or(json_get(row, "cpus"), 4);

    json_put_i64(build, root, "cpus", cpus);
    json_put_i64(build, root, "effective_cpus", cpus);
    json_put_i64(build, root, "real_memory", json_i64_or(json_get(row, "memory"), 8192));
    put_words(build, root, "state", member(small, row, "state", "IDLE+EXTERNAL"), '+');
    put_words(build, root, "partitions", member(small, row, "partitions", "slurm-bridge"), ',');
    copy_the_rest(build, root, row, shorthands);
    put_slurm(small->nodes, &slurm_node_kind, root, LED_FROM_S * SECOND_US);
}

static void add_partition(struct small_world *small, const struct json *row)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root =
        json_format(build,
                    "{'name':%s,'flags':[%s],'accounts':{'allowed':%s,'deny':%s},"
                    "'groups':{'allowed':%s},'qos':{'allowed':%s,'deny':%s}}",
                    member(small, row, "name", ""), member(small, row, "flags", "SHOWN"),
                    member(small, row, "accounts", ""), member(small, row, "denied_accounts", ""),
                    member(small, row, "groups", ""), member(small, row, "qos", ""),
                    member(small, row, "denied_qos", ""));

    put_slurm(small->partitions, &slurm_partition_kind, root, LED_FROM_S * SECOND_US);
}

static void add_reservation(struct small_world *small, const struct json *row)
{
    auto_json_build struct json_build *build = json_build_new();

    put_slurm(small->reservations, &slurm_reservation_kind,
              json_format(build, "{'name':%s,'users':%s,'accounts':%s}",
                          member(small, row, "name", ""), member(small, row, "users", ""),
                          member(small, row, "accounts", "")),
              LED_FROM_S * SECOND_US);
}

void small_world_add_slurm(struct small_world *small, const struct json *given)
{
    each(small, given, "partitions", add_partition);
    each(small, given, "reservations", add_reservation);
    each(small, given, "slurm_nodes", add_slurm_node);
    each(small, given, "jobs", add_job);
}

/* ---- submits ---- */

/* Of the same ask as would be made now, for a pod that speaks for itself. */
static uint64_t hash_of(struct small_world *small, const char *key)
{
    struct kube_index_walk walk =
        kube_cache_by(small->world.pods, small->world.pods_by_unit, str_of(key));
    const struct kube_object *object = kube_index_next(&walk);
    const struct kube_pod *pod = object ? kube_pod_of(object) : NULL;
    const struct translate_from from = {
        .config = &small->config, .pods = &pod, .pod_count = 1, .owner = object
    };
    struct job_desc desc;
    struct err err = { .class = 0 };

    if (!pod || translate(&from, &small->arena, &desc, &err) < 0)
        return 0;
    return job_desc_hash(&desc);
}

static void add_said(struct small_world *small, struct unit_state *memory, const char *unit,
                     const struct json *row)
{
    memory->last_applied.job_id = 7;
    memory->last_applied.hashes = marks_of(small, unit, json_get(row, "said"), row);
    memory->last_applied.needs_final_note = json_bool_or(json_get(row, "settles_note"), false);
}

static void add_submit(struct small_world *small, const struct json *row)
{
    static const enum submit_state states[] = { SUBMIT_NONE, SUBMIT_SENT, SUBMIT_UNRESOLVED,
                                                SUBMIT_REFUSED };
    const char *key = small_world_key(small, member(small, row, "pod", "a"));
    struct unit_state *memory = unit_states_need(small->unit_states, str_of(key));
    struct str state = json_str_or(json_get(row, "state"), STR("none"));
    struct json_iter misfits = json_iter(json_get(row, "misfits"));
    struct json_iter devices = json_iter(json_get(row, "device_misfits"));
    struct json_iter refused = json_iter(json_get(row, "writes_refused"));
    const struct json *name;
    int64_t times = 0;

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (str_is(state, submit_state_name(states[i])))
            unit_states_move(small->unit_states, memory, states[i]);
    memory->submit.attempt = (unsigned)json_i64_or(json_get(row, "attempt"), 1);
    memory->submit.sent_us = (LED_FROM_S + json_i64_or(json_get(row, "sent"), 0)) * SECOND_US;
    memory->submit.settles_us = (LED_FROM_S + json_i64_or(json_get(row, "settles"), 0)) * SECOND_US;
    memory->submit.again_us = (LED_FROM_S + json_i64_or(json_get(row, "again"), 1000)) * SECOND_US;
    memory->submit.site = capacity_generation(small->world.capacity);
    memory->submit.hash = json_u64_or(json_get(row, "hash"), hash_of(small, key));
    (void)snprintf(memory->submit.text, sizeof(memory->submit.text), "%s",
                   member(small, row, "text", ""));
    memory->submit.is_answered = json_bool_or(json_get(row, "answered"), false);
    memory->queues = json_bool_or(json_get(row, "queues"), false);
    memory->ends_by_cancel = json_bool_or(json_get(row, "ends_by_cancel"), false);
    if (json_get(row, "said"))
        add_said(small, memory, member(small, row, "pod", "a"), row);
    if (json_bool_or(json_get(row, "change_refused"), false)) {
        memory->last_applied.refused = hash_of(small, key);
        memory->last_applied.site = memory->submit.site;
        memory->last_applied.again_us = memory->submit.again_us;
    }
    if (json_get(row, "seen"))
        memory->seen_us = memory->grown_us =
            (LED_FROM_S + json_i64_or(json_get(row, "seen"), 0)) * SECOND_US;
    if (json_get(row, "given_up"))
        unit_state_give_up(memory, (unsigned)json_i64_or(json_get(row, "given_up"), 0));
    while (json_next_item(&refused, &name))
        unit_state_refuse_write(memory, "bind pod default/a to n1: exceeded quota",
                                (LED_FROM_S + json_i64_or(name, 0)) * SECOND_US);
    while (json_next_item(&misfits, &name))
        unit_state_add_misfit(memory, json_str(name).at, 0, NULL, 0);
    while (json_next_item(&devices, &name))
        unit_state_add_misfit(memory, json_str(name).at,
                              node_devices_version(&small->world, json_str(name).at) +
                                  (uint64_t)json_bool_or(json_get(row, "devices_changed"), false),
                              "no device does", memory->submit.sent_us + 30 * SECOND_US * times++);
}

void small_world_add_submits(struct small_world *small, const struct json *given)
{
    each(small, given, "submits", add_submit);
}

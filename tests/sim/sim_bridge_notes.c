/* sim_bridge_notes.c - what the promises remember of pods, jobs and nodes beyond what the stores
 * show now: which job was under a pod when it was bound, until when a job ran, what Slurm did to
 * it, when a node was last unfit.
 *
 * Holds: notes follow the stores' own changes, never what the bridge believes. */
#include "sim_bridge.h"

#include "base/arena.h"
#include "base/mem.h"
#include "codec/hostlist.h"

#include <inttypes.h>

enum { MAX_NOTES = 10000 };

void bridge_notes_init(struct bridge_scene *scene)
{
    const struct map_options options = { .max = MAX_NOTES, .free_value = mem_free };

    map_init(&scene->pods, &options);
    map_init(&scene->units, &options);
    map_init(&scene->jobs, &options);
    map_init(&scene->nodes, &options);
    map_init(&scene->slurm_nodes, &options);
}

void bridge_notes_done(struct bridge_scene *scene)
{
    map_done(&scene->pods);
    map_done(&scene->units);
    map_done(&scene->jobs);
    map_done(&scene->nodes);
    map_done(&scene->slurm_nodes);
}

static void *need(struct map *map, struct str key, size_t size)
{
    void *note = map_get(map, key);

    if (!note) {
        note = mem_alloc(size);
        (void)map_put(map, key, note, NULL);
    }
    return note;
}

#define COPY(to, text) (void)snprintf(to, sizeof(to), "%s", text)

/* ---- objects of Kubernetes ---- */

bool bridge_is_ours(const char *user)
{
    return strncmp(user, "replica-", strlen("replica-")) == 0;
}

bool bridge_pod_is_live(const struct json *pod)
{
    struct str phase = json_str(json_at(pod, "status", "phase"));

    return pod && !json_exists(json_at(pod, "metadata", "deletionTimestamp")) &&
           !str_is(phase, "Succeeded") && !str_is(phase, "Failed");
}

bool bridge_pod_may_run(const struct json *pod)
{
    struct str phase = json_str(json_at(pod, "status", "phase"));
    struct json_iter iter = json_iter(json_at(pod, "status", "containerStatuses"));
    size_t wanted = json_len(json_at(pod, "spec", "containers")), ended = 0;
    const struct json *status;

    if (!pod || json_str(json_at(pod, "spec", "nodeName")).len == 0)
        return false;
    while (json_next_item(&iter, &status)) {
        if (json_exists(json_at(status, "state", "running")))
            return true;
        ended += json_exists(json_at(status, "state", "terminated"));
    }
    return ended < wanted && !str_is(phase, "Succeeded") && !str_is(phase, "Failed");
}

bool bridge_node_is_labelled(const struct json *node)
{
    return node &&
           json_type(json_at(node, "metadata", "labels", BRIDGE_EXTERNAL_LABEL)) != JSON_ABSENT &&
           !json_exists(json_at(node, "metadata", "deletionTimestamp"));
}

bool bridge_node_is_ready(const struct json *node)
{
    struct json_iter iter = json_iter(json_at(node, "status", "conditions"));
    const struct json *condition;
    bool is_ready = false;

    while (json_next_item(&iter, &condition))
        if (str_is(json_str(json_get(condition, "type")), "Ready"))
            is_ready = str_is(json_str(json_get(condition, "status")), "True");
    return is_ready;
}

bool bridge_node_is_fit(const struct json *node)
{
    return bridge_node_is_ready(node) &&
           !json_bool_or(json_at(node, "spec", "unschedulable"), false);
}

bool bridge_hosts_have(const char *hosts, const char *name)
{
    auto_arena struct arena arena;
    const struct hostlist *list;

    arena_init(&arena, 1 << 20);
    if (strcmp(hosts, name) == 0)
        return true;
    return strpbrk(hosts, "[,") &&
           hostlist_parse(&arena, str_of(hosts), HOSTLIST_MAX_NAMES, &list, NULL) == 0 &&
           hostlist_contains(list, str_of(name));
}

struct unit_note *bridge_note_of_unit(struct bridge_scene *scene, const char *key)
{
    struct unit_note *note = need(&scene->units, str_of(key), sizeof(*note));
    const char *slash = strchr(key, '/');

    COPY(note->key, key);
    note->is_group = slash && strchr(slash + 1, '/');
    return note;
}

/* ---- pods and nodes ---- */

struct pod_note *bridge_note_of_pod(struct bridge_scene *scene, const struct json *pod)
{
    struct str ns = json_str(json_at(pod, "metadata", "namespace"));
    struct str uid = json_str(json_at(pod, "metadata", "uid"));
    struct pod_note *note;
    char key[sizeof(note->key)];

    (void)snprintf(key, sizeof(key), STR_FMT "/" STR_FMT, STR_ARG(ns), STR_ARG(uid));
    note = need(&scene->pods, str_of(key), sizeof(*note));
    if (note->key[0])
        return note;
    COPY(note->key, key);
    COPY(note->ns, ns.at);
    COPY(note->name, json_str(json_at(pod, "metadata", "name")).at);
    bridge_write_group(scene, pod, note->group);
    return note;
}

struct node_note *bridge_note_of_node(struct bridge_scene *scene, const char *name)
{
    struct node_note *note = need(&scene->nodes, str_of(name), sizeof(*note));

    COPY(note->name, name);
    return note;
}

static void note_node_gone(struct bridge_scene *scene, const char *name)
{
    map_each (item, &scene->pods) {
        struct pod_note *pod = item->value;

        if (strcmp(pod->node, name) == 0)
            pod->node_was_gone = true;
    }
}

static bool has_other_shape(const struct json *old, const struct json *next)
{
    return bridge_node_is_labelled(old) != bridge_node_is_labelled(next) ||
           !json_equal(json_at(old, "status", "allocatable"),
                       json_at(next, "status", "allocatable")) ||
           !json_equal(json_at(old, "metadata", "annotations", BRIDGE_PARTITIONS_ANNOTATION),
                       json_at(next, "metadata", "annotations", BRIDGE_PARTITIONS_ANNOTATION));
}

static void note_node(struct bridge_scene *scene, const struct api_change *change)
{
    const struct json *object = change->next ? change->next : change->old;
    const char *name = json_str(json_at(object, "metadata", "name")).at;
    struct node_note *note = bridge_note_of_node(scene, name);
    int64_t now_us = loop_now_us(scene->world->loop);

    if (!change->next)
        note_node_gone(scene, name);
    if (!change->old || !change->next || has_other_shape(change->old, change->next))
        note->changed_us = now_us;
    if (!change->next || !bridge_node_is_fit(change->next))
        note->unfit_us = INT64_MAX;
    else if (note->unfit_us == INT64_MAX)
        note->unfit_us = now_us;
}

/* Whether a poll of states has the job's id among its own. */
static bool polls(const char *path, const struct job_note *job)
{
    char id[32];
    size_t length = (size_t)snprintf(id, sizeof(id), "job_id=%" PRId64, job->id);

    for (const char *at = strstr(path, id); at; at = strstr(at + 1, id))
        if (at[length] == '&' || at[length] == '\0')
            return true;
    return false;
}

/* A whole list, or the job itself. */
static bool reads(const char *path, const struct job_note *job)
{
    char alone[32];

    (void)snprintf(alone, sizeof(alone), "/job/%" PRId64 "?", job->id);
    return strstr(path, "/jobs/?") || strstr(path, alone);
}

/* A poll counts when the next one has come: by then what differed has been read. */
void bridge_note_read(struct bridge_scene *scene, unsigned replica, const char *path,
                      int64_t sent_us)
{
    map_each (item, &scene->jobs) {
        struct job_note *job = item->value;
        int64_t read_us = job->read_us[replica];

        if (reads(path, job))
            read_us = sent_us;
        if (polls(path, job)) {
            read_us = job->polled_us[replica];
            job->polled_us[replica] = sent_us;
        }
        if (read_us > job->read_us[replica])
            job->read_us[replica] = read_us;
    }
}

/* What the replica knows of the youngest job of a unit. */
static int64_t read_of_unit(const struct bridge_scene *scene, const char *unit, unsigned replica)
{
    const struct job_note *youngest = NULL;

    map_each (item, &scene->jobs) {
        const struct job_note *job = item->value;

        if (strcmp(job->unit, unit) == 0 && (!youngest || job->taken_us > youngest->taken_us))
            youngest = job;
    }
    return youngest ? youngest->read_us[replica] : 0;
}

/* "/api/v1/namespaces/NS/pods/NAME/binding" */
static const struct json *pod_at(const struct bridge_scene *scene, const char *path,
                                 const char *name)
{
    const char *at = strstr(path, "/namespaces/");
    char ns[64];

    if (!at)
        return NULL;
    at += strlen("/namespaces/");
    (void)snprintf(ns, sizeof(ns), "%.*s", (int)strcspn(at, "/"), at);
    return api_store_find(scene->world->store, "pods", ns, name);
}

/* A late Binding is judged by what the first of several senders knew. */
void bridge_note_binding(struct bridge_scene *scene, const char *user, const char *path)
{
    const struct bridge_replica *replica = bridge_replica_named(scene, user);
    const char *at = strstr(path, "/pods/");
    const struct json *pod;
    struct pod_note *note;
    char name[64];

    if (!replica || !at || !strstr(at, "/binding"))
        return;
    at += strlen("/pods/");
    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, "/"), at);
    pod = pod_at(scene, path, name);
    if (!pod)
        return;
    note = bridge_note_of_pod(scene, pod);
    if (note->bind_us && loop_now_us(scene->world->loop) - note->bind_us < 20 * SCENE_SECOND)
        return;
    note->bind_us = loop_now_us(scene->world->loop);
    note->read_us = read_of_unit(scene, note->key, (unsigned)(replica - scene->replicas));
    note->group_read_us = read_of_unit(scene, note->group, (unsigned)(replica - scene->replicas));
    note->listed_us = replica->listed_us;
}

/* {"jobs":["SLUID or id", ...]} */
void bridge_note_cancel(struct bridge_scene *scene, struct str body)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *named;
    struct json_iter iter;

    (void)json_parse(body, 1 << 16, &doc, NULL);
    iter = json_iter(json_get(json_root(doc), "jobs"));
    while (json_next_item(&iter, &named))
        map_each (item, &scene->jobs) {
            struct job_note *job = item->value;
            char id[32];

            (void)snprintf(id, sizeof(id), "%" PRId64, job->id);
            if (str_is(json_str(named), job->sluid) || str_is(json_str(named), id))
                job->cancel_us = loop_now_us(scene->world->loop);
        }
}

void bridge_note_complete(struct bridge_scene *scene, const char *path)
{
    struct str rest = str_of(path), id;

    if (!str_starts(rest, STR("/agent/v1/job/")))
        return;
    (void)str_cut(str_sub(rest, strlen("/agent/v1/job/"), rest.len), '/', &id, &rest);
    map_each (item, &scene->jobs) {
        struct job_note *job = item->value;
        char text[32];

        (void)snprintf(text, sizeof(text), "%" PRId64, job->id);
        if (str_is(id, text))
            job->cancel_us = loop_now_us(scene->world->loop);
    }
}

/* People gave it to another group. If it is bound, it is the other group's when it bears the id of
 * a job of that group. */
static void note_group(struct bridge_scene *scene, struct pod_note *note, const struct json *pod)
{
    struct str id = json_str(json_at(pod, "metadata", "labels", BRIDGE_JOB_LABEL));

    bridge_write_group(scene, pod, note->group);
    map_each (item, &scene->jobs) {
        const struct job_note *job = item->value;
        char text[32];

        (void)snprintf(text, sizeof(text), "%" PRId64, job->id);
        if (job->is_live && note->unit[0] && strcmp(note->unit, note->key) != 0 &&
            str_is(id, text) && strcmp(job->unit, note->group) == 0) {
            COPY(note->unit, note->group);
            COPY(note->job, job->sluid);
        }
    }
}

void bridge_note_change(struct bridge_scene *scene, const struct api_change *change)
{
    const struct json *object = change->next ? change->next : change->old;

    if (strcmp(change->kind->plural, "nodes") == 0) {
        note_node(scene, change);
    } else if (strcmp(change->kind->plural, "pods") == 0) {
        struct pod_note *pod = bridge_note_of_pod(scene, object);

        if (change->old && !json_equal(json_at(change->old, "metadata", "labels"),
                                       json_at(object, "metadata", "labels")))
            note_group(scene, pod, object);
        if (pod->group[0])
            bridge_note_size(scene, pod->group);
    } else if (strcmp(change->kind->plural, "leases") != 0 &&
               strcmp(change->kind->plural, "events") != 0) {
        bridge_note_all_sizes(scene);
    }
}

/* ---- jobs ---- */

/* The unit that it was asked for, as its comment says when slurmctld takes it, or its extra, "KEY
 * CLUSTER RELEASE HMAC", where a plugin of the site has rewritten the comment already. No unit: the
 * job is not ours, because people made it, whatever they wrote into it. */
static void read_unit(const struct bridge_scene *scene, const struct slurm_store_job *job,
                      struct job_note *note)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *root;
    struct str key, cluster, uid;
    size_t end;

    (void)json_parse(str_of(job->admin_comment), 1 << 16, &doc, NULL);
    root = json_root(doc);
    key = json_str(json_get(root, "unit"));
    cluster = json_str(json_get(root, "cluster"));
    if (scene->people_act || (cluster.len == 0 && !str_cut(str_of(job->extra), ' ', &key, &uid)))
        return;
    end = key.len;
    while (end > 0 && key.at[end - 1] != '.')
        end--;
    if (end == 0)
        return;
    key = str_sub(key, 0, end - 1);
    if (str_cut(key, '@', &key, &uid))
        (void)snprintf(note->uid, sizeof(note->uid), STR_FMT, STR_ARG(uid));
    (void)snprintf(note->unit, sizeof(note->unit), STR_FMT, STR_ARG(key));
}

const struct job_note *bridge_note_of_sluid(const struct bridge_scene *scene, const char *sluid)
{
    return map_get(&scene->jobs, str_of(sluid));
}

struct job_note *bridge_note_of_job(struct bridge_scene *scene, const struct slurm_store_job *job)
{
    struct job_note *note = map_get(&scene->jobs, str_of(job->sluid));

    if (note)
        return note;
    note = need(&scene->jobs, str_of(job->sluid), sizeof(*note));
    COPY(note->sluid, job->sluid);
    note->id = job->id;
    note->taken_us = loop_now_us(scene->world->loop);
    read_unit(scene, job, note);
    return note;
}

/* Jobs of one object: the jobs of one that had its name before are others'. */
static unsigned count_same(const struct bridge_scene *scene, const struct unit_note *unit)
{
    unsigned most = 0;

    map_each (item, &scene->jobs) {
        const struct job_note *job = item->value;
        unsigned same = 0;

        if (!job->is_live || strcmp(job->unit, unit->key) != 0)
            continue;
        map_each (other, &scene->jobs) {
            const struct job_note *second = other->value;

            same += second->is_live && strcmp(second->unit, job->unit) == 0 &&
                    strcmp(second->uid, job->uid) == 0;
        }
        most = same > most ? same : most;
    }
    return most;
}

static void count_live(struct bridge_scene *scene, struct job_note *note, bool is_live)
{
    struct unit_note *unit;
    int64_t now_us = loop_now_us(scene->world->loop);
    unsigned same;

    if (note->is_live == is_live)
        return;
    note->is_live = is_live;
    if (!note->unit[0])
        return;
    unit = bridge_note_of_unit(scene, note->unit);
    unit->live += is_live ? 1 : UINT32_MAX;
    same = unit->live > 1 ? count_same(scene, unit) : unit->live;
    if (same > 1 && !unit->doubled_us) {
        unit->doubled_us = now_us;
        scene->doubled++;
        scene->doubles++;
        trace_line(&scene->world->trace, "two jobs of %s", unit->key);
    } else if (same <= 1 && unit->doubled_us) {
        if (now_us - unit->doubled_us > scene->longest_double_us)
            scene->longest_double_us = now_us - unit->doubled_us;
        unit->doubled_us = 0;
        scene->doubled--;
    }
}

static void give_reason(struct bridge_scene *scene, struct job_note *note)
{
    note->is_a_reason = true;
    note->reason_us = loop_now_us(scene->world->loop);
}

/* A pod that it was under is not on its nodes any more. */
static bool has_left_pods(const struct bridge_scene *scene, const struct job_note *note)
{
    map_each (item, &scene->pods) {
        const struct pod_note *pod = item->value;

        if (strcmp(pod->job, note->sluid) == 0 && !bridge_hosts_have(note->nodes, pod->node))
            return true;
    }
    return false;
}

static void note_running(struct bridge_scene *scene, struct job_note *note,
                         const struct slurm_store_job *job, bool runs)
{
    if (!runs) {
        if (note->ran_until_us == INT64_MAX)
            note->ran_until_us = loop_now_us(scene->world->loop);
        return;
    }
    if (note->nodes[0] && strcmp(note->nodes, job->nodes) != 0) {
        COPY(note->nodes_before, note->nodes);
        note->before_until_us =
            note->ran_until_us == INT64_MAX ? loop_now_us(scene->world->loop) : note->ran_until_us;
    }
    note->ran_until_us = INT64_MAX;
    COPY(note->nodes, job->nodes);
    if (note->unit[0] && has_left_pods(scene, note))
        give_reason(scene, note);
}

void bridge_note_job(struct bridge_scene *scene, const struct slurm_store_change *change)
{
    const struct slurm_store_job *job = change->job;
    struct job_note *note = bridge_note_of_job(scene, job);
    bool is_lost = change->event == SLURM_JOB_LOST || change->event == SLURM_JOB_FORGOTTEN;
    bool by_us = strcmp(change->user, "slurm") == 0 && !scene->people_act;

    if (change->event == SLURM_JOB_LOST)
        note->lost_us = loop_now_us(scene->world->loop);
    count_live(scene, note, !is_lost && !job->has_ended);
    note_running(scene, note, job, !is_lost && strcmp(job->state, "RUNNING") == 0);
    if (change->event == SLURM_JOB_BACK || strcmp(job->state, "SUSPENDED") == 0 ||
        (job->has_ended && change->event == SLURM_JOB_CHANGED && !by_us))
        give_reason(scene, note);
}

/* ---- nodes of Slurm ---- */

struct slurm_node_note *bridge_note_of_slurm_node(struct bridge_scene *scene, const char *name)
{
    return map_get(&scene->slurm_nodes, str_of(name));
}

void bridge_note_slurm_node(struct bridge_scene *scene, const struct slurm_store_change *change)
{
    const struct slurm_store_node *node = change->node;
    struct slurm_node_note *note;

    if (change->event == SLURM_NODE_REMOVED) {
        (void)map_remove(&scene->slurm_nodes, str_of(node->name));
        return;
    }
    note = need(&scene->slurm_nodes, str_of(node->name), sizeof(*note));
    COPY(note->name, node->name);
    if (strcmp(note->reason, node->reason) != 0)
        note->out_us = loop_now_us(scene->world->loop);
    COPY(note->reason, node->reason);
    COPY(note->extra, node->extra);
    COPY(note->features, node->features);
    note->external = node->external;
    note->is_out = node->is_drained || node->is_down;
}

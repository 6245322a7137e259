/* reconfigure.c - whether slurmctld runs with the files that it should, and what is missing.
 *
 * Reads   the ConfigMaps, the annotations of the pods, what Slurm last said.
 * Returns actions; does no I/O.
 * Holds   no pod restarts for a changed file; what is done stands in an annotation, so an operator
 *         that starts anew calls at most once more. */
#include "operator/reconfigure.h"

#include "codec/json_format.h"
#include "codec/timestamp.h"
#include "kube/kinds.h"
#include "operator/build.h"
#include "operator/hashes.h"
#include "operator/names.h"
#include "operator/slurm_actions.h"

#include <stdio.h>

enum { MAX_HASHES = 64 << 10, PART = 16, CRC_POLYNOMIAL = 0x1021 };

/* Of a change of files that came while the one before was not done yet. */
static const char not_known[] = "unknown";

/* After the change of the files. */
static const int64_t calls_us[] = { 1000000, 3000000, 10000000, 30000000, 60000000 };
enum { CALL_COUNT = sizeof(calls_us) / sizeof(calls_us[0]) };

struct files { /* as the API server has them */
    const struct kube_object *config;
    struct str conf;              /* slurm.conf */
    char version[CONFIG_VERSION]; /* "<hash of slurm.conf>-<hash of the others>" */
};

bool is_slurmctld_pod(const struct sync *sync, const struct kube_object *pod)
{
    bool has_name = false, has_instance = false;
    struct str name = kube_pairs_get(&pod->labels, LABEL_NAME, &has_name);
    struct str instance = kube_pairs_get(&pod->labels, LABEL_INSTANCE, &has_instance);

    return has_name && has_instance && strcmp(pod->ns, sync->object->ns) == 0 &&
           str_is(name, component_slurmctld.app) && str_is(instance, sync->object->name);
}

/* ---- the version of the files ---- */

static int add_hash(struct buf *hashes, const struct json *data, struct err *err)
{
    char hash[DIGEST_HEX];
    int result = hash_map(data, false, hash, err);

    buf_add_text(hashes, hash);
    return result;
}

/* Our own files without slurm.conf. */
static int add_own(const struct files *files, struct buf *hashes, struct err *err)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = NULL;
    struct json_mut *data = json_copy(build, json_get(operator_tree(files->config), "data"));

    json_remove(data, STR("slurm.conf"));
    doc = json_freeze(data);
    return add_hash(hashes, json_root(doc), err);
}

static int add_users(const struct sync *sync, struct buf *hashes, struct err *err)
{
    int result = 0;

    for (size_t i = 0; i < config_ref_list_count; i++) {
        struct json_iter refs = json_iter(json_get(sync->spec, config_ref_lists[i]));
        const struct json *ref;

        while (result == 0 && json_next_item(&refs, &ref)) {
            const struct kube_object *map = kube_cache_get(
                sync->world->configmaps, sync->object->ns, json_str(json_get(ref, "name")).at);

            buf_add(hashes, "/", 1);
            if (map && (result = add_hash(hashes, json_get(operator_tree(map), "data"), err)) == 0)
                result = add_hash(hashes, json_get(operator_tree(map), "binaryData"), err);
        }
    }
    return result;
}

static int read_files(const struct sync *sync, struct files *ret_files, struct err *err)
{
    char conf[DIGEST_HEX], others[DIGEST_HEX];
    auto_buf struct buf hashes;
    int result;

    buf_init(&hashes, MAX_HASHES);
    ret_files->conf = json_str(json_at(operator_tree(ret_files->config), "data", "slurm.conf"));
    if ((result = add_own(ret_files, &hashes, err)) < 0 ||
        (result = add_users(sync, &hashes, err)) < 0 ||
        (result = buf_check(&hashes, "references to ConfigMaps", err)) < 0)
        return result;
    digest_sha256(ret_files->conf, conf);
    digest_sha256(buf_str(&hashes), others);
    (void)snprintf(ret_files->version, sizeof(ret_files->version), "%.*s-%.*s", PART, conf, PART,
                   others);
    return 0;
}

/* ---- what slurmctld shows ---- */

/* What slurmctld reports of the slurm.conf that it has read: a CRC in a register of 32 bits. */
static uint32_t hash_conf(struct str conf)
{
    uint32_t hash = 0;

    for (size_t i = 0; i < conf.len; i++) {
        hash ^= (uint32_t)(unsigned char)conf.at[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            hash = hash & 0x8000 ? hash << 1 ^ CRC_POLYNOMIAL : hash << 1;
    }
    return hash;
}

/* "" when it is not there. */
static struct str annotation(const struct kube_object *pod, const char *key)
{
    bool found = false;
    struct str value = kube_pairs_get(&pod->annotations, key, &found);

    return found ? value : STR("");
}

static bool has_same_others(struct str done, const char *version)
{
    return done.len == CONFIG_VERSION - 1 && strcmp(done.at + PART, version + PART) == 0;
}

/* Without a hash from slurmctld: whether the pod was made for these files. */
static bool was_made_for(const struct kube_object *pod, const struct files *files)
{
    char hash[DIGEST_HEX];

    return hash_map(json_get(operator_tree(files->config), "data"), false, hash, NULL) == 0 &&
           str_is(annotation(pod, ANNOTATION_CONFIG_HASH), hash);
}

/* Only slurm.conf can be shown; a slurmctld that started since has read all files. */
static bool is_shown(const struct slurm_facts *facts, const struct kube_object *pod,
                     const struct files *files)
{
    struct str done = annotation(pod, ANNOTATION_CONFIG_RECONFIGURED);

    if (!facts->is_reachable)
        return false;
    if (!facts->has_conf_hash)
        return done.len == 0 && was_made_for(pod, files);
    return facts->conf_hash == hash_conf(files->conf) &&
           (done.len == 0 || has_same_others(done, files->version));
}

/* ---- annotations ---- */

static void annotate(struct sync *sync, const struct kube_object *pod, struct json_mut *annotations)
{
    (void)plan_merge_patch(sync->plan, sync->world->pods, &kube_pods, pod->ns, pod->name, NULL,
                           NULL,
                           json_format(sync->build, "{'metadata':{'uid':%s,'annotations':%m}}",
                                       pod->uid, annotations));
}

/* kubelet syncs the files of a pod when the pod changes. */
static void plan_version(struct sync *sync, const struct kube_object *pod, const char *version)
{
    struct str before = annotation(pod, ANNOTATION_CONFIG_VERSION);
    struct json_mut *annotations = json_new_object(sync->build);
    auto_buf struct buf now;

    buf_init(&now, 64);
    (void)timestamp_print_micro(sync->world->wall_us, &now, NULL);
    json_put_text(sync->build, annotations, ANNOTATION_CONFIG_VERSION, version);
    json_put_text(sync->build, annotations, ANNOTATION_CONFIG_SINCE, buf_text(&now));
    if (before.len > 0 && !str_eq(before, annotation(pod, ANNOTATION_CONFIG_RECONFIGURED)))
        json_put_text(sync->build, annotations, ANNOTATION_CONFIG_RECONFIGURED, not_known);
    annotate(sync, pod, annotations);
}

/* True when every pod has the version. */
static bool plan_versions(struct sync *sync, const char *version)
{
    struct kube_cache_walk walk = kube_cache_walk(sync->world->pods);
    const struct kube_object *pod;
    bool have_all = true;

    while ((pod = kube_cache_next(&walk))) {
        if (pod->deleted_us != 0 || !is_slurmctld_pod(sync, pod) ||
            str_is(annotation(pod, ANNOTATION_CONFIG_VERSION), version))
            continue;
        plan_version(sync, pod, version);
        have_all = false;
    }
    return have_all;
}

static void plan_done(struct sync *sync, const struct kube_object *pod, const char *version)
{
    annotate(sync, pod,
             json_format(sync->build, "{'" ANNOTATION_CONFIG_RECONFIGURED "':%s}", version));
}

/* ---- the calls ---- */

/* At each of the times one call, the first that slurmctld takes at that time or later. */
static void plan_calls(struct sync *sync, const struct slurm_facts *facts,
                       const struct kube_object *pod, const char *version)
{
    int64_t since_us = 0, after_us, last_us = -1;
    unsigned next = 0;

    (void)timestamp_parse(annotation(pod, ANNOTATION_CONFIG_SINCE), &since_us, NULL);
    after_us = sync->world->wall_us - since_us;
    if (strcmp(facts->reconfigured, version) == 0)
        last_us = facts->reconfigured_us - since_us;
    while (next < CALL_COUNT && calls_us[next] <= last_us)
        next++;
    if (next == CALL_COUNT)
        plan_done(sync, pod, version);
    else if (after_us < calls_us[next])
        plan_look_again(sync->plan, calls_us[next] - after_us);
    else if (!facts->is_reachable)
        plan_wait(sync->plan, "slurmctld has not read the changed files: Slurm is not reachable");
    else
        plan_slurm_reconfigure(sync->plan, sync->object, version);
}

int plan_reconfigure(struct sync *sync, const struct kube_object *active, struct err *err)
{
    const struct slurm_facts *facts = operator_world_slurm(sync->world, sync->object);
    struct files files = { .config = sync_child(sync, sync->world->configmaps, "-config") };
    int result;

    if (!facts || !files.config || spec_flag(sync->object, "inplaceReconfigure"))
        return 0;
    if ((result = read_files(sync, &files, err)) < 0)
        return result;
    if (!plan_versions(sync, files.version) || !active ||
        str_is(annotation(active, ANNOTATION_CONFIG_RECONFIGURED), files.version))
        return 0;
    if (is_shown(facts, active, &files))
        plan_done(sync, active, files.version);
    else
        plan_calls(sync, facts, active, files.version);
    return 0;
}

/* sim_bridge_foreign.c - objects of others that look like ours: jobs, nodes, pods and claims whose
 * texts are those of the bridge but for one change.
 *
 * None of them is ours (docs/internals/bridge.md, Submitting at most once). The promises fail when
 * the bridge touches one. Another job of this kind comes whenever people submit one; the nodes are
 * there from the beginning. */
#include "sim_bridge.h"

#include "base/buf.h"

#define COMMENT_OF(cluster, release)                                                               \
    "{\"pods\":[\"work/p1\"],\"v\":1,\"cluster\":\"" cluster "\",\"release\":\"" release           \
    "\",\"unit\":\"$K\"}"
#define POD_COMMENT(cluster) COMMENT_OF(cluster, "$R")

/* In the texts $K is the key of a unit of ours with an attempt, $C the UID of our cluster, $D that
 * UID with another last character, $R our release, $M an HMAC by another secret. $X is all that
 * stands in `extra` of a job of ours that lives. A job with a comment is an administrator's, each
 * other one any user's. */
static const struct {
    const char *comment, *extra;
    bool external;
} jobs[] = {
    { NULL, NULL, false },
    { NULL, "runs/exp.12", false },
    { NULL, "runs/exp.12", true },
    { "{\"note\":1}", NULL, true },
    { "{\"pods\":[\"work/p1\",\"work/p2\"]}", NULL, true },
    /* All of it is ours but the flag. */
    { NULL, "$K $C $R", false },
    { POD_COMMENT("$C"), "$K $C $R", false },
    /* A key, and no cluster or release. */
    { NULL, "$K", false },
    { NULL, "$K", true },
    { NULL, "$K ", true },
    { "seen by the site", "$K", true },
    { "{\"pods\":[\"work/p1\"],\"v\":1,\"unit\":\"$K\"}", "$K", true },
    { POD_COMMENT(""), "$K", true },
    { COMMENT_OF("$C", ""), "$K $C", true },
    /* Of a build before this one. */
    { "{\"pods\":[\"work/p1\"],\"v\":1,\"cluster\":\"$C\",\"unit\":\"$K\"}", "$K $C", true },
    /* Forged by any user. */
    { NULL, "$K $C", true },
    { NULL, "$K $C $R", true },
    { NULL, "$K $C $R ", true },
    { NULL, "$K $C $R $M", true },
    { "seen by the site", "$K $C $R $M", true },
    { NULL, "$X", true },
    { NULL, "$X", true },
    { NULL, "$X", false },
    /* Another cluster or release. */
    { NULL, "$K other $R $M", true },
    { NULL, "$K $D $R $M", true },
    { NULL, "$K $C $D $M", true },
    { NULL, "$C $K $R $M", true },
    { "seen by the site", "$K $D $R $M", true },
    { POD_COMMENT("other"), "$K other $R", true },
    { POD_COMMENT("$D"), "$K $D $R", true },
    { POD_COMMENT("$D"), "$X", true },
    { COMMENT_OF("$C", "slinc/other"), "$X", true },
    /* Our cluster, and no key. */
    { "{\"v\":1,\"cluster\":\"$C\",\"release\":\"$R\"}", NULL, true },
    { NULL, " $C $R $M", true },
};

enum { JOBS = sizeof(jobs) / sizeof(jobs[0]) };

/* A copy of `extra`. */
static void add_extra_of_ours(const struct bridge_scene *scene, struct buf *out)
{
    struct slurm_store_job job;

    map_each (item, &scene->jobs) {
        const struct job_note *note = item->value;

        if (note->is_live && note->unit[0] &&
            slurm_store_find_job(scene->world->slurm, note->id, &job)) {
            buf_add_text(out, job.extra);
            return;
        }
    }
}

static void fill_in(const struct bridge_scene *scene, const char *text, const char *key,
                    struct buf *out)
{
    size_t length = strlen(scene->cluster);
    char last = length > 0 && scene->cluster[length - 1] == '0' ? '1' : '0';

    for (; *text; text++) {
        if (*text != '$') {
            buf_add_char(out, *text);
            continue;
        }
        text++;
        if (*text == 'K')
            buf_add_text(out, key);
        else if (*text == 'C')
            buf_add_text(out, scene->cluster);
        else if (*text == 'R')
            buf_add_text(out, SCENE_LEASE_NS "/" SCENE_SCHEDULER);
        else if (*text == 'M')
            buf_add_text(out, "0123456789012345678901234567890123456789abc");
        else if (*text == 'X')
            add_extra_of_ours(scene, out);
        else
            buf_printf(out, "%.*s%c", (int)length - 1, scene->cluster, last);
    }
}

/* A pod or a group that there may be. */
static void choose_key(struct bridge_scene *scene, char key[SCENE_KEY])
{
    static const char *const kinds[] = { "podgroup", "coscheduling" };
    struct rand *rand = &scene->world->rand;
    unsigned attempt = 1 + (unsigned)rand_below(rand, 3);
    const struct json *pod;
    char name[16];

    (void)snprintf(name, sizeof(name), "p%u", 1 + (unsigned)rand_below(rand, SCENE_PODS));
    pod = api_store_find(scene->world->store, "pods", SCENE_NS, name);
    if (pod && rand_chance(rand, 700))
        (void)snprintf(key, SCENE_KEY, SCENE_NS "/%s.%u",
                       json_str(json_at(pod, "metadata", "uid")).at, attempt);
    else
        (void)snprintf(key, SCENE_KEY, SCENE_NS "/%s/g%u.%u", kinds[rand_below(rand, 2)],
                       1 + (unsigned)rand_below(rand, SCENE_GROUPS), attempt);
}

void bridge_foreign_submit(struct bridge_scene *scene)
{
    struct rand *rand = &scene->world->rand;
    size_t chosen = rand_below(rand, JOBS);
    auto_buf struct buf comment, extra;
    char key[SCENE_KEY];

    buf_init(&comment, SCENE_TEXT);
    buf_init(&extra, SCENE_TEXT);
    choose_key(scene, key);
    fill_in(scene, jobs[chosen].comment ? jobs[chosen].comment : "", key, &comment);
    fill_in(scene, jobs[chosen].extra ? jobs[chosen].extra : "", key, &extra);
    (void)slurm_people_submit(
        scene->world->slurm,
        &(struct slurm_people_ask){ .user = jobs[chosen].comment ? "slurm" : "alice",
                                    .partition = SCENE_PARTITION,
                                    .cpus = 1,
                                    .external = jobs[chosen].external,
                                    .admin_comment = buf_text(&comment),
                                    .extra = buf_text(&extra) },
        NULL);
}

/* ---- nodes ---- */

static const struct {
    const char *name, *extra;
    bool external;
} nodes[] = {
    { "slurmd-1", "", false },
    { "near-1", "{\"v\":1,\"cluster\":\"other\"}", true },
    { "near-2", "{\"v\":1,\"cluster\":\"$D\"}", true },
    { "near-3", "{\"v\":1,\"cluster\":\"$C\"", true }, /* not JSON */
    { "near-4", "{\"v\":1,\"node\":\"node-1\"}", true },
    { "near-5", "{\"v\":1,\"cluster\":\"$C\"}", false }, /* a slurmd runs there */
    { "near-6", "$C", true },
    { "near-7", "{\"v\":1,\"cluster\":\"$C\",\"release\":\"slinc/other\"}", true },
};

bool bridge_slurm_node_is_foreign(const char *name)
{
    return strncmp(name, "node-", strlen("node-")) != 0;
}

static void add_node(struct bridge_scene *scene, const char *name, const char *mark, bool external,
                     const char *features)
{
    auto_buf struct buf extra;

    buf_init(&extra, SCENE_TEXT);
    fill_in(scene, mark, "", &extra);
    (void)slurm_people_add_nodes(scene->world->slurm,
                                 &(struct slurm_people_node){ .names = name,
                                                              .features = features,
                                                              .extra = buf_text(&extra),
                                                              .external = external,
                                                              .cores = SCENE_CPUS,
                                                              .memory = 4096 },
                                 NULL);
}

/* A node that both clusters have under one name: Slurm's is the other's, and in our partition. */
static void make_twin(struct bridge_scene *scene)
{
    scene->has_twin = true;
    add_node(scene, SCENE_TWIN, "{\"v\":1,\"cluster\":\"$D\"}", true, SCENE_PARTITION);
    bridge_people_make_node_named(scene, SCENE_TWIN, 9, SCENE_CPUS);
}

void bridge_foreign_prepare(struct bridge_scene *scene)
{
    struct rand *rand = &scene->world->rand;

    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
        if (i == 0 || rand_chance(rand, 400))
            add_node(scene, nodes[i].name, nodes[i].extra, nodes[i].external, "other");
    if (rand_chance(rand, 400))
        make_twin(scene);
}

/* ---- claims ---- */

#define SPACE "\"accessModes\":[\"ReadWriteOnce\"],"

static void make_claim(struct bridge_scene *scene, const char *path, const char *name,
                       const char *class)
{
    (void)bridge_people_call(
        scene, "POST", path,
        "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"storageClassName\":\"%s\"," SPACE
        "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}},\"status\":{\"phase\":\"Pending\"}}",
        name, class);
}

/* A volume for a claim of this name that is another one: it fits better than the free one. */
static void make_reserved_volume(struct bridge_scene *scene, const char *name, const char *ns,
                                 const char *claim)
{
    char path[100];

    (void)bridge_people_call(scene, "POST", "/api/v1/persistentvolumes",
                             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"storageClassName\":"
                             "\"local\"," SPACE "\"capacity\":{\"storage\":\"1Gi\"},\"claimRef\":"
                             "{\"kind\":\"PersistentVolumeClaim\",\"namespace\":\"%s\",\"name\":"
                             "\"%s\",\"uid\":\"0\"}}}",
                             name, ns, claim);
    (void)snprintf(path, sizeof(path), "/api/v1/persistentvolumes/%s/status", name);
    (void)bridge_people_call(scene, "PATCH", path, "{\"status\":{\"phase\":\"Available\"}}");
}

void bridge_foreign_claims(struct bridge_scene *scene)
{
    make_claim(scene, "/api/v1/namespaces/" SCENE_OTHER_NS "/persistentvolumeclaims", "made",
               "made");
    make_claim(scene, "/api/v1/namespaces/" SCENE_NS "/persistentvolumeclaims", "made-1", "made");
    make_claim(scene, "/api/v1/namespaces/" SCENE_NS "/persistentvolumeclaims", "with-made-v",
               "made");
    make_reserved_volume(scene, "free-1", SCENE_OTHER_NS, "taken");
    make_reserved_volume(scene, "free-2", SCENE_NS, "taken");
}

/* The claims and the volume of sim_bridge_leave.c, and no other. */
void bridge_promises_on_claim(struct bridge_scene *scene, const struct api_change *change)
{
    const struct json *object = change->next ? change->next : change->old;
    struct str name = json_str(json_at(object, "metadata", "name"));
    bool is_claim = strcmp(change->kind->plural, "persistentvolumeclaims") == 0;
    bool is_volume = strcmp(change->kind->plural, "persistentvolumes") == 0;
    bool is_ours = is_claim
                       ? str_is(json_str(json_at(object, "metadata", "namespace")), SCENE_NS) &&
                             (str_is(name, "made") || str_is(name, "taken"))
                       : str_is(name, "free");

    if ((is_claim || is_volume) && !is_ours)
        world_break(scene->world, "%s wrote %s %s of others", change->user, change->kind->plural,
                    name.at);
}

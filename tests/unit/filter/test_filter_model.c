/* test_filter_model.c - a view that lived through any changes says what a new one would say.
 *
 * Random nodes, pods, claims, volumes and namespaces come, change and go. Some pods that wait are
 * asked about in between; each answer must be that of a view which sees the caches for the first
 * time, in another order. While pods have reservations it must be that of a view in which they are
 * bound.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "filter_rig.h"

#include "base/rand.h"

enum {
    SEEDS = 24,
    STEPS = 220,
    NODES = 7,
    PODS = 14,
    UIDS = 3,
    CLAIMS = 4,
    TEXT = 4096,
    RESERVED = 4
};

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define WEB      "labelSelector: {matchLabels: {app: web}}"

static const char *const waiting[] = {
    "{pod: p}",
    "{pod: p, needs: {cpu: 2}}",
    "{pod: p, labels: {app: web}}",
    "{pod: p, ns: e, labels: {app: web}}",
    "{pod: p, needs: {x.io/gpu: 1}}",
    "{pod: p, spec: {nodeSelector: {zone: a}}}",
    "{pod: p, spec: {tolerations: [{key: t, operator: Exists}]}}",
    "{pod: p, spec: {containers: [{ports: [{hostPort: 80}]}]}}",
    "{pod: p, spec: {volumes: [{persistentVolumeClaim: {claimName: c0}}]}}",
    "{pod: p, spec: {volumes: [{persistentVolumeClaim: {claimName: c1}}, {persistentVolumeClaim: "
    "{claimName: c2}}]}}",
    "{pod: p, labels: {app: web}, spec: {affinity: {podAffinity: {" REQUIRED
    ": [{topologyKey: zone, " WEB "}]}}}}",
    "{pod: p, spec: {affinity: {podAffinity: {" REQUIRED
    ": [{topologyKey: host, namespaceSelector: {matchLabels: {team: x}}, " WEB "}]}}}}",
    "{pod: p, spec: {affinity: {podAntiAffinity: {" REQUIRED ": [{topologyKey: zone, " WEB "}]}}}}",
    "{pod: p, labels: {app: web}, spec: {affinity: {podAntiAffinity: {" REQUIRED
    ": [{topologyKey: host, namespaceSelector: {}, " WEB "}]}}}}",
    "{pod: p, labels: {app: web}, spec: {topologySpreadConstraints: [{whenUnsatisfiable: "
    "DoNotSchedule, maxSkew: 1, topologyKey: zone, " WEB "}]}}",
    "{pod: p, labels: {app: web, v: '1'}, spec: {topologySpreadConstraints: [{whenUnsatisfiable: "
    "DoNotSchedule, maxSkew: 2, topologyKey: host, matchLabelKeys: [v], nodeTaintsPolicy: Honor, "
    "minDomains: 2, " WEB "}]}}",
};

enum { WAITING = sizeof(waiting) / sizeof(waiting[0]) };

static const char *one_of(struct rand *rand, const char *const *texts, unsigned count)
{
    return texts[rand_below(rand, count)];
}
#define ONE_OF(rand, ...)                                                                          \
    one_of(rand, (const char *const[]){ __VA_ARGS__ },                                             \
           sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

static void put(struct rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct rig *rig, const char *format, ...)
{
    auto_buf struct buf text;
    va_list args;

    buf_init(&text, TEXT);
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    rig_put(rig, buf_text(&text));
}

static void change_node(struct rig *rig, struct rand *rand)
{
    char name[16];
    unsigned node = (unsigned)rand_below(rand, NODES);

    (void)snprintf(name, sizeof(name), "n%u", node);
    if (rand_chance(rand, 200)) {
        rig_drop(rig, RIG_NODES, "", name);
        return;
    }
    put(rig,
        "[{node: %s, labels: {%s %s host: h%u, kubernetes.io/hostname: h%u}, taints: [%s], lent: "
        "%s, has: {cpu: %s, pods: "
        "%s %s}}]",
        name, ONE_OF(rand, "", "zone: a,", "zone: b,"), ONE_OF(rand, "", "", "", "name: s,"),
        rand_chance(rand, 900) ? node : 0, rand_chance(rand, 900) ? node : 1,
        ONE_OF(rand, "", "", "{key: t, effect: NoSchedule}"),
        ONE_OF(rand, "true", "true", "true", "false"), ONE_OF(rand, "1", "4", "8"),
        ONE_OF(rand, "2", "20"), ONE_OF(rand, "", ", x.io/gpu: 2", ", b: 1, x.io/gpu: 1"));
}

/* Labels, requests and status of a pod may change; what else it says is drawn once for a uid. */
static void change_pod(struct rig *rig, struct rand *rand)
{
    bool is_others = rand_chance(rand, 300);
    const char *ns = ONE_OF(rand, "d", "d", "e");
    uint64_t number = rand_below(rand, PODS), uid = rand_below(rand, UIDS);
    struct rand own;
    char name[16];

    (void)snprintf(name, sizeof(name), "%c%u", is_others ? 'o' : 'q', (unsigned)number);
    if (rand_chance(rand, 350)) {
        rig_drop(rig, is_others ? RIG_OTHERS : RIG_PODS, ns, name);
        return;
    }
    rand_init(&own, number * UIDS + uid);
    put(rig,
        "[{pod: %s, uid: u%u, ns: %s, %s at: n%u, labels: {%s}, ending: %s, status: {phase: %s}, "
        "spec: {%s containers: [{ports: [%s], resources: {requests: {cpu: %s %s}}}], volumes: "
        "[%s]}}]",
        name, (unsigned)uid, ns, is_others ? "by: x," : "", (unsigned)rand_below(&own, NODES),
        ONE_OF(rand, "", "app: db", "app: web", "app: web, v: '1'"),
        ONE_OF(rand, "false", "false", "true"), ONE_OF(rand, "Running", "Running", "Failed"),
        ONE_OF(&own, "", "",
               "affinity: {podAntiAffinity: {" REQUIRED ": [{topologyKey: host, " WEB "}]}},",
               "affinity: {podAntiAffinity: {" REQUIRED
               ": [{topologyKey: zone, namespaceSelector: {matchLabels: {team: x}}, " WEB "}]}},"),
        ONE_OF(&own, "", "", "{hostPort: 80}"), ONE_OF(rand, "0", "1", "3"),
        ONE_OF(rand, "", "", ", x.io/gpu: 1"),
        ONE_OF(&own, "", "", "{persistentVolumeClaim: {claimName: c0}}",
               "{persistentVolumeClaim: {claimName: c3}}"));
}

static void put_free_volume(struct rig *rig, struct rand *rand)
{
    put(rig,
        "[{volume: v%u, labels: {%s}, is: {spec: {storageClassName: local, capacity: {storage: "
        "%s} %s, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [%s]}]}}}, "
        "status: {phase: %s}}}]",
        (unsigned)rand_below(rand, 3 * CLAIMS), ONE_OF(rand, "", "a: b"),
        ONE_OF(rand, "1", "2", "3"),
        ONE_OF(rand, "", "", "", ", claimRef: {namespace: d, name: c1}",
               ", claimRef: {namespace: d, name: c2, uid: l2}"),
        ONE_OF(rand, "{key: kubernetes.io/hostname, operator: In, values: [h1]}",
               "{key: kubernetes.io/hostname, operator: In, values: [h2, h3]}",
               "{key: zone, operator: In, values: [a]}"),
        ONE_OF(rand, "Available", "Available", "Bound"));
}

static void change_storage(struct rig *rig, struct rand *rand)
{
    unsigned claim = (unsigned)rand_below(rand, CLAIMS);
    char name[16];

    switch (rand_below(rand, 10)) {
    case 0:
        (void)snprintf(name, sizeof(name), "c%u", claim);
        rig_drop(rig, RIG_CLAIMS, "d", name);
        return;
    case 1:
        put(rig, "[{claim: c%u, annotations: {%s}, is: {spec: {storageClassName: late}}}]", claim,
            ONE_OF(rand, "", "volume.kubernetes.io/selected-node: n1"));
        return;
    case 2:
        put(rig,
            "[{claim: c%u, annotations: {pv.kubernetes.io/bind-completed: '1'}, is: {spec: "
            "{volumeName: v%u}}}]",
            claim, (unsigned)rand_below(rand, CLAIMS));
        return;
    case 3:
        put(rig, "[{volume: v%u, is: {spec: {csi: {driver: csi.io, volumeHandle: h%u} %s}}}]",
            claim, (unsigned)rand_below(rand, CLAIMS),
            ONE_OF(
                rand, "",
                ", nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, "
                "operator: Exists}]}]}}"));
        return;
    case 4:
        put(rig, "[{class: late, is: {provisioner: csi.io, volumeBindingMode: %s}}]",
            ONE_OF(rand, "WaitForFirstConsumer", "WaitForFirstConsumer", "Immediate"));
        return;
    case 5:
        put(rig,
            "[{class: local, is: {provisioner: kubernetes.io/no-provisioner, volumeBindingMode: "
            "WaitForFirstConsumer}}, {claim: c%u, uid: l%u, is: {spec: {storageClassName: local, "
            "resources: {requests: {storage: %s}}}}}]",
            claim, claim, ONE_OF(rand, "1", "2"));
        return;
    default:
        put_free_volume(rig, rand);
        return;
    }
}

static void change(struct rig *rig, struct rand *rand)
{
    uint64_t what = rand_below(rand, 20);

    if (what < 6)
        change_node(rig, rand);
    else if (what < 16)
        change_pod(rig, rand);
    else if (what < 19)
        change_storage(rig, rand);
    else
        put(rig, "[{namespace: %s, labels: {%s}}]", ONE_OF(rand, "d", "e"),
            ONE_OF(rand, "", "team: x"));
}

/* ---- the view that knows nothing yet ---- */

static struct rig *fresh(const struct rig *rig, struct rand *rand)
{
    struct rig *other = rig_new();
    unsigned first = (unsigned)rand_below(rand, RIG_CACHES);

    for (unsigned i = 0; i < RIG_CACHES; i++) {
        unsigned cache = (first + i) % RIG_CACHES;
        struct kube_cache_walk walk = kube_cache_walk(rig->caches[cache]);
        const struct kube_object *object;

        while ((object = kube_cache_next(&walk)) != NULL)
            kube_cache_seen(other->caches[cache], object);
    }
    return other;
}

static void compare(struct rig *rig, struct rig *other, const char *text, uint64_t seed,
                    unsigned step)
{
    const struct kube_pod *pod = rig_waiting(rig, text);
    const struct filter_set *set = filter_nodes(rig->filter, pod);
    const struct filter_set *want = filter_nodes(other->filter, pod);
    struct kube_cache_walk walk = kube_cache_walk(rig->caches[RIG_NODES]);
    const struct kube_object *node;

    if (strcmp(set->excluded, want->excluded) != 0 || strcmp(set->why, want->why) != 0 ||
        set->fit != want->fit || set->total != want->total)
        fail_msg("seed %u step %u: %s\n  has  %s: %s\n  want %s: %s", (unsigned)seed, step, text,
                 set->excluded, set->why, want->excluded, want->why);
    while ((node = kube_cache_next(&walk)) != NULL) {
        const char *says = filter_misfit(rig->filter, NULL, pod, kube_node_of(node), &rig->arena);
        const char *should =
            filter_misfit(other->filter, NULL, pod, kube_node_of(node), &rig->arena);

        if (strcmp(says ? says : "", should ? should : "") != 0)
            fail_msg("seed %u step %u: %s: %s, not %s", (unsigned)seed, step, text,
                     says ? says : "fits", should ? should : "fits");
    }
    kube_object_unref(&pod->object);
}

/* ---- pods that are about to be bound ---- */

/* The same pod on a node, under a name of its own. */
static void bind_waiting(struct rig *rig, const char *text, unsigned number, const char *node)
{
    assert_memory_equal(text, "{pod: p", 7);
    put(rig, "[{pod: s%u, at: %s%s]", number, node, text + 7);
}

/* Neither ports nor claims: those do not count before the bind. */
static bool minds_only_pods(const char *text)
{
    return !strstr(text, "hostPort") && !strstr(text, "claimName") && !strstr(text, "needs");
}

static void compare_reserved(struct rig *rig, struct filter_reserved *reserved, struct rig *other,
                             const char *text, uint64_t seed, unsigned step)
{
    const struct kube_pod *pod = rig_waiting(rig, text);
    struct kube_cache_walk walk = kube_cache_walk(rig->caches[RIG_NODES]);
    const struct kube_object *object;

    while ((object = kube_cache_next(&walk)) != NULL) {
        const struct kube_node *node = kube_node_of(object);
        const char *says = filter_misfit(rig->filter, reserved, pod, node, &rig->arena);
        const char *should = filter_misfit(other->filter, NULL, pod, node, &rig->arena);

        if (strcmp(says ? says : "", should ? should : "") != 0)
            fail_msg("seed %u step %u: %s: %s, not %s", (unsigned)seed, step, text,
                     says ? says : "fits", should ? should : "fits");
        assert_int_equal(filter_objection(rig->filter, reserved, pod, node),
                         filter_objection(other->filter, NULL, pod, node));
    }
    kube_object_unref(&pod->object);
}

static void compare_with_reservations(struct rig *rig, struct rand *rand, uint64_t seed,
                                      unsigned step)
{
    struct filter_reserved *reserved = filter_reserved_new(rig->filter);
    const struct kube_pod *pods[RESERVED];
    struct rig *other = fresh(rig, rand);
    unsigned count = 0;

    for (unsigned i = 0; i < RESERVED; i++) {
        const char *text = waiting[rand_below(rand, WAITING)];
        char name[16];
        const struct kube_object *node;

        (void)snprintf(name, sizeof(name), "n%u", (unsigned)rand_below(rand, NODES));
        node = kube_cache_get(rig->caches[RIG_NODES], "", name);
        if (!node || kube_node_of(node)->pods <= PODS || !minds_only_pods(text))
            continue; /* nor how many pods a node takes */
        pods[count] = rig_waiting(rig, text);
        filter_reserve(reserved, pods[count++], kube_node_of(node));
        bind_waiting(other, text, i, name);
        for (unsigned k = 0; k < WAITING; k++)
            compare_reserved(rig, reserved, other, waiting[k], seed, step);
    }
    filter_reserved_free(reserved);
    for (unsigned i = 0; i < count; i++)
        kube_object_unref(&pods[i]->object);
    rig_free(other);
}

/* A set that differs from an earlier one has another version. */
struct earlier {
    uint64_t version; /* 0: none yet */
    char excluded[TEXT];
};

static void check_version(struct rig *rig, const char *text, struct earlier *earlier, uint64_t seed,
                          unsigned step)
{
    const struct kube_pod *pod = rig_waiting(rig, text);
    const struct filter_set *set = filter_nodes(rig->filter, pod);

    if (earlier->version == filter_version(rig->filter, pod) &&
        strcmp(earlier->excluded, set->excluded) != 0)
        fail_msg("seed %u step %u: %s: %s became %s unnoticed", (unsigned)seed, step, text,
                 earlier->excluded, set->excluded);
    earlier->version = filter_version(rig->filter, pod);
    (void)snprintf(earlier->excluded, TEXT, "%s", set->excluded);
    kube_object_unref(&pod->object);
}

static void run(uint64_t seed)
{
    struct earlier *earlier = mem_alloc_array(WAITING, sizeof(*earlier));
    struct rig *rig = rig_new();
    struct rand rand;

    rand_init(&rand, seed);
    for (unsigned step = 0; step < STEPS; step++) {
        struct rig *other;

        change(rig, &rand);
        for (unsigned i = 0; i < WAITING; i++)
            if (rand_chance(&rand, 300))
                check_version(rig, waiting[i], &earlier[i], seed, step);
        if (rand_chance(&rand, 25))
            compare_with_reservations(rig, &rand, seed, step);
        if (!rand_chance(&rand, 400))
            continue;
        other = fresh(rig, &rand);
        for (unsigned i = 0; i < WAITING; i++)
            if (rand_chance(&rand, 600))
                compare(rig, other, waiting[i], seed, step);
        rig_free(other);
    }
    rig_free(rig);
    mem_free(earlier);
}

static void a_view_that_lived_through_changes_says_what_a_new_one_says(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_that_lived_through_changes_says_what_a_new_one_says),
    };

    return cmocka_run_group_tests_name("filter_model", tests, NULL, NULL);
}

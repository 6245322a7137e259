/* bench_filter.c - how long it takes to say which of many nodes a pod may use, beside plain code
 * that walks all nodes each time. Prints JSON, times in microseconds.
 *
 *     bench_filter NODES PODS */
#include "base/mem.h"
#include "codec/hostlist.h"
#include "codec/nodeselector.h"
#include "filter/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    NEW = 25,
    KNOWN = 2000,
    MAX_COUNT = 1 << 20,
    MAX_TEXT = 1 << 16,
    ZONES = 8,
    LABELS = 20,
    APPS = 16
};

#define MEMORY ((size_t)1 << 28)

struct bench {
    struct clock clock;
    struct kube_cache *pods, *nodes;
    struct filter *filter;
    uint64_t node_count, pod_count, version;
    struct arena arena;
};

/* What a pod says, beside what it asks for. The names of every second node do not fold well. */
static const struct {
    const char *name, *spec;
} sorts[] = {
    { "plain", "" },
    { "labels",
      ",'nodeSelector':{'kubernetes.io/os':'linux'},'tolerations':[{'key':'dedicated','operator':"
      "'Exists'}],'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
      "'nodeSelectorTerms':[{'matchExpressions':[{'key':'disk','operator':'In','values':['ssd']},{"
      "'key':'topology.kubernetes.io/zone','operator':'NotIn','values':['z9']}]}]}}}" },
    { "pods",
      ",'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
      "'topologyKey':'kubernetes.io/hostname','labelSelector':{'matchLabels':{'app':'a0'}}}]}},"
      "'topologySpreadConstraints':[{'maxSkew':1000,'whenUnsatisfiable':'DoNotSchedule',"
      "'topologyKey':'topology.kubernetes.io/"
      "zone','labelSelector':{'matchLabels':{'app':'a2'}}}]" },
};

enum { PLAIN, BY_LABELS, BY_PODS, SORTS };

/* Of the processor: others may use the machine too. */
static double now_us(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* ---- the world ---- */

static const struct kube_object *decode(const struct kube_kind *kind, const char *text)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object = NULL;
    struct err err = { .class = 0 };
    auto_buf struct buf json;

    buf_init(&json, MAX_TEXT);
    for (const char *c = text; *c; c++)
        buf_add_char(&json, *c == '\'' ? '"' : *c);
    if (json_parse(buf_str(&json), MAX_TEXT, &doc, &err) < 0 ||
        kube_object_decode(kind, json_root(doc), &object, &err) < 0) {
        (void)fprintf(stderr, "bench_filter: %s: %s\n", err.text, text);
        exit(1);
    }
    return object;
}

static void put_node(struct bench *bench, uint64_t number, bool is_fast)
{
    const struct kube_object *object;
    auto_buf struct buf text;

    buf_init(&text, MAX_TEXT);
    buf_printf(&text,
               "{'metadata':{'name':'node-%llu','uid':'u%llu','resourceVersion':'%llu','labels':{"
               "'kubernetes.io/os':'linux','disk':'%s',"
               "'kubernetes.io/hostname':'node-%llu','topology.kubernetes.io/zone':'z%llu'",
               (unsigned long long)number, (unsigned long long)number,
               (unsigned long long)++bench->version, is_fast ? "ssd" : "hdd",
               (unsigned long long)number, (unsigned long long)(number % ZONES));
    for (unsigned i = 0; i < LABELS; i++)
        buf_printf(&text, ",'feature.example.com/cpu-flag-%u':'true'", i);
    buf_printf(
        &text,
        "}},'spec':{'taints':[{'key':'ours','effect':'NoExecute'},{'key':'dedicated','effect':'"
        "PreferNoSchedule'}]},'status':{'allocatable':{'cpu':'64','memory':'256Gi',"
        "'pods':'110','ephemeral-storage':'100Gi'}}}");
    object = decode(&kube_node_kind, buf_text(&text));
    kube_cache_seen(bench->nodes, object);
    kube_object_unref(object);
}

static const struct kube_object *pod(struct bench *bench, uint64_t number, uint64_t cpu,
                                     const char *node, const char *spec)
{
    auto_buf struct buf text;

    buf_init(&text, MAX_TEXT);
    buf_printf(&text,
               "{'metadata':{'name':'pod-%llu','namespace':'d','uid':'p%llu','resourceVersion':'"
               "%llu','labels':{'app':'a%llu','job':'j%llu'}},'spec':{'nodeName':'%s',"
               "'schedulerName':'ours','containers':[{'resources':{'requests':{'cpu':'%llum'}}}]"
               "%s}}",
               (unsigned long long)number, (unsigned long long)number,
               (unsigned long long)++bench->version, (unsigned long long)(number % APPS),
               (unsigned long long)number, node, (unsigned long long)cpu, spec);
    return decode(&kube_pod_kind, buf_text(&text));
}

static void bind_pod(struct bench *bench, uint64_t number)
{
    const struct kube_object *object;
    char node[32];

    (void)snprintf(node, sizeof(node), "node-%llu",
                   (unsigned long long)((number * 7 + number / APPS) % bench->node_count));
    object = pod(bench, number, 100, node, "");
    kube_cache_seen(bench->pods, object);
    kube_object_unref(object);
}

static bool ignores_taint(const void *context, const struct kube_taint *taint)
{
    return str_is(str_of(taint->key), "ours");
}

static void build_world(struct bench *bench)
{
    clock_init_real(&bench->clock);
    arena_init(&bench->arena, MEMORY);
    bench->pods = kube_cache_new(&kube_pod_kind, &bench->clock);
    bench->nodes = kube_cache_new(&kube_node_kind, &bench->clock);
    bench->filter =
        filter_new(&(struct filter_caches){ .pods = bench->pods, .nodes = bench->nodes },
                   &(struct filter_hooks){ .ignores_taint = ignores_taint });
    for (uint64_t i = 0; i < bench->node_count; i++)
        put_node(bench, i, i % 2);
    for (uint64_t i = 0; i < bench->pod_count; i++)
        bind_pod(bench, i);
}

/* ---- what is measured ---- */

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

/* Each time with another request, which makes another class. */
static double ask_new(struct bench *bench, unsigned sort, unsigned *ret_fit)
{
    double took[NEW];

    for (unsigned i = 0; i < NEW; i++) {
        const struct kube_object *waiting = pod(bench, MAX_COUNT, i + 1, "", sorts[sort].spec);
        double begun = now_us();

        *ret_fit = filter_nodes(bench->filter, kube_pod_of(waiting))->fit;
        took[i] = now_us() - begun;
        kube_object_unref(waiting);
    }
    return median(took, NEW);
}

static double ask_known(struct bench *bench, unsigned sort)
{
    const struct kube_object *waiting = pod(bench, MAX_COUNT, 1, "", sorts[sort].spec);
    double begun = now_us();

    for (unsigned i = 0; i < KNOWN; i++)
        (void)filter_nodes(bench->filter, kube_pod_of(waiting));
    kube_object_unref(waiting);
    return (now_us() - begun) / (double)KNOWN;
}

/* After a pod was bound that the rules count, or after a node changed. */
static double ask_changed(struct bench *bench, unsigned sort, bool by_node)
{
    const struct kube_object *waiting = pod(bench, MAX_COUNT, 1, "", sorts[sort].spec);
    double took[NEW];

    for (unsigned i = 0; i < NEW; i++) {
        double begun;

        if (by_node)
            put_node(bench, i, i % 2 == 0);
        else
            bind_pod(bench, bench->pod_count += APPS);
        begun = now_us();
        (void)filter_nodes(bench->filter, kube_pod_of(waiting));
        took[i] = now_us() - begun;
    }
    kube_object_unref(waiting);
    return median(took, NEW);
}

/* ---- plain code: all nodes, every time ---- */

static bool has_label(const void *data, struct str key, struct str *ret_value)
{
    const struct kube_object *node = data;
    bool found;

    *ret_value = kube_pairs_get(&node->labels, key.at, &found);
    return found;
}

static unsigned walk_nodes(struct bench *bench, const struct nodeselector *selector,
                           struct buf *excluded)
{
    struct kube_cache_walk walk = kube_cache_walk(bench->nodes);
    auto_free struct str *names = mem_alloc_array(bench->node_count, sizeof(*names));
    const struct kube_object *node;
    size_t count = 0;

    while ((node = kube_cache_next(&walk)) != NULL) {
        struct nodeselector_node subject = { str_of(node->name), { has_label, node } };
        bool found;
        struct str os = kube_pairs_get(&node->labels, "kubernetes.io/os", &found);

        if (!found || !str_is(os, "linux") || !nodeselector_matches(selector, &subject) ||
            kube_node_of(node)->cpu_milli < 1)
            names[count++] = str_of(node->name);
    }
    (void)hostlist_fold(names, count, excluded, NULL);
    return (unsigned)(bench->node_count - count);
}

static double ask_plainly(struct bench *bench, unsigned *ret_fit)
{
    const struct kube_object *waiting = pod(bench, MAX_COUNT, 1, "", sorts[BY_LABELS].spec);
    double took[NEW];

    for (unsigned i = 0; i < NEW; i++) {
        auto_json_doc struct json_doc *doc = NULL;
        const struct nodeselector *selector = NULL;
        auto_buf struct buf excluded;
        double begun = now_us();

        buf_init(&excluded, HOSTLIST_MAX_TEXT);
        if (json_parse(str_of(kube_pod_of(waiting)->rare->node_affinity), MAX_TEXT, &doc, NULL) ==
                0 &&
            nodeselector_from_json(&bench->arena, json_root(doc), &selector, NULL) == 0)
            *ret_fit = walk_nodes(bench, selector, &excluded);
        took[i] = now_us() - begun;
    }
    kube_object_unref(waiting);
    return median(took, NEW);
}

int main(int argc, char **argv)
{
    struct bench bench = { 0 };
    unsigned fit[SORTS] = { 0 }, plain_fit = 0;

    if (argc != 3 || str_to_u64(str_of(argv[1]), 1, MAX_COUNT, &bench.node_count, NULL) < 0 ||
        str_to_u64(str_of(argv[2]), 0, MAX_COUNT, &bench.pod_count, NULL) < 0) {
        (void)fprintf(stderr, "usage: bench_filter NODES PODS\n");
        return 2;
    }
    build_world(&bench);
    printf("{");
    for (unsigned i = 0; i < SORTS; i++) {
        double first = ask_new(&bench, i, &fit[i]), known = ask_known(&bench, i);

        printf("\"%s\": {\"new\": %.1f, \"known\": %.3f, \"bound\": %.1f, \"node\": %.1f, \"fit\": "
               "%u}, ",
               sorts[i].name, first, known, ask_changed(&bench, i, false),
               ask_changed(&bench, i, true), fit[i]);
        for (uint64_t node = 0; node < bench.node_count; node++)
            put_node(&bench, node, node % 2);
    }
    printf("\"walk\": %.1f", ask_plainly(&bench, &plain_fit));
    printf(", \"walk_fit\": %u}\n", plain_fit);
    filter_free(bench.filter);
    kube_cache_free(bench.pods);
    kube_cache_free(bench.nodes);
    arena_done(&bench.arena);
    return plain_fit == fit[BY_LABELS] ? 0 : 1;
}

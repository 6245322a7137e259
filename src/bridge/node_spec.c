/* node_spec.c - the desired spec: what DaemonSets leave to pods of what a node can give,
 * the partitions that its annotation names and some of its labels as features, devices as gres.
 *
 * Holds: what is compared is computed as what is created, in whole units rounded down, so that a
 * node just made never differs from itself. */
#include "bridge/node_spec.h"

#include "bridge/config_rules.h"
#include "bridge/names.h"
#include "codec/hostlist.h"
#include "codec/slurmconf.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

enum { MILLI = 1000, MIB = 1 << 20 };

/* NodeAddr must be an address, never a name: slurmctld looks a name up at each job start, and one
 * that it cannot find holds its locks for 11 s. The same goes for an IPv6 address where Slurm does
 * not speak IPv6, which we cannot see. Nobody connects to an external node, so its own address is
 * for people to read, and without one any will do: this one would be refused at once. */
#define NO_ADDRESS "127.0.0.1"

static const char *const gpu_resources[] = { "nvidia.com/gpu", "amd.com/gpu" };

/* ---- lists of words separated by ',' ---- */

static bool next_word(struct str *rest, struct str *ret_word)
{
    while (str_next(rest, ',', ret_word)) {
        *ret_word = str_trim(*ret_word);
        if (ret_word->len > 0)
            return true;
    }
    return false;
}

static bool has_word(const char *list, struct str wanted)
{
    struct str rest = str_of(list), word;

    while (next_word(&rest, &word))
        if (str_eq(word, wanted))
            return true;
    return false;
}

static bool has_words(const char *list, const char *wanted)
{
    struct str rest = str_of(wanted), word;

    while (next_word(&rest, &word))
        if (!has_word(list, word))
            return false;
    return true;
}

static const char *with_word(struct arena *arena, const char *list, struct str word)
{
    if (has_word(list, word))
        return list;
    return arena_printf(arena, "%s%s" STR_FMT, list, *list ? "," : "", STR_ARG(word));
}

/* As people wrote them, without blanks and empty entries. */
static const char *clean_words(struct arena *arena, struct str list)
{
    const char *clean = "";
    struct str word;

    while (next_word(&list, &word))
        clean = with_word(arena, clean, word);
    return clean;
}

/* ---- labels ---- */

/* Whatever a label may be is a feature that Slurm takes; others do not reach its line. */
static const char *with_labels(const struct bridge_config *config, const struct kube_node *node,
                               struct arena *arena, const char *features)
{
    for (unsigned i = 0; i < config->node_feature_count; i++) {
        struct str key = config->node_features[i], feature;
        bool found;
        struct str value = kube_pairs_get(&node->object.labels, key.at, &found);

        feature = found ? config_feature_of(key, value) : STR("");
        if (feature.len > 0 && !memchr(feature.at, ',', feature.len) &&
            conf_check_features(feature, NULL) == 0)
            features = with_word(arena, features, feature);
    }
    return features;
}

/* ---- the spec ---- */

static const char *address_of(const struct kube_node *node)
{
    struct in_addr address;

    return inet_pton(AF_INET, node->internal_ip, &address) == 1 ? node->internal_ip : NO_ADDRESS;
}

static bool is_gpu(const char *resource)
{
    for (size_t i = 0; i < sizeof(gpu_resources) / sizeof(gpu_resources[0]); i++)
        if (strcmp(resource, gpu_resources[i]) == 0)
            return true;
    return false;
}

static int64_t at_least_one(int64_t amount)
{
    return amount > 1 ? amount : 1;
}

/* Of what the kubelet gives to pods Slurm gets what DaemonSets and static pods leave. Memory has a
 * margin, so that the next small DaemonSet changes nothing; CPUs are whole ones anyway. */
static void measure(const struct bridge_world *world, const struct kube_node *node,
                    struct node_spec *spec)
{
    int64_t devices[KUBE_MAX_RESOURCES] = { 0 };
    struct kube_requests overhead = { 0 };

    if (world->eligible)
        overhead = eligible_node_overhead(world->eligible, node, devices);
    spec->margin = world->config->memory_margin;
    spec->all_cpus = node->cpu_milli / MILLI;
    spec->all_memory = node->memory / MIB;
    spec->cpus = at_least_one((node->cpu_milli - overhead.cpu_milli) / MILLI);
    spec->memory = at_least_one((node->memory - overhead.memory) / MIB - spec->margin);
    for (unsigned i = 0; i < node->extended.count; i++)
        if (is_gpu(node->extended.at[i].name) && node->extended.at[i].amount > devices[i])
            spec->gpus += node->extended.at[i].amount - devices[i];
}

bool node_spec_of(const struct bridge_world *world, const struct kube_node *node,
                  struct arena *arena, struct node_spec *ret_shape)
{
    const struct kube_pairs *notes = &node->object.annotations;
    const char *partitions =
        clean_words(arena, kube_pairs_get(notes, BRIDGE_PARTITIONS_ANNOTATION, NULL));
    struct str topology = str_trim(kube_pairs_get(notes, BRIDGE_TOPOLOGY_ANNOTATION, NULL));

    *ret_shape = (struct node_spec){
        .partitions = partitions,
        .features = with_labels(world->config, node, arena, partitions),
        .topology = arena_strndup(arena, topology.at, topology.len),
        .address = address_of(node),
    };
    measure(world, node, ret_shape);
    return ret_shape->all_cpus > 0 && ret_shape->all_memory > 0;
}

void node_spec_describe(const struct node_spec *spec, const char *name, struct arena *arena,
                        struct slurm_node_ask *ret_ask)
{
    *ret_ask = (struct slurm_node_ask){
        .names = name,
        .address = spec->address,
        .cpus = spec->cpus,
        .sockets = 1,
        .cores_per_socket = spec->cpus,
        .threads_per_core = 1,
        .memory = spec->memory,
        .features = *spec->features ? spec->features : NULL,
        .topology = *spec->topology ? spec->topology : NULL,
    };
    if (spec->gpus > 0) {
        ret_ask->gres = arena_printf(arena, "gpu:%" PRId64, spec->gpus);
        ret_ask->gres_conf = arena_printf(arena, "count=%" PRId64 ",name=gpu", spec->gpus);
    }
}

/* ---- comparing ---- */

/* The number behind the last ':' of "gpu:8", "gpu:h100:8", "gpu:8(S:0-1)"; a name alone is one. */
static int64_t count_of(struct str item)
{
    struct str part = item, rest = item, before;
    uint64_t count;

    if (str_cut(item, '(', &before, &rest))
        item = before;
    rest = item;
    while (str_next(&rest, ':', &part))
        ;
    return str_to_u64(part, 0, INT32_MAX, &count, NULL) < 0 ? 1 : (int64_t)count;
}

/* Of whatever type: those who made the node before us may have given types. The commas inside
 * "(...)" split off parts that name no gpu. */
static int64_t gpus_in(const char *gres)
{
    struct str rest = str_of(gres), item;
    int64_t count = 0;

    while (next_word(&rest, &item))
        if (str_is(item, "gpu") || str_starts(item, STR("gpu:")))
            count += count_of(item);
    return count;
}

enum node_size node_spec_size(const struct node_spec *spec, const struct slurm_node *slurm)
{
    int64_t gpus = gpus_in(slurm->gres);
    int64_t more_memory = spec->memory - slurm->real_memory;

    if (slurm->cpus > spec->all_cpus || slurm->real_memory > spec->all_memory || gpus > spec->gpus)
        return NODE_SIZE_TOO_MUCH;
    if (gpus < spec->gpus)
        return NODE_SIZE_GROWN;
    if (slurm->cpus != spec->cpus || more_memory > spec->margin || more_memory < -spec->margin)
        return NODE_SIZE_DIFFERS;
    return NODE_SIZE_RIGHT;
}

static bool is_plain_gpu(struct str item)
{
    struct str name = item, count;
    uint64_t number;

    if (str_cut(item, '(', &name, &count))
        item = name;
    return str_is(item, "gpu") || (str_cut(item, ':', &name, &count) && str_is(name, "gpu") &&
                                   str_to_u64(count, 0, INT32_MAX, &number, NULL) == 0);
}

/* "gpu:2(S:0,1)" has a comma that ends no item. */
bool node_has_foreign_gres(const struct slurm_node *slurm)
{
    struct str rest = str_of(slurm->gres), item;
    bool is_inside = false;

    while (next_word(&rest, &item)) {
        bool was_inside = is_inside;

        if (memchr(item.at, '(', item.len))
            is_inside = true;
        if (memchr(item.at, ')', item.len))
            is_inside = false;
        if (!was_inside && !is_plain_gpu(item))
            return true;
    }
    return false;
}

bool node_spec_has_features_of(const struct node_spec *spec, const struct slurm_node *slurm)
{
    return !*spec->features || (has_words(slurm->features, spec->features) &&
                                has_words(spec->features, slurm->features));
}

static bool is_partition(const struct bridge_world *world, struct str word, struct arena *arena)
{
    return slurm_cache_get(world->slurm_partitions, arena_strndup(arena, word.at, word.len));
}

const char *node_spec_missing(const struct node_spec *spec, const struct bridge_world *world,
                              struct arena *arena)
{
    struct str rest = str_of(spec->partitions), word;

    while (next_word(&rest, &word))
        if (!is_partition(world, word, arena))
            return arena_strndup(arena, word.at, word.len);
    return NULL;
}

/* Whether one of the words is a partition, and not among the others. */
static bool has_partition_beside(const char *list, const char *others,
                                 const struct bridge_world *world, struct arena *arena)
{
    struct str rest = str_of(list), word;

    while (next_word(&rest, &word))
        if (!has_word(others, word) && is_partition(world, word, arena))
            return true;
    return false;
}

bool node_spec_moves(const struct node_spec *spec, const struct slurm_node *slurm,
                     const struct bridge_world *world, struct arena *arena)
{
    return *spec->features &&
           (has_partition_beside(spec->features, slurm->features, world, arena) ||
            has_partition_beside(slurm->features, spec->features, world, arena));
}

/* Slurm may fold a long list of partitions: n[1-3]. */
static bool is_in(const char *partitions, struct str wanted, struct arena *arena)
{
    const struct hostlist *list;

    if (!strchr(partitions, '['))
        return has_word(partitions, wanted);
    if (hostlist_parse(arena, str_of(partitions), HOSTLIST_MAX_NAMES, &list, NULL) < 0)
        return true; /* unreadable is not "outside" */
    return hostlist_contains(list, wanted);
}

const char *node_spec_outside(const struct node_spec *spec, const struct slurm_node *slurm,
                              struct arena *arena)
{
    struct str rest = str_of(spec->partitions), word;

    while (next_word(&rest, &word))
        if (!is_in(slurm->partitions, word, arena))
            return arena_strndup(arena, word.at, word.len);
    return NULL;
}

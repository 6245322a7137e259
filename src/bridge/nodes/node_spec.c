/* node_spec.c - the desired spec: what DaemonSets leave to pods of what a node can give,
 * the partitions that its annotation names and some of its labels as features, devices as gres.
 *
 * Holds: what is compared is computed as what is created, in whole units rounded down, so that a
 * node just made never differs from itself. */
#include "bridge/nodes/node_spec.h"

#include "bridge/world/config_rules.h"
#include "bridge/world/names.h"
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

static int64_t at_least_one(int64_t amount)
{
    return amount > 1 ? amount : 1;
}

/* Of what the kubelet gives to pods Slurm gets what DaemonSets and static pods leave. Memory has a
 * margin, so that the next small DaemonSet changes nothing; CPUs are whole ones anyway. */
static void measure(const struct bridge_world *world, const struct kube_node *node,
                    int64_t *devices, struct node_spec *spec)
{
    struct kube_requests overhead = { 0 };

    if (world->filter)
        overhead = filter_node_overhead(world->filter, node, devices);
    spec->margin = world->config->memory_margin;
    spec->all_cpus = node->cpu_milli / MILLI;
    spec->all_memory = node->memory / MIB;
    spec->cpus = at_least_one((node->cpu_milli - overhead.cpu_milli) / MILLI);
    spec->memory = at_least_one((node->memory - overhead.memory) / MIB - spec->margin);
}

/* ---- devices ---- */

static void measure_devices(const struct bridge_world *world, const struct kube_node *node,
                            struct arena *arena, const int64_t *taken, struct node_spec *spec)
{
    struct device_view view = world_device_view(world);
    const char *name = world->slurm_nodes ? world_record_name(world, node) : "";
    const struct slurm_node *record = *name ? world_slurm_node(world, str_of(name)) : NULL;

    wanted_gres_of(&view, node, record, taken, arena, &spec->gres);
}

/* Cores are numbered as on the machine, from the first; the last ones are the system's. */
static void measure_cores(const struct bridge_world *world, const struct kube_node *node,
                          struct arena *arena, struct node_spec *spec)
{
    struct device_view view = world_device_view(world);
    struct node_cores cores;

    spec->threads = 1;
    if (!node_cores_of(&view, node->object.name, arena, &cores) || spec->cpus < cores.threads)
        return;
    spec->threads = cores.threads;
    spec->cpus -= spec->cpus % cores.threads;
}

bool node_spec_of(const struct bridge_world *world, const struct kube_node *node,
                  struct arena *arena, struct node_spec *ret_spec)
{
    const struct kube_pairs *notes = &node->object.annotations;
    const char *partitions =
        clean_words(arena, kube_pairs_get(notes, BRIDGE_PARTITIONS_ANNOTATION, NULL));
    struct str topology = str_trim(kube_pairs_get(notes, BRIDGE_TOPOLOGY_ANNOTATION, NULL));
    int64_t devices[KUBE_MAX_RESOURCES] = { 0 };
    struct in_addr address;

    *ret_spec = (struct node_spec){
        .partitions = partitions,
        .features = with_labels(world->config, node, arena, partitions),
        .topology = arena_strndup(arena, topology.at, topology.len),
        .address =
            inet_pton(AF_INET, node->internal_ip, &address) == 1 ? node->internal_ip : NO_ADDRESS,
    };
    measure(world, node, devices, ret_spec);
    measure_devices(world, node, arena, devices, ret_spec);
    measure_cores(world, node, arena, ret_spec);
    return ret_spec->all_cpus > 0 && ret_spec->all_memory > 0;
}

void node_spec_describe(const struct node_spec *spec, const char *name, struct arena *arena,
                        struct slurm_node_ask *ret_ask)
{
    *ret_ask = (struct slurm_node_ask){
        .names = name,
        .address = spec->address,
        .cpus = spec->cpus,
        .sockets = 1,
        .cores_per_socket = spec->cpus / spec->threads,
        .threads_per_core = spec->threads,
        .memory = spec->memory,
        .features = *spec->features ? spec->features : NULL,
        .topology = *spec->topology ? spec->topology : NULL,
    };
    ret_ask->gres = wanted_gres_text(&spec->gres, arena);
    ret_ask->gres_conf = ret_ask->gres ? wanted_gres_conf(&spec->gres, arena) : NULL;
}

/* ---- comparing ---- */

enum node_size node_spec_size(const struct node_spec *spec, const struct slurm_node *slurm)
{
    enum wanted_gres_match gres = wanted_gres_match(&spec->gres, slurm);
    int64_t more_memory = spec->memory - slurm->real_memory;

    if (slurm->cpus > spec->all_cpus || slurm->real_memory > spec->all_memory || gres == GRES_FEWER)
        return NODE_SIZE_OVERCOMMITTED;
    if (gres == GRES_OTHERS)
        return NODE_SIZE_DEVICES;
    if (slurm->cpus != spec->cpus || more_memory > spec->margin || more_memory < -spec->margin ||
        (slurm->threads > 0 && slurm->threads != spec->threads))
        return NODE_SIZE_DIFFERS;
    return NODE_SIZE_RIGHT;
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

const char *node_spec_outside(const struct node_spec *spec, const struct slurm_node *slurm,
                              struct arena *arena)
{
    struct str rest = str_of(spec->partitions), word;

    while (next_word(&rest, &word))
        if (!slurm_partitions_have(slurm->partitions, word))
            return arena_strndup(arena, word.at, word.len);
    return NULL;
}

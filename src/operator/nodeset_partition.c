/* nodeset_partition.c - the partition of a NodeSet in slurm.conf, and how long its line stays.
 *
 * Holds: slurmctld ends when it reads a slurm.conf without a partition that a job record names. So
 * the line of a partition that is no longer wanted stays, takes no more jobs (State=DRAIN), and
 * goes when Slurm shows that no job names it. What Slurm does not say keeps the line. */
#include "operator/nodeset_partition.h"

#include "operator/worker_identity.h"
#include "slurm/cache.h"

#include <strings.h>

/* ---- who still needs it ---- */

static const struct slurm_job *job_in(const struct slurm_cache *jobs, struct str partition)
{
    struct slurm_cache_walk walk = slurm_cache_walk(jobs);
    const struct slurm_object *object;

    while ((object = slurm_cache_next(&walk))) {
        struct str rest = str_of(slurm_job_of(object)->partition), name;

        while (str_next(&rest, ',', &name))
            if (str_eq(name, partition))
                return slurm_job_of(object);
    }
    return NULL;
}

const char *partition_needed_by(const struct slurm_facts *facts, struct arena *arena,
                                struct str partition)
{
    const struct slurm_job *job;

    if (!facts || !facts->is_reachable || !facts->jobs || !slurm_cache_is_synced(facts->jobs))
        return "Slurm's jobs are not read yet";
    if (facts->is_suspicious)
        return "slurmctld may have been restarted, and its jobs are read again";
    job = job_in(facts->jobs, partition);
    return job ? arena_printf(arena,
                              "job %lld still names partition " STR_FMT
                              ", which stays in slurm.conf so long",
                              (long long)job->id, STR_ARG(partition))
               : NULL;
}

/* Jobs may still be submitted to it. */
static bool takes_jobs(const struct slurm_facts *facts, struct arena *arena, struct str partition)
{
    const struct slurm_object *found;

    if (!facts || !facts->partitions || !slurm_cache_is_synced(facts->partitions))
        return true;
    found = slurm_cache_get(facts->partitions, arena_strndup(arena, partition.at, partition.len));
    return found && slurm_words_has(&slurm_partition_of(found)->state, SLURM_PARTITION_UP);
}

/* ---- the line ---- */

/* The next word of a line; a quoted value may have blanks inside. */
static bool next_word(struct str *rest, struct str *ret_word)
{
    bool is_quoted = false;
    size_t end = 0;

    *rest = str_trim(*rest);
    for (; end < rest->len && (is_quoted || rest->at[end] != ' '); end++)
        is_quoted ^= rest->at[end] == '"';
    *ret_word = str_sub(*rest, 0, end);
    *rest = str_sub(*rest, end, rest->len);
    return end > 0;
}

static bool has_key(struct str word, struct str key)
{
    return word.len >= key.len && strncasecmp(word.at, key.at, key.len) == 0;
}

/* The options of a partition that takes no more jobs; the default for jobs is another one. */
static const char *drained(struct arena *arena, struct str options)
{
    auto_buf struct buf text = { .max = 1 << 20 };
    struct str word;

    while (next_word(&options, &word))
        if (!has_key(word, STR("State=")) && !has_key(word, STR("Default=")))
            buf_printf(&text, STR_FMT " ", STR_ARG(word));
    buf_add_text(&text, "State=DRAIN");
    return arena_strndup(arena, text.data, text.len);
}

/* The options of the line in the slurm.conf that the operator wrote last. */
static bool live_options(const struct operator_world *world, struct arena *arena,
                         const struct kube_object *controller, struct str name,
                         struct str *ret_options)
{
    const struct kube_object *config = kube_cache_get(
        world->configmaps, controller->ns, arena_printf(arena, "%s-config", controller->name));
    struct str rest, line,
        start = str_of(arena_printf(arena, "PartitionName=" STR_FMT " Nodes=" STR_FMT " ",
                                    STR_ARG(name), STR_ARG(name)));

    if (!config)
        return false;
    rest = json_str(json_at(operator_tree(config), "data", "slurm.conf"));
    while (str_next(&rest, '\n', &line))
        if (str_starts(line, start)) {
            *ret_options = str_sub(line, start.len, line.len);
            return true;
        }
    return false;
}

static bool is_on(const struct kube_object *nodeset)
{
    return spec_flag(nodeset, "partition.enabled");
}

/* Switched off, and still in slurm.conf: whether it has to stay there. */
static bool lingers(const struct operator_world *world, struct arena *arena,
                    const struct kube_object *controller, const struct kube_object *nodeset,
                    struct str *ret_options)
{
    const struct slurm_facts *facts = operator_world_slurm(world, controller);
    struct str name = nodeset_slurm_name(nodeset);

    if (is_on(nodeset) || (!facts && !world->speaks_slurm) ||
        !live_options(world, arena, controller, name, ret_options))
        return false;
    return partition_needed_by(facts, arena, name) || takes_jobs(facts, arena, name);
}

const char *nodeset_partition_options(const struct operator_world *world, struct arena *arena,
                                      const struct kube_object *controller,
                                      const struct kube_object *nodeset)
{
    struct str options = json_str(json_at(operator_spec(nodeset), "partition", "config"));

    if (is_on(nodeset) && nodeset->deleted_us == 0)
        return arena_strndup(arena, options.at, options.len);
    if (is_on(nodeset) || lingers(world, arena, controller, nodeset, &options))
        return drained(arena, options);
    return NULL;
}

bool nodeset_partitions_linger(const struct operator_world *world, struct arena *arena,
                               const struct kube_object *controller)
{
    const struct kube_object **nodesets;
    struct str options;
    size_t count;

    nodesets = nodesets_of(world, arena, controller, &count);
    for (size_t i = 0; i < count; i++)
        if (lingers(world, arena, controller, nodesets[i], &options))
            return true;
    return false;
}

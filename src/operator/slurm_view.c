/* slurm_view.c - what is known of a Slurm node, and how well. */
#include "operator/slurm_view.h"

/* The poller asks every second, and less often a slurmctld that takes its time. */
static const int64_t fresh_us = 15000000;

static bool has_word(const struct slurm_vocabulary *vocabulary, const struct slurm_words *words,
                     const char *wanted)
{
    struct str rest = str_of(words->other), word;

    for (unsigned i = 0; i < SLURM_WORDS_MAX && vocabulary->words[i]; i++)
        if (strcmp(vocabulary->words[i], wanted) == 0)
            return slurm_words_has(words, i);
    while (str_next(&rest, ',', &word))
        if (str_is(word, wanted))
            return true;
    return false;
}

bool slurm_node_has(const struct slurm_node *node, const char *word)
{
    return has_word(&slurm_node_states, &node->state, word);
}

bool slurm_reservation_has(const struct slurm_reservation *reservation, const char *word)
{
    return has_word(&slurm_reservation_flags, &reservation->flags, word);
}

bool slurm_node_is_draining(const struct slurm_node *node)
{
    return slurm_words_has(&node->state, SLURM_NODE_DRAIN) && !slurm_node_has(node, "UNDRAIN");
}

static bool has_job(const struct slurm_facts *facts, const char *node)
{
    struct slurm_index_walk walk = slurm_cache_by(facts->jobs, SLURM_JOBS_BY_NODE, str_of(node));
    const struct slurm_object *job;

    while ((job = slurm_index_next(&walk)))
        if (!slurm_words_has(&slurm_job_of(job)->state, SLURM_JOB_PENDING))
            return true;
    return false;
}

bool slurm_view_is_busy(const struct slurm_facts *facts, const struct slurm_node *node)
{
    return slurm_node_is_busy(node) || (facts && facts->jobs && has_job(facts, node->name));
}

bool slurm_view_is_drained(const struct slurm_facts *facts, const struct slurm_node *node)
{
    return slurm_node_is_draining(node) && facts && facts->jobs &&
           slurm_cache_is_synced(facts->jobs) && !slurm_view_is_busy(facts, node);
}

enum slurm_knowledge slurm_view_node(const struct operator_world *world,
                                     const struct slurm_facts *facts, const char *name,
                                     const struct slurm_node **ret_node)
{
    const struct slurm_object *found;

    if (ret_node)
        *ret_node = NULL;
    if (!facts || !facts->nodes || !slurm_cache_is_synced(facts->nodes))
        return SLURM_UNREAD;
    found = slurm_cache_get(facts->nodes, name);
    if (ret_node && found)
        *ret_node = slurm_node_of(found);
    if (!facts->is_reachable || facts->is_suspicious || slurm_cache_is_behind(facts->nodes, name) ||
        slurm_cache_known_us(facts->nodes, name) < world->loop_us - fresh_us)
        return SLURM_UNREAD;
    return found ? SLURM_PRESENT : SLURM_ABSENT;
}

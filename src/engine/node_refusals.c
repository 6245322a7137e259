/* node_refusals.c - refused actions by the name of the node.
 *
 * Holds: one for each node; more than MAX_NODES are not remembered. */
#include "engine/node_refusals.h"

#include "base/map.h"
#include "base/mem.h"

enum { MAX_NODES = 1 << 17 }; /* twice as many as Slurm can have */

struct node_refusals {
    struct map nodes; /* struct refusal */
};

struct refusal {
    char *action_text, *why;
};

static void refusal_free(void *value)
{
    struct refusal *refusal = value;

    mem_free(refusal->action_text);
    mem_free(refusal->why);
    mem_free(refusal);
}

struct node_refusals *node_refusals_new(void)
{
    struct map_options options = { .max = MAX_NODES, .free_value = refusal_free };
    struct node_refusals *refusals = mem_alloc(sizeof(*refusals));

    map_init(&refusals->nodes, &options);
    return refusals;
}

void node_refusals_free(struct node_refusals *refusals)
{
    if (!refusals)
        return;
    map_done(&refusals->nodes);
    mem_free(refusals);
}

void node_refusals_add(struct node_refusals *refusals, struct str node, struct str action_text,
                       const char *why)
{
    struct refusal *refusal = mem_alloc(sizeof(*refusal));

    refusal->action_text = mem_strndup(action_text.at, action_text.len);
    refusal->why = mem_strdup(why);
    if (map_put(&refusals->nodes, node, refusal, NULL) < 0)
        refusal_free(refusal);
}

const char *node_refusals_why(const struct node_refusals *refusals, struct str node,
                              struct str action_text)
{
    const struct refusal *refusal = map_get(&refusals->nodes, node);

    return refusal && str_is(action_text, refusal->action_text) ? refusal->why : NULL;
}

void node_refusals_forget(struct node_refusals *refusals, struct str node)
{
    (void)map_remove(&refusals->nodes, node);
}

bool node_refusals_have(const struct node_refusals *refusals, struct str node)
{
    return map_has(&refusals->nodes, node);
}

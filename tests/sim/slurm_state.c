/* slurm_state.c - the records of slurmctld, and whole copies of them: what a save is.
 *
 * Holds: texts are never NULL; what nodes show as taken is the sum of what jobs hold. */
#include "base/mem.h"
#include "slurm_private.h"

#include <stdlib.h>

enum { MAX_NODES = 1 << 16, MAX_NAMED = 1000 };

/* ---- texts ---- */

void ctld_set_str(char **slot, struct str text)
{
    char *copy = mem_strndup(text.at, text.len);

    mem_free(*slot);
    *slot = copy;
}

void ctld_set(char **slot, const char *text)
{
    ctld_set_str(slot, str_of(text));
}

static void texts_init(char **texts, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        texts[i] = mem_strdup("");
}

static void texts_copy(char **to, char *const *from, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        to[i] = mem_strdup(from[i]);
}

static void texts_done(char **texts, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        mem_free(texts[i]);
}

/* ---- jobs ---- */

struct ctld_job *ctld_job_new(void)
{
    struct ctld_job *job = mem_alloc(sizeof(*job));

    texts_init(job->text, JOB_TEXTS);
    ctld_set(&job->text[JOB_REASON], "None");
    job->group_id = -1;
    return job;
}

void ctld_job_drop_pieces(struct ctld_job *job)
{
    for (unsigned i = 0; i < job->piece_count; i++) {
        mem_free(job->pieces[i].node);
        bitmap_done(&job->pieces[i].cores);
        for (unsigned k = 0; k < CTLD_MAX_GRES; k++)
            bitmap_done(&job->pieces[i].devices[k]);
    }
    mem_free(job->pieces);
    job->pieces = NULL;
    job->piece_count = 0;
}

void ctld_job_free(struct ctld_job *job)
{
    if (!job)
        return;
    ctld_job_drop_pieces(job);
    texts_done(job->text, JOB_TEXTS);
    mem_free(job);
}

static void piece_copy(struct ctld_piece *to, const struct ctld_piece *from)
{
    *to = (struct ctld_piece){ .node = mem_strdup(from->node), .memory = from->memory };
    bitmap_copy(&to->cores, &from->cores);
    for (unsigned k = 0; k < CTLD_MAX_GRES; k++)
        if (from->devices[k].bits > 0)
            bitmap_copy(&to->devices[k], &from->devices[k]);
}

static struct ctld_job *job_copy(const struct ctld_job *from)
{
    struct ctld_job *job = mem_alloc(sizeof(*job));

    *job = *from;
    texts_copy(job->text, from->text, JOB_TEXTS);
    job->pieces = mem_alloc_array(from->piece_count + 1, sizeof(*job->pieces));
    for (unsigned i = 0; i < from->piece_count; i++)
        piece_copy(&job->pieces[i], &from->pieces[i]);
    return job;
}

void ctld_job_add(struct ctld_state *state, struct ctld_job *job)
{
    if (state->job_count == state->job_capacity) {
        state->job_capacity = state->job_capacity ? 2 * state->job_capacity : 64;
        state->jobs = mem_resize_array(state->jobs, state->job_capacity, sizeof(*state->jobs));
    }
    state->jobs[state->job_count++] = job;
}

/* Where it stands, or would. */
static size_t place_of(const struct ctld_state *state, int64_t id)
{
    size_t low = 0, high = state->job_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (state->jobs[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct ctld_job *ctld_job_find(const struct ctld_state *state, int64_t id)
{
    size_t place = place_of(state, id);

    return place < state->job_count && state->jobs[place]->id == id ? state->jobs[place] : NULL;
}

void ctld_job_remove(struct ctld_state *state, int64_t id)
{
    size_t place = place_of(state, id);

    ctld_job_free(state->jobs[place]);
    state->job_count--;
    memmove(&state->jobs[place], &state->jobs[place + 1],
            (state->job_count - place) * sizeof(*state->jobs));
}

/* ---- nodes ---- */

struct ctld_node *ctld_node_new(const char *name)
{
    struct ctld_node *node = mem_alloc(sizeof(*node));

    texts_init(node->text, NODE_TEXTS);
    ctld_set(&node->text[NODE_NAME], name);
    node->weight = node->line_weight = 1;
    return node;
}

void ctld_node_free(void *value)
{
    struct ctld_node *node = value;

    if (!node)
        return;
    texts_done(node->text, NODE_TEXTS);
    bitmap_done(&node->busy);
    for (unsigned k = 0; k < node->gres_count; k++)
        bitmap_done(&node->gres[k].busy);
    mem_free(node);
}

static struct ctld_node *node_copy(const struct ctld_node *from)
{
    struct ctld_node *node = mem_alloc(sizeof(*node));

    *node = *from;
    texts_copy(node->text, from->text, NODE_TEXTS);
    bitmap_copy(&node->busy, &from->busy);
    for (unsigned k = 0; k < from->gres_count; k++)
        bitmap_copy(&node->gres[k].busy, &from->gres[k].busy);
    return node;
}

struct ctld_node *ctld_node_find(const struct ctld_state *state, const char *name)
{
    return map_get(&state->nodes, str_of(name));
}

/* ---- partitions and reservations ---- */

static void partition_free(void *value)
{
    struct ctld_partition *partition = value;

    texts_done(partition->text, PART_TEXTS);
    mem_free(partition);
}

static void resv_free(void *value)
{
    struct ctld_resv *resv = value;

    texts_done(resv->text, RESV_TEXTS);
    mem_free(resv);
}

struct ctld_partition *ctld_partition_find(const struct ctld_state *state, const char *name)
{
    return map_get(&state->partitions, str_of(name));
}

struct ctld_resv *ctld_resv_find(const struct ctld_state *state, const char *name)
{
    return map_get(&state->reservations, str_of(name));
}

static void put_or_die(struct map *map, const char *name, void *value)
{
    struct err err;

    if (map_put(map, str_of(name), value, &err) < 0)
        abort();
}

struct ctld_partition *ctld_partition_add(struct ctld_state *state, const char *name)
{
    struct ctld_partition *partition = mem_alloc(sizeof(*partition));

    texts_init(partition->text, PART_TEXTS);
    ctld_set(&partition->text[PART_NAME], name);
    ctld_set(&partition->text[PART_STATE], "UP");
    partition->tier = 1;
    put_or_die(&state->partitions, name, partition);
    return partition;
}

struct ctld_resv *ctld_resv_add(struct ctld_state *state, const char *name)
{
    struct ctld_resv *resv = mem_alloc(sizeof(*resv));

    texts_init(resv->text, RESV_TEXTS);
    ctld_set(&resv->text[RESV_NAME], name);
    put_or_die(&state->reservations, name, resv);
    return resv;
}

/* ---- all of it ---- */

void ctld_state_init(struct ctld_state *state)
{
    *state = (struct ctld_state){ .next_id = 1 };
    map_init(&state->nodes,
             &(struct map_options){ .max = MAX_NODES, .free_value = ctld_node_free });
    map_init(&state->partitions,
             &(struct map_options){ .max = MAX_NAMED, .free_value = partition_free });
    map_init(&state->reservations,
             &(struct map_options){ .max = MAX_NAMED, .free_value = resv_free });
}

void ctld_state_done(struct ctld_state *state)
{
    for (size_t i = 0; i < state->job_count; i++)
        ctld_job_free(state->jobs[i]);
    mem_free(state->jobs);
    map_done(&state->nodes);
    map_done(&state->partitions);
    map_done(&state->reservations);
}

void ctld_state_copy(struct ctld_state *to, const struct ctld_state *from)
{
    ctld_state_done(to);
    ctld_state_init(to);
    to->next_id = from->next_id;
    for (size_t i = 0; i < from->job_count; i++)
        ctld_job_add(to, job_copy(from->jobs[i]));
    map_each (item, &from->nodes) {
        struct ctld_node *node = node_copy(item->value);

        put_or_die(&to->nodes, node->text[NODE_NAME], node);
    }
    map_each (item, &from->partitions) {
        const struct ctld_partition *old = item->value;
        struct ctld_partition *copy = ctld_partition_add(to, old->text[PART_NAME]);

        texts_done(copy->text, PART_TEXTS);
        *copy = *old;
        texts_copy(copy->text, old->text, PART_TEXTS);
    }
    map_each (item, &from->reservations) {
        const struct ctld_resv *old = item->value;
        struct ctld_resv *copy = ctld_resv_add(to, old->text[RESV_NAME]);

        texts_done(copy->text, RESV_TEXTS);
        *copy = *old;
        texts_copy(copy->text, old->text, RESV_TEXTS);
    }
}

/* ---- who holds what ---- */

void ctld_claim(struct ctld_state *state, const struct ctld_job *job)
{
    for (unsigned i = 0; i < job->piece_count; i++) {
        const struct ctld_piece *piece = &job->pieces[i];
        struct ctld_node *node = ctld_node_find(state, piece->node);

        if (!node)
            continue;
        bitmap_or(&node->busy, &piece->cores);
        for (unsigned k = 0; k < node->gres_count; k++)
            bitmap_or(&node->gres[k].busy, &piece->devices[k]);
        node->alloc_memory += piece->memory;
        node->whole |= job->exclusive;
        node->jobs++;
    }
}

void ctld_unclaim(struct ctld_state *state, const struct ctld_job *job)
{
    for (unsigned i = 0; i < job->piece_count; i++) {
        const struct ctld_piece *piece = &job->pieces[i];
        struct ctld_node *node = ctld_node_find(state, piece->node);

        if (!node)
            continue;
        bitmap_andnot(&node->busy, &piece->cores);
        for (unsigned k = 0; k < node->gres_count; k++)
            bitmap_andnot(&node->gres[k].busy, &piece->devices[k]);
        node->alloc_memory -= piece->memory;
        node->jobs--;
        node->whole &= !job->exclusive;
    }
}

static void node_clear(struct ctld_node *node)
{
    bitmap_andnot(&node->busy, &node->busy);
    for (unsigned k = 0; k < node->gres_count; k++)
        bitmap_andnot(&node->gres[k].busy, &node->gres[k].busy);
    node->alloc_memory = 0;
    node->jobs = 0;
    node->whole = false;
}

void ctld_state_recount(struct ctld_state *state)
{
    map_each (item, &state->nodes)
        node_clear(item->value);
    for (size_t i = 0; i < state->job_count; i++)
        if (state->jobs[i]->holds)
            ctld_claim(state, state->jobs[i]);
}

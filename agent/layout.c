/* layout.c - what a running job was given on each node: cores, memory, devices.
 *
 * libslurm has the call in its public header, and its answer as a pointer without a type. The
 * structures below are how 26.05 lays it out; the conformance test compares each field with what
 * slurmrestd shows. With another version of libslurm the agent does not look.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "calls.h"

#include "libslurm_hidden.h"

#include <slurm/slurm.h>
#include <slurm/slurm_version.h>

enum { MAX_INDEX = 4096, API_OF_26_05 = 45 }; /* libslurm.so.45 */

struct gres_part {
    const char *name, *type;
    uint64_t count;
    bitstr_t *index;
};

struct node_part {
    const char *node;
    uint64_t memory;
    uint16_t sockets, cores_per_socket;
    const char *cores; /* hexadecimal */
    uint32_t channel;
    list_t *gres;
};

struct layout {
    list_t *nodes;
};

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void add_gres(struct agent_answer *answer, struct json_mut *list,
                     const struct gres_part *part)
{
    struct json_mut *one = json_new_object(answer->build);
    char index[MAX_INDEX] = "";

    if (part->index)
        (void)slurm_bit_fmt(index, sizeof(index), part->index);
    json_put_text(answer->build, one, "name", or_empty(part->name));
    json_put_text(answer->build, one, "type", or_empty(part->type));
    json_put_u64(answer->build, one, "count", part->count);
    json_put_text(answer->build, one, "index", index);
    json_push(list, one);
}

static void add_node(struct agent_answer *answer, struct json_mut *list,
                     const struct node_part *part)
{
    struct json_mut *one = json_new_object(answer->build), *gres;
    list_itr_t *iter = part->gres ? slurm_list_iterator_create(part->gres) : NULL;
    const struct gres_part *device;

    json_put_text(answer->build, one, "node", or_empty(part->node));
    json_put_u64(answer->build, one, "sockets_per_node", part->sockets);
    json_put_u64(answer->build, one, "cores_per_socket", part->cores_per_socket);
    json_put_u64(answer->build, one, "mem_alloc", part->memory);
    json_put_text(answer->build, one, "core_bitmap", or_empty(part->cores));
    agent_put_number(answer, one, "channel", part->channel, 32);
    gres = json_put_array(answer->build, one, "gres");
    while (iter && (device = slurm_list_next(iter)))
        add_gres(answer, gres, device);
    if (iter)
        slurm_list_iterator_destroy(iter);
    json_push(list, one);
}

bool layout_is_known(void)
{
    return SLURM_VERSION_MAJOR(slurm_api_version()) == API_OF_26_05;
}

void layout_answer(void *found, struct agent_answer *answer)
{
    const struct layout *layout = found;
    struct json_mut *list = json_put_array(answer->build, answer->root, "nodes");
    list_itr_t *iter = layout->nodes ? slurm_list_iterator_create(layout->nodes) : NULL;
    const struct node_part *part;

    while (iter && (part = slurm_list_next(iter)))
        add_node(answer, list, part);
    if (iter)
        slurm_list_iterator_destroy(iter);
    slurm_free_resource_layout_msg(found);
}

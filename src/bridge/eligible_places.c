/* eligible_places.c - the nodes in their slots, with what pods take of them that Slurm cannot see.
 *
 * Holds   a slot is one node under one Slurm name, or free; what is taken there is the sum over the
 *         pods that the caches show on the node; a column has the label's value of every place. */
#include "bridge/eligible_private.h"

#include "base/mem.h"
#include "bridge/names.h"
#include "bridge/world.h"
#include "codec/hostlist.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 1 << 20, FIRST_PLACES = 64, SPARE_VALUES = 1024 };

static void put(struct map *map, struct str key, void *value)
{
    if (map_put(map, key, value, NULL) == 0)
        return;
    fprintf(stderr, "eligible: more than %d nodes or labels\n", MAX_NODES);
    abort();
}

int eligible_place_of(const struct eligible *eligible, const char *node)
{
    return (int)(uintptr_t)map_get(&eligible->by_name, str_of(node)) - 1;
}

/* ---- columns ---- */

static uint32_t number_of(struct eligible_column *column, struct str value)
{
    uintptr_t number = (uintptr_t)map_get(&column->values, value);

    if (number == 0) {
        number = ++column->count;
        put(&column->values, value, (void *)number);
    }
    return (uint32_t)number;
}

static void column_set(struct eligible_column *column, size_t slot, const struct kube_node *node)
{
    bool found = false;
    struct str value = node ? kube_pairs_get(&node->object.labels, column->key, &found) : STR("");

    column->of[slot] = found ? number_of(column, value) : 0;
}

/* Values that no node has any more are forgotten now and then, or names of nodes would pile up. */
static void column_tidy(const struct eligible *eligible, struct eligible_column *column)
{
    if (column->count <= 2 * eligible->place_count + SPARE_VALUES)
        return;
    map_clear(&column->values);
    column->count = 0;
    for (size_t i = 0; i < eligible->place_count; i++)
        column_set(column, i, eligible->places[i].node);
}

struct eligible_column *eligible_column_get(struct eligible *eligible, struct str key)
{
    static const struct map_options options = { .max = MAX_NODES };
    struct eligible_column *column = map_get(&eligible->columns, key);

    if (column) {
        column->refs++;
        return column;
    }
    column = mem_alloc(sizeof(*column));
    column->key = mem_strndup(key.at, key.len);
    column->refs = 1;
    column->of = mem_alloc_array(eligible->capacity, sizeof(*column->of));
    map_init(&column->values, &options);
    for (size_t i = 0; i < eligible->place_count; i++)
        column_set(column, i, eligible->places[i].node);
    put(&eligible->columns, str_of(column->key), column);
    return column;
}

void eligible_column_release(struct eligible *eligible, struct eligible_column *column)
{
    if (!column || --column->refs > 0)
        return;
    map_take(&eligible->columns, str_of(column->key));
    map_done(&column->values);
    mem_free(column->of);
    mem_free(column->key);
    mem_free(column);
}

static void columns_set(struct eligible *eligible, size_t slot)
{
    map_each (item, &eligible->columns) {
        column_set(item->value, slot, eligible->places[slot].node);
        column_tidy(eligible, item->value);
    }
}

/* ---- what pods take ---- */

static void copy_text(char *to, size_t size, const char *from)
{
    size_t length = strnlen(from, size - 1);

    memcpy(to, from, length);
    to[length] = '\0';
}

struct eligible_port eligible_port_of(const struct kube_port *port)
{
    struct eligible_port copy = { .port = port->port };

    copy_text(copy.protocol, sizeof(copy.protocol), port->protocol);
    copy_text(copy.ip, sizeof(copy.ip), strcmp(port->ip, "0.0.0.0") == 0 ? "" : port->ip);
    return copy;
}

static unsigned ports_on(const struct eligible *eligible, const char *node)
{
    struct eligible_walk walk = eligible_pods_on(eligible, node);
    const struct kube_pod *pod;
    unsigned count = 0;

    while ((pod = eligible_next_pod(&walk)) != NULL)
        count += pod->rare ? pod->rare->port_count : 0;
    return count;
}

static void recount_ports(const struct eligible *eligible, struct eligible_place *place)
{
    const char *node = place->node->object.name;
    unsigned count = ports_on(eligible, node);
    struct eligible_walk walk = eligible_pods_on(eligible, node);
    const struct kube_pod *pod;

    mem_free(place->ports);
    place->ports = count > 0 ? mem_alloc_array(count, sizeof(*place->ports)) : NULL;
    place->port_count = 0;
    while (count > 0 && (pod = eligible_next_pod(&walk)) != NULL)
        for (unsigned i = 0; pod->rare && i < pod->rare->port_count; i++)
            place->ports[place->port_count++] = eligible_port_of(&pod->rare->ports[i]);
}

/* All but how many pods there are, which goes up and down one by one. */
static void recount(struct eligible *eligible, struct eligible_place *place)
{
    struct eligible_walk walk = eligible_pods_on(eligible, place->node->object.name);
    const struct kube_pod *pod;

    mem_free(place->others_extended);
    place->others_extended =
        mem_alloc_array(place->node->extended.count + 1, sizeof(*place->others_extended));
    place->of_others = (struct kube_requests){ 0 };
    while ((pod = eligible_next_pod(&walk)) != NULL) {
        if (!eligible_is_ours(eligible, pod))
            eligible_add_up(&place->node->extended, &pod->requests, &place->of_others,
                            place->others_extended);
    }
    recount_ports(eligible, place);
}

static int64_t pods_on(const struct eligible *eligible, const char *node)
{
    struct eligible_walk walk = eligible_pods_on(eligible, node);
    int64_t count = 0;

    while (eligible_next_pod(&walk))
        count++;
    return count;
}

static bool is_full(const struct eligible_place *place)
{
    return place->node->pods > 0 && place->pods >= place->node->pods;
}

/* Most pods of ours only count as one more. For the others all is added up again: there are few on
 * a node, and sums that stop at a maximum cannot be taken back. */
void eligible_place_take(struct eligible *eligible, int slot, const struct kube_pod *pod,
                         int direction)
{
    struct eligible_place *place = &eligible->places[slot];
    bool was_full = is_full(place);
    bool matters = !eligible_is_ours(eligible, pod) ||
                   (pod->rare && pod->rare->port_count + pod->rare->volume_claim_count > 0);

    place->pods += direction;
    if (matters)
        recount(eligible, place);
    if (matters || was_full != is_full(place))
        eligible_touch(eligible, slot);
}

/* ---- slots ---- */

static void grow(struct eligible *eligible)
{
    size_t from = eligible->capacity, to = from > 0 ? 2 * from : FIRST_PLACES;

    eligible->places = mem_resize_array(eligible->places, to, sizeof(*eligible->places));
    memset(eligible->places + from, 0, (to - from) * sizeof(*eligible->places));
    eligible->free_slots = mem_resize_array(eligible->free_slots, to, sizeof(size_t));
    map_each (item, &eligible->columns) {
        struct eligible_column *column = item->value;

        column->of = mem_resize_array(column->of, to, sizeof(*column->of));
        memset(column->of + from, 0, (to - from) * sizeof(*column->of));
    }
    eligible->capacity = to;
    eligible_pods_grow(eligible, from);
}

static bool is_lent(const struct eligible *eligible, const struct kube_node *node)
{
    bool is_external;
    struct err err;

    if (hostlist_check_name(str_of(world_slurm_name(node)), &err) < 0)
        return false;
    (void)kube_pairs_get(&node->object.labels, BRIDGE_EXTERNAL_LABEL, &is_external);
    for (unsigned i = 0; !is_external && i < node->taint_count; i++)
        is_external = strcmp(node->taints[i].key, BRIDGE_TAINT) == 0 &&
                      strcmp(node->taints[i].value, eligible->scheduler_name) == 0;
    return is_external;
}

static void set_node(const struct eligible *eligible, struct eligible_place *place,
                     const struct kube_node *node)
{
    place->node = node;
    place->slurm_name = world_slurm_name(node);
    place->lent = is_lent(eligible, node);
}

static void add_place(struct eligible *eligible, const struct kube_node *node)
{
    size_t slot;

    if (eligible->free_count > 0) {
        slot = eligible->free_slots[--eligible->free_count];
    } else {
        if (eligible->place_count == eligible->capacity)
            grow(eligible);
        slot = eligible->place_count++;
    }
    set_node(eligible, &eligible->places[slot], node);
    put(&eligible->by_name, str_of(node->object.name), (void *)(slot + 1));
    eligible->places[slot].pods = pods_on(eligible, node->object.name);
    recount(eligible, &eligible->places[slot]);
    columns_set(eligible, slot);
    eligible_pods_recount(eligible, (int)slot);
    eligible_touch(eligible, (int)slot);
    eligible->places[slot].born = eligible->sequence;
}

static void clear_place(struct eligible_place *place)
{
    mem_free(place->ports);
    mem_free(place->others_extended);
    memset(place, 0, sizeof(*place));
}

static void drop_place(struct eligible *eligible, int slot)
{
    struct eligible_place *place = &eligible->places[slot];

    map_remove(&eligible->by_name, str_of(place->node->object.name));
    clear_place(place);
    columns_set(eligible, (size_t)slot);
    eligible_pods_recount(eligible, slot);
    eligible->free_slots[eligible->free_count++] = (size_t)slot;
    eligible_touch(eligible, slot);
}

/* ---- changes of nodes ---- */

static bool same_taints(const struct kube_node *a, const struct kube_node *b)
{
    if (a->taint_count != b->taint_count)
        return false;
    for (unsigned i = 0; i < a->taint_count; i++)
        if (a->taints[i].effect != b->taints[i].effect ||
            strcmp(a->taints[i].key, b->taints[i].key) != 0 ||
            strcmp(a->taints[i].value, b->taints[i].value) != 0)
            return false;
    return true;
}

/* Most changes of a node are about conditions and images, and decide nothing here. */
static bool is_news(const struct kube_node *old, const struct kube_node *next)
{
    return old->cpu_milli != next->cpu_milli || old->memory != next->memory ||
           old->ephemeral != next->ephemeral || old->pods != next->pods ||
           !eligible_same_amounts(&old->extended, &next->extended) || !same_taints(old, next) ||
           !eligible_same_pairs(&old->object.labels, &next->object.labels);
}

static void change_place(struct eligible *eligible, int slot, const struct kube_node *old,
                         const struct kube_node *next)
{
    struct eligible_place *place = &eligible->places[slot];

    set_node(eligible, place, next);
    if (!is_news(old, next))
        return;
    if (!eligible_same_amounts(&old->extended, &next->extended))
        recount(eligible, place);
    columns_set(eligible, (size_t)slot);
    eligible_touch(eligible, slot);
}

/* Under another name in Slurm it is another place. */
void eligible_node_changed(void *context, const struct kube_object *old_object,
                           const struct kube_object *next_object)
{
    const struct kube_node *old = old_object ? kube_node_of(old_object) : NULL;
    const struct kube_node *next = next_object ? kube_node_of(next_object) : NULL;
    const struct kube_object *either = next_object ? next_object : old_object;
    struct eligible *eligible = context;
    int slot;

    assert(either);
    slot = eligible_place_of(eligible, either->name);
    if (old && next && slot != ELIGIBLE_NO_PLACE &&
        strcmp(world_slurm_name(old), world_slurm_name(next)) == 0) {
        change_place(eligible, slot, old, next);
        return;
    }
    if (slot != ELIGIBLE_NO_PLACE)
        drop_place(eligible, slot);
    if (next)
        add_place(eligible, next);
}

/* ---- all of them ---- */

void eligible_places_init(struct eligible *eligible)
{
    static const struct map_options names = { .max = MAX_NODES };
    static const struct map_options columns = { .max = MAX_NODES, .borrow_keys = true };

    map_init(&eligible->by_name, &names);
    map_init(&eligible->columns, &columns);
    grow(eligible);
}

void eligible_places_done(struct eligible *eligible)
{
    for (size_t i = 0; i < eligible->place_count; i++)
        clear_place(&eligible->places[i]);
    assert(eligible->columns.count == 0);
    map_done(&eligible->by_name);
    map_done(&eligible->columns);
    mem_free(eligible->places);
    mem_free(eligible->free_slots);
}

/* slurm_node_calls.c - reading, updating and removing nodes. */
#include "slurm_private.h"

#include <stdio.h>

/* ---- updating ---- */

enum change { CHANGE_DRAIN, CHANGE_UNDRAIN, CHANGE_RESUME, CHANGE_DOWN, CHANGE_IDLE, CHANGE_NONE };

static const struct {
    const char *word;
    enum change change;
} changes[] = {
    { "DRAIN", CHANGE_DRAIN },     { "UNDRAIN", CHANGE_UNDRAIN }, { "RESUME", CHANGE_RESUME },
    { "DOWN", CHANGE_DOWN },       { "IDLE", CHANGE_IDLE },       { "POWER_UP", CHANGE_NONE },
    { "POWER_DOWN", CHANGE_NONE },
};

static bool read_change(const struct json *words, enum change *ret_change)
{
    struct str word = json_is_string(words) ? json_str(words) : json_str(json_item(words, 0));

    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
        if (str_is(word, changes[i].word)) {
            *ret_change = changes[i].change;
            return true;
        }
    return false;
}

static void clear_reason(struct ctld_node *node)
{
    ctld_set(&node->text[NODE_REASON], "");
    ctld_set(&node->text[NODE_REASON_USER], "");
    node->reason_us = 0;
}

static void set_state(struct ctld_call *call, struct ctld_node *node, enum change change)
{
    switch (change) {
    case CHANGE_DRAIN:
        node->drained = true;
        break;
    case CHANGE_UNDRAIN:
        node->drained = false;
        if (!node->down)
            clear_reason(node);
        break;
    case CHANGE_RESUME:
    case CHANGE_IDLE:
        node->drained = node->down = false;
        clear_reason(node);
        break;
    case CHANGE_DOWN:
        ctld_node_fail(call->store, node, node->text[NODE_REASON], call->user);
        break;
    case CHANGE_NONE:
        break;
    }
}

static void set_list(char **slot, const struct json *value)
{
    auto_buf struct buf text;

    buf_init(&text, CTLD_MAX_BODY);
    ctld_join(value, &text);
    ctld_set(slot, buf_text(&text));
}

/* 2031 when an active feature is not among the available ones. */
static int set_features(struct ctld_node *node, const struct json *ask)
{
    const struct json *features = json_get(ask, "features");
    const struct json *active = json_get(ask, "features_act");
    struct json_iter iter = json_iter(active);
    const struct json *item;

    if (json_exists(features)) {
        set_list(&node->text[NODE_FEATURES], features);
        set_list(&node->text[NODE_ACTIVE], features);
    }
    while (json_is_array(active) && json_next_item(&iter, &item))
        if (!ctld_list_has(node->text[NODE_FEATURES], json_str(item)))
            return 2031;
    if (json_exists(active))
        set_list(&node->text[NODE_ACTIVE], active);
    return 0;
}

static void set_texts(struct ctld_call *call, struct ctld_node *node, const struct json *ask)
{
    static const struct {
        const char *key;
        enum ctld_node_text text;
    } texts[] = {
        { "comment", NODE_COMMENT }, { "extra", NODE_EXTRA },   { "topology_str", NODE_TOPOLOGY },
        { "address", NODE_ADDRESS }, { "reason", NODE_REASON },
    };

    if (json_is_array(json_get(ask, "address")))
        set_list(&node->text[NODE_ADDRESS], json_get(ask, "address"));

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (json_is_string(json_get(ask, texts[i].key)))
            ctld_set_str(&node->text[texts[i].text], json_str(json_get(ask, texts[i].key)));
    if (json_is_string(json_get(ask, "reason"))) {
        ctld_set(&node->text[NODE_REASON_USER], call->user);
        node->reason_us = ctld_wall_us(call->store);
    }
    if (json_exists(json_get(ask, "weight")))
        node->weight = (unsigned)json_i64_or(json_at(json_get(ask, "weight"), "number"),
                                             json_i64_or(json_get(ask, "weight"), 1));
}

/* Slurm's error number, or 0. */
static int update(struct ctld_call *call, struct ctld_node *node)
{
    const struct json *state = json_get(call->body, "state");
    enum change change = CHANGE_NONE;
    int number;

    if (!node)
        return 2018;
    if (json_len(state) > 0 && !read_change(state, &change))
        return 2028;
    number = set_features(node, call->body);
    if (number != 0)
        return number;
    set_texts(call, node, call->body);
    set_state(call, node, change);
    ctld_touch(call->store, TABLE_NODES);
    if (json_exists(json_get(call->body, "features")))
        ctld_touch(call->store, TABLE_PARTITIONS);
    ctld_tell_node(call->store, SLURM_NODE_CHANGED, node, call->user);
    return 0;
}

/* Unknown words for a state never get as far as slurmctld. */
static bool state_is_refused(struct ctld_call *call)
{
    const struct json *state = json_get(call->body, "state");
    enum change change;
    char what[200], also[400];

    if (json_len(state) == 0 || read_change(state, &change))
        return false;
    (void)snprintf(what, sizeof(what), "Unknown flag \"" STR_FMT "\"",
                   STR_ARG(str_sub(json_str(json_item(state, 0)), 0, 100)));
    (void)snprintf(also, sizeof(also), "Failure to update node %s", call->name);
    call->second.number = 2180;
    call->second.what = also;
    call->second.source = call->route->source;
    ctld_refuse_as(call, 9207, what, "#/state[0]/");
    return true;
}

/* Each of a hostlist. Gives the first error, after having done what could be done. */
static int each_of(struct ctld_call *call, struct str names,
                   int (*act)(struct ctld_call *call, struct ctld_node *node))
{
    const struct hostlist *list;
    struct hostlist_iter iter;
    struct str name;
    int number = 0;

    if (!call->privileged)
        return 2010;
    if (hostlist_parse(call->arena, names, HOSTLIST_MAX_NAMES, &list, NULL) < 0)
        return 2018;
    iter = hostlist_iter(list);
    while (hostlist_next(&iter, &name)) {
        int one = act(call, map_get(&call->store->state.nodes, name));

        number = number ? number : one;
    }
    return number;
}

static void answer(struct ctld_call *call, int number)
{
    if (number != 0) {
        ctld_refuse(call, number);
        return;
    }
    ctld_begin(call);
    ctld_finish(call);
}

void ctld_run_node_update(struct ctld_call *call)
{
    if (!state_is_refused(call))
        answer(call, each_of(call, str_of(call->name), update));
}

void ctld_run_nodes_update(struct ctld_call *call)
{
    auto_buf struct buf names;

    buf_init(&names, CTLD_MAX_BODY);
    if (state_is_refused(call))
        return;
    ctld_join(json_get(call->body, "name"), &names);
    call->name = arena_strdup(call->arena, buf_text(&names));
    answer(call, each_of(call, str_of(call->name), update));
}

/* ---- removing ---- */

static int remove_one(struct ctld_call *call, struct ctld_node *node)
{
    if (!node)
        return 2018;
    if (node->jobs > 0)
        return 2016;
    ctld_node_remove(call->store, node, call->user);
    return 0;
}

void ctld_run_node_delete(struct ctld_call *call)
{
    answer(call, each_of(call, str_of(call->name), remove_one));
}

/* ---- reading ---- */

void ctld_run_node_get(struct ctld_call *call)
{
    const struct ctld_node *node = ctld_node_find(&call->store->state, call->name);

    if (!node) { /* says "No error", and has no array */
        ctld_refuse(call, 0);
        return;
    }
    ctld_begin(call);
    buf_add_text(&call->answer->body, "\"nodes\":[");
    ctld_show_node(call, node);
    buf_add_char(&call->answer->body, ']');
    ctld_put_last_update(call);
    ctld_finish(call);
}

void ctld_run_nodes_list(struct ctld_call *call)
{
    if (ctld_is_unchanged(call, TABLE_NODES)) {
        ctld_plain(call->answer, 304, "");
        return;
    }
    ctld_begin(call);
    buf_add_text(&call->answer->body, "\"nodes\":[");
    map_each (item, &call->store->state.nodes) {
        ctld_node_count_use(item->value);
        ctld_show_node(call, item->value);
    }
    buf_add_char(&call->answer->body, ']');
    ctld_put_last_update(call);
    ctld_finish(call);
}

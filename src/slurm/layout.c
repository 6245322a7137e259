/* layout.c - what a running job was given on each node: cores, memory, devices.
 *
 * Holds: every node has a name; a core map fits its sockets and cores, or is refused when asked
 * for. */
#include "slurm/object.h"

static int64_t int_at(const struct json *object, const char *key)
{
    return slurm_number_or(slurm_number_of(json_get(object, key)), 0, INT64_MAX);
}

/* What the bounds count over all nodes. */
struct decoding {
    struct arena *arena;
    size_t text, gres;
};

static const char *text_at(struct decoding *decoding, const struct json *object, const char *key)
{
    struct str text = json_str(json_get(object, key));

    decoding->text += text.len + 1;
    return decoding->text <= SLURM_MAX_OBJECT_TEXT
               ? arena_strndup(decoding->arena, text.at, text.len)
               : ""; /* refused as a whole below */
}

static int check_bounds(const struct decoding *decoding, struct err *err)
{
    if (decoding->text > SLURM_MAX_OBJECT_TEXT)
        return err_set(err, ERR_TOO_BIG, "resources with more than %d bytes of text",
                       SLURM_MAX_OBJECT_TEXT);
    if (decoding->gres > SLURM_MAX_LAYOUT_GRES)
        return err_set(err, ERR_TOO_BIG, "resources with more than %d gres", SLURM_MAX_LAYOUT_GRES);
    return 0;
}

static int decode_gres(struct decoding *decoding, const struct json *array,
                       struct slurm_layout_node *node, struct err *err)
{
    struct json_iter iter = json_iter(array);
    const struct json *item;
    struct slurm_gres *gres;

    if (!json_is_array(array))
        return 0;
    decoding->gres += json_len(array);
    if (check_bounds(decoding, err) < 0)
        return -ERR_TOO_BIG;
    gres = arena_alloc_array(decoding->arena, json_len(array) + 1, sizeof(*gres));
    node->gres = gres;
    while (json_next_item(&iter, &item))
        gres[node->gres_count++] = (struct slurm_gres){ .name = text_at(decoding, item, "name"),
                                                        .type = text_at(decoding, item, "type"),
                                                        .index = text_at(decoding, item, "index"),
                                                        .count = int_at(item, "count") };
    return check_bounds(decoding, err);
}

static int decode_node(struct decoding *decoding, const struct json *item,
                       struct slurm_layout_node *ret_node, struct err *err)
{
    struct slurm_layout_node node = {
        .name = text_at(decoding, item, "node"),
        .cores = text_at(decoding, item, "core_bitmap"),
        .sockets = int_at(item, "sockets_per_node"),
        .cores_per_socket = int_at(item, "cores_per_socket"),
        .memory = int_at(item, "mem_alloc"),
        .channel = slurm_number_of(json_get(item, "channel")),
    };

    if (check_bounds(decoding, err) < 0)
        return -ERR_TOO_BIG;
    if (node.name[0] == '\0')
        return err_set(err, ERR_INVALID, "resources of a node without name");
    if (decode_gres(decoding, json_get(item, "gres"), &node, err) < 0)
        return -ERR_TOO_BIG;
    *ret_node = node;
    return 0;
}

int slurm_layout_decode(struct arena *arena, const struct json *body,
                        struct slurm_layout *ret_layout, struct err *err)
{
    struct decoding decoding = { .arena = arena };
    struct slurm_layout_node *nodes;
    const struct json *array, *item;
    size_t count = 0;
    int result = json_want_array(body, "nodes", &array, err);

    if (result < 0)
        return result;
    if (json_len(array) > SLURM_MAX_LAYOUT_NODES)
        return err_set(err, ERR_TOO_BIG, "more than %d nodes", SLURM_MAX_LAYOUT_NODES);

    struct json_iter iter = json_iter(array);

    nodes = arena_alloc_array(arena, json_len(array) + 1, sizeof(*nodes));
    while (json_next_item(&iter, &item)) {
        result = decode_node(&decoding, item, &nodes[count++], err);
        if (result < 0)
            return result;
    }
    *ret_layout = (struct slurm_layout){ nodes, count };
    return 0;
}

int slurm_layout_cores(const struct slurm_layout_node *node, struct bitmap *ret_cores,
                       struct err *err)
{
    int64_t sockets = node->sockets, each = node->cores_per_socket;

    if (sockets <= 0 || each <= 0 || sockets > BITMAP_MAX_BITS || each > BITMAP_MAX_BITS / sockets)
        return err_set(err, ERR_INVALID, "node %s: %lld sockets of %lld cores", node->name,
                       (long long)sockets, (long long)each);
    int result = bitmap_parse_hex(str_of(node->cores), (size_t)(sockets * each), ret_cores, err);

    if (result < 0)
        err_wrap(err, "core map of node %s", node->name);
    return result;
}

/* yaml.c - YAML texts to JSON documents in two steps: libyaml's events to nodes (here), nodes to
 * JSON values (yaml_convert.c).
 *
 * The first step keeps what the text says (kind, tag, quotes, place); an alias is a pointer to its
 * node.
 *
 * Holds   an alias never points to a node that is still open, so the nodes have no cycle. */
#include "codec/yaml.h"

#include "base/mem.h"
#include "codec/yaml_private.h"

#include <stdlib.h>
#include <yaml.h>

enum {
    MAX_ANCHORS = 1000, /* in one document; they are found by going through them */
};

const struct yaml_limits yaml_limits_default = {
    .max_bytes = 4 * 1024 * 1024,
    .max_documents = 1000,
    .max_values = 400000,
};

struct anchor {
    struct str name;
    struct yaml_node *node;
    struct anchor *next; /* defined before this one */
};

struct reader {
    yaml_parser_t parser;
    const struct yaml_limits *limits;
    struct arena arena; /* nodes and anchors of the document at hand */
    struct anchor *anchors;
    size_t anchor_count;
    size_t nodes; /* read so far */
    struct yaml_output output;
};

void yaml_write_error(const struct yaml_node *node, struct err *err, enum err_class class,
                      const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)err_setv(err, class, format, args);
    va_end(args);
    (void)err_wrap(err, "YAML line %zu column %zu", node->line, node->column);
}

/* ---- events to nodes ---- */

static int syntax_error(const yaml_parser_t *parser, struct err *err)
{
    const char *problem = parser->problem ? parser->problem : "not YAML";

    if (parser->error == YAML_MEMORY_ERROR)
        return err_set(err, ERR_SYSTEM, "YAML: out of memory");
    if (parser->error == YAML_READER_ERROR)
        return err_set(err, ERR_INVALID, "YAML byte %zu: %s", parser->problem_offset, problem);
    return err_set(err, ERR_INVALID, "YAML line %zu column %zu: %s%s%s",
                   parser->problem_mark.line + 1, parser->problem_mark.column + 1, problem,
                   parser->context ? ", " : "", parser->context ? parser->context : "");
}

#define auto_event __attribute__((cleanup(yaml_event_delete)))

static int next_event(struct reader *reader, yaml_event_t *event, struct err *err)
{
    return yaml_parser_parse(&reader->parser, event) ? 0 : syntax_error(&reader->parser, err);
}

static struct str event_text(struct reader *reader, const yaml_char_t *text, size_t length)
{
    return (struct str){ arena_strndup(&reader->arena, (const char *)text, length), length };
}

static int new_node(struct reader *reader, const yaml_event_t *event, enum yaml_node_kind kind,
                    struct yaml_node **ret_node, struct err *err)
{
    struct yaml_node place = { .kind = kind,
                               .line = event->start_mark.line + 1,
                               .column = event->start_mark.column + 1 };

    if (reader->nodes++ >= reader->limits->max_values)
        return yaml_fail_at(&place, err, ERR_TOO_BIG, "more than %zu values",
                            reader->limits->max_values);
    *ret_node = arena_alloc(&reader->arena, sizeof(**ret_node));
    **ret_node = place;
    (*ret_node)->tail = &(*ret_node)->child;
    return 0;
}

static int set_tag(struct yaml_node *node, const yaml_char_t *text, struct err *err)
{
    static const struct {
        const char *text;
        enum yaml_tag tag;
        enum yaml_node_kind kind; /* that may carry it */
    } tags[] = {
        { YAML_NULL_TAG, TAG_NULL, NODE_SCALAR }, { YAML_BOOL_TAG, TAG_BOOL, NODE_SCALAR },
        { YAML_INT_TAG, TAG_INT, NODE_SCALAR },   { YAML_FLOAT_TAG, TAG_FLOAT, NODE_SCALAR },
        { YAML_STR_TAG, TAG_STR, NODE_SCALAR },   { YAML_SEQ_TAG, TAG_SEQ, NODE_SEQUENCE },
        { YAML_MAP_TAG, TAG_MAP, NODE_MAPPING },
    };
    struct str wanted = str_of((const char *)text);

    if (wanted.len == 0 || str_is(wanted, "!"))
        return 0;
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        if (tags[i].kind == node->kind && str_is(wanted, tags[i].text)) {
            node->tag = tags[i].tag;
            return 0;
        }
    }
    return yaml_fail_at(node, err, ERR_INVALID, "the tag " STR_FMT " is not for here",
                        STR_ARG(wanted));
}

static int set_anchor(struct reader *reader, struct yaml_node *node, const yaml_char_t *name,
                      struct err *err)
{
    struct anchor *anchor;

    if (!name)
        return 0;
    if (reader->anchor_count++ >= MAX_ANCHORS)
        return yaml_fail_at(node, err, ERR_TOO_BIG, "more than %d anchors", MAX_ANCHORS);
    anchor = arena_alloc(&reader->arena, sizeof(*anchor));
    anchor->name = event_text(reader, name, strlen((const char *)name));
    anchor->node = node;
    anchor->next = reader->anchors;
    reader->anchors = anchor;
    return 0;
}

static int read_alias(struct reader *reader, const yaml_event_t *event, struct yaml_node **ret_node,
                      struct err *err)
{
    const char *name = (const char *)event->data.alias.anchor;
    const struct anchor *anchor = reader->anchors;
    int rc = new_node(reader, event, NODE_ALIAS, ret_node, err);

    if (rc < 0)
        return rc;
    while (anchor && !str_is(anchor->name, name))
        anchor = anchor->next;
    if (!anchor)
        return yaml_fail_at(*ret_node, err, ERR_INVALID, "unknown anchor \"%s\"", name);
    if (anchor->node->open)
        return yaml_fail_at(*ret_node, err, ERR_INVALID, "the value of anchor \"%s\" holds itself",
                            name);
    (*ret_node)->target = anchor->node;
    return 0;
}

static int read_scalar(struct reader *reader, const yaml_event_t *event,
                       struct yaml_node **ret_node, struct err *err)
{
    int rc = new_node(reader, event, NODE_SCALAR, ret_node, err);

    if (rc < 0)
        return rc;
    (*ret_node)->text = event_text(reader, event->data.scalar.value, event->data.scalar.length);
    (*ret_node)->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    rc = set_tag(*ret_node, event->data.scalar.tag, err);
    return rc < 0 ? rc : set_anchor(reader, *ret_node, event->data.scalar.anchor, err);
}

static int read_node(struct reader *reader, const yaml_event_t *event, unsigned depth,
                     struct yaml_node **ret_node, struct err *err);

/* Reads nodes up to the end of the container. */
static int read_children(struct reader *reader, struct yaml_node *node, unsigned depth,
                         struct err *err)
{
    node->open = true;
    for (;;) {
        auto_event yaml_event_t event = { 0 };
        struct yaml_node *child;
        int rc = next_event(reader, &event, err);

        if (rc < 0)
            return rc;
        if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT)
            break;
        rc = read_node(reader, &event, depth, &child, err);
        if (rc < 0)
            return rc;
        *node->tail = child;
        node->tail = &child->next;
    }
    node->open = false;
    return 0;
}

static int read_container(struct reader *reader, const yaml_event_t *event, unsigned depth,
                          struct yaml_node **ret_node, struct err *err)
{
    bool mapping = event->type == YAML_MAPPING_START_EVENT;
    int rc = new_node(reader, event, mapping ? NODE_MAPPING : NODE_SEQUENCE, ret_node, err);

    if (rc < 0)
        return rc;
    if (depth >= JSON_MAX_DEPTH)
        return yaml_fail_at(*ret_node, err, ERR_TOO_BIG, "nested deeper than %d levels",
                            JSON_MAX_DEPTH);
    rc = set_tag(*ret_node,
                 mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag, err);
    if (rc < 0)
        return rc;
    rc = set_anchor(reader, *ret_node,
                    mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor,
                    err);
    return rc < 0 ? rc : read_children(reader, *ret_node, depth + 1, err);
}

static int read_node(struct reader *reader, const yaml_event_t *event, unsigned depth,
                     struct yaml_node **ret_node, struct err *err)
{
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return read_alias(reader, event, ret_node, err);
    case YAML_SCALAR_EVENT:
        return read_scalar(reader, event, ret_node, err);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return read_container(reader, event, depth, ret_node, err);
    default:
        return err_set(err, ERR_BUG, "YAML: unexpected event %d", (int)event->type);
    }
}

/* ---- documents ---- */

/* The arena's limit is a fuse: nodes and text are bounded before they get there. */
static void reader_init(struct reader *reader, struct str text, const struct yaml_limits *limits)
{
    const size_t per_value = sizeof(struct yaml_node) + sizeof(struct anchor) + 128;

    *reader = (struct reader){ .limits = limits };
    reader->output = (struct yaml_output){ .limits = limits, .arena = &reader->arena };
    arena_init(&reader->arena, limits->max_values * per_value + limits->max_bytes * 8 + 65536);
    if (!yaml_parser_initialize(&reader->parser))
        abort(); /* no memory */
    yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader->parser, (const unsigned char *)text.at, text.len);
}

static void reader_done(struct reader *reader)
{
    json_build_free(reader->output.build);
    yaml_parser_delete(&reader->parser);
    arena_done(&reader->arena);
}

static void start_document(struct reader *reader)
{
    arena_reset(&reader->arena);
    reader->anchors = NULL;
    reader->anchor_count = 0;
    json_build_free(reader->output.build);
    reader->output.build = json_build_new();
}

static int read_document(struct reader *reader, struct json_doc **ret_doc, struct err *err)
{
    auto_event yaml_event_t event = { 0 };
    struct yaml_node *root;
    struct json_mut *value;
    int rc = next_event(reader, &event, err);

    if (rc < 0)
        return rc;
    start_document(reader);
    rc = read_node(reader, &event, 0, &root, err);
    if (rc == 0)
        rc = yaml_convert(&reader->output, root, 0, &value, err);
    if (rc == 0)
        *ret_doc = json_freeze(value);
    return rc;
}

static int read_documents(struct reader *reader, struct yaml_docs *docs, struct err *err)
{
    size_t max = reader->limits->max_documents;

    for (;;) {
        auto_event yaml_event_t event = { 0 };
        struct json_doc *doc = NULL;
        int rc = next_event(reader, &event, err);

        if (rc < 0)
            return rc;
        if (event.type == YAML_STREAM_END_EVENT)
            return 0;
        if (event.type != YAML_DOCUMENT_START_EVENT)
            continue; /* the start of the stream, the end of a document */
        if (docs->count == max)
            return err_set(err, ERR_TOO_BIG, "YAML line %zu: more than %zu documents",
                           event.start_mark.line + 1, max);
        rc = read_document(reader, &doc, err);
        if (rc < 0)
            return rc;
        docs->docs = mem_resize_array(docs->docs, docs->count + 1, sizeof(struct json_doc *));
        docs->docs[docs->count++] = doc;
    }
}

int yaml_parse(struct str text, const struct yaml_limits *limits, struct yaml_docs *ret_docs,
               struct err *err)
{
    auto_yaml_docs struct yaml_docs docs = { 0 };
    struct reader reader;
    int rc;

    if (!limits)
        limits = &yaml_limits_default;
    if (text.len > limits->max_bytes)
        return err_set(err, ERR_TOO_BIG, "YAML of %zu bytes, at most %zu are read", text.len,
                       limits->max_bytes);
    reader_init(&reader, text, limits);
    rc = read_documents(&reader, &docs, err);
    reader_done(&reader);
    if (rc < 0)
        return rc;
    *ret_docs = docs;
    docs = (struct yaml_docs){ 0 };
    return 0;
}

void yaml_docs_done(struct yaml_docs *docs)
{
    if (!docs)
        return;
    for (size_t i = 0; i < docs->count; i++)
        json_doc_free(docs->docs[i]);
    mem_free(docs->docs);
    *docs = (struct yaml_docs){ 0 };
}

int yaml_parse_one(struct str text, const struct yaml_limits *limits, struct json_doc **ret_doc,
                   struct err *err)
{
    struct yaml_limits one = limits ? *limits : yaml_limits_default;
    auto_yaml_docs struct yaml_docs docs = { 0 };
    int rc;

    one.max_documents = 1;
    rc = yaml_parse(text, &one, &docs, err);
    if (rc < 0)
        return rc;
    *ret_doc = docs.count > 0 ? mem_take(docs.docs[0]) : json_clone(NULL);
    return 0;
}

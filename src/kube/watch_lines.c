/* watch_lines.c - see watch_lines.h.
 *
 * Holds   no line is longer than the maximum, and the buffer never holds more than one line;
 *         what is handed out depends on the bytes alone, not on how they were cut. */
#include "kube/watch_lines.h"

void watch_lines_init(struct watch_lines *lines, size_t max)
{
    *lines = (struct watch_lines){ .max = max };
    buf_init(&lines->kept, max);
    lines->piece = STR("");
}

void watch_lines_done(struct watch_lines *lines)
{
    buf_done(&lines->kept);
}

void watch_lines_reset(struct watch_lines *lines)
{
    buf_clear(&lines->kept);
    lines->kept_is_used = false;
    lines->piece = STR("");
}

void watch_lines_feed(struct watch_lines *lines, struct str piece)
{
    lines->piece = piece;
}

static int too_long(const struct watch_lines *lines, struct err *err)
{
    return err_set(err, ERR_TOO_BIG, "a line of more than %zu bytes", lines->max);
}

/* The rest of the piece is the beginning of a line. */
static int keep_rest(struct watch_lines *lines, struct err *err)
{
    buf_add_str(&lines->kept, lines->piece);
    lines->piece = STR("");
    return lines->kept.overflowed ? too_long(lines, err) : 0;
}

static int cut_line(struct watch_lines *lines, size_t length, struct str *ret_line, struct err *err)
{
    struct str part = str_sub(lines->piece, 0, length);

    lines->piece = str_sub(lines->piece, length + 1, lines->piece.len);
    if (lines->kept.len == 0) {
        *ret_line = part;
        return part.len > lines->max ? too_long(lines, err) : 0;
    }
    buf_add_str(&lines->kept, part);
    if (lines->kept.overflowed)
        return too_long(lines, err);
    *ret_line = buf_str(&lines->kept);
    lines->kept_is_used = true;
    return 0;
}

int watch_lines_next(struct watch_lines *lines, struct str *ret_line, struct err *err)
{
    struct str line = STR("");

    if (lines->kept.overflowed)
        return too_long(lines, err);
    while (line.len == 0) {
        const char *end;
        int rc;

        if (lines->kept_is_used)
            buf_clear(&lines->kept);
        lines->kept_is_used = false;
        if (lines->piece.len == 0)
            return 0;
        end = memchr(lines->piece.at, '\n', lines->piece.len);
        if (!end)
            return keep_rest(lines, err);
        rc = cut_line(lines, (size_t)(end - lines->piece.at), &line, err);
        if (rc < 0) {
            lines->kept.overflowed = true; /* it stays broken */
            return rc;
        }
        line = str_trim(line);
    }
    *ret_line = line;
    return 1;
}

/* ---- events ---- */

static const char *const type_names[] = {
    [WATCH_ADDED] = "ADDED",       [WATCH_MODIFIED] = "MODIFIED", [WATCH_DELETED] = "DELETED",
    [WATCH_BOOKMARK] = "BOOKMARK", [WATCH_ERROR] = "ERROR",
};

static int type_of(struct str name, enum watch_type *ret_type, struct err *err)
{
    for (unsigned i = 0; i < sizeof(type_names) / sizeof(type_names[0]); i++)
        if (str_is(name, type_names[i])) {
            *ret_type = (enum watch_type)i;
            return 0;
        }
    return err_set(err, ERR_INVALID, "a watch event of type '%.20s'", name.at);
}

static int read_event(struct watch_event *event, struct err *err)
{
    const struct json *root = json_root(event->doc);
    const struct json *metadata;
    struct str type;

    if (json_want_str(root, "type", &type, err) < 0 || type_of(type, &event->type, err) < 0 ||
        json_want_object(root, "object", &event->object, err) < 0)
        return -ERR_INVALID;
    metadata = json_get(event->object, "metadata");
    event->ns = json_str(json_get(metadata, "namespace"));
    event->name = json_str(json_get(metadata, "name"));
    event->version = json_str(json_get(metadata, "resourceVersion"));
    if (str_to_u64(event->version, 0, UINT64_MAX, &event->version_number, NULL) < 0)
        event->version_number = 0;
    if (event->type == WATCH_ERROR) {
        int64_t code = json_i64_or(json_get(event->object, "code"), 0);

        event->code = code > 0 && code < 1000 ? (int)code : 0;
    }
    return 0;
}

int watch_event_parse(struct str line, struct watch_event *ret_event, struct err *err)
{
    struct watch_event event = { 0 };
    int rc = json_parse(line, line.len, &event.doc, err);

    if (rc == 0)
        rc = read_event(&event, err);
    if (rc < 0) {
        watch_event_done(&event);
        return err_wrap(err, "watch line");
    }
    *ret_event = event;
    return 0;
}

void watch_event_done(struct watch_event *event)
{
    json_doc_free(event->doc);
    event->doc = NULL;
}

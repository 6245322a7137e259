/* http_reader.c - from bytes to a request, or to a reason why they are none.
 *
 * Holds: a line of the head is looked at only when the whole head has come; every '\n' of a head
 * stands behind a '\r'; what is taken never passes max_head and max_body. */
#include "io/http_reader.h"

#include "base/mem.h"
#include "io/http_text.h"

#include <string.h>

enum { MAX_SIZE_DIGITS = 8 };

enum reader_state {
    READS_HEAD,
    READS_LENGTH,    /* a body of `left` bytes */
    READS_SIZE,      /* of a chunk, in hex */
    READS_SIZE_END,  /* the LF behind it */
    READS_CHUNK,     /* `left` bytes */
    READS_CHUNK_CR,  /* what ends a chunk */
    READS_CHUNK_LF,  /* ... */
    READS_LAST_CR,   /* the empty line behind the last chunk */
    READS_LAST_LF,   /* ... */
    READS_NO_FURTHER /* a request is complete, or was refused */
};

static const struct method {
    const char *name;
    bool may_have_body; /* a body that has no meaning is somewhere to hide a request */
} methods[] = {
    { "GET", false }, { "HEAD", false }, { "DELETE", false },
    { "POST", true }, { "PUT", true },   { "PATCH", true },
};

void http_reader_init(struct http_reader *reader, size_t max_head, size_t max_body)
{
    *reader = (struct http_reader){ .max_head = max_head, .max_body = max_body };
    buf_init(&reader->head, max_head);
    buf_init(&reader->body, max_body);
}

void http_reader_done(struct http_reader *reader)
{
    mem_free_secret(reader->head.data, reader->head.cap); /* tokens */
    buf_done(&reader->body);
    mem_free(reader->lines);
    reader->head = (struct buf){ .max = reader->max_head };
    reader->lines = NULL;
}

void http_reader_next(struct http_reader *reader)
{
    size_t max_head = reader->max_head, max_body = reader->max_body;
    bool delete_has_body = reader->delete_has_body;

    http_reader_done(reader);
    http_reader_init(reader, max_head, max_body);
    reader->delete_has_body = delete_has_body;
}

bool http_reader_has_begun(const struct http_reader *reader)
{
    return reader->head.len > 0;
}

const char *http_reader_header(const struct http_reader *reader, const char *name)
{
    for (size_t i = 0; i < reader->line_count; i++)
        if (str_eq_nocase(str_of(reader->lines[i].name), str_of(name)))
            return reader->lines[i].value;
    return NULL;
}

static enum http_progress refuse(struct http_reader *reader, int status, const char *why)
{
    reader->state = READS_NO_FURTHER;
    reader->status = status;
    reader->why = why;
    return HTTP_REFUSED;
}

/* ---- the request line ---- */

static const struct method *find_method(struct str name)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (str_is(name, methods[i].name))
            return &methods[i];
    return NULL;
}

static bool has_whole_escapes(struct str path)
{
    for (size_t i = 0; i < path.len; i++)
        if (path.at[i] == '%' && (i + 2 >= path.len || str_hex_digit(path.at[i + 1]) < 0 ||
                                  str_hex_digit(path.at[i + 2]) < 0))
            return false;
    return true;
}

static enum http_progress take_request_line(struct http_reader *reader, char *line, size_t length)
{
    struct str method, target, version, path, rest;
    const struct method *known;

    if (!str_cut((struct str){ line, length }, ' ', &method, &rest) ||
        !str_cut(rest, ' ', &target, &version))
        return refuse(reader, 400, "the request line is not METHOD PATH VERSION");
    reader->is_http_1_0 = str_is(version, "HTTP/1.0");
    if (!reader->is_http_1_0 && !str_is(version, "HTTP/1.1"))
        return refuse(reader, str_starts(version, STR("HTTP/")) ? 505 : 400,
                      "only HTTP/1.1 and HTTP/1.0 are spoken here");
    known = find_method(method);
    if (!known)
        return refuse(reader, http_is_method(method) ? 501 : 400, "the method is not known");
    path = target;
    reader->query = STR("");
    (void)str_cut(target, '?', &path, &reader->query);
    if (!http_is_path(target) || !has_whole_escapes(path))
        return refuse(reader, 400, "the path is not fit for a request");
    reader->method = known->name;
    reader->may_have_body =
        known->may_have_body || (reader->delete_has_body && str_is(method, "DELETE"));
    reader->path = path.at;
    line[path.at + path.len - line] = '\0';
    reader->closes = reader->is_http_1_0;
    return HTTP_INCOMPLETE;
}

/* ---- the lines behind it ---- */

static bool has_word(struct str list, struct str word)
{
    struct str item;

    while (str_next(&list, ',', &item))
        if (str_eq_nocase(str_trim(item), word))
            return true;
    return false;
}

static bool is_host(struct str value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.at[i] == '\0' ||
            (!str_is_alnum(value.at[i]) && !strchr("!$%&'()*+,-.:;=[]_~", value.at[i])))
            return false;
    return true;
}

static enum http_progress take_length(struct http_reader *reader, struct str value)
{
    if (reader->has_length)
        return refuse(reader, 400, "Content-Length comes twice");
    if (str_to_u64(value, 0, INT64_MAX, &reader->left, NULL) < 0)
        return refuse(reader, 400, "Content-Length is not a number");
    reader->has_length = true;
    return HTTP_INCOMPLETE;
}

static enum http_progress take_coding(struct http_reader *reader, struct str value)
{
    if (reader->is_chunked || reader->is_http_1_0)
        return refuse(reader, 400, "Transfer-Encoding comes twice, or in HTTP/1.0");
    if (!str_eq_nocase(value, STR("chunked")))
        return refuse(reader, 501, "the only Transfer-Encoding is chunked");
    reader->is_chunked = true;
    return HTTP_INCOMPLETE;
}

static enum http_progress take_expectation(struct http_reader *reader, struct str value)
{
    if (!str_eq_nocase(value, STR("100-continue")))
        return refuse(reader, 417, "the only expectation is 100-continue");
    reader->expects_continue = !reader->is_http_1_0;
    return HTTP_INCOMPLETE;
}

/* What a line says about the request itself. */
static enum http_progress take_meaning(struct http_reader *reader, struct str name,
                                       struct str value)
{
    if (str_eq_nocase(name, STR("Content-Length")))
        return take_length(reader, value);
    if (str_eq_nocase(name, STR("Transfer-Encoding")))
        return take_coding(reader, value);
    if (str_eq_nocase(name, STR("Expect")))
        return take_expectation(reader, value);
    if (str_eq_nocase(name, STR("Connection")))
        reader->closes |= has_word(value, STR("close"));
    if (str_eq_nocase(name, STR("Host")) && (reader->hosts++ > 0 || !is_host(value)))
        return refuse(reader, 400, "Host comes twice, or names no host");
    return HTTP_INCOMPLETE;
}

static enum http_progress take_line(struct http_reader *reader, char *line, size_t length)
{
    struct str name, value;

    if (!str_cut((struct str){ line, length }, ':', &name, &value) || !http_is_header_name(name))
        return refuse(reader, 400, "a header line is not NAME: VALUE");
    if (!http_is_header_value(value))
        return refuse(reader, 400, "a header holds a control character");
    value = str_trim(value);
    if (reader->line_count == HTTP_READER_MAX_LINES)
        return refuse(reader, 431, "there are too many headers");
    line[name.len] = '\0';
    line[value.at + value.len - line] = '\0';
    reader->lines[reader->line_count++] = (struct http_line){ name.at, value.at };
    return take_meaning(reader, name, value);
}

/* ---- the head as a whole ---- */

static size_t count_lines(const struct buf *head)
{
    size_t count = 0;

    for (size_t i = 0; i < head->len; i++)
        count += head->data[i] == '\n';
    return count;
}

static enum http_progress complete(struct http_reader *reader)
{
    reader->state = READS_NO_FURTHER;
    return HTTP_COMPLETE;
}

static enum http_progress expect_body(struct http_reader *reader)
{
    bool has_body = reader->is_chunked || reader->left > 0;

    if (reader->hosts == 0 && !reader->is_http_1_0)
        return refuse(reader, 400, "Host is missing");
    if (reader->is_chunked && reader->has_length)
        return refuse(reader, 400, "Content-Length and Transfer-Encoding exclude each other");
    if (has_body && !reader->may_have_body)
        return refuse(reader, 400, "this method has no body");
    if (reader->left > reader->max_body)
        return refuse(reader, 413, "the body is too large");
    if (!has_body)
        return complete(reader);
    reader->state = reader->is_chunked ? READS_SIZE : READS_LENGTH;
    return HTTP_INCOMPLETE;
}

static enum http_progress read_lines(struct http_reader *reader)
{
    char *text = reader->head.data;
    size_t end = reader->head.len - 2; /* of the last line but the empty one */
    size_t most = count_lines(&reader->head);
    enum http_progress result = HTTP_INCOMPLETE;

    reader->lines = mem_alloc_array(most < HTTP_READER_MAX_LINES ? most : HTTP_READER_MAX_LINES,
                                    sizeof(*reader->lines));
    for (size_t at = 0; result == HTTP_INCOMPLETE && at < end;) {
        char *line = text + at;
        size_t length = (size_t)((char *)memchr(line, '\n', reader->head.len - at) - line) - 1;

        result =
            at == 0 ? take_request_line(reader, line, length) : take_line(reader, line, length);
        at += length + 2;
    }
    return result == HTTP_INCOMPLETE ? expect_body(reader) : result;
}

static bool ends_with(const struct buf *head, struct str end)
{
    return str_ends(buf_str(head), end);
}

static enum http_progress read_head(struct http_reader *reader, struct str *in)
{
    while (in->len > 0) {
        const char *end = memchr(in->at, '\n', in->len);
        size_t length = end ? (size_t)(end - in->at) + 1 : in->len;

        if (length > reader->max_head - reader->head.len)
            return refuse(reader, 431, "the headers are too large");
        buf_add(&reader->head, in->at, length);
        *in = str_sub(*in, length, in->len);
        if (!end)
            break;
        if (!ends_with(&reader->head, STR("\r\n")) || reader->head.len == 2)
            return refuse(reader, 400, "a line does not end with CR LF, or the first is empty");
        if (ends_with(&reader->head, STR("\r\n\r\n")))
            return read_lines(reader);
    }
    return HTTP_INCOMPLETE;
}

/* ---- the body ---- */

static void read_bytes(struct http_reader *reader, struct str *in)
{
    size_t length = reader->left < in->len ? (size_t)reader->left : in->len;

    buf_add(&reader->body, in->at, length);
    reader->left -= length;
    *in = str_sub(*in, length, in->len);
}

static enum http_progress read_size_digit(struct http_reader *reader, char c)
{
    int digit = str_hex_digit(c);

    if (c == '\r' && reader->digits > 0) {
        reader->digits = 0;
        reader->state = READS_SIZE_END;
        return HTTP_INCOMPLETE;
    }
    if (digit < 0 || reader->digits == MAX_SIZE_DIGITS)
        return refuse(reader, 400, "the size of a chunk is not a number");
    reader->left = reader->left * 16 + (uint64_t)digit;
    reader->digits++;
    return HTTP_INCOMPLETE;
}

/* A byte around the chunks, which allows no other. */
static enum http_progress read_mark(struct http_reader *reader, char c)
{
    static const struct {
        char c;
        enum reader_state next;
    } marks[] = {
        [READS_SIZE_END] = { '\n', READS_CHUNK },     [READS_CHUNK_CR] = { '\r', READS_CHUNK_LF },
        [READS_CHUNK_LF] = { '\n', READS_SIZE },      [READS_LAST_CR] = { '\r', READS_LAST_LF },
        [READS_LAST_LF] = { '\n', READS_NO_FURTHER },
    };
    enum reader_state was = (enum reader_state)reader->state;

    if (c != marks[was].c)
        return refuse(reader, 400, "a chunk has an extension, a trailer, or the wrong size");
    reader->state = marks[was].next;
    if (was == READS_SIZE_END && reader->left > reader->max_body - reader->body.len)
        return refuse(reader, 413, "the body is too large");
    if (was == READS_SIZE_END && reader->left == 0)
        reader->state = READS_LAST_CR;
    return was == READS_LAST_LF ? HTTP_COMPLETE : HTTP_INCOMPLETE;
}

static enum http_progress read_chunks(struct http_reader *reader, struct str *in)
{
    enum http_progress result = HTTP_INCOMPLETE;

    while (result == HTTP_INCOMPLETE && in->len > 0) {
        char c = in->at[0];

        if (reader->state == READS_CHUNK) {
            read_bytes(reader, in);
            if (reader->left == 0)
                reader->state = READS_CHUNK_CR;
            continue;
        }
        *in = str_sub(*in, 1, in->len);
        result = reader->state == READS_SIZE ? read_size_digit(reader, c) : read_mark(reader, c);
    }
    return result;
}

enum http_progress http_reader_take(struct http_reader *reader, struct str *in)
{
    enum http_progress result = HTTP_INCOMPLETE;

    if (reader->state == READS_HEAD)
        result = read_head(reader, in);
    if (result != HTTP_INCOMPLETE || reader->state == READS_HEAD)
        return result;
    if (reader->state != READS_LENGTH)
        return read_chunks(reader, in);
    read_bytes(reader, in);
    return reader->left == 0 ? complete(reader) : HTTP_INCOMPLETE;
}

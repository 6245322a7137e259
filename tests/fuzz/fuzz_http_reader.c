/* fuzz_http_reader.c - the bytes of a connection mean the same however they are cut, and what is a
 * request keeps to its bounds.
 *
 * The first byte is the size of the pieces. */
#include "io/http_reader.h"

#include "io/http_text.h"

#include <stdlib.h>

enum { MAX = 1 << 14, MAX_HEAD = 1000, MAX_BODY = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_request(const struct http_reader *reader)
{
    bool has_body = reader->body.len > 0;

    check(http_is_method(str_of(reader->method)) && http_is_path(str_of(reader->path)));
    check(reader->body.len <= MAX_BODY && reader->line_count <= HTTP_READER_MAX_LINES);
    check(!has_body || reader->method[0] == 'P');
    check(!has_body || !http_reader_header(reader, "content-length") ||
          !http_reader_header(reader, "transfer-encoding"));
    for (size_t i = 0; i < reader->line_count; i++)
        check(http_is_header_name(str_of(reader->lines[i].name)) &&
              http_is_header_value(str_of(reader->lines[i].value)));
}

/* Appends what the reader makes of the bytes, as text. */
static void read_all(struct str bytes, size_t piece, struct buf *out)
{
    struct http_reader reader;
    enum http_progress progress = HTTP_INCOMPLETE;

    http_reader_init(&reader, MAX_HEAD, MAX_BODY);
    while (bytes.len > 0 && progress != HTTP_REFUSED) {
        struct str part = str_sub(bytes, 0, piece);
        size_t length = part.len;

        progress = http_reader_take(&reader, &part);
        check(progress != HTTP_INCOMPLETE || part.len == 0);
        bytes = str_sub(bytes, length - part.len, bytes.len);
        if (progress != HTTP_COMPLETE)
            continue;
        check_request(&reader);
        buf_printf(out, "%s %s %zu %d\n", reader.method, reader.path, reader.line_count,
                   reader.closes);
        buf_add_str(out, buf_str(&reader.body));
        http_reader_next(&reader);
    }
    if (progress == HTTP_REFUSED)
        buf_printf(out, "%d %s", reader.status, reader.why);
    http_reader_done(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole, cut;

    if (size < 1 || size > MAX)
        return 0;

    struct str bytes = { (const char *)data + 1, size - 1 };

    buf_init(&whole, 4 * MAX);
    buf_init(&cut, 4 * MAX);
    read_all(bytes, SIZE_MAX, &whole);
    read_all(bytes, (size_t)data[0] + 1, &cut);
    check(str_eq(buf_str(&whole), buf_str(&cut)));
    buf_done(&whole);
    buf_done(&cut);
    return 0;
}

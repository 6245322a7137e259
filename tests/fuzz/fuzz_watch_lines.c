/* fuzz_watch_lines.c - a stream gives the same lines however it is cut, none over the bound, and
 * any line is refused or read as an event. The first two bytes choose the cuts and the bound. */
#include "base/mem.h"
#include "kube/watch_lines.h"

#include <stdlib.h>

enum { MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_event(struct str line)
{
    auto_watch_event struct watch_event event = { 0 };
    struct err err = { 0 };

    if (watch_event_parse(line, &event, &err) < 0) {
        must(err.class == ERR_INVALID || err.class == ERR_TOO_BIG);
        return;
    }
    must(event.type <= WATCH_ERROR && json_is_object(event.object));
    must(event.version.len > 0 || event.version_number == 0);
    must(event.type == WATCH_ERROR || event.code == 0);
}

/* Everything handed out, each line behind its length; ends early when the bound is broken. */
static void cut(struct str stream, size_t step, size_t max, struct buf *out)
{
    struct watch_lines lines;
    struct str line;
    int rc = 0;

    watch_lines_init(&lines, max);
    while (stream.len > 0 && rc >= 0) {
        size_t length = stream.len < step ? stream.len : step;
        auto_free char *piece = mem_strndup(stream.at, length);

        stream = str_sub(stream, length, stream.len);
        watch_lines_feed(&lines, (struct str){ piece, length });
        while ((rc = watch_lines_next(&lines, &line, NULL)) > 0) {
            must(line.len > 0 && line.len <= max && !memchr(line.at, '\n', line.len));
            buf_printf(out, "%zu:", line.len);
            buf_add_str(out, line);
            check_event(line);
        }
    }
    must(rc == 0 || rc == -ERR_TOO_BIG);
    watch_lines_done(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_buf struct buf whole = { .max = MAX * 4 }, pieces = { .max = MAX * 4 };
    struct str stream;
    size_t step, max;

    if (size < 3 || size > MAX)
        return 0;
    step = 1 + data[0] % 64;
    max = data[1] < 32 ? data[1] + (size_t)1 : MAX;
    stream = (struct str){ (const char *)data + 2, size - 2 };
    cut(stream, stream.len, max, &whole);
    cut(stream, step, max, &pieces);
    /* A cut line over the bound is found out before its end, so one may stop a little earlier. */
    must(max < MAX ? str_starts(buf_str(&whole), buf_str(&pieces))
                   : str_eq(buf_str(&whole), buf_str(&pieces)));
    return 0;
}

/* text.c - tables, ages and times of the terminal commands. */
#include "cli/text.h"

#include "codec/timestamp.h"

#include <inttypes.h>

enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

void text_table_init(struct text_table *table, struct arena *arena, unsigned columns)
{
    *table = (struct text_table){ .arena = arena, .columns = columns };
}

void text_table_add(struct text_table *table, const char *const *cells)
{
    if (table->rows == TEXT_MAX_ROWS)
        return;
    if (table->rows == table->capacity) {
        size_t capacity = table->capacity ? 2 * table->capacity : 64;
        const char **larger =
            arena_alloc_array(table->arena, capacity * table->columns, sizeof(*larger));

        if (table->rows > 0)
            memcpy(larger, table->cells, table->rows * table->columns * sizeof(*larger));
        table->cells = larger;
        table->capacity = capacity;
    }
    memcpy(table->cells + table->rows++ * table->columns, cells,
           table->columns * sizeof(*table->cells));
}

static size_t width(const char *text) /* in characters */
{
    size_t count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

void text_table_write(const struct text_table *table, bool with_head, struct buf *out)
{
    size_t widths[TEXT_MAX_COLUMNS] = { 0 };

    for (size_t i = 0; i < table->rows * table->columns; i++) {
        size_t *most = &widths[i % table->columns], own = width(table->cells[i]);

        *most = own > *most ? own : *most;
    }
    for (size_t row = with_head ? 0 : 1; row < table->rows; row++) {
        for (unsigned i = 0; i < table->columns; i++) {
            const char *cell = table->cells[row * table->columns + i];

            buf_add_text(out, cell);
            for (size_t at = width(cell); i + 1 < table->columns && at < widths[i] + 1; at++)
                buf_add_char(out, ' ');
        }
        buf_add_char(out, '\n');
    }
}

const char *text_age(struct arena *arena, int64_t now_s, int64_t then_s)
{
    int64_t age = now_s - then_s;

    if (then_s <= 0 || age < 0)
        return "-";
    if (age < 2 * MINUTE)
        return arena_printf(arena, "%" PRId64 "s", age);
    if (age < 2 * HOUR)
        return arena_printf(arena, "%" PRId64 "m", age / MINUTE);
    return age < 2 * DAY ? arena_printf(arena, "%" PRId64 "h", age / HOUR)
                         : arena_printf(arena, "%" PRId64 "d", age / DAY);
}

const char *text_clock(struct arena *arena, int64_t now_s, int64_t then_s)
{
    auto_buf struct buf text;

    buf_init(&text, 64);
    if (then_s <= 0 || timestamp_print(then_s * TIMESTAMP_SECOND, &text, NULL) < 0)
        return "-";
    if (now_s / DAY == then_s / DAY)
        return arena_strndup(arena, text.data + strlen("2026-11-16T"), strlen("15:40"));
    return arena_strndup(arena, text.data, strlen("2026-11-16T15:40"));
}

int64_t text_seconds(struct str rfc3339)
{
    int64_t time;

    return timestamp_parse(rfc3339, &time, NULL) < 0 ? 0 : timestamp_to_seconds(time);
}

/* ---- what must not reach a terminal ---- */

/* One character of UTF-8: how many bytes it has; 0 when there is none. Overlong forms, surrogates
 * and numbers beyond Unicode are none. */
static size_t take_character(struct str text, uint32_t *ret_character)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    unsigned char first = (unsigned char)text.at[0];
    size_t size = first < 0x80             ? 1
                  : (first & 0xe0) == 0xc0 ? 2
                  : (first & 0xf0) == 0xe0 ? 3
                  : (first & 0xf8) == 0xf0 ? 4
                                           : 0;
    uint32_t character = size == 1 ? first : first & (0x7fU >> size);

    if (size == 0 || size > text.len)
        return 0;
    for (size_t i = 1; i < size; i++) {
        if (((unsigned char)text.at[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | ((unsigned char)text.at[i] & 0x3f);
    }
    if (character < least[size] || character > 0x10ffff ||
        (character >= 0xd800 && character < 0xe000))
        return 0;
    *ret_character = character;
    return size;
}

/* A terminal may obey the controls of C1 as it obeys ESC. The others make a text read otherwise
 * than it is written: marks, embeddings, overrides and isolates of direction; ends of lines. */
static bool is_unsafe(uint32_t character)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        { 0x7f, 0x9f },     { 0x61c, 0x61c },   { 0x200e, 0x200f },
        { 0x2028, 0x202e }, { 0x2066, 0x2069 },
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (character >= ranges[i].first && character <= ranges[i].last)
            return true;
    return false;
}

void text_add_safe(struct buf *out, struct str text, bool is_json)
{
    while (text.len > 0) {
        uint32_t character = 0;
        size_t size = take_character(text, &character);

        if (size == 0)
            buf_add_char(out, '?');
        else if (!is_unsafe(character))
            buf_add(out, text.at, size);
        else if (is_json)
            buf_printf(out, "\\u%04x", (unsigned)character);
        text = str_sub(text, size > 0 ? size : 1, text.len);
    }
}

const char *text_plain(struct arena *arena, struct str text)
{
    auto_buf struct buf safe;
    char *plain;

    buf_init(&safe, text.len + 1);
    text_add_safe(&safe, text, false);
    plain = arena_strdup(arena, buf_text(&safe));
    for (char *at = plain; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
    return plain;
}

bool text_lists(struct str list, struct str name)
{
    struct str one;

    while (list.len > 0 && str_next(&list, ',', &one))
        if (str_eq(one, name))
            return true;
    return false;
}

const char *text_plain_vprintf(struct arena *arena, const char *format, va_list args)
{
    auto_buf struct buf text;

    buf_init(&text, TEXT_MAX_LINE);
    buf_vprintf(&text, format, args);
    return text_plain(arena, buf_str(&text));
}

/* text.h - what the terminal commands print: tables whose columns fit, ages, and nothing that could
 * drive the terminal. */
#ifndef SLINC_CLI_TEXT_H
#define SLINC_CLI_TEXT_H

#include "base/arena.h"
#include "base/buf.h"

#include <stdarg.h>
#include <stdbool.h>

enum { TEXT_MAX_COLUMNS = 16, TEXT_MAX_ROWS = 1 << 20, TEXT_MAX_LINE = 8192 };

struct text_table {
    struct arena *arena;
    unsigned columns;
    const char **cells; /* row by row */
    size_t rows, capacity;
};

/* Every row has as many cells as the first, which is the head. Cells are borrowed. */
void text_table_init(struct text_table *table, struct arena *arena, unsigned columns);
void text_table_add(struct text_table *table, const char *const *cells);
#define text_table_row(table, ...) text_table_add((table), (const char *const[]){ __VA_ARGS__ })
void text_table_write(const struct text_table *table, bool with_head, struct buf *out);

/* "45s", "14m", "3h", "2d"; "-" for a time that is not known (0) or to come. */
const char *text_age(struct arena *arena, int64_t now_s, int64_t then_s);
/* "15:40", or with its day when that is another one; UTC. "-" for 0. */
const char *text_clock(struct arena *arena, int64_t now_s, int64_t then_s);
int64_t text_seconds(struct str rfc3339); /* since 1970; 0 for what is no time */

/* Whether "a,b,c" has the name. */
bool text_lists(struct str list, struct str name);

/* Appends text that cannot drive a terminal or change the order of what is read: the controls of C1
 * and marks of direction are left out, or escaped as in a JSON string; what is no UTF-8 becomes
 * '?'. The controls of C0 stay, for colours and lines are made of them. */
void text_add_safe(struct buf *out, struct str text, bool is_json);

/* The same, and the controls of C0 are blanks. */
const char *text_plain(struct arena *arena, struct str text);
const char *text_plain_vprintf(struct arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

#endif

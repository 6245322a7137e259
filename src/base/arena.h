/* arena.h - memory for one plan or one request, given back all at once.
 *
 * Pieces are never freed by hand. The limit is a fuse, not a policy: inputs are bounded before they
 * are copied in, so reaching it is a defect and aborts.
 *
 * Work whose size depends on what users make has a budget below the limit: allocations beyond the
 * budget still succeed, and when the work is done its owner asks arena_is_over_budget and drops the
 * result. So no allocation fails in the middle of the work. */
#ifndef SLINC_BASE_ARENA_H
#define SLINC_BASE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *block; /* newest first */
    size_t used, limit;        /* bytes handed out in all, and the fuse */
    size_t budget;             /* bytes that the work may take; at most limit */
};

void arena_init(struct arena *arena, size_t limit); /* the budget is the limit */
void arena_init_budget(struct arena *arena, size_t budget, size_t limit);
bool arena_is_over_budget(const struct arena *arena);
void arena_done(struct arena *arena);
void arena_reset(struct arena *arena); /* forgets everything, keeps one block for the next round */

void *arena_alloc(struct arena *arena, size_t size); /* zeroed, aligned for any type */
void *arena_alloc_array(struct arena *arena, size_t count, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
/* Exactly length bytes, and a NUL. */
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0), nonnull(2)));

#define auto_arena __attribute__((cleanup(arena_done)))

#endif

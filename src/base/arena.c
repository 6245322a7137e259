/* arena.c - a chain of blocks, filled from the front of the newest.
 *
 * Holds: every piece is zeroed and aligned for any type; `used` never passes `limit`. In sanitizer
 * builds the unused parts are poisoned and a gap stands behind each piece, so that a write past its
 * end, or a use after a reset, is caught as it would be on the heap. */
#include "base/arena.h"

#include "base/mem.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif

#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#define GAP                  16
#define poison(at, length)   ASAN_POISON_MEMORY_REGION(at, length)
#define unpoison(at, length) ASAN_UNPOISON_MEMORY_REGION(at, length)
#else
#define GAP                  0
#define poison(at, length)   ((void)(at), (void)(length))
#define unpoison(at, length) ((void)(at), (void)(length))
#endif

enum {
    ALIGN = alignof(max_align_t),
    FIRST_BLOCK = 4 * 1024,     /* most requests and plans fit in one of these */
    LARGEST_BLOCK = 256 * 1024, /* blocks double up to here */
};

struct arena_block {
    struct arena_block *next;
    size_t size, used; /* of data; used is a multiple of ALIGN */
    alignas(max_align_t) char data[];
};

static void arena_burst(const struct arena *arena, size_t size)
{
    fprintf(stderr, "arena: %zu bytes asked for, %zu of %zu used\n", size, arena->used,
            arena->limit);
    abort();
}

static size_t round_up(size_t size)
{
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

static struct arena_block *block_new(size_t size)
{
    struct arena_block *block = mem_alloc(sizeof(*block) + size);

    block->size = size;
    poison(block->data, size);
    return block;
}

static void block_free(struct arena_block *block)
{
    unpoison(block->data, block->size);
    mem_free(block);
}

static size_t next_block_size(const struct arena *arena)
{
    size_t size = arena->block ? arena->block->size * 2 : FIRST_BLOCK;

    return size > LARGEST_BLOCK ? LARGEST_BLOCK : size;
}

/* A block with room for `size`. A piece that would take most of a block gets one to itself, put
 * behind the newest, so that the newest goes on being filled. */
static struct arena_block *block_for(struct arena *arena, size_t size)
{
    struct arena_block *newest = arena->block;

    if (newest && newest->size - newest->used >= size)
        return newest;

    size_t regular = next_block_size(arena);

    if (newest && size > regular / 2) {
        struct arena_block *own = block_new(size);

        own->next = newest->next;
        newest->next = own;
        return own;
    }

    struct arena_block *block = block_new(size > regular ? size : regular);

    block->next = newest;
    arena->block = block;
    return block;
}

void arena_init(struct arena *arena, size_t limit)
{
    arena_init_budget(arena, limit, limit);
}

void arena_init_budget(struct arena *arena, size_t budget, size_t limit)
{
    *arena = (struct arena){ .limit = limit, .budget = budget };
}

bool arena_is_over_budget(const struct arena *arena)
{
    return arena->used > arena->budget;
}

static void free_chain(struct arena_block *block)
{
    while (block) {
        struct arena_block *next = block->next;

        block_free(block);
        block = next;
    }
}

void arena_done(struct arena *arena)
{
    if (!arena)
        return;
    free_chain(arena->block);
    arena->block = NULL;
    arena->used = 0;
}

void arena_reset(struct arena *arena)
{
    struct arena_block *kept = arena->block;

    arena->used = 0;
    if (!kept)
        return;
    free_chain(kept->next);
    kept->next = NULL;
    kept->used = 0;
    poison(kept->data, kept->size);
    if (kept->size > LARGEST_BLOCK)
        arena_done(arena); /* one giant must not be held for ever */
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t room = arena->limit - arena->used;

    if (size > room || size > SIZE_MAX / 2) /* half: the rounding below must not wrap */
        arena_burst(arena, size);

    size_t rounded = round_up(size);
    struct arena_block *block = block_for(arena, rounded + GAP);
    char *piece = block->data + block->used;

    block->used += rounded + GAP;
    arena->used += rounded < room ? rounded : room; /* many small pieces count for what they take */
    unpoison(piece, size);
    if (size > 0)
        memset(piece, 0, size); /* the block may have been used before a reset */
    return piece;
}

void *arena_alloc_array(struct arena *arena, size_t count, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(count, size, &total))
        arena_burst(arena, SIZE_MAX);
    return arena_alloc(arena, total);
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
    if (length == SIZE_MAX)
        arena_burst(arena, length);

    char *copy = arena_alloc(arena, length + 1);

    if (length > 0)
        memcpy(copy, text, length);
    return copy;
}

char *arena_vprintf(struct arena *arena, const char *format, va_list args)
{
    va_list again;

    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);

    if (length < 0)
        length = 0; /* only wide characters can fail to print; we have none */

    char *text = arena_alloc(arena, (size_t)length + 1);

    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

/* mem.c - allocation that aborts instead of failing, and leaves nothing behind.
 *
 * Holds: no function here returns NULL, whatever the size; products of sizes never wrap; memory
 *        that may have held a key or a token is overwritten before it goes back: all but what is
 *        larger than any Secret. */
#include "base/mem.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A Secret has at most 1 MiB, as an answer in base64 half as much again, and a buffer doubles. Only
 * lists are larger, and Secrets are never listed. */
enum { MAX_WIPED = 3 << 20 };

static void *or_abort(void *memory, size_t count, size_t size)
{
    if (!memory) {
        fprintf(stderr, "out of memory: %zu x %zu bytes\n", count, size);
        abort();
    }
    return memory;
}

/* The product, and at least one byte: what the C library returns for none may be NULL. */
static size_t bytes_of(size_t count, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(count, size, &total))
        or_abort(NULL, count, size);
    return total > 0 ? total : 1;
}

void *mem_alloc(size_t size)
{
    return mem_alloc_array(1, size);
}

void *mem_alloc_array(size_t count, size_t size)
{
    return or_abort(calloc(1, bytes_of(count, size)), count, size);
}

/* What shrinks stays where it is. What grows is copied here: realloc would leave the old copy. */
void *mem_resize_array(void *old, size_t count, size_t size)
{
    size_t wanted = bytes_of(count, size), had = old ? malloc_usable_size(old) : 0;
    void *new;

    if (old && (wanted <= had || had > MAX_WIPED))
        return or_abort(realloc(old, wanted), count, size);
    new = or_abort(malloc(wanted), count, size);
    if (old)
        memcpy(new, old, had);
    mem_free(old);
    return new;
}

char *mem_strdup(const char *text)
{
    return mem_strndup(text, strlen(text));
}

char *mem_strndup(const char *text, size_t length)
{
    if (length == SIZE_MAX)
        or_abort(NULL, 1, length);

    char *copy = mem_alloc(length + 1);

    if (length > 0)
        memcpy(copy, text, length);
    return copy;
}

void mem_free(void *memory)
{
    size_t size;

    if (!memory)
        return;
    size = malloc_usable_size(memory);
    if (size <= MAX_WIPED)
        explicit_bzero(memory, size);
    free(memory);
}

void mem_free_secret(void *memory, size_t size)
{
    if (!memory)
        return;
    explicit_bzero(memory, size);
    free(memory);
}

void mem_freep(void *pointer_to_pointer)
{
    void *memory;

    /* Copied as bytes: the variable is a pointer of some type, not necessarily void *. */
    memcpy(&memory, pointer_to_pointer, sizeof(memory));
    mem_free(memory);
    memory = NULL;
    memcpy(pointer_to_pointer, &memory, sizeof(memory));
}

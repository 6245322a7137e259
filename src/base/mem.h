/* mem.h - memory that never comes back NULL, and the cleanup attributes.
 *
 * Every size is bounded before it gets here, so running out means that the machine is out of
 * memory: the process says so and aborts. Nothing above this layer checks for NULL.
 *
 * What goes back is overwritten first, so keys and tokens do not outlive their use. mem_free_secret
 * is for those whose size is known: it does so for blocks of any size. */
#ifndef SLINC_BASE_MEM_H
#define SLINC_BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size);                                 /* zeroed */
void *mem_alloc_array(size_t count, size_t size);             /* zeroed; overflow aborts */
void *mem_resize_array(void *old, size_t count, size_t size); /* the new part is not zeroed */
char *mem_strdup(const char *text);
char *mem_strndup(const char *text, size_t length); /* exactly length bytes, and a NUL */
void mem_free(void *memory);                        /* takes NULL */

void mem_free_secret(void *memory, size_t size);

void mem_freep(void *pointer_to_pointer);

/* `auto_free char *text = ...;` is freed when it goes out of scope. */
#define auto_free __attribute__((cleanup(mem_freep)))

/* Hands an auto_free pointer over: the variable is NULL afterwards. */
#define mem_take(pointer)                                                                          \
    __extension__({                                                                                \
        __typeof__(pointer) taken_ = (pointer);                                                    \
        (pointer) = NULL;                                                                          \
        taken_;                                                                                    \
    })

#endif

/* memory.c - the functions of base/mem.h under the names that libraries want. */
#include "io/memory.h"

#include "base/mem.h"

#include <curl/curl.h>
#include <event2/event.h>
#include <openssl/crypto.h>

static void *get(size_t size)
{
    return mem_resize_array(NULL, size, 1);
}

static void *get_zeroed(size_t count, size_t size)
{
    return mem_alloc_array(count, size);
}

static void *resize(void *old, size_t size)
{
    return mem_resize_array(old, size, 1);
}

static void *get_for_openssl(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return get(size);
}

static void *resize_for_openssl(void *old, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    if (size > 0)
        return resize(old, size);
    mem_free(old);
    return NULL;
}

static void free_for_openssl(void *memory, const char *file, int line)
{
    (void)file;
    (void)line;
    mem_free(memory);
}

void io_share_memory(void)
{
    (void)CRYPTO_set_mem_functions(get_for_openssl, resize_for_openssl, free_for_openssl);
    event_set_mem_functions(get, resize, mem_free);
    (void)curl_global_init_mem(CURL_GLOBAL_DEFAULT, get, mem_free, resize, mem_strdup, get_zeroed);
}

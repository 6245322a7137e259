/* reload.h - a file whose content may change under us: tokens, certificates, configuration.
 *
 * The file is read again every so often. That follows symbolic links each time, so the way the
 * kubelet swaps mounted secrets (..data) is just a change. When the file is gone, empty, too big or
 * unreadable, the last good content stays, and `stale` is told. */
#ifndef SLINC_IO_RELOAD_H
#define SLINC_IO_RELOAD_H

#include "base/err.h"
#include "base/str.h"
#include "io/loop.h"

struct reload_file;

struct reload_options {
    const char *path;  /* copied */
    size_t max;        /* bytes; more is an error. 0 = 1 MiB */
    int64_t period_us; /* between looks; 0 = 10 s */

    /* From the loop only. `changed` when the content is new, after it was taken; `stale` once when
     * the file stops being readable, and again when the reason changes. Both may be NULL; both may
     * free the file. */
    void (*changed)(void *context, struct str content);
    void (*stale)(void *context, const struct err *why);
    void *context;
};

/* Reads the file before it returns; a first read that fails is an error. */
int reload_file_new(struct loop *loop, const struct reload_options *options,
                    struct reload_file **ret_file, struct err *err);
void reload_file_free(struct reload_file *file);

/* The last good content; borrowed until the loop runs again. The bytes are wiped when replaced. */
struct str reload_file_content(const struct reload_file *file);

/* Looks now instead of at the next period; calls back from inside. */
void reload_file_look(struct reload_file *file);

/* A whole file, once: 0 and bytes to be given to mem_free_secret(at, len + 1); a NUL stands behind
 * them. An empty file and anything but a regular file is an error. */
int reload_read(const char *path, size_t max, char **ret_bytes, size_t *ret_length,
                struct err *err);

#endif

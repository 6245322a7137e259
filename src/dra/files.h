/* files.h - small files, read and written whole: of sysfs and control groups, and our own.
 *
 * The hook program uses these too, so they need nothing but src/base. */
#ifndef SLINC_DRA_FILES_H
#define SLINC_DRA_FILES_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <sys/types.h>

enum { FILES_MAX_PATH = 4096 };

/* Puts the content into `out`, which is emptied first and has the maximum. -ERR_NOT_FOUND when
 * there is no such file. */
int file_read(const char *path, struct buf *out, struct err *err);

/* In place, by one write; the file must exist: control groups and sysfs. */
int file_write(const char *path, struct str content, struct err *err);

/* Replaces the file, or makes it: readers see the old content or the new one, also after a crash.
 */
int file_replace(const char *path, struct str content, mode_t mode, struct err *err);

int file_remove(const char *path, struct err *err); /* one that is absent is fine */
bool file_exists(const char *path);

int folder_make(const char *path, mode_t mode, struct err *err); /* and the folders above it */

/* Joins parts with '/' into `out`, which is emptied first and gets the maximum FILES_MAX_PATH. A
 * path that is too long is empty, and no file. */
#define path_join(out, ...) path_join_parts((out), (const char *const[]){ __VA_ARGS__, NULL })
const char *path_join_parts(struct buf *out, const char *const *parts);

#endif

/* legacy_private.h - what the files of the old and of slurmctld's own series share. */
#ifndef SLINC_EXPORTER_LEGACY_PRIVATE_H
#define SLINC_EXPORTER_LEGACY_PRIVATE_H

#include "codec/json.h"
#include "engine/metrics.h"

struct legacy_family { /* its name is put together */
    char name[96];
    struct metric_family row;
};

struct legacy_row {                  /* a figure of slurmctld's statistics */
    const char *name, *field, *help; /* field: with '/' before a member */
};
void legacy_write_rows(const struct legacy_row *rows, size_t count, const struct json *statistics,
                       struct buf *out);

void legacy_head(struct legacy_family *family, struct buf *out);
void legacy_write_diag(const struct json *statistics, struct buf *out);
void native_write_diag(const struct json *statistics, struct buf *out);

#endif

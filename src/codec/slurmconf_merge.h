/* slurmconf_merge.h - options of slurm.conf and its relatives that two parties have values for: a
 * user, whose text is taken as it is, and the program. */
#ifndef SLINC_CODEC_SLURMCONF_MERGE_H
#define SLINC_CODEC_SLURMCONF_MERGE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct conf_merge_row {
    const char *key;
    const char *values; /* with commas between */
    /* Our values stand nowhere else: they give a line unless the user names all of them. Else they
     * give one if the user names the option. */
    bool is_only_here;
};

/* The last section: what the user's text says of options of which both sides have a part. `rows`
 * are the options with our values. */
int conf_merged(const struct conf_merge_row *rows, size_t count, struct str users,
                struct arena *arena, struct buf *out, struct err *err);

/* "#", then "### TITLE ###". */
void conf_section(struct buf *out, const char *title);

#endif

/* split.h - a long answer taken apart while it arrives: the elements of one array, and the rest.
 *
 * Elements come out whole and one at a time, so that neither the answer nor its tree is ever in
 * memory as a whole. What is left is the answer with that array empty. This only finds where things
 * begin and end; whether an element or the rest is JSON is for json_parse to say. */
#ifndef SLINC_SLURM_SPLIT_H
#define SLINC_SLURM_SPLIT_H

#include "base/buf.h"

enum { SLURM_MAX_REST = 4 << 20 };

struct slurm_split {
    const char *array; /* a member of the outermost object; all private */
    struct buf item, rest;
    size_t depth, items;
    bool in_string, escaped, in_array, found, given;
};

/* array is borrowed; it is a name without anything that JSON escapes. max_item: in bytes. */
void slurm_split_init(struct slurm_split *split, const char *array, size_t max_item);
void slurm_split_done(struct slurm_split *split);

/* Takes bytes off the front of the piece. 1: an element is complete, borrowed until the next call.
 * 0: the piece is used up. -ERR_TOO_BIG or -ERR_INVALID: no more can be told from this answer. */
int slurm_split_next(struct slurm_split *split, struct str *piece, struct str *ret_item,
                     struct err *err);

/* The answer without the elements; no JSON before the end has come, nor if it was cut off. */
struct str slurm_split_rest(const struct slurm_split *split);

#endif

/* gres.h - lists of generic resources (devices), as Slurm writes them. */
#ifndef SLINC_SLURM_GRES_H
#define SLINC_SLURM_GRES_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* The next entry of a node's list: "gpu:a:4,gpu:b:4(S:0,1)". */
bool gres_next(struct str *rest, struct str *ret_name, struct str *ret_type, int64_t *ret_count);
/* The next entry of a list as jobs request it: "gres/gpu:a=2", "gres:gpu:2", "gpu". The count may
 * have a letter ("2k"); -1 if it cannot be read. */
bool gres_next_requested(struct str *rest, struct str *ret_name, struct str *ret_type,
                         int64_t *ret_count);
/* How many a node's list has of a name, of one type or, with type "", of all. */
int64_t gres_count(const char *list, struct str name, struct str type);
int64_t gres_total(const char *list, struct str name); /* of all types */
/* The entry of this name and type in a node's list: the index of its first device among all devices
 * of the name, and how many it has. False: there is none. */
bool gres_find(const char *list, const char *name, const char *type, int64_t *ret_first,
               int64_t *ret_count);

/* Whether the text requests no device at all, as sbatch takes it. */
bool gres_is_none(const char *text);
/* Raises what a list requests to `times` times each entry of `least`. An entry of `least` without a
 * type is served by every type, and devices that are lacking are added to the last entry that can
 * serve it. The result is `list` itself, or in the arena. -ERR_INVALID: too long. */
int gres_raise(const char *list, const char *least, int64_t times, struct arena *arena,
               const char **ret_list, struct err *err);

#endif

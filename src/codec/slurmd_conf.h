/* slurmd_conf.h - the parameters of a dynamic node, as slurmd takes them behind --conf: Key=Value
 * items with blanks between.
 *
 * Holds: nothing in what is written means anything to a shell. The images of Slinky run the
 * arguments of slurmd through one. */
#ifndef SLINC_CODEC_SLURMD_CONF_H
#define SLINC_CODEC_SLURMD_CONF_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum { SLURMD_CONF_MAX_ITEMS = 128 };

/* Begins with the arena alone, in which the texts are. */
struct slurmd_conf {
    struct arena *arena;
    const char *keys[SLURMD_CONF_MAX_ITEMS], *values[SLURMD_CONF_MAX_ITEMS];
    const char *features[SLURMD_CONF_MAX_ITEMS];
    size_t count, feature_count;
    bool has_gres; /* a text that was read says which, or that there is none */
};

/* A text of a user. An item that cannot be read is left out, and the others are not. The first
 * error counts. */
int slurmd_conf_read(struct str text, struct slurmd_conf *items, struct err *err);

/* A key that is there gets one value more, with a comma between. false: there are too many. */
bool slurmd_conf_add(struct slurmd_conf *items, struct str key, struct str value);
bool slurmd_conf_add_features(struct slurmd_conf *items, struct str list);

/* "" when there is no such key, which is spelled as "Gres". */
const char *slurmd_conf_get(const struct slurmd_conf *items, const char *key);

/* In single quotes, sorted, with the features as the last item. */
const char *slurmd_conf_write(struct slurmd_conf *items);

#endif

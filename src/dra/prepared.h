/* prepared.h - the claims that are prepared on this node, and the checkpoint file that holds them.
 *
 * A claim is what its JSON in the checkpoint says:
 *
 *     {"namespace","name","uid","job","cores":"0-1","cpus":"0-1,8-9",
 *      "devices":[{"pool","device","shareID"}]}
 *
 * A change is on disk before it counts. A checkpoint that cannot be read is an error: without it
 * two claims could get the same CPUs. */
#ifndef SLINC_DRA_PREPARED_H
#define SLINC_DRA_PREPARED_H

#include "codec/bitmap.h"
#include "codec/json.h"

enum { PREPARED_MAX_CLAIMS = 4096, PREPARED_MAX_BYTES = 16 << 20 };

struct prepared_claim {
    struct json_doc *doc;
    struct bitmap cpus;
    const char *ns, *name, *uid; /* borrowed from doc */
};

/* Takes the document, also on failure. */
int prepared_claim_new(struct json_doc *doc, struct prepared_claim **ret_claim, struct err *err);
void prepared_claim_free(struct prepared_claim *claim); /* takes NULL */

struct prepared;

int prepared_open(const char *path, struct prepared **ret_prepared, struct err *err);
void prepared_free(struct prepared *prepared); /* takes NULL; the file stays */

size_t prepared_count(const struct prepared *prepared);
const struct prepared_claim *prepared_get(const struct prepared *prepared, struct str uid);
/* Another claim that has one of these CPUs; NULL: none. */
const struct prepared_claim *prepared_overlap(const struct prepared *prepared,
                                              const struct prepared_claim *claim);
/* For walks: the claims in the order in which they came; NULL behind the last. */
const struct prepared_claim *prepared_at(const struct prepared *prepared, size_t index);

/* Takes the claim, also on failure. */
int prepared_put(struct prepared *prepared, struct prepared_claim *claim, struct err *err);
int prepared_remove(struct prepared *prepared, struct str uid,
                    struct err *err); /* absent is fine */

#endif

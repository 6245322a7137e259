/* object_private.h - the decoder: what object.c and decoder.c share. Private to the two.
 *
 * An object is decoded twice over the same JSON: the first time nothing is kept and the bytes are
 * counted, then one block of exactly that size is filled. The block has two parts: what must be
 * aligned, and behind it the texts. */
#ifndef SLINC_KUBE_OBJECT_PRIVATE_H
#define SLINC_KUBE_OBJECT_PRIVATE_H

#include "base/arena.h"
#include "kube/object.h"

#include <stdalign.h>

enum { KUBE_DECODER_RECENT = 8, KUBE_DECODER_SPARE = 1024, KUBE_DECODER_FOUND = 64 };

struct kube_decoder {
    char *block;          /* NULL while counting */
    size_t aligned, text; /* how far each part is used; when filling, text starts behind aligned */
    bool borrows;         /* texts stay where they are: in the tree, which the object keeps */
    struct {
        struct str text; /* in the JSON */
        const char *copy;
    } recent[KUBE_DECODER_RECENT]; /* uids and names are often said twice */
    unsigned recent_next;
    const struct json *found[KUBE_DECODER_FOUND]; /* by kube_decoder_get, in order */
    unsigned found_next;
    size_t spare_used;
    struct arena overflow; /* for counting, when `spare` is full */
    alignas(max_align_t) char spare[KUBE_DECODER_SPARE];
};

void kube_decoder_count(struct kube_decoder *decoder, bool borrows);
/* From counting to filling; -ERR_TOO_BIG when the block would be. */
int kube_decoder_fill(struct kube_decoder *decoder, struct err *err);
void kube_decoder_done(struct kube_decoder *decoder); /* leaves the block alone */

/* As kube_decoder_alloc, but NULL while counting: for what is filled only when there is room. */
void *kube_decoder_reserve(struct kube_decoder *decoder, size_t size);

/* The pairs of `base` after a merge patch; they keep pointing into the base's block. */
struct kube_pairs kube_decoder_merged(struct kube_decoder *decoder, const struct kube_pairs *base,
                                      const struct json *patch);

#endif

/* selector_private.h - what selector.c and fieldselector.c share. */
#ifndef SLINC_CODEC_SELECTOR_PRIVATE_H
#define SLINC_CODEC_SELECTOR_PRIVATE_H

#include "codec/selector.h"

/* The start of a text in an error. */
#define SHOWN(s) (int)((s).len > 80 ? 80 : (s).len), (s).at

/* A copy in the arena that slices may point into; refuses what is too long or not text. */
int selector_take_text(struct arena *arena, struct str text, struct str *ret_copy, struct err *err);

#endif

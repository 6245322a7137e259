/* base64.h - RFC 4648 base64, strict: every byte string has one text, and only that one is read. */
#ifndef SLINC_CODEC_BASE64_H
#define SLINC_CODEC_BASE64_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Options, or'ed together; 0 is the standard alphabet with padding, as in Kubernetes Secrets. */
enum base64_option {
    BASE64_URL = 1,      /* - and _ in place of + and / */
    BASE64_UNPADDED = 2, /* no '=' is written, and none is accepted */
    BASE64_NEWLINES = 4, /* decoding: CR and LF are skipped wherever they stand */
};

/* Append to out, whose maximum is the bound: ask buf_check of it after encoding. */
void base64_encode(struct str bytes, unsigned options, struct buf *out);

/* -ERR_INVALID for a foreign character, wrong padding, or bits set behind the last byte;
 * -ERR_TOO_BIG when out is full, which marks it. Either way out keeps what it held before. No part
 * of the text appears in the error: it may be a secret. */
int base64_decode(struct str text, unsigned options, struct buf *out, struct err *err);

#endif

/* digest.h - SHA-256 as lower-case hex: hashes that stand in annotations. */
#ifndef SLINC_CODEC_DIGEST_H
#define SLINC_CODEC_DIGEST_H

#include "base/str.h"

enum { DIGEST_HEX = 65 }; /* 64 digits and a NUL */

void digest_sha256(struct str bytes, char ret_hex[DIGEST_HEX]);

#endif

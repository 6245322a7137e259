/* hmac.h - HMAC-SHA256 as text: proof that whoever wrote a text knew a key. */
#ifndef SLINC_CODEC_HMAC_H
#define SLINC_CODEC_HMAC_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

enum { HMAC_TEXT = 43 }; /* bytes: base64 of URLs, without padding */

/* ret_mac has no NUL at its end. -ERR_BUG when OpenSSL cannot do it. */
int hmac_sha256(struct str key, struct str text, char ret_mac[HMAC_TEXT], struct err *err);
/* Whether mac is that of the text; compared in constant time. */
int hmac_check(struct str key, struct str text, struct str mac, bool *ret_is_right,
               struct err *err);

#endif

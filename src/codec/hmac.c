/* hmac.c - signs texts and checks signatures.
 *
 * Holds: what is made on the way is wiped; signatures are compared in constant time. */
#include "codec/hmac.h"

#include "codec/base64.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

enum { MAC_SIZE = 32 };

/* The one-shot call wipes its own state. */
int hmac_sha256(struct str key, struct str text, char ret_mac[HMAC_TEXT], struct err *err)
{
    unsigned char mac[MAC_SIZE];
    unsigned size = sizeof(mac);
    struct buf encoded = { 0 };

    if (!HMAC(EVP_sha256(), key.at, (int)key.len, (const unsigned char *)text.at, text.len, mac,
              &size) ||
        size != sizeof(mac))
        return err_set(err, ERR_BUG, "HMAC-SHA256 does not work in this OpenSSL");
    buf_init(&encoded, HMAC_TEXT);
    base64_encode((struct str){ (const char *)mac, sizeof(mac) }, BASE64_URL | BASE64_UNPADDED,
                  &encoded);
    memcpy(ret_mac, encoded.data, HMAC_TEXT);
    OPENSSL_cleanse(encoded.data, encoded.len);
    OPENSSL_cleanse(mac, sizeof(mac));
    buf_done(&encoded);
    return 0;
}

int hmac_check(struct str key, struct str text, struct str mac, bool *ret_is_right, struct err *err)
{
    char wanted[HMAC_TEXT];
    int result = hmac_sha256(key, text, wanted, err);

    if (result < 0)
        return result;
    *ret_is_right = str_eq_secret(mac, (struct str){ wanted, sizeof(wanted) });
    OPENSSL_cleanse(wanted, sizeof(wanted));
    return 0;
}

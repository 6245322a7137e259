/* digest.c - SHA-256 by OpenSSL. */
#include "codec/digest.h"

#include <openssl/sha.h>

void digest_sha256(struct str bytes, char ret_hex[DIGEST_HEX])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[SHA256_DIGEST_LENGTH];

    (void)SHA256((const unsigned char *)bytes.at, bytes.len, sum);
    for (size_t i = 0; i < sizeof(sum); i++) {
        ret_hex[2 * i] = digits[sum[i] >> 4];
        ret_hex[2 * i + 1] = digits[sum[i] & 15];
    }
    ret_hex[2 * sizeof(sum)] = '\0';
}

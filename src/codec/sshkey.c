/* sshkey.c - OpenSSH's format of keys, around OpenSSL's. */
#include "codec/sshkey.h"

#include "base/mem.h"
#include "codec/base64.h"
#include "codec/json.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

enum { MAX_BLOB = 8 << 10, MAX_NUMBER = 1024, COLUMNS = 64, BLOCK = 8, RSA_BITS = 4096 };

/* ---- the wire format of RFC 4251 ---- */

static void put_u32(struct buf *out, uint32_t value)
{
    const unsigned char bytes[] = { (unsigned char)(value >> 24), (unsigned char)(value >> 16),
                                    (unsigned char)(value >> 8), (unsigned char)value };

    buf_add(out, bytes, sizeof(bytes));
}

static void put_string(struct buf *out, const void *bytes, size_t length)
{
    put_u32(out, (uint32_t)length);
    buf_add(out, bytes, length);
}

static void put_text(struct buf *out, const char *text)
{
    put_string(out, text, strlen(text));
}

/* A positive number: a leading zero byte where the first bit is set. */
static void put_number(struct buf *out, const BIGNUM *number)
{
    unsigned char bytes[MAX_NUMBER + 1] = { 0 };
    int length = BN_bn2bin(number, bytes + 1);

    if (length > 0 && (bytes[1] & 0x80))
        put_string(out, bytes, (size_t)length + 1);
    else
        put_string(out, bytes + 1, (size_t)length);
}

/* ---- the parts of a key ---- */

static int put_parameters(struct buf *out, const EVP_PKEY *key, const char *const *names)
{
    for (; *names; names++) {
        BIGNUM *number = NULL;

        if (!EVP_PKEY_get_bn_param(key, *names, &number))
            return -1;
        put_number(out, number);
        BN_clear_free(number);
    }
    return 0;
}

static int put_rsa(struct buf *public, struct buf *private, const EVP_PKEY *key)
{
    static const char *const of_public[] = { OSSL_PKEY_PARAM_RSA_E, OSSL_PKEY_PARAM_RSA_N, NULL };
    static const char *const of_private[] = { OSSL_PKEY_PARAM_RSA_N,
                                              OSSL_PKEY_PARAM_RSA_E,
                                              OSSL_PKEY_PARAM_RSA_D,
                                              OSSL_PKEY_PARAM_RSA_COEFFICIENT1,
                                              OSSL_PKEY_PARAM_RSA_FACTOR1,
                                              OSSL_PKEY_PARAM_RSA_FACTOR2,
                                              NULL };

    put_text(public, "ssh-rsa");
    put_text(private, "ssh-rsa");
    return put_parameters(public, key, of_public) < 0 ||
                   put_parameters(private, key, of_private) < 0
               ? -1
               : 0;
}

static int put_ed25519(struct buf *public, struct buf *private, const EVP_PKEY *key)
{
    unsigned char pair[64]; /* the seed, then the public key */
    size_t seed = 32, point = 32;

    if (!EVP_PKEY_get_raw_private_key(key, pair, &seed) ||
        !EVP_PKEY_get_raw_public_key(key, pair + 32, &point))
        return -1;
    put_text(public, "ssh-ed25519");
    put_string(public, pair + 32, 32);
    put_text(private, "ssh-ed25519");
    put_string(private, pair + 32, 32);
    put_string(private, pair, sizeof(pair));
    OPENSSL_cleanse(pair, sizeof(pair));
    return 0;
}

static int put_ecdsa(struct buf *public, struct buf *private, const EVP_PKEY *key)
{
    static const char *const of_private[] = { OSSL_PKEY_PARAM_PRIV_KEY, NULL };
    unsigned char point[128];
    size_t length = 0;

    if (!EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, point,
                                         sizeof(point), &length))
        return -1;
    for (struct buf *out = public;; out = private) {
        put_text(out, "ecdsa-sha2-nistp256");
        put_text(out, "nistp256");
        put_string(out, point, length);
        if (out == private)
            break;
    }
    return put_parameters(private, key, of_private);
}

static const struct key_row {
    const char *name; /* in the line of the public key */
    int (*put)(struct buf *public, struct buf *private, const EVP_PKEY *key);
} key_rows[] = {
    [SSHKEY_RSA] = { "ssh-rsa", put_rsa },
    [SSHKEY_ED25519] = { "ssh-ed25519", put_ed25519 },
    [SSHKEY_ECDSA] = { "ecdsa-sha2-nistp256", put_ecdsa },
};

static EVP_PKEY *new_key(enum sshkey_type type)
{
    switch (type) {
    case SSHKEY_RSA:
        return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)RSA_BITS);
    case SSHKEY_ED25519:
        return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    case SSHKEY_ECDSA:
        return EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    }
    return NULL;
}

/* ---- the files ---- */

static void write_lines(struct buf *out, struct str text)
{
    for (size_t at = 0; at < text.len; at += COLUMNS) {
        buf_add_str(out, str_sub(text, at, at + COLUMNS));
        buf_add_char(out, '\n');
    }
}

/* Two equal numbers tell whether a key was decrypted well; this one is not encrypted. */
static int write_private(struct buf *out, struct str public, struct str private)
{
    auto_buf struct buf section, blob, text;
    uint32_t check;

    buf_init(&section, MAX_BLOB);
    buf_init(&blob, MAX_BLOB);
    buf_init(&text, 2 * MAX_BLOB);
    if (RAND_bytes((unsigned char *)&check, sizeof(check)) != 1)
        return -1;
    put_u32(&section, check);
    put_u32(&section, check);
    buf_add_str(&section, private);
    put_text(&section, "");
    for (char pad = 1; section.len % BLOCK != 0; pad++)
        buf_add_char(&section, pad);
    buf_add(&blob, "openssh-key-v1", sizeof("openssh-key-v1"));
    put_text(&blob, "none");
    put_text(&blob, "none");
    put_text(&blob, "");
    put_u32(&blob, 1);
    put_string(&blob, public.at, public.len);
    put_string(&blob, section.data, section.len);
    base64_encode(buf_str(&blob), 0, &text);
    buf_add_text(out, "-----BEGIN OPENSSH PRIVATE KEY-----\n");
    write_lines(out, buf_str(&text));
    buf_add_text(out, "-----END OPENSSH PRIVATE KEY-----\n");
    return 0;
}

int sshkey_make(enum sshkey_type type, struct buf *ret_private, struct buf *ret_public,
                struct err *err)
{
    auto_buf struct buf public, private;
    EVP_PKEY *key = new_key(type);
    int result = -1;

    buf_init(&public, MAX_BLOB);
    buf_init(&private, MAX_BLOB);
    if (key && key_rows[type].put(&public, &private, key) == 0 &&
        write_private(ret_private, buf_str(&public), buf_str(&private)) == 0) {
        buf_printf(ret_public, "%s ", key_rows[type].name);
        base64_encode(buf_str(&public), 0, ret_public);
        buf_add_char(ret_public, '\n');
        result = 0;
    }
    EVP_PKEY_free(key);
    return result < 0 ? err_set(err, ERR_BUG, "OpenSSL cannot make a %s key", key_rows[type].name)
                      : 0;
}

/* ---- the keys of a host ---- */

const char *const sshkey_host_files[] = {
    "ssh_host_rsa_key",
    "ssh_host_rsa_key.pub",
    "ssh_host_ed25519_key",
    "ssh_host_ed25519_key.pub",
    "ssh_host_ecdsa_key",
    "ssh_host_ecdsa_key.pub",
    NULL,
};

static void put_file(struct json_build *build, struct json_mut *data, const char *name,
                     struct str text)
{
    auto_buf struct buf value;

    buf_init(&value, 2 * SSHKEY_MAX_TEXT);
    base64_encode(text, 0, &value);
    json_put_text(build, data, name, buf_text(&value));
}

int sshkey_make_host(struct buf *ret_json, struct err *err)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *data = json_new_object(build);
    int result = 0;

    for (int type = SSHKEY_RSA; type <= SSHKEY_ECDSA && result == 0; type++) {
        struct buf private, public;

        buf_init(&private, SSHKEY_MAX_TEXT);
        buf_init(&public, SSHKEY_MAX_TEXT);
        result = sshkey_make((enum sshkey_type)type, &private, &public, err);
        put_file(build, data, sshkey_host_files[2 * type], buf_str(&private));
        put_file(build, data, sshkey_host_files[2 * type + 1], buf_str(&public));
        mem_free_secret(private.data, private.len);
        buf_done(&public);
    }
    json_mut_write(data, ret_json);
    return result;
}

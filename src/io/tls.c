/* tls.c - loading PEM material, and a server context made of it.
 *
 * Holds: material that exists has passed its checks, so a connection never fails over a file that
 * was half written when it was read; no text of a key reaches an error. */
#include "io/tls.h"

#include "base/mem.h"
#include "io/reload.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

enum { MAX_PEM = 1 << 20, MAX_CHAIN = 16 };

struct piece {
    char *at; /* NULL when not given; a NUL stands behind */
    size_t len;
};

struct tls_material {
    unsigned references;
    struct piece ca, cert, key;
};

static int fail(struct err *err, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    int result = err_set(err, ERR_INVALID, "%s: %s", what, reason ? reason : "not usable");

    ERR_clear_error();
    return result;
}

/* --- reading PEM --- */

/* An encrypted key is refused; without this OpenSSL would ask on the terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *context)
{
    return -1;
}

static BIO *bio_of(const struct piece *piece)
{
    return BIO_new_mem_buf(piece->at, (int)piece->len);
}

static int check_ca(const struct piece *ca, struct err *err)
{
    BIO *bio = bio_of(ca);
    X509 *certificate = bio ? PEM_read_bio_X509_AUX(bio, NULL, no_passphrase, NULL) : NULL;
    int result = certificate ? 0 : fail(err, "CA certificate");

    X509_free(certificate);
    BIO_free(bio);
    return result;
}

static int use_chain(SSL_CTX *context, BIO *bio, struct err *err)
{
    X509 *leaf = PEM_read_bio_X509_AUX(bio, NULL, no_passphrase, NULL);
    int used = leaf ? SSL_CTX_use_certificate(context, leaf) : 0;

    X509_free(leaf);
    if (used != 1)
        return fail(err, "certificate");
    for (int i = 0; i < MAX_CHAIN; i++) {
        X509 *link = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);

        if (!link) {
            ERR_clear_error(); /* the end of the text, or something that is no certificate */
            return 0;
        }
        if (SSL_CTX_add0_chain_cert(context, link) != 1) {
            X509_free(link);
            return fail(err, "certificate chain");
        }
    }
    return err_set(err, ERR_TOO_BIG, "certificate chain: more than %d certificates", MAX_CHAIN);
}

static int use_key(SSL_CTX *context, BIO *bio, struct err *err)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    int used = key ? SSL_CTX_use_PrivateKey(context, key) : 0;

    EVP_PKEY_free(key);
    if (used != 1 || SSL_CTX_check_private_key(context) != 1)
        return fail(err, "private key");
    return 0;
}

static int use_pair(SSL_CTX *context, const struct tls_material *material, struct err *err)
{
    BIO *cert = bio_of(&material->cert), *key = bio_of(&material->key);
    int result = cert && key ? use_chain(context, cert, err) : fail(err, "certificate");

    if (result == 0)
        result = use_key(context, key, err);
    BIO_free(cert);
    BIO_free(key);
    return result;
}

static int check_pair(const struct tls_material *material, struct err *err)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    int result = context ? use_pair(context, material, err) : fail(err, "TLS");

    SSL_CTX_free(context);
    return result;
}

/* --- material --- */

static void piece_done(struct piece *piece)
{
    if (piece->at)
        mem_free_secret(piece->at, piece->len + 1);
}

static int piece_load(const char *file, struct str memory, struct piece *ret_piece, struct err *err)
{
    if (file)
        return reload_read(file, MAX_PEM, &ret_piece->at, &ret_piece->len, err);
    if (memory.len > MAX_PEM)
        return err_set(err, ERR_TOO_BIG, "PEM text is longer than %d bytes", MAX_PEM);
    if (memory.len > 0)
        *ret_piece = (struct piece){ mem_strndup(memory.at, memory.len), memory.len };
    return 0;
}

static int load_and_check(const struct tls_source *source, struct tls_material *material,
                          struct err *err)
{
    int result = piece_load(source->ca_file, source->ca, &material->ca, err);

    if (result == 0)
        result = piece_load(source->cert_file, source->cert, &material->cert, err);
    if (result == 0)
        result = piece_load(source->key_file, source->key, &material->key, err);
    if (result < 0)
        return result;
    if (!material->cert.at != !material->key.at)
        return err_set(err, ERR_INVALID, "a certificate and its key go together");
    if (material->ca.at)
        result = check_ca(&material->ca, err);
    if (result == 0 && material->cert.at)
        result = check_pair(material, err);
    return result;
}

int tls_material_new(const struct tls_source *source, struct tls_material **ret_material,
                     struct err *err)
{
    struct tls_material *material = mem_alloc(sizeof(*material));

    material->references = 1;

    int result = load_and_check(source, material, err);

    if (result < 0) {
        tls_material_unref(material);
        return result;
    }
    *ret_material = material;
    return 0;
}

struct tls_material *tls_material_ref(struct tls_material *material)
{
    material->references++;
    return material;
}

void tls_material_unref(struct tls_material *material)
{
    if (!material || --material->references > 0)
        return;
    piece_done(&material->ca);
    piece_done(&material->cert);
    piece_done(&material->key);
    mem_free(material);
}

static struct str piece_str(const struct piece *piece)
{
    return piece->at ? (struct str){ piece->at, piece->len } : STR("");
}

struct str tls_material_ca(const struct tls_material *material)
{
    return piece_str(&material->ca);
}

struct str tls_material_cert(const struct tls_material *material)
{
    return piece_str(&material->cert);
}

struct str tls_material_key(const struct tls_material *material)
{
    return piece_str(&material->key);
}

/* --- serving --- */

static int choose_protocol(SSL *ssl, const unsigned char **ret_chosen, unsigned char *ret_length,
                           const unsigned char *offered, unsigned int offered_length, void *context)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen = NULL;

    if (SSL_select_next_proto(&chosen, ret_length, ours, sizeof(ours) - 1, offered,
                              offered_length) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK; /* go on without; it may speak HTTP/1.1 all the same */
    *ret_chosen = chosen;
    return SSL_TLSEXT_ERR_OK;
}

int tls_server_context(const struct tls_material *material, SSL_CTX **ret_context, struct err *err)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    int result = context ? 0 : fail(err, "TLS");

    if (result == 0 && SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1)
        result = fail(err, "TLS 1.2");
    if (result == 0)
        result = use_pair(context, material, err);
    if (result < 0) {
        SSL_CTX_free(context);
        return result;
    }
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    *ret_context = context;
    return 0;
}

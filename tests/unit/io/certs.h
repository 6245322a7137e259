/* certs.h - certificates for tests: authorities, and what they sign. */
#ifndef SLINC_TESTS_IO_CERTS_H
#define SLINC_TESTS_IO_CERTS_H

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CERTS_UNUSED __attribute__((unused))

enum { CERT_PEM_MAX = 4096 };

struct cert {
    X509 *x509;
    EVP_PKEY *key;
    char cert_pem[CERT_PEM_MAX], key_pem[CERT_PEM_MAX];
};

static void cert_must(int holds)
{
    if (!holds)
        abort();
}

CERTS_UNUSED static void cert_extend(X509 *x509, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);

    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);

    cert_must(extension && X509_add_ext(x509, extension, -1));
    X509_EXTENSION_free(extension);
}

static void cert_print(const struct cert *cert, char *text, int key)
{
    BIO *bio = BIO_new(BIO_s_mem());

    cert_must(key ? PEM_write_bio_PrivateKey(bio, cert->key, NULL, NULL, 0, NULL, NULL)
                  : PEM_write_bio_X509(bio, cert->x509));

    int length = BIO_read(bio, text, CERT_PEM_MAX - 1);

    cert_must(length > 0);
    text[length] = '\0';
    BIO_free(bio);
}

/* Valid from an hour before now for `seconds`. issuer NULL makes an authority that signs itself;
 * names is like "DNS:localhost,IP:127.0.0.1". */
CERTS_UNUSED static void cert_make(struct cert *cert, const char *name, const char *names,
                                   const struct cert *issuer, long seconds)
{
    static long serial = 1;
    const struct cert *signer = issuer ? issuer : cert;

    *cert = (struct cert){ .x509 = X509_new(), .key = EVP_EC_gen("P-256") };
    cert_must(cert->x509 && cert->key);
    X509_set_version(cert->x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert->x509), serial++);
    X509_gmtime_adj(X509_getm_notBefore(cert->x509), -7200);
    X509_gmtime_adj(X509_getm_notAfter(cert->x509), seconds - 3600);
    X509_set_pubkey(cert->x509, cert->key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert->x509), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(cert->x509, X509_get_subject_name(signer->x509));
    cert_extend(cert->x509, signer->x509, NID_basic_constraints,
                issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (names)
        cert_extend(cert->x509, signer->x509, NID_subject_alt_name, names);
    cert_must(X509_sign(cert->x509, signer->key, EVP_sha256()) > 0);
    cert_print(cert, cert->cert_pem, 0);
    cert_print(cert, cert->key_pem, 1);
}

CERTS_UNUSED static void cert_free(struct cert *cert)
{
    X509_free(cert->x509);
    EVP_PKEY_free(cert->key);
    *cert = (struct cert){ .x509 = NULL };
}

CERTS_UNUSED static SSL_CTX *cert_server_context(const struct cert *cert)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    cert_must(SSL_CTX_use_certificate(context, cert->x509) == 1 &&
              SSL_CTX_use_PrivateKey(context, cert->key) == 1);
    return context;
}

CERTS_UNUSED static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    cert_must(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

#endif

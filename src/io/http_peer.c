/* http_peer.c - who is at the other end of a connection, by its certificate.
 *
 * The handshake asks for a certificate and takes whatever comes, because a wrong one must be
 * answered with a status, not with a broken connection. The certificate is judged per request,
 * against CAs that may change while the connection lives. */
#include "io/http_server_internal.h"

#include <event2/bufferevent_ssl.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>

enum { MAX_CAS = 64 };

static int take_any(int is_verified, X509_STORE_CTX *context)
{
    (void)is_verified;
    (void)context;
    return 1;
}

/* Sessions are not resumed: a resumed one would need a context of its own for each CA. */
void http_server_ask_certificate(SSL_CTX *context)
{
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, take_any);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    (void)SSL_CTX_set_num_tickets(context, 0);
}

static X509_STORE *store_of(struct str ca)
{
    BIO *bio = BIO_new_mem_buf(ca.at, (int)ca.len);
    X509_STORE *store = X509_STORE_new();
    unsigned count = 0;

    for (; bio && store && count < MAX_CAS; count++) {
        X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);

        if (!certificate)
            break;
        (void)X509_STORE_add_cert(store, certificate);
        X509_free(certificate);
    }
    BIO_free(bio);
    if (count > 0)
        return store;
    X509_STORE_free(store);
    return NULL;
}

static int verify(X509 *certificate, STACK_OF(X509) * chain, struct str ca, struct err *err)
{
    X509_STORE *store = store_of(ca);
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    int result = err_set(err, ERR_DENIED, "there is no CA to judge certificates by");

    if (store && context && X509_STORE_CTX_init(context, store, certificate, chain) == 1 &&
        X509_STORE_CTX_set_default(context, "ssl_client") == 1)
        result = X509_verify_cert(context) == 1
                     ? 0
                     : err_set(err, ERR_DENIED, "the client's certificate: %s",
                               X509_verify_cert_error_string(X509_STORE_CTX_get_error(context)));
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
    return result;
}

int http_view_peer(const struct http_view *view, struct str ca, char *ret_name, size_t size,
                   struct err *err)
{
    SSL *ssl = bufferevent_openssl_get_ssl(view->conn->bufferevent);
    X509 *certificate = ssl ? SSL_get1_peer_certificate(ssl) : NULL;
    int result;

    if (!certificate)
        return err_set(err, ERR_NOT_FOUND, "the client has shown no certificate");
    result = verify(certificate, SSL_get_peer_cert_chain(ssl), ca, err);
    if (result == 0 && X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                                 ret_name, (int)size) < 0)
        ret_name[0] = '\0';
    X509_free(certificate);
    return result;
}

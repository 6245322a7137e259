/* cert_folder.h - a folder with the certificate of a server on 127.0.0.1, as it is mounted into a
 * pod; shared by tests of servers that read one. */
#ifndef SLINC_TESTS_IO_CERT_FOLDER_H
#define SLINC_TESTS_IO_CERT_FOLDER_H

#include "certs.h"
#include "exchange.h"

#include <unistd.h>

struct cert_folder {
    char path[64], cert_file[96], key_file[96];
};

static inline void cert_folder_make(struct cert_folder *folder)
{
    (void)snprintf(folder->path, sizeof(folder->path), "/tmp/slinc-certs-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    (void)snprintf(folder->cert_file, sizeof(folder->cert_file), "%s/tls.crt", folder->path);
    (void)snprintf(folder->key_file, sizeof(folder->key_file), "%s/tls.key", folder->path);
}

static inline void cert_folder_fill(const struct cert_folder *folder, const struct cert *cert)
{
    write_file(folder->cert_file, cert->cert_pem);
    write_file(folder->key_file, cert->key_pem);
}

static inline void cert_folder_remove(const struct cert_folder *folder)
{
    (void)unlink(folder->cert_file);
    (void)unlink(folder->key_file);
    (void)rmdir(folder->path);
}

/* ---- an authority, and what it signed for the server ---- */

struct serving_certs {
    struct cert ca, server;
};

static inline void serving_certs_make(struct serving_certs *certs)
{
    cert_make(&certs->ca, "test CA", NULL, NULL, 86400);
    cert_make(&certs->server, "server", "IP:127.0.0.1", &certs->ca, 86400);
}

static inline void serving_certs_free(struct serving_certs *certs)
{
    cert_free(&certs->ca);
    cert_free(&certs->server);
}

static inline struct http_transport *serving_certs_connect(const struct serving_certs *certs,
                                                           struct loop *loop, unsigned port)
{
    char url[64];
    const struct http_client_options options = { .base_url = url,
                                                 .tls = { .ca = str_of(certs->ca.cert_pem) } };
    struct http_transport *transport;

    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u", port);
    assert_int_equal(http_client_new(loop, &options, &transport, NULL), 0);
    return transport;
}

#endif

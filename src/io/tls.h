/* tls.h - certificates and keys as PEM, checked before use, and the server side of TLS.
 *
 * Material is immutable and counted: a reload makes new material, and whoever began with the old
 * keeps it until done. Keys are wiped when the last user lets go. */
#ifndef SLINC_IO_TLS_H
#define SLINC_IO_TLS_H

#include "base/err.h"
#include "base/str.h"
#include "io/tls_source.h"

#include <openssl/types.h>

struct tls_material;

/* Reads and checks: the CA has at least one certificate, the key belongs to the certificate. */
int tls_material_new(const struct tls_source *source, struct tls_material **ret_material,
                     struct err *err);
struct tls_material *tls_material_ref(struct tls_material *material);
void tls_material_unref(struct tls_material *material);

/* Empty when not given. */
struct str tls_material_ca(const struct tls_material *material);
struct str tls_material_cert(const struct tls_material *material);
struct str tls_material_key(const struct tls_material *material);

/* A context for serving HTTP/1.1: TLS 1.2 at least, ALPN "http/1.1". */
int tls_server_context(const struct tls_material *material, SSL_CTX **ret_context, struct err *err);

#endif

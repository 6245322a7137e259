/* tls_source.h - where certificates and keys come from, as PEM. */
#ifndef SLINC_IO_TLS_SOURCE_H
#define SLINC_IO_TLS_SOURCE_H

#include "base/str.h"

/* Each piece from a file or from memory, or neither; certificate and key only together. */
struct tls_source {
    const char *ca_file, *cert_file, *key_file;
    struct str ca, cert, key;
};

#endif

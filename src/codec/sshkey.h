/* sshkey.h - SSH host keys, made and written as OpenSSH writes them.
 *
 * Making an RSA key takes seconds: call this outside of the loop. */
#ifndef SLINC_CODEC_SSHKEY_H
#define SLINC_CODEC_SSHKEY_H

#include "base/buf.h"
#include "base/err.h"

enum sshkey_type { SSHKEY_RSA, SSHKEY_ED25519, SSHKEY_ECDSA }; /* RSA 4096, P-256 */

enum { SSHKEY_MAX_TEXT = 16 << 10 };

/* Appends the private key ("-----BEGIN OPENSSH PRIVATE KEY-----", 64 columns, not encrypted, no
 * comment) and the line of the public key ("ssh-ed25519 AAAA..."), each with a final newline. */
int sshkey_make(enum sshkey_type type, struct buf *ret_private, struct buf *ret_public,
                struct err *err);

/* The names of the files of a host, NULL at the end; every second one is public. */
extern const char *const sshkey_host_files[];

/* A key of each type under these names, as a JSON object with base64 values. */
int sshkey_make_host(struct buf *ret_json, struct err *err);

#endif
